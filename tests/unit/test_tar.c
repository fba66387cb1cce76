/* Tar archives: what is written is read again, in pieces of any size; what is wrong is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/tar.h"
#include "tap.h"

static char said[4096];
static int refuse;

static void say(const char *what, const char *text, size_t len)
{
	size_t n = strlen(said);
	snprintf(said + n, sizeof(said) - n, "%s%.*s;", what, (int)len, text);
}

static int on_directory(void *userdata, const char *path)
{
	(void)userdata;
	say("d ", path, strlen(path));
	return 0;
}

static int on_file(void *userdata, const char *path, uint64_t size)
{
	(void)userdata, (void)size;
	say("f ", path, strlen(path));
	return refuse;
}

static int on_data(void *userdata, const char *data, size_t len)
{
	size_t n = strlen(said);
	(void)userdata;
	snprintf(said + n, sizeof(said) - n, "%.*s", (int)len, data);
	return 0;
}

static int on_file_end(void *userdata)
{
	(void)userdata;
	say("", "", 0);
	return 0;
}

static const struct tar_handler handler = { on_directory, on_file, on_data, on_file_end };

static int feed(const char *data, size_t len, size_t piece, bool *ret_complete)
{
	struct tar_reader r;
	int err = 0;
	said[0] = '\0';
	tar_reader_init(&r, &handler, NULL);
	for (size_t at = 0; at < len && err == 0; at += piece) {
		/* memory of its own: a read beyond the piece is one beyond the block */
		size_t n = len - at < piece ? len - at : piece;
		char *copy = malloc(n);
		memcpy(copy, data + at, n);
		err = tar_feed(&r, copy, n);
		free(copy);
	}
	*ret_complete = tar_is_complete(&r);
	tar_reader_finish(&r);
	return err;
}

static void put_file(struct buffer *b, const char *path, const char *content)
{
	static const char zeros[TAR_BLOCK];
	tar_put_header(b, path, strlen(content), 1, false);
	buffer_append(b, content, strlen(content));
	buffer_append(b, zeros, tar_padding(strlen(content)));
}

static void there_and_back(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	char name[400], want[1000];
	bool complete;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	tar_put_header(&b, "dir", 0, 1, true);
	put_file(&b, "dir/a", "alpha");
	put_file(&b, "empty", "");
	put_file(&b, name, "long");
	tar_put_end(&b);
	snprintf(want, sizeof(want), "d dir;f dir/a;alpha;f empty;;f %s;long;", name);
	for (size_t piece = 1; piece < 1100; piece = piece * 3 + 1) {
		OK(feed(b.data, b.len, piece, &complete) == 0 && complete);
		OK_STR(said, want);
	}
	OK(feed(b.data, 600, 7, &complete) == 0 && !complete);
	refuse = -ENOSPC;
	OK(feed(b.data, b.len, 100, &complete) == -ENOSPC);
	refuse = 0;
}

static void what_is_wrong(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	bool complete;
	put_file(&b, "a", "x");
	b.data[0] ^= 1; /* the checksum */
	OK(feed(b.data, b.len, 64, &complete) == -EINVAL);
	b.data[0] ^= 1;
	b.data[124] = '9'; /* of the size */
	OK(feed(b.data, b.len, 64, &complete) == -EINVAL);
	OK(feed("", 0, 1, &complete) == 0 && complete);
}

/*
 * A size that does not fit into octal digits must not be cut: the reader would take the content for
 * headers.
 */
static void writes_large_sizes(void)
{
	static const unsigned char large[12] = { 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1 };
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	OK(tar_put_header(&b, "sparse", (1ULL << 33) - 1, 0, false) == 0);
	OK(!memcmp(b.data + 124, "77777777777", 12));
	b.len = 0;
	OK(tar_put_header(&b, "sparse", (1ULL << 33) + 1, 0, false) == 0);
	OK(!memcmp(b.data + 124, large, sizeof(large)));
}

int main(void)
{
	writes_large_sizes();
	there_and_back();
	what_is_wrong();
	return tap_done();
}
