/*
 * The command line's words for the placeholders that lower layers write into a remedy
 * (base/edge_words.h).
 */
#pragma once

#include "base/edge_words.h"

extern const struct edge cli_words;

/* The remedy in the words of the command line. */
static inline const char *cli_remedy(const char *text, char buf[EDGE_TEXT_MAX])
{
	return edge_expand(&cli_words, text ? text : "", buf, EDGE_TEXT_MAX);
}
