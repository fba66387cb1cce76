/* The list of sandboxes: filters, order and pages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b_control.h"

enum { LIST_MAX = 100 };

struct filter {
	char metadata[4096], template[128];
	uint64_t started_after_ns, limit;
	uint64_t cursor; /* the serial of the last sandbox of the page before; 0: none */
	bool ascending, paged;
};

/* ---- what fits ---------------------------------------------------------------------- */

/* metadata= is a query string whose names and values are encoded once more, by some SDKs twice. */
/* Decodes once more, in place. */
static int decode_again(char *text, size_t size)
{
	char copy[1024];
	int r = http_percent_decode(text, strlen(text), false, copy, sizeof(copy));
	if (r == 0)
		snprintf(text, size, "%s", copy);
	return r;
}

static bool pair_fits(const json_t *own, const char *pair, size_t len)
{
	char name[256], value[1024];
	const char *equals = memchr(pair, '=', len);

	if (!equals)
		return true;
	size_t before = (size_t)(equals - pair);
	if (http_percent_decode(pair, before, true, name, sizeof(name)) < 0 ||
		http_percent_decode(equals + 1, len - before - 1, true, value, sizeof(value)) < 0)
		return false;
	for (int round = 0; round < 2; round++) {
		const char *has = json_string_value(json_object_get(own, name));
		if (has && text_eq(has, value))
			return true;
		if (decode_again(name, sizeof(name)) < 0 || decode_again(value, sizeof(value)) < 0)
			return false;
	}

	return false;
}

static bool metadata_fits(const json_t *own, const char *filter)
{
	while (*filter) {
		size_t n = strcspn(filter, "&");
		if (!pair_fits(own, filter, n))
			return false;
		filter += n + (filter[n] == '&');
	}
	return true;
}

static bool state_fits(struct call *c, const struct session_info *i)
{
	char states[64];
	return http_query_param(c->x, "state", states, sizeof(states)) != 1 || !*states ||
	       strstr(states, i->state == SESSION_PAUSED ? "paused" : "running");
}

static bool template_fits(const struct filter *f, const json_t *kept)
{
	const char *has = json_string_value(json_object_get(kept, E2B_KEY_TEMPLATE));
	size_t len = strcspn(f->template, ":"); /* a tag is ignored */
	return !*f->template || (has && strlen(has) == len && !strncmp(has, f->template, len));
}

static bool listed(struct call *c, const struct filter *f, struct session *s)
{
	struct session_info i;
	session_info(s, &i);
	if (i.owner != c->owner || i.created_wall_ns < f->started_after_ns ||
		(f->cursor && (f->ascending ? i.serial <= f->cursor : i.serial >= f->cursor)))
		return false;
	_cleanup_json_ json_t *kept = e2b_kept(&i);
	return kept && !json_object_get(kept, E2B_KEY_SNAPSHOT) && state_fits(c, &i) &&
	       template_fits(f, kept) &&
	       metadata_fits(json_object_get(kept, E2B_KEY_METADATA), f->metadata);
}

/* ---- the request -------------------------------------------------------------------- */

int e2b_page(struct call *c, uint64_t *ret_limit, uint64_t *ret_cursor)
{
	char text[32];
	uint64_t limit = LIST_MAX, cursor = 0;
	int r = http_query_param(c->x, "limit", text, sizeof(text));
	if (r < 0 || (r == 1 && text_parse_u64(text, 1, UINT64_MAX, &limit) < 0)) {
		e2b_error(c, 400, "limit: a number from 1 to 100 is needed");
		return -EINVAL;
	}

	r = http_query_param(c->x, "nextToken", text, sizeof(text));
	if (r < 0 || (r == 1 && *text && text_parse_u64(text, 1, UINT64_MAX, &cursor) < 0)) {
		e2b_error(c, 400,
			"nextToken is not valid: use the token that was returned with the previous page");
		return -EINVAL;
	}

	*ret_limit = limit < LIST_MAX ? limit : LIST_MAX;
	*ret_cursor = cursor;
	return 0;
}

static int read_filter(struct call *c, struct filter *f)
{
	char text[64] = "";
	f->paged = !strncmp(http_path(c->x), "/v2/", 4);
	if (e2b_page(c, &f->limit, &f->cursor) < 0)
		return -EINVAL;
	if (http_query_param(c->x, "metadata", f->metadata, sizeof(f->metadata)) < 0 ||
		http_query_param(c->x, "template", f->template, sizeof(f->template)) < 0) {
		e2b_error(
			c, 400, "metadata or template: the filter is too long, or wrongly encoded");
		return -EINVAL;
	}

	int r = http_query_param(c->x, "order", text, sizeof(text));
	f->ascending = text_eq(text, "asc");
	if (r < 0 || (*text && !f->ascending && !text_eq(text, "desc"))) {
		e2b_error(c, 400, "order: asc and desc are possible");
		return -EINVAL;
	}

	*text = '\0';
	r = http_query_param(c->x, "startedAfter", text, sizeof(text));
	if (r < 0 || (*text && clock_parse(text, &f->started_after_ns) < 0)) {
		e2b_error(c, 400, "startedAfter: a time such as 2026-01-31T12:00:00Z is needed");
		return -EINVAL;
	}

	return 0;
}

/* The sessions that fit, in the order of their creation; owned. */
static struct session **select_sessions(struct call *c, const struct filter *f, size_t *ret_n)
{
	struct session **all = NULL;
	size_t n = 0, room = 0;
	for (struct session *s = sessions_next(c->api->sessions, NULL); s;
		s = sessions_next(c->api->sessions, s)) {
		if (!listed(c, f, s))
			continue;
		if (n == room) {
			room = room ? 2 * room : 64;
			struct session **more = realloc(all, room * sizeof(struct session *));
			if (!more) {
				free(all);
				return NULL;
			}
			all = more;
		}
		all[n++] = s;
	}

	*ret_n = n;
	return all ? all : calloc(1, sizeof(struct session *));
}

void e2b_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct filter f = { 0 };
	struct session_info i;
	struct json_writer w;
	char next[24];
	size_t n = 0;

	if (read_filter(c, &f) < 0)
		return;
	_cleanup_free_ struct session **all = select_sessions(c, &f, &n);
	if (!all) {
		call_no_memory(c);
		return;
	}

	size_t shown = f.paged && n > f.limit ? (size_t)f.limit : n;
	json_writer_init(&w, &b);
	json_open_array(&w);
	for (size_t k = 0; k < shown; k++) {
		session_info(all[f.ascending ? k : n - 1 - k], &i);
		e2b_put_info(c, &w, &i);
	}
	json_close(&w);
	if (shown < n) {
		snprintf(next, sizeof(next), "%llu", (unsigned long long)i.serial);
		http_add_header(c->x, "x-next-token", next);
	}
	call_respond(c, 200, &w, &b);
}
