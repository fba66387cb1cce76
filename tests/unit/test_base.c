#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/deferred.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/launcher.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "base/node_id.h"
#include "base/process.h"
#include "base/text.h"
#include "tap.h"

static void buffers(void)
{
	struct buffer b = BUFFER_INIT(10);
	OK(buffer_append_str(&b, "12345") == 0 && b.len == 5);
	OK(buffer_append_str(&b, "678901") == -ENOBUFS && b.len == 5);
	OK(buffer_printf(&b, "%d", 67890) == 0 && b.len == 10);
	OK(buffer_cstr(&b) == NULL);
	buffer_consume(&b, 8);
	OK_STR(buffer_cstr(&b), "90");
	buffer_finish(&b);
	OK(b.len == 0 && !b.data);
	buffer_init(&b, 0);
	OK(buffer_reserve(&b, SIZE_MAX / 2) == -ENOBUFS);
	char long_text[2000];
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	OK(buffer_printf(&b, "<%s>", long_text) == 0 && b.len == sizeof(long_text) + 1);
	buffer_finish(&b);
}

static void numbers(void)
{
	uint64_t u = 7;
	double d = 7;
	bool yes;
	OK(text_parse_u64("42", 0, 100, &u) == 0 && u == 42);
	OK(text_parse_u64("-1", 0, 100, &u) == -EINVAL && u == 42);
	OK(text_parse_u64("4x", 0, 100, &u) == -EINVAL);
	OK(text_parse_u64("", 0, 100, &u) == -EINVAL);
	OK(text_parse_u64("99999999999999999999999", 0, UINT64_MAX, &u) == -ERANGE);
	OK(text_parse_double("1.5", 0, 2, &d) == 0 && d == 1.5);
	OK(text_parse_double("nan", 0, 2, &d) == -EINVAL);
	OK(text_parse_double("inf", 0, 2, &d) == -EINVAL);
	OK(text_parse_double("3", 0, 2, &d) == -ERANGE && d == 1.5);
	OK(text_parse_size("64k", &u) == 0 && u == 65536);
	OK(text_parse_size("1.5GiB", &u) == 0 && u == 1610612736);
	OK(text_parse_size("12q", &u) == -EINVAL);
	OK(text_parse_size("-1", &u) == -EINVAL);
	OK(text_parse_bool("Yes", &yes) == 0 && yes);
	OK(text_parse_bool("off", &yes) == 0 && !yes);
	OK(text_parse_bool("maybe", &yes) == -EINVAL);
}

/* Every byte comes back, and nothing else passes. */
static void decodes_base64(struct buffer *b)
{
	static const char *const bad[] = { "a", "ab=c", "ab==cdef",
		"a===", "ab*=", "\xff\xff\xff\xff", "YR==", "YWI=YWI=" };
	_cleanup_buffer_ struct buffer back = BUFFER_INIT(0);
	char all[259];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 7);
	for (size_t n = sizeof(all) - 3; n <= sizeof(all); n++) {
		b->len = back.len = 0;
		text_base64(b, all, n);
		OK(text_base64_decode(&back, b->data, b->len) == 0 && back.len == n &&
			!memcmp(back.data, all, n));
		size_t digits = text_base64_digits(b->data, b->len);
		OK(digits == b->len - (3 - n % 3) % 3);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		OK(text_base64_decode(&back, bad[i], strlen(bad[i])) == -EINVAL);
}

static void texts(void)
{
	struct buffer b = BUFFER_INIT(0);
	static const struct {
		const char *in, *out;
	} pairs[] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
		{ "foobar", "Zm9vYmFy" } };
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		b.len = 0;
		text_base64(&b, pairs[i].in, strlen(pairs[i].in));
		OK_STR(buffer_cstr(&b), pairs[i].out);
	}
	decodes_base64(&b);
	buffer_finish(&b);
	OK(text_is_utf8("aé€😀", strlen("aé€😀")));
	OK(!text_is_utf8("\xff", 1));
	OK(!text_is_utf8("\xc0\x80", 2));     /* overlong */
	OK(!text_is_utf8("\xed\xa0\x80", 3)); /* surrogate */
	OK(!text_is_utf8("\xe2\x82", 2));     /* cut */
	OK(text_eq_secret("abc", 3, "abc", 3));
	OK(!text_eq_secret("abc", 3, "abd", 3));
	OK(!text_eq_secret("abc", 3, "abcd", 4));
	char a[27], c[27];
	text_random_id(a, 26);
	text_random_id(c, 26);
	OK(strlen(a) == 26 && strcmp(a, c));
	char when[CLOCK_TEXT_MAX];
	OK_STR(clock_format(1700000000123000000ULL, when), "2023-11-14T22:13:20.123Z");
	uint64_t wall = 0;
	OK(clock_parse("2023-11-14T22:13:20.123Z", &wall) == 0 && wall == 1700000000123000000ULL);
	OK(clock_parse("2023-11-15T00:13:20+02:00", &wall) == 0 && wall == 1700000000000000000ULL);
	OK(clock_parse("2023-11-14T20:13:20.5-02:00", &wall) == 0 &&
		wall == 1700000000500000000ULL);
	OK(clock_parse("2023-11-14T22:13:20", &wall) == -EINVAL);
	OK(clock_parse("1960-01-01T00:00:00Z", &wall) == -EINVAL);
	OK(clock_parse("2023-11-14T22:13:20Zx", &wall) == -EINVAL);
	OK(clock_parse("tomorrow", &wall) == -EINVAL && wall == 1700000000500000000ULL);
}

