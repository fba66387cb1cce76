#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "display/image/decode.h"
#include "display/image/encode.h"

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

size_t deflate_bound(size_t n)
{
	return n + n / 8 + 65536; /* stored blocks at worst */
}

size_t deflate_zlib(const void *data, size_t n, void *out, size_t size)
{
	static uint8_t level_buffer[ISAL_DEF_LVL1_DEFAULT];
	struct isal_zstream s;

	isal_deflate_stateless_init(&s);
	s.level = 1;
	s.level_buf = level_buffer;
	s.level_buf_size = sizeof(level_buffer);
	s.gzip_flag = IGZIP_ZLIB;
	s.end_of_stream = 1;
	s.flush = NO_FLUSH;
	s.next_in = (uint8_t *)data;
	s.avail_in = (uint32_t)n;
	s.next_out = out;
	s.avail_out = (uint32_t)size;
	return isal_deflate_stateless(&s) == COMP_OK ? s.total_out : 0;
}

uint32_t deflate_crc(uint32_t crc, const void *data, size_t n)
{
	return crc32_gzip_refl(crc, data, n);
}

struct inflater {
	struct inflate_state state;
};

struct inflater *inflater_create(const uint8_t *data, size_t len, size_t total)
{
	struct inflater *i = calloc(1, sizeof(*i));
	(void)total;
	if (!i)
		return NULL;
	isal_inflate_init(&i->state);
	i->state.crc_flag = ISAL_ZLIB;
	i->state.next_in = (uint8_t *)data;
	i->state.avail_in = (uint32_t)len;
	return i;
}

int inflater_read(struct inflater *i, void *out, size_t n)
{
	i->state.next_out = out;
	i->state.avail_out = (uint32_t)n;
	while (i->state.avail_out) {
		uint32_t before = i->state.avail_out;
		if (isal_inflate(&i->state) < 0 || i->state.avail_out == before)
			return -EPROTO;
	}
	return 0;
}

void inflater_destroy(struct inflater *i)
{
	free(i);
}
#else
#include <libdeflate.h>

enum { LEVEL = 3 };

static struct libdeflate_compressor *compressor(void)
{
	static struct libdeflate_compressor *one;
	if (!one)
		one = libdeflate_alloc_compressor(LEVEL);
	return one;
}

size_t deflate_bound(size_t n)
{
	struct libdeflate_compressor *c = compressor();
	return c ? libdeflate_zlib_compress_bound(c, n) : 0;
}

size_t deflate_zlib(const void *data, size_t n, void *out, size_t size)
{
	struct libdeflate_compressor *c = compressor();
	return c ? libdeflate_zlib_compress(c, data, n, out, size) : 0;
}

uint32_t deflate_crc(uint32_t crc, const void *data, size_t n)
{
	return libdeflate_crc32(crc, data, n);
}

/* libdeflate unpacks only all of it. */
struct inflater {
	uint8_t *raw;
	size_t len, at;
};

struct inflater *inflater_create(const uint8_t *data, size_t len, size_t total)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	struct inflater *i = calloc(1, sizeof(*i));
	if (i && d && (i->raw = malloc(total)) &&
		libdeflate_zlib_decompress(d, data, len, i->raw, total, NULL) == LIBDEFLATE_SUCCESS)
		i->len = total;
	libdeflate_free_decompressor(d);
	return i;
}

int inflater_read(struct inflater *i, void *out, size_t n)
{
	if (n > i->len - i->at)
		return -EPROTO;
	memcpy(out, i->raw + i->at, n);
	i->at += n;
	return 0;
}

void inflater_destroy(struct inflater *i)
{
	if (i)
		free(i->raw);
	free(i);
}
#endif
