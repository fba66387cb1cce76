/* SHA-256, for data that is stored and looked up by its content. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX = 64 };

struct sha256 {
	uint32_t state[8];
	uint64_t total;
	unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, char ret_hex[SHA256_HEX + 1]); /* lower-case hexadecimal */

/* All of a descriptor from its current position; the number of bytes, or a negative errno. */
int64_t sha256_fd(int fd, char ret_hex[SHA256_HEX + 1]);
