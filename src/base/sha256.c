/* FIPS 180-4. Plain C: what is hashed here is read from a disk, or small. */
#include "base/sha256.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const uint32_t rounds[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void add_block(uint32_t state[8], const unsigned char *p)
{
	uint32_t w[64], v[8];
	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (unsigned i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (unsigned i = 0; i < 64; i++) {
		uint32_t a = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
			     ((v[4] & v[5]) ^ (~v[4] & v[6])) + rounds[i] + w[i];
		uint32_t b = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
			     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += a;
		v[0] = a + b;
	}

	for (unsigned i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	memcpy(s->state, start, sizeof(start));
	s->total = 0;
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t have = s->total % 64;

	s->total += len;
	if (have && have + len >= 64) {
		memcpy(s->block + have, p, 64 - have);
		add_block(s->state, s->block);
		p += 64 - have;
		len -= 64 - have;
		have = 0;
	}

	for (; !have && len >= 64; p += 64, len -= 64)
		add_block(s->state, p);
	if (len)
		memcpy(s->block + have, p, len);
}

void sha256_end(struct sha256 *s, char ret_hex[SHA256_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint64_t bits = s->total * 8;
	unsigned char pad[72] = { 0x80 };
	size_t have = s->total % 64, n = have < 56 ? 56 - have : 120 - have;
	for (unsigned i = 0; i < 8; i++)
		pad[n + i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, pad, n + 8);
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		unsigned byte = s->state[i / 4] >> (24 - 8 * (i % 4)) & 0xff;
		ret_hex[2 * i] = digits[byte >> 4];
		ret_hex[2 * i + 1] = digits[byte & 15];
	}
	ret_hex[SHA256_HEX] = '\0';
}

int64_t sha256_fd(int fd, char ret_hex[SHA256_HEX + 1])
{
	static char piece[256 * 1024];
	struct sha256 s;
	ssize_t n;

	sha256_init(&s);
	while ((n = read(fd, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		sha256_add(&s, piece, (size_t)n);
	}

	int64_t total = (int64_t)s.total;
	sha256_end(&s, ret_hex);
	return total;
}
