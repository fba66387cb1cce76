#include "http/sha1.h"

#include <string.h>

enum { BLOCK = 64 };

static uint32_t rotl(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static uint32_t load_be(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void mix_block(uint32_t h[5], const uint8_t block[BLOCK])
{
	static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], v[5];

	for (unsigned t = 0; t < 16; t++)
		w[t] = load_be(block + 4 * t);
	for (unsigned t = 16; t < 80; t++)
		w[t] = rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	memcpy(v, h, sizeof(v));
	for (unsigned t = 0; t < 80; t++) {
		uint32_t f;
		if (t < 20)
			f = (v[1] & v[2]) | (~v[1] & v[3]);
		else if (t >= 40 && t < 60)
			f = (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3]);
		else
			f = v[1] ^ v[2] ^ v[3];
		uint32_t next = rotl(v[0], 5) + f + v[4] + k[t / 20] + w[t];
		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotl(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}

	for (unsigned i = 0; i < 5; i++)
		h[i] += v[i];
}

void sha1(const void *data, size_t len, uint8_t ret_digest[SHA1_BYTES])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	const uint8_t *p = data;
	uint8_t last[2 * BLOCK] = { 0 };
	size_t left = len;

	for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
		mix_block(h, p);
	if (left)
		memcpy(last, p, left);
	last[left] = 0x80;
	size_t end = left < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	store_be(last + end - 8, (uint32_t)((uint64_t)len >> 29));
	store_be(last + end - 4, (uint32_t)(len << 3));
	mix_block(h, last);
	if (end == 2 * BLOCK)
		mix_block(h, last + BLOCK);
	for (unsigned i = 0; i < 5; i++)
		store_be(ret_digest + 4 * i, h[i]);
}
