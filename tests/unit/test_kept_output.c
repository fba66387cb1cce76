#include <string.h>

#include "base/memory_account.h"
#include "session/processes/kept_output.h"
#include "tap.h"

static void add(struct kept_output *k, enum stream stream, const char *text)
{
	kept_output_add(k, stream, text, strlen(text));
}

static bool reads(
	struct kept_output *k, uint64_t at, enum stream stream, const char *text, uint64_t next)
{
	struct kept_view v;
	return kept_output_read(k, at, &v) && v.stream == stream && v.len == strlen(text) &&
	       !memcmp(v.data, text, v.len) && v.next == next;
}

static void pieces_in_order(void)
{
	struct kept_output k;
	struct kept_view v;
	kept_output_init(&k, 1 << 20);
	OK(!kept_output_read(&k, 0, &v));
	add(&k, STREAM_STDOUT, "ab");
	add(&k, STREAM_STDOUT, "cd");
	add(&k, STREAM_STDERR, "ef");
	add(&k, STREAM_STDOUT, "gh");
	OK(reads(&k, 0, STREAM_STDOUT, "abcd", 4));
	OK(reads(&k, 2, STREAM_STDOUT, "cd", 4));
	OK(reads(&k, 4, STREAM_STDERR, "ef", 6));
	OK(reads(&k, 6, STREAM_STDOUT, "gh", 8));
	OK(!kept_output_read(&k, 8, &v));
	OK(!kept_output_read(&k, 900, &v));
	OK(k.end == 8 && k.first == 0);
	kept_output_finish(&k);
	OK(hold_total() == 0);
}

static void oldest_go(void)
{
	struct kept_output k;
	struct kept_view v;
	char piece[4096];
	memset(piece, 'x', sizeof(piece));
	kept_output_init(&k, 4 * sizeof(piece));
	for (int i = 0; i < 10; i++) {
		kept_output_add(&k, i % 2 ? STREAM_STDOUT : STREAM_STDERR, piece, sizeof(piece));
		kept_output_trim(&k, k.end);
	}
	OK(k.end == 10 * sizeof(piece) && k.first == 6 * sizeof(piece));
	OK(kept_output_read(&k, 0, &v) && v.missed == 6 * sizeof(piece) &&
		v.next == 7 * sizeof(piece));
	OK(!kept_output_is_full(&k));
	/* what a reader has not read stays */
	for (int i = 0; i < 4; i++) {
		kept_output_add(&k, i % 2 ? STREAM_STDOUT : STREAM_STDERR, piece, sizeof(piece));
		kept_output_trim(&k, 6 * sizeof(piece));
	}
	OK(k.first == 6 * sizeof(piece) && kept_output_is_full(&k));
	kept_output_trim(&k, k.end);
	OK(!kept_output_is_full(&k) && k.first == 10 * sizeof(piece));
	kept_output_finish(&k);
	OK(hold_total() == 0);
}

int main(void)
{
	pieces_in_order();
	oldest_go();
	return tap_done();
}