static void errors(void)
{
	struct error e = { 0 };
	OK(error_set(&e, -EINVAL, "bad %d", 3) == -EINVAL);
	error_slug(&e, "bad_thing");
	error_remedy(&e, "try %s", "harder");
	OK(error_wrap(&e, "while %s", "testing") == -EINVAL);
	OK_STR(e.text, "while testing: bad 3");
	OK_STR(e.remedy, "try harder");
	OK_STR(e.slug, "bad_thing");
	error_set_errno(&e, -ENOENT, "open %s", "x");
	OK_STR(e.text, "open x: No such file or directory");
	OK(error_set(NULL, -EIO, "unseen") == -EIO);
}

static void descriptors(void)
{
	int pair[2], got[2];
	size_t n;
	char byte = 0;
	OK(fd_socketpair(SOCK_SEQPACKET, pair) == 0);
	int extra[3] = { pair[0], pair[0], pair[0] };
	OK(fd_send(pair[0], "x", 1, extra, 2) == 0);
	OK(fd_recv(pair[1], &byte, 1, got, 2, &n) == 1 && byte == 'x' && n == 2);
	OK(fcntl(got[0], F_GETFD) == FD_CLOEXEC);
	fd_close(got[0]);
	fd_close_clear(&got[1]);
	OK(got[1] == -1);
	OK(fd_send(pair[0], "x", 1, extra, 3) == 0);
	OK(fd_recv(pair[1], &byte, 1, got, 2, &n) == -EMSGSIZE);
	OK(fd_send(pair[0], "too long", 8, NULL, 0) == 0);
	OK(fd_recv(pair[1], &byte, 1, got, 2, &n) == -EMSGSIZE);
	OK(fd_send_now(pair[0], "y", 1, NULL, 0) == 0);
	OK(fd_recv(pair[1], &byte, 1, got, 2, &n) == 1 && byte == 'y');
	int r = 0;
	for (int i = 0; r == 0 && i < 1 << 16; i++)
		r = fd_send_now(pair[0], "z", 1, NULL, 0);
	OK(r == -EAGAIN);
	fd_close(pair[1]);
	fd_close(pair[0]);
	OK(fd_socketpair(SOCK_STREAM, pair) == 0);
	fd_close(pair[0]);
	OK(fd_recv(pair[1], &byte, 1, got, 2, &n) == 0);
	fd_close(pair[1]);
}

/*
 * Without launchers a discarded descriptor is a closed one; with something unread in a socket as
 * well.
 */
/* While another process renames all the time, the kernel refuses to follow ".." again and again. */
static void opening_in_a_root(void)
{
	char place[] = "/tmp/glovebox-test-XXXXXX", a[64], b[64], link[64];
	unsigned failed = 0;
	OK(mkdtemp(place) != NULL);
	snprintf(a, sizeof(a), "%s/a", place);
	snprintf(b, sizeof(b), "%s/b", place);
	snprintf(link, sizeof(link), "%s/link", place);
	OK(mkdir(a, 0700) == 0 &&
		symlink("../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub/../sub",
			link) == 0);
	snprintf(b, sizeof(b), "%s/sub", place);
	OK(mkdir(b, 0700) == 0);
	pid_t renames = fork();
	if (renames == 0) {
		snprintf(b, sizeof(b), "%s/b", place);
		for (;;)
			rename(a, b), rename(b, a);
	}
	int dir = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (uint64_t end = clock_now_ns() + 300 * NSEC_PER_MSEC; clock_now_ns() < end;) {
		int fd = fd_open_in_root(dir, "link", O_PATH);
		failed += fd < 0;
		fd_close(fd);
	}
	OK(failed == 0);
	kill(renames, SIGKILL);
	waitpid(renames, NULL, 0);
	OK(fd_open_in_root(dir, "none", O_PATH) == -ENOENT);
	unlink(link), rmdir(a), rmdir(b);
	snprintf(b, sizeof(b), "%s/b", place);
	rmdir(b), rmdir(place);
	fd_close(dir);
}

