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
#endif
