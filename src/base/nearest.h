/*
 * Finds the known word nearest to a misspelt word: for "unknown X, did you mean Y" in flags,
 * settings, fields and routes.
 */
#pragma once

enum { NEAREST_WORD_MAX = 64 }; /* longer words are compared by their beginnings */

/*
 * Edits (insert, delete, replace, swap of neighbours) that turn a into b; letters compare without
 * case, '-' equals '_'.
 */
unsigned nearest_distance(const char *a, const char *b);

/*
 * The one of `words` (NULL at the end) closest to `word`, or NULL when none is close enough to be
 * meant.
 */
const char *nearest_word(const char *word, const char *const *words);
