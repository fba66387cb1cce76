#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/buffer.h"
#include "base/utf8.h"

bool text_eq(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool text_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int text_parse_double(const char *s, double min, double max, double *ret)
{
	char *end;
	if (!*s || isspace((unsigned char)*s))
		return -EINVAL;
	double v = strtod(s, &end);
	if (*end || !isfinite(v))
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int text_parse_size(const char *s, uint64_t *ret)
{
	static const struct {
		const char *unit;
		unsigned shift;

	} units[] = { { "", 0 }, { "b", 0 }, { "k", 10 }, { "kb", 10 }, { "kib", 10 }, { "m", 20 },
		{ "mb", 20 }, { "mib", 20 }, { "g", 30 }, { "gb", 30 }, { "gib", 30 }, { "t", 40 },
		{ "tb", 40 }, { "tib", 40 } };
	char *end;
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	double v = strtod(s, &end);
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcasecmp(end, units[i].unit))
			continue;
		v *= (double)(1ULL << units[i].shift);
		if (!(v < 9e18))
			return -ERANGE;
		*ret = (uint64_t)v;
		return 0;
	}

	return -EINVAL;
}

int text_parse_bool(const char *s, bool *ret)
{
	static const char *const yes[] = { "1", "on", "yes", "true" }, *const no[] = { "0", "off",
		"no", "false" };
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (!strcasecmp(s, yes[i]) || !strcasecmp(s, no[i])) {
			*ret = !strcasecmp(s, yes[i]);
			return 0;
		}
	}
	return -EINVAL;
}

bool text_eq_secret(const char *a, size_t a_len, const char *b, size_t b_len)
{
	/* Every byte of the longer one is looked at, so time does not tell where they differ. */
	size_t n = a_len > b_len ? a_len : b_len;
	volatile unsigned char diff = a_len != b_len;
	for (size_t i = 0; i < n; i++)
		diff |= (unsigned char)((i < a_len ? a[i] : 0) ^ (i < b_len ? b[i] : 0));
	return diff == 0;
}

bool text_is_utf8(const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n)
		if (utf8_step((const unsigned char *)s + i, len - i, &n) != UTF8_VALID)
			return false;
	return true;
}

void text_random_id(char *out, size_t len)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[64];
	for (size_t done = 0; done < len;) {
		size_t want = len - done < sizeof(bytes) ? len - done : sizeof(bytes);
		ssize_t n = getrandom(bytes, want, 0);
		if (n <= 0)
			continue; /* EINTR: requests of this size never fail otherwise */
		for (ssize_t i = 0; i < n; i++)
			out[done++] = alphabet[bytes[i] & 31];
	}
	out[len] = '\0';
}

int text_base64(struct buffer *out, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	size_t room = (len + 2) / 3 * 4;
	int r = buffer_reserve(out, room);

	if (r < 0)
		return r;
	char *o = out->data + out->len;
	for (; len >= 3; len -= 3, p += 3) {
		*o++ = digits[p[0] >> 2];
		*o++ = digits[(p[0] & 3) << 4 | p[1] >> 4];
		*o++ = digits[(p[1] & 15) << 2 | p[2] >> 6];
		*o++ = digits[p[2] & 63];
	}

	if (len) {
		unsigned char second = len > 1 ? p[1] : 0;
		*o++ = digits[p[0] >> 2];
		*o++ = digits[(p[0] & 3) << 4 | second >> 4];
		*o++ = len > 1 ? digits[(second & 15) << 2] : '=';
		*o++ = '=';
	}

	out->len += room;
	return 0;
}

/* The value of a digit of base64 plus one; 0 for every other byte. */
#define DIGITS4(c, v) [c] = (v), [(c) + 1] = (v) + 1, [(c) + 2] = (v) + 2, [(c) + 3] = (v) + 3
#define DIGITS24(c, v)                                                       \
	DIGITS4(c, v), DIGITS4((c) + 4, (v) + 4), DIGITS4((c) + 8, (v) + 8), \
		DIGITS4((c) + 12, (v) + 12), DIGITS4((c) + 16, (v) + 16),    \
		DIGITS4((c) + 20, (v) + 20)
static const unsigned char base64_digits[256] = {
	DIGITS24('A', 1),
	['Y'] = 25,
	['Z'] = 26,
	DIGITS24('a', 27),
	['y'] = 51,
	['z'] = 52,
	DIGITS4('0', 53),
	DIGITS4('4', 57),
	['8'] = 61,
	['9'] = 62,
	['+'] = 63,
	['/'] = 64,
};

static int base64_digit(char c)
{
	return base64_digits[(unsigned char)c] - 1;
}

size_t text_base64_digits(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && base64_digits[(unsigned char)s[n]])
		n++;
	return n;
}

int text_base64_decode(struct buffer *out, const char *s, size_t len)
{
	size_t pad = len && s[len - 1] == '=' ? 1 + (len > 1 && s[len - 2] == '=') : 0;
	if (len % 4)
		return -EINVAL;
	int r = buffer_reserve(out, len / 4 * 3);
	if (r < 0)
		return r;
	char *o = out->data + out->len;
	uint32_t bits = 0;
	size_t whole = pad ? len - 4 : len;
	for (size_t i = 0; i < whole; i += 4) {
		int a = base64_digit(s[i]), b = base64_digit(s[i + 1]), c = base64_digit(s[i + 2]),
		    d = base64_digit(s[i + 3]);
		if ((a | b | c | d) < 0)
			return -EINVAL;
		bits = (uint32_t)a << 18 | (uint32_t)b << 12 | (uint32_t)c << 6 | (uint32_t)d;
		*o++ = (char)(bits >> 16);
		*o++ = (char)(bits >> 8);
		*o++ = (char)bits;
	}

	for (size_t i = whole; i < len - pad; i++) {
		int digit = base64_digit(s[i]);
		if (digit < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)digit;
	}

	/* Bits that no byte uses must be zero, so that each content has one spelling only. */
	if (bits & (pad == 2 ? 0xf : pad == 1 ? 0x3 : 0))
		return -EINVAL;
	if (pad == 1)
		*o++ = (char)(bits >> 10);
	if (pad)
		*o++ = (char)(bits >> (pad == 2 ? 4 : 2));
	out->len += len / 4 * 3 - pad;
	return 0;
}
