#include "api/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA_BYTES = 16 * 1024 };

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is a block");

/* ---- writing ----------------------------------------------------------------- */

static unsigned checksum(const struct header *h)
{
	struct header copy = *h;
	const unsigned char *bytes = (const unsigned char *)&copy;
	unsigned sum = 0;
	memset(copy.checksum, ' ', sizeof(copy.checksum));
	for (size_t i = 0; i < sizeof(copy); i++)
		sum += bytes[i];
	return sum;
}

/*
 * Eleven octal digits, or from 8 GiB on GNU's binary number. A size that is cut would make a reader
 * take the content for headers: content that code in the session chose.
 */
static void put_size(char field[12], uint64_t size)
{
	char text[24];
	if (size <= 077777777777) {
		snprintf(text, sizeof(text), "%011" PRIo64, size);
		memcpy(field, text, 12);
		return;
	}
	memset(field, 0, 12);
	field[0] = (char)0x80;
	for (int i = 11; size; i--, size >>= 8)
		field[i] = (char)(size & 0xff);
}

static int put_block(
	struct buffer *out, const char *name, uint64_t size, uint64_t modified_s, char type)
{
	struct header h = { .type = type };
	char text[24];

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.mode, type == '5' ? "0000755" : "0000644", 8);
	memcpy(h.uid, "0000000", 8);
	memcpy(h.gid, "0000000", 8);
	put_size(h.size, size);
	snprintf(text, sizeof(text), "%011" PRIo64, modified_s & 077777777777);
	memcpy(h.mtime, text, sizeof(h.mtime));
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	snprintf(text, sizeof(text), "%06o", checksum(&h));
	memcpy(h.checksum, text, 7);
	h.checksum[7] = ' ';
	return buffer_append(out, &h, sizeof(h));
}

static int put_zeros(struct buffer *out, size_t len)
{
	static const char zeros[2 * TAR_BLOCK];
	return buffer_append(out, zeros, len);
}

/* "27 path=some/long/name\n", where the number counts itself. */
static int put_pax(struct buffer *out, const char *path)
{
	_cleanup_buffer_ struct buffer record = BUFFER_INIT(0);
	size_t len = strlen(path) + sizeof(" path=\n") - 1, digits = 1;
	for (size_t n = len + digits; n >= 10; n /= 10)
		digits++;
	digits = (size_t)snprintf(NULL, 0, "%zu", len + digits);
	int r = buffer_printf(&record, "%zu path=%s\n", len + digits, path);
	if (r == 0)
		r = put_block(out, "pax", record.len, 0, 'x');
	if (r == 0)
		r = buffer_append(out, record.data, record.len);
	return r < 0 ? r : put_zeros(out, tar_padding(record.len));
}

int tar_put_header(
	struct buffer *out, const char *path, uint64_t size, uint64_t modified_s, bool directory)
{
	int r = strlen(path) >= sizeof(((struct header *)0)->name) ? put_pax(out, path) : 0;
	return r < 0 ? r
		     : put_block(
			       out, path, directory ? 0 : size, modified_s, directory ? '5' : '0');
}

int tar_put_end(struct buffer *out)
{
	return put_zeros(out, 2 * TAR_BLOCK);
}

/* ---- reading ----------------------------------------------------------------- */

void tar_reader_init(struct tar_reader *r, const struct tar_handler *handler, void *userdata)
{
	*r = (struct tar_reader){ .handler = handler, .userdata = userdata };
	buffer_init(&r->extra, EXTRA_BYTES);
}

void tar_reader_finish(struct tar_reader *r)
{
	buffer_finish(&r->extra);
}

/*
 * Octal digits, with blanks or NULs around; -EINVAL for anything else (also GNU's binary numbers).
 */
static int read_octal(const char *field, size_t len, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0, digits = 0;
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++, digits++)
		value = value * 8 + (uint64_t)(field[i] - '0');
	for (; i < len; i++)
		if (field[i] && field[i] != ' ')
			return -EINVAL;
	*ret = value;
	return digits ? 0 : -EINVAL;
}

static int join_name(const struct header *h, char out[LIMIT_PATH_BYTES + 2])
{
	bool prefixed = !memcmp(h->magic, "ustar", 6) && h->prefix[0];
	int n = snprintf(out, LIMIT_PATH_BYTES + 2, "%.*s%s%.*s",
		prefixed ? (int)sizeof(h->prefix) : 0, h->prefix, prefixed ? "/" : "",
		(int)sizeof(h->name), h->name);
	return n > LIMIT_PATH_BYTES ? -ENAMETOOLONG : 0;
}

