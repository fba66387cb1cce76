#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory_account.h"
#include "base/utf8.h"
#include "session/output.h"
#include "session/output_log.h"
#include "tap.h"

static char *joined(struct output *o, struct captured *ret)
{
	static char text[256];
	output_view(o, ret);
	snprintf(text, sizeof(text), "%.*s|%.*s", (int)ret->head_len, ret->head, (int)ret->tail_len,
		ret->tail);
	return text;
}

static void head_and_tail(void)
{
	struct output o;
	struct captured c;
	output_init(&o, 10);
	OK_STR(joined(&o, &c), "|");
	OK(output_add(&o, "abc", 3) == 3);
	OK_STR(joined(&o, &c), "abc|");
	OK(output_add(&o, "defg", 4) == 2);
	OK_STR(joined(&o, &c), "abcde|fg");
	OK(c.left_out == 0);
	OK(output_add(&o, "hijklm", 6) == 0);
	OK_STR(joined(&o, &c), "abcde|ijklm");
	OK(c.left_out == 3);
	output_add(&o, "0123456789ABCDEF", 16); /* more than the ring at once */
	OK_STR(joined(&o, &c), "abcde|BCDEF");
	output_add(&o, "xy", 2); /* across the ring's seam */
	OK_STR(joined(&o, &c), "abcde|DEFxy");
	OK(c.left_out == 3 + 4 + 16 + 6 + 2 - 10);
	output_finish(&o);
	OK_STR(joined(&o, &c), "|");
	output_finish(&o);
}

/* Every cap, byte by byte and in pieces: what is kept plus what is counted is what came. */
static void nothing_lost_in_counting(void)
{
	int good = 1;
	for (size_t cap = 2; cap < 40; cap++) {
		for (size_t piece = 1; piece < 9; piece++) {
			struct output o;
			struct captured c;
			size_t total = 0;
			output_init(&o, cap);
			for (; total < 100; total += piece)
				output_add(&o, "0123456789", piece);
			output_view(&o, &c);
			good &= c.head_len + c.tail_len + c.left_out == total &&
				c.head_len + c.tail_len <= cap;
			output_finish(&o);
		}
	}
	OK(good);
}

/*
 * When the daemon holds too much, less than the cap is kept, the rest is counted, and the view says
 * so.
 */
static void short_of_memory(void)
{
	static char block[1 << 16];
	struct hold others[64] = { 0 };
	struct output o;
	struct captured c;
	for (int i = 0; i < 64; i++)
		for (size_t want = LIMIT_HELD_BYTES;
			want > HOLD_FREE_BYTES && hold_set(&others[i], want) < 0; want /= 2)
			;
	output_init(&o, 16 << 20);
	for (int i = 0; i < 1024; i++) {
		memset(block, 'a' + i % 26, sizeof(block));
		output_add(&o, block, sizeof(block));
	}
	output_view(&o, &c);
	OK(c.is_short && c.head_len > 0 && c.head_len + c.tail_len < 1 << 20);
	OK(c.head_len + c.tail_len + c.left_out == 1024 * sizeof(block));
	OK(c.tail_len && c.tail[c.tail_len - 1] == 'a' + 1023 % 26);
	output_finish(&o);
	for (int i = 0; i < 64; i++)
		hold_set(&others[i], 0);
	OK(hold_total() == 0);
}

static void characters_stay_whole(void)
{
	struct output o;
	struct captured c;
	output_init(&o, 8);
	for (int i = 0; i < 10; i++)
		/* the euro sign, three bytes, in halves of four */
		output_add(&o, "\xe2\x82\xac", 3);
	OK_STR(joined(&o, &c), "\xe2\x82\xac|\xe2\x82\xac");
	OK(c.left_out == 24);
	output_finish(&o);
	OK(utf8_unfinished("ab\xe2\x82", 4) == 2);
	OK(utf8_unfinished("ab\xe2\x82\xac", 5) == 0);
	OK(utf8_unfinished("\xf0\x9f\x98", 3) == 3);
	OK(utf8_unfinished("\x80\x80\x80\x80", 4) == 0);
	OK(utf8_unfinished("", 0) == 0);
}

static void log_pages(void)
{
	struct output_log s;
	struct log_entry e;
	char big[20000];
	memset(big, 'x', sizeof(big));
	output_log_init(&s, "/tmp", 100000);
	OK(output_log_read(&s, 0, &e) == 0);
	output_log_add(&s, 1, STREAM_STDOUT, 5, "one", 3);
	output_log_add(&s, 2, STREAM_STDERR, 6, "two", 3);
	OK(output_log_read(&s, 0, &e) == 1 && e.cell == 1 && e.len == 3 &&
		!memcmp(e.data, "one", 3) && e.wall_ns == 5);
	OK(output_log_read(&s, e.next, &e) == 1 && e.stream == STREAM_STDERR && e.cell == 2);
	OK(output_log_read(&s, e.next, &e) == 0);
	OK(output_log_read(&s, 1, &e) < 0);
	OK(output_log_read(&s, 1ULL << 60, &e) < 0);
	OK(s.fd < 0);
	for (int i = 0; i < 3; i++)
		output_log_add(&s, 3, STREAM_STDOUT, 7, big, sizeof(big));
	OK(s.fd >= 0); /* grown into a file; what was there is still there */
	OK(output_log_read(&s, 0, &e) == 1 && !memcmp(e.data, "one", 3));
	uint64_t at = 0;
	unsigned n = 0;
	while (output_log_read(&s, at, &e) == 1) {
		at = e.next;
		n++;
	}
	OK(n == 5 && at == s.size);
	for (int i = 0; i < 3; i++)
		output_log_add(&s, 4, STREAM_STDOUT, 8, big, sizeof(big));
	OK(s.dropped == 2 * sizeof(big) && s.size <= 100000);
	output_log_add(&s, 5, STREAM_STDOUT, 9, "late", 4);
	OK(s.dropped == 2 * sizeof(big) + 4); /* no hole in the middle */
	output_log_finish(&s);
}

int main(void)
{
	head_and_tail();
	nothing_lost_in_counting();
	short_of_memory();
	characters_stay_whole();
	log_pages();
	return tap_done();
}
