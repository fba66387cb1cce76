#include "base/node_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

static char own_tag[NODE_TAG + 1];

static unsigned value_of(char letter)
{
	const char *at = strchr(alphabet, letter);
	return at && letter ? (unsigned)(at - alphabet) : 0;
}

int node_letters(const char *name, char ret[NODE_LETTERS + 1])
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	struct sha256 s;
	char hex[SHA256_HEX + 1];
	size_t len = strlen(name);

	if (!len || len > NODE_NAME_MAX || strspn(name, allowed) != len)
		return -EINVAL;
	if (len == NODE_LETTERS && strspn(name, alphabet) == len) {
		memcpy(ret, name, NODE_LETTERS + 1);
		return 0;
	}

	sha256_init(&s);
	sha256_add(&s, name, len);
	sha256_end(&s, hex);
	hex[NODE_HEX_DIGITS] = '\0';
	unsigned bits = (unsigned)strtoul(hex, NULL, 16);
	for (int i = 0; i < NODE_LETTERS; i++)
		ret[i] = alphabet[bits >> (5 * (NODE_LETTERS - 1 - i)) & 31];
	ret[NODE_LETTERS] = '\0';
	return 0;
}

static unsigned bits_of(const char *letters, size_t n)
{
	unsigned bits = 0;
	for (size_t i = 0; i < n; i++)
		bits = bits << 5 | value_of(letters[i]);
	return bits;
}

void node_hex(const char *letters, char ret[NODE_HEX_DIGITS + 1])
{
	snprintf(ret, NODE_HEX_DIGITS + 1, "%05x", bits_of(letters, NODE_LETTERS) & 0xfffff);
}

void node_set(const char *letters, unsigned incarnation)
{
	if (!letters) {
		own_tag[0] = '\0';
		return;
	}
	snprintf(own_tag, sizeof(own_tag), "%.*s%c%c", NODE_LETTERS, letters,
		alphabet[incarnation >> 5 & 31], alphabet[incarnation & 31]);
}

const char *node_tag(void)
{
	return own_tag;
}

void node_make_id(char *out, size_t len)
{
	text_random_id(out, len);
	memcpy(out, own_tag, strlen(own_tag));
}

void node_make_uuid(char out[NODE_UUID_MAX])
{
	char random[33];
	unsigned tail[4] = { 0 };

	/* 6 letters have 30 bits, and 26 more letters are enough for the other 98. */
	node_make_id(random, 32);
	for (int i = 0; i < 4; i++)
		tail[i] = bits_of(random + NODE_TAG + 6 * i, 6);
	snprintf(out, NODE_UUID_MAX, "%08x-%04x-4%03x-%04x-%06x%06x",
		bits_of(random, NODE_TAG) << 2 | (value_of(random[30]) & 3), tail[0] & 0xffff,
		tail[1] & 0xfff, (tail[1] >> 12 & 0x3fff) | 0x8000, tail[2] & 0xffffff,
		tail[3] & 0xffffff);
}

bool node_made_before(const char *id)
{
	return *own_tag && strlen(id) > NODE_TAG && !strncmp(id, own_tag, NODE_LETTERS) &&
	       strncmp(id, own_tag, NODE_TAG) != 0;
}
