#include "api/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/dialect.h"
#include "base/nearest.h"
#include "base/text.h"

/* ---- the table ----------------------------------------------------------- */

static const struct route *const own[] = { session_routes, screen_routes, workspace_routes,
	console_routes, process_routes, port_routes, volume_routes, service_routes };

static size_t count(const struct route *rows)
{
	size_t n = 0;
	while (rows[n].pattern)
		n++;
	return n;
}

static void add(struct route_table *t, const struct route *rows)
{
	for (; rows->pattern; rows++) {
		t->rows[t->n] = rows;
		t->patterns[t->n++] = rows->pattern;
	}
}

int routes_init(struct route_table *t, const struct dialect *const *dialects)
{
	static const struct dialect *const none[] = { NULL };
	size_t n = 0;

	if (!dialects)
		dialects = none;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		n += count(own[i]);
	for (size_t i = 0; dialects[i]; i++)
		n += count(dialects[i]->routes);

	*t = (struct route_table){ .rows = calloc(n, sizeof(*t->rows)),
		.patterns = calloc(n + 1, sizeof(*t->patterns)) };
	if (!t->rows || !t->patterns) {
		routes_finish(t);
		return -ENOMEM;
	}

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		add(t, own[i]);
	for (size_t i = 0; dialects[i]; i++)
		add(t, dialects[i]->routes);
	return 0;
}

void routes_finish(struct route_table *t)
{
	free(t->rows);
	free(t->patterns);
	*t = (struct route_table){ 0 };
}

/* ---- matching ------------------------------------------------------------ */

/* Where a pattern's variables lie in a path; 0 long when it has none. */
struct spans {
	const char *id, *path;
	size_t id_len, path_len;
};

static bool fits(const char *pattern, const char *path, struct spans *s)
{
	*s = (struct spans){ 0 };
	while (*pattern) {
		if (!strcmp(pattern, "{path}")) {
			s->path = path;
			s->path_len = strlen(path);
			return s->path_len > 0;
		}
		if (!strncmp(pattern, "{part}", 6)) {
			s->path = path;
			s->path_len = strcspn(path, "/");
			if (!s->path_len)
				return false;
			pattern += 6;
			path += s->path_len;
		} else if (!strncmp(pattern, "{id}", 4)) {
			s->id = path;
			s->id_len = strcspn(path, "/");
			if (!s->id_len)
				return false;
			pattern += 4;
			path += s->id_len;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}

	return !*path;
}

static int decode_spans(const struct spans *s, struct route_match *m)
{
	if (s->id && http_percent_decode(s->id, s->id_len, false, m->id, m->id_size) < 0)
		return -EINVAL;
	if (s->path && http_percent_decode(s->path, s->path_len, false, m->path, m->path_size) < 0)
		return -EINVAL;
	return 0;
}

int routes_match(const struct route_table *t, enum http_method method, const char *path,
	struct route_match *m)
{
	struct spans s;
	if (method == HTTP_METHOD_HEAD)
		method = HTTP_METHOD_GET;
	m->route = NULL;
	m->path_known = false;
	for (size_t i = 0; i < t->n; i++) {
		if (!fits(t->rows[i]->pattern, path, &s))
			continue;
		m->path_known = true;
		if (t->rows[i]->method != method)
			continue;
		m->route = t->rows[i];
		m->index = i;
		return decode_spans(&s, m);
	}

	return m->path_known ? -EOPNOTSUPP : -ENOENT;
}

char *routes_allow(const struct route_table *t, const char *path, char *buf, size_t size)
{
	struct spans s;
	size_t n = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < t->n && n < size; i++) {
		if (!fits(t->rows[i]->pattern, path, &s))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s%s", n ? ", " : "",
			http_method_name(t->rows[i]->method),
			t->rows[i]->method == HTTP_METHOD_GET ? ", HEAD" : "");
	}
	if (n < size)
		snprintf(buf + n, size - n, ", OPTIONS");
	return buf;
}

/* ---- what was meant ------------------------------------------------------ */

/*
 * The path with session ids written as in the patterns, so that they do not count as differences.
 */
static void generalise(const char *path, char out[NEAREST_WORD_MAX + 1])
{
	size_t n = 0;
	while (*path && n < NEAREST_WORD_MAX) {
		if (path[0] == '/' && path[1] == 's' && path[2] == '_') {
			n += (size_t)snprintf(out + n, NEAREST_WORD_MAX + 1 - n, "/{id}");
			path += 1 + strcspn(path + 1, "/");
		} else {
			out[n++] = *path++;
		}
	}
	out[n < NEAREST_WORD_MAX ? n : NEAREST_WORD_MAX] = '\0';
}

const char *routes_nearest(const struct route_table *t, const char *path)
{
	char general[NEAREST_WORD_MAX + 1];
	generalise(path, general);
	return nearest_word(general, t->patterns);
}
