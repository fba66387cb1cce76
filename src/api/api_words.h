/*
 * The HTTP API's words for the placeholders that lower layers write into a remedy
 * (base/edge_words.h).
 */
#pragma once

#include "base/edge_words.h"

extern const struct edge api_words;

/* The remedy in the API's words. */
static inline const char *api_remedy(const char *text, char buf[EDGE_TEXT_MAX])
{
	return edge_expand(&api_words, text ? text : "", buf, EDGE_TEXT_MAX);
}
