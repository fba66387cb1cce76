/*
 * Multipart bodies in pieces of every size: the parts are the same, and a cut body is never whole.
 */
#include "dialects/e2b/e2b_multipart.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

static const char type[] = "multipart/form-data; boundary=XyZ";
static const char text[] =
	"--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b\"\r\n\r\n"
	"one\r\n--Xy\r\n\r\n--XyZ\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n"
	"dropped\r\n--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"c\"\r\n\r\n"
	"\r\n--XyZ--\r\n";
static const char want[] = "<a\"b>one\r\n--Xy\r\n|<c>|";

static int on_part(void *owner, const char *name)
{
	return buffer_printf(owner, "<%s>", name);
}

static int on_data(void *owner, const char *data, size_t len)
{
	return buffer_append(owner, data, len);
}

static int on_end(void *owner)
{
	return buffer_append_char(owner, '|');
}

static const struct multipart_events events = { on_part, on_data, on_end };

/* Each piece is a block of its own, so that a sanitizer sees a read beyond it. */
static int feed(struct multipart *m, const char *data, size_t len, size_t piece)
{
	int r = 0;
	for (size_t at = 0; r == 0 && at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		char *copy = malloc(n);
		memcpy(copy, data + at, n);
		r = multipart_add(m, copy, n);
		free(copy);
	}
	return r;
}

static void test_pieces_of_every_size(void)
{
	bool same = true, cut = true;
	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		struct buffer out = BUFFER_INIT(0);
		struct multipart m;
		if (multipart_init(&m, type, &events, &out) < 0)
			same = false;
		cut = feed(&m, text, sizeof(text) - 6, piece) == 0 && cut &&
		      !multipart_is_whole(&m);
		same = feed(&m, text + sizeof(text) - 6, 5, piece) == 0 && multipart_is_whole(&m) &&
		       same;
		same = out.len == sizeof(want) - 1 && !memcmp(out.data, want, out.len) && same;
		multipart_finish(&m);
		buffer_finish(&out);
	}
	OK(same);
	OK(cut);
}

static void test_what_is_no_such_body(void)
{
	struct buffer out = BUFFER_INIT(0);
	struct multipart m;
	char *head = calloc(1, 64 * 1024);
	OK(multipart_init(&m, "multipart/form-data", &events, &out) == -EINVAL);
	OK(multipart_init(&m, "multipart/form-data; boundary=", &events, &out) == -EINVAL);
	OK(multipart_init(&m, type, &events, &out) == 0);
	OK(feed(&m, "--other\r\n", 9, 1) == -EINVAL);
	multipart_finish(&m);
	OK(multipart_init(&m, type, &events, &out) == 0);
	memset(head, 'h', 64 * 1024);
	OK(feed(&m, "--XyZ\r\n", 7, 7) == 0 && feed(&m, head, 64 * 1024, 4096) == -EINVAL);
	multipart_finish(&m);
	buffer_finish(&out);
	free(head);
}

int main(void)
{
	test_pieces_of_every_size();
	test_what_is_no_such_body();
	return tap_done();
}
