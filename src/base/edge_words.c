#include "base/edge_words.h"

#include <string.h>

#include "base/text.h"

struct out {
	char *at, *end; /* the last byte is for the NUL */
};

static void put(struct out *o, const char *data, size_t len)
{
	size_t room = (size_t)(o->end - o->at);
	if (len > room)
		len = room;
	memcpy(o->at, data, len);
	o->at += len;
}

static const struct edge_word *find(const struct edge *edge, const char *name, size_t len)
{
	for (; edge; edge = edge->otherwise)
		for (const struct edge_word *w = edge->words; w->name; w++)
			if (strlen(w->name) == len && !memcmp(w->name, name, len))
				return w;
	return NULL;
}

static void put_word(struct out *o, const struct edge_word *w, const char *argument, size_t len)
{
	const char *mark = strchr(w->text, '%');
	if (!mark) {
		put(o, w->text, strlen(w->text));
		return;
	}
	put(o, w->text, (size_t)(mark - w->text));
	put(o, argument, len);
	put(o, mark + 1, strlen(mark + 1));
}

/* The length of a word in braces at `text`, 0 when it is not one. */
static size_t expand_word(struct out *o, const struct edge *edge, const char *text)
{
	size_t name = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_");
	const char *argument = text + 1 + name;
	size_t len = *argument == ':' ? strcspn(++argument, "}") : 0;
	const struct edge_word *w = argument[len] == '}' ? find(edge, text + 1, name) : NULL;
	if (!w)
		return 0;

	put_word(o, w, argument, len);
	return (size_t)(argument + len + 1 - text);
}

const char *edge_expand(const struct edge *edge, const char *text, char *buf, size_t size)
{
	struct out o = { buf, buf + size - 1 };
	while (*text) {
		size_t word = *text == '{' ? expand_word(&o, edge, text) : 0;
		if (!word)
			put(&o, text, word = 1);
		text += word;
	}
	*o.at = '\0';
	return buf;
}