/* The path of a pax header's record; other records are not for us. */
static int take_pax(struct tar_reader *r)
{
	const char *at = r->extra.data, *end = at + r->extra.len;
	while (at < end) {
		char *space;
		unsigned long len = strtoul(at, &space, 10);
		if (space == at || space >= end || *space != ' ' || len < 5 ||
			len > (size_t)(end - at) || at[len - 1] != '\n')
			return -EINVAL;
		const char *key = space + 1, *last = at + len - 1;
		if (last - key > 5 && !memcmp(key, "path=", 5)) {
			if (last - key - 5 > LIMIT_PATH_BYTES)
				return -ENAMETOOLONG;
			snprintf(r->name, sizeof(r->name), "%.*s", (int)(last - key - 5), key + 5);
		}
		at += len;
	}

	return 0;
}

static int take_name(struct tar_reader *r)
{
	int err = 0;
	if (!buffer_cstr(&r->extra)) /* ends what strtoul() reads */
		return -ENOMEM;
	if (r->pax)
		err = take_pax(r);
	else if (r->extra.len > LIMIT_PATH_BYTES)
		err = -ENAMETOOLONG;
	else
		snprintf(r->name, sizeof(r->name), "%.*s", (int)r->extra.len, r->extra.data);
	r->extra.len = 0;
	return err;
}

/* A path as the workspace takes it: without "./" before and "/" behind. */
static const char *tidy(char *path)
{
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	for (size_t n = strlen(path); n && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	return strcmp(path, ".") ? path : "";
}

static int begin_entry(struct tar_reader *r, const struct header *h, uint64_t size)
{
	char path[LIMIT_PATH_BYTES + 2];
	int err = 0;

	if (r->name[0])
		memcpy(path, r->name, sizeof(path));
	else if ((err = join_name(h, path)) < 0)
		return err;
	r->name[0] = '\0';
	const char *name = tidy(path);
	r->state = TAR_SKIP;
	if (h->type == '5' && *name)
		err = r->handler->on_directory(r->userdata, name);
	else if ((h->type == '0' || !h->type) && *name) {
		r->state = TAR_FILE;
		err = r->handler->on_file(r->userdata, name, size);
	} else if (h->type != '5')
		r->skipped++;
	return err;
}

static int take_header(struct tar_reader *r)
{
	struct header h;
	uint64_t sum, size;
	memcpy(&h, r->block, sizeof(h));
	r->have = 0;
	if (!h.name[0] && !h.checksum[0]) {
		r->ended = true;
		return 0;
	}
	if (read_octal(h.checksum, sizeof(h.checksum), &sum) < 0 || sum != checksum(&h) ||
		read_octal(h.size, sizeof(h.size), &size) < 0)
		return -EINVAL;

	r->left = size;
	r->pad = tar_padding(size);
	if (h.type == 'x' || h.type == 'L') {
		r->pax = h.type == 'x';
		r->state = TAR_NAME;
		return size > EXTRA_BYTES ? -ENAMETOOLONG : 0;
	}
	int err = begin_entry(r, &h, size);
	if (err == 0 && r->state == TAR_FILE && !size)
		err = r->handler->on_file_end(r->userdata);
	if (!size)
		r->state = TAR_HEADER;
	return err;
}

/* Content of the entry. */
static int take_data(struct tar_reader *r, const char *data, size_t len)
{
	int err = 0;
	if (r->state == TAR_FILE)
		err = r->handler->on_data(r->userdata, data, len);
	else if (r->state == TAR_NAME)
		err = buffer_append(&r->extra, data, len);
	r->left -= len;
	if (err < 0 || r->left)
		return err;
	if (r->state == TAR_FILE)
		err = r->handler->on_file_end(r->userdata);
	else if (r->state == TAR_NAME)
		err = take_name(r);
	r->state = TAR_HEADER;
	return err;
}

int tar_feed(struct tar_reader *r, const char *data, size_t len)
{
	int err = 0;
	while (len && err == 0 && !r->ended) {
		size_t n;
		if (r->left) {
			n = r->left < len ? (size_t)r->left : len;
			err = take_data(r, data, n);
		} else if (r->pad) {
			n = r->pad < len ? (size_t)r->pad : len;
			r->pad -= n;
		} else {
			n = TAR_BLOCK - r->have < len ? TAR_BLOCK - r->have : len;
			memcpy(r->block + r->have, data, n);
			r->have += n;
			if (r->have == TAR_BLOCK)
				err = take_header(r);
		}
		data += n;
		len -= n;
	}

	return err;
}

bool tar_is_complete(const struct tar_reader *r)
{
	return r->ended || (!r->left && !r->have && !r->pad);
}