static void discarding(void)
{
	int pair[2], other[2];
	OK(fd_socketpair(SOCK_STREAM, pair) == 0 && fd_socketpair(SOCK_STREAM, other) == 0);
	OK(fd_send(pair[1], "x", 1, other, 2) == 0);
	launcher_discard(other[0]);
	launcher_discard(-1);
	launcher_discard_socket(pair[0]);
	launcher_discard_socket(pair[1]);
	OK(fcntl(other[0], F_GETFD) < 0 && fcntl(pair[0], F_GETFD) < 0 &&
		fcntl(pair[1], F_GETFD) < 0 && fcntl(other[1], F_GETFD) >= 0);
	fd_close(other[1]);
}

static void processes(void)
{
	char *sh[] = { (char *)"sh", (char *)"-c",
		(char *)"test -z \"$HOME\" && test ! -e /proc/self/fd/3 && exit 7", NULL };
	char *env[] = { NULL };
	int fds[3] = { 0, 1, 2 };
	struct process_exit end = { 0 };
	int pidfd = process_spawn("/bin/sh", sh, env, fds, 3, NULL), r;
	OK(pidfd >= 0);
	while ((r = process_reap(pidfd, &end)) == 0)
		usleep(1000);
	OK(r == 1 && !end.signaled && end.status == 7);
	fd_close(pidfd);
	OK(process_spawn("/does/not/exist", sh, env, fds, 3, NULL) == -ENOENT);
	char *interrupted[] = { (char *)"sh", (char *)"-c", (char *)"kill -INT $$; exit 3", NULL };
	signal(SIGINT, SIG_IGN); /* as in what a script starts with & */
	pidfd = process_spawn("/bin/sh", interrupted, env, fds, 3, NULL);
	signal(SIGINT, SIG_DFL);
	while ((r = process_reap(pidfd, &end)) == 0)
		usleep(1000);
	OK(r == 1 && end.signaled && end.status == SIGINT);
	fd_close(pidfd);
	char *sleeper[] = { (char *)"sleep", (char *)"100", NULL };
	pidfd = process_spawn("/bin/sleep", sleeper, env, fds, 3, NULL);
	OK(process_reap(pidfd, &end) == 0);
	process_kill_wait(pidfd);
	OK(process_reap(pidfd, &end) == -ECHILD);
	fd_close(pidfd);
}

/*
 * A quarter of what is left of three quarters; what is small also of the last one; the sum never
 * exceeds its maximum.
 */
static void holding(void)
{
	enum { MANY = 1000 };
	static struct hold many[MANY];
	struct hold one = { 0 };
	size_t most = LIMIT_HELD_BYTES, got = 0;
	OK(hold_set(&one, most / 8) == 0 && hold_total() == most / 8 && !hold_is_short());
	OK(hold_set(&one, most / 4) == -ENOBUFS && one.bytes == most / 8 &&
		hold_total() == most / 8);
	OK(hold_set(&one, most / 16) == 0 && hold_set(&one, 0) == 0 && hold_total() == 0);
	for (int i = 0; i < MANY; i++)
		for (size_t want = most / 4; want > HOLD_FREE_BYTES && hold_set(&many[i], want) < 0;
			want -= want / 8)
			;
	OK(hold_total() <= most && hold_total() > most / 2 && hold_is_short() && !hold_is_full());
	OK(hold_set(&one, HOLD_FREE_BYTES) == 0); /* a small one finds room beside large ones */
	OK(hold_set(&one, most / 4) == -ENOBUFS);
	for (int i = 0; i < MANY; i++) {
		got += many[i].bytes;
		hold_set(&many[i], 0);
	}
	OK(got <= most && hold_set(&one, 0) == 0 && hold_total() == 0);
}

/* However many holders of little there are, the sum has an end. */
static void holding_little(void)
{
	enum { MANY = LIMIT_HELD_BYTES / HOLD_FREE_BYTES + 10 };
	static struct hold many[MANY];
	unsigned refused = 0;
	for (int i = 0; i < MANY; i++)
		refused += hold_set(&many[i], HOLD_FREE_BYTES) < 0;
	OK(refused == 10 && hold_total() == LIMIT_HELD_BYTES && hold_is_full());
	for (int i = 0; i < MANY; i++)
		hold_set(&many[i], 0);
	OK(hold_total() == 0);
}

