/*
 * SHA-1 (FIPS 180-4) for the WebSocket handshake, which asks for nothing better. Not for anything
 * that must be secret.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20 };

void sha1(const void *data, size_t len, uint8_t ret_digest[SHA1_BYTES]);
