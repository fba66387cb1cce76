#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static int fold(char c)
{
	return c == '_' ? '-' : tolower((unsigned char)c);
}

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

unsigned nearest_distance(const char *a, const char *b)
{
	/* Three rows of the edit table: a swap of neighbours looks two rows back. */
	unsigned rows[3][NEAREST_WORD_MAX + 1];
	size_t n = strnlen(a, NEAREST_WORD_MAX), m = strnlen(b, NEAREST_WORD_MAX);
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			bool same = fold(a[i - 1]) == fold(b[j - 1]);
			now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same);
			bool swapped = i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
				       fold(a[i - 2]) == fold(b[j - 1]);
			if (swapped && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		unsigned *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[m];
}

const char *nearest_word(const char *word, const char *const *words)
{
	const char *best = NULL;
	/* A third of the letters wrong is a slip, more is another word. */
	unsigned limit = (unsigned)(strnlen(word, NEAREST_WORD_MAX) + 2) / 3;
	for (; *words; words++) {
		unsigned d = nearest_distance(word, *words);
		if (d <= limit) {
			best = *words;
			limit = d ? d - 1 : 0;
			if (d == 0)
				break;
		}
	}
	return best;
}
