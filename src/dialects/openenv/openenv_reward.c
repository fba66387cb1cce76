#include "dialects/openenv/openenv_reward.h"

#include <string.h>

enum { CONCISE_CHARACTERS = 100 };

/* First word, then white space and the second one where there is one. */
static const struct {
	const char *first, *second, *pattern;
} dangers[] = {
	{ "import", "os", "import\\s+os" },
	{ "import", "subprocess", "import\\s+subprocess" },
	{ "eval(", NULL, "eval\\(" },
	{ "exec(", NULL, "exec\\(" },
	{ "__import__", NULL, "__import__" },
	{ "open(", NULL, "open\\(" },
};

/* Bytes of the white space character at s as Python's str knows it; 0 when there is none. */
static size_t space_at(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	if (!left)
		return 0;
	if (s[0] < 0x80)
		return (s[0] >= 0x09 && s[0] <= 0x0d) || (s[0] >= 0x1c && s[0] <= 0x20);
	if (left >= 2 && s[0] == 0xc2)
		return s[1] == 0x85 || s[1] == 0xa0 ? 2 : 0;
	if (left < 3)
		return 0;
	unsigned c = (s[0] & 0x0fU) << 12 | (s[1] & 0x3fU) << 6 | (s[2] & 0x3fU);
	bool space = (s[0] & 0xf0) == 0xe0 &&
		     (c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
			     c == 0x202f || c == 0x205f || c == 0x3000);
	return space ? 3 : 0;
}

static bool follows(const char *at, const char *end, const char *word)
{
	size_t n, gap = 0;
	while ((n = space_at(at, (size_t)(end - at)))) {
		at += n;
		gap += n;
	}
	n = strlen(word);
	return gap && (size_t)(end - at) >= n && !memcmp(at, word, n);
}

static bool found(const char *code, size_t len, const char *first, const char *second)
{
	const char *end = code + len, *at = code;
	size_t n = strlen(first);
	while ((at = memmem(at, (size_t)(end - at), first, n))) {
		at += n;
		if (!second || follows(at, end, second))
			return true;
	}
	return false;
}

const char *openenv_violation(const char *code, size_t len)
{
	for (size_t i = 0; i < sizeof(dangers) / sizeof(dangers[0]); i++)
		if (found(code, len, dangers[i].first, dangers[i].second))
			return dangers[i].pattern;
	return NULL;
}

/* len(code.strip()) */
static size_t stripped_length(const char *code, size_t len)
{
	size_t count = 0, last = 0, n;
	while ((n = space_at(code, len))) {
		code += n;
		len -= n;
	}

	for (size_t i = 0; i < len; i += n) {
		size_t space = space_at(code + i, len - i);
		count++;
		if (!space)
			last = count;
		n = 1;
		while (i + n < len && ((unsigned char)code[i + n] & 0xc0) == 0x80)
			n++;
	}

	return last;
}

double openenv_reward(const char *code, size_t len, bool syntax_error)
{
	double reward = openenv_violation(code, len) ? -1.0 : 0.0;
	if (stripped_length(code, len) <= CONCISE_CHARACTERS)
		reward += 0.1;
	return syntax_error ? reward - 0.2 : reward;
}