/* The memory of a counted buffer is held as long as it has it. */
static void counted_buffers(void)
{
	struct buffer b = BUFFER_COUNTED(0);
	static char block[1 << 20];
	OK(buffer_append(&b, block, sizeof(block)) == 0 && hold_total() == b.cap &&
		b.cap >= sizeof(block));
	free(buffer_take(&b, NULL));
	OK(hold_total() == 0);
	int r = 0;
	while (r == 0)
		r = buffer_append(&b, block, sizeof(block));
	OK(r == -ENOBUFS && hold_total() == b.cap && b.cap < LIMIT_HELD_BYTES / 4);
	buffer_finish(&b);
	OK(hold_total() == 0);
}

static void ids_of_nodes(void)
{
	char letters[NODE_LETTERS + 1] = "", other[NODE_LETTERS + 1], hex[NODE_HEX_DIGITS + 1];
	char id[27], uuid[NODE_UUID_MAX], again[NODE_UUID_MAX];

	OK(node_letters("ab27", letters) == 0);
	OK_STR(letters, "ab27");
	OK(node_letters("glovebox-0.glovebox", letters) == 0 && strlen(letters) == 4);
	OK(node_letters("glovebox-1.glovebox", other) == 0 && strcmp(letters, other) != 0);
	OK(node_letters("AB27", other) == 0 && strcmp(other, "ab27") != 0);
	OK(node_letters("", other) == -EINVAL && node_letters("a b", other) == -EINVAL);
	OK(node_letters("a1234567890123456789012345678901234567890123456789012345678901234",
		   other) == -EINVAL);
	node_hex("aaab", hex);
	OK_STR(hex, "00001");
	node_hex("7777", hex);
	OK_STR(hex, "fffff");

	OK(!*node_tag() && !node_made_before("aaaaaabbbbbbbbbbbbbbbbbbbb"));
	node_make_uuid(uuid);
	node_make_uuid(again);
	OK(strlen(uuid) == 36 && uuid[8] == '-' && uuid[14] == '4' && strchr("89ab", uuid[19]) &&
		strspn(uuid, "0123456789abcdef-") == 36);
	OK(strcmp(uuid, again) != 0);

	node_set("7777", 1023);
	OK_STR(node_tag(), "777777");
	node_make_uuid(uuid);
	node_make_uuid(again);
	OK(!strncmp(uuid, "fffffff", 7) && strchr("cdef", uuid[7]) && strcmp(uuid, again) != 0);
	node_set("ab27", 33);
	OK_STR(node_tag(), "ab27bb");
	node_make_id(id, 26);
	OK(strlen(id) == 26 && !strncmp(id, "ab27bb", 6) && !node_made_before(id));
	node_set("ab27", 34);
	OK(node_made_before(id) && !node_made_before("ab28bbcccccccccccccccccccc"));
	OK(!node_made_before("ab27") && !node_made_before(""));
	node_set(NULL, 0);
	OK(!node_made_before(id));
}

static int woken;

static void on_wake(void *userdata)
{
	woken++;
	OK(userdata == &woken);
}

/* Large memory is freed in slices once somebody runs them, and at once before. */
static void defers(void)
{
	enum { LARGE = 8 << 20 };
	struct buffer b = BUFFER_COUNTED(0), other = BUFFER_COUNTED(LARGE);
	deferred_free(malloc(LARGE), LARGE);
	OK(!deferred_run(0) && !woken);

	deferred_set_wake(on_wake, &woken);
	deferred_free(malloc(LARGE), LARGE);
	deferred_free(NULL, 0);
	OK(woken == 1 && deferred_run(0));
	while (deferred_run(0))
		;
	OK(!deferred_run(0));

	size_t before = hold_total();
	OK(buffer_reserve(&b, LARGE) == 0 && buffer_move(&other, &b) == 0);
	OK(!b.data && !b.cap && other.cap == LARGE && hold_total() == before + LARGE);
	OK(buffer_reserve(&b, 2 * LARGE) == 0 && buffer_move(&other, &b) == -ENOBUFS && b.cap);
	buffer_finish(&b);
	buffer_finish(&other);
	OK(hold_total() == before && woken > 1);
	deferred_set_wake(NULL, NULL); /* does what is left */
	OK(!deferred_run(0));
}

int main(void)
{
	defers();
	opening_in_a_root();
	holding();
	holding_little();
	counted_buffers();
	discarding();
	buffers();
	numbers();
	texts();
	errors();
	ids_of_nodes();
	descriptors();
	processes();
	return tap_done();
}
