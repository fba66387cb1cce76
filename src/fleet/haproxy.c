#include "fleet/haproxy.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "haproxy_source.h"

enum {
	/* size of HAProxy's buffers: the part of a request in which the router looks for an id */
	BUFFER_BYTES = 48 * 1024,
	SMALL_BYTES = BUFFER_BYTES / 4 * 3,
	RETRIES_OF_ONE = 10, /* enough to find the only node with room among several nodes */
	RETRIES_MAX = 200,
};

struct writer {
	const struct fleet *fleet;
	const struct haproxy_settings *settings;
	const struct fleet_node *node; /* NULL outside of its lines */
	struct buffer *out;
};

/* ---- values --------------------------------------------------------------------------- */

static unsigned agent_port(const struct writer *w)
{
	return w->settings->agent_port ? w->settings->agent_port : w->node->port + 1;
}

static int put_name(const struct writer *w)
{
	return buffer_append_str(w->out, w->node->name);
}

static int put_letters(const struct writer *w)
{
	return buffer_append_str(w->out, w->node->letters);
}

static int put_hex(const struct writer *w)
{
	return buffer_append_str(w->out, w->node->hex);
}

static int put_address(const struct writer *w)
{
	return buffer_printf(w->out, "%s:%u", w->node->host, w->node->port);
}

static int put_agent(const struct writer *w)
{
	if (!w->settings->agent)
		return 0;
	return buffer_printf(w->out, " agent-check agent-inter 500ms agent-port %u", agent_port(w));
}

static int put_agent_flag(const struct writer *w)
{
	if (!w->settings->agent)
		return 0;
	return buffer_printf(w->out, " --agent-listen %s:%u", w->node->host, agent_port(w));
}

static int put_count(const struct writer *w)
{
	return buffer_printf(w->out, "%zu", w->fleet->n);
}

static int put_buffer(const struct writer *w)
{
	return buffer_printf(w->out, "%d", BUFFER_BYTES);
}

static int put_small(const struct writer *w)
{
	return buffer_printf(w->out, "%d", SMALL_BYTES);
}

static int put_retries(const struct writer *w)
{
	size_t n = w->fleet->n * RETRIES_OF_ONE;
	return buffer_printf(w->out, "%zu", n < RETRIES_MAX ? n : RETRIES_MAX);
}

static int put_bind(const struct writer *w)
{
	return buffer_append_str(w->out, w->settings->bind);
}

/* The address of a socket of this router. Two routers on one machine need different addresses. */
static int put_none(const struct writer *w)
{
	int r = buffer_append_str(w->out, "abns@glovebox-none");
	for (const char *c = w->settings->bind; r == 0 && *c; c++)
		r = buffer_append_char(w->out, isalnum((unsigned char)*c) ? *c : '-');
	return r;
}

static int put_tls_options(const struct writer *w)
{
	const char *file = w->settings->tls;
	return file ? buffer_printf(w->out, " ssl crt %s alpn http/1.1", file) : 0;
}

static int put_server_options(const struct writer *w)
{
	return w->settings->dns ? buffer_append_str(w->out, " resolvers names init-addr none") : 0;
}

static int put_nameserver(const struct writer *w)
{
	return buffer_append_str(w->out, w->settings->nameserver);
}

static int put_all_letters(const struct writer *w)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < w->fleet->n; i++)
		r = buffer_printf(w->out, " %s", w->fleet->nodes[i].letters);
	return r;
}

/* Some, where a person reads them. */
static int put_some_names(const struct writer *w)
{
	enum { SOME = 8 };
	int r = 0;
	for (size_t i = 0; r == 0 && i < w->fleet->n && i < SOME; i++)
		r = buffer_printf(w->out, "%s%s", i ? ", " : "", w->fleet->nodes[i].name);
	return r == 0 && w->fleet->n > SOME ? buffer_append_str(w->out, ", …") : r;
}

static const struct {
	const char *name;
	int (*put)(const struct writer *w);
	bool of_node;
} values[] = {
	{ "name", put_name, true },
	{ "letters", put_letters, true },
	{ "hex", put_hex, true },
	{ "address", put_address, true },
	{ "agent", put_agent, true },
	{ "agent_flag", put_agent_flag, true },
	{ "count", put_count, false },
	{ "buffer", put_buffer, false },
	{ "small", put_small, false },
	{ "retries", put_retries, false },
	{ "bind", put_bind, false },
	{ "none", put_none, false },
	{ "tls_options", put_tls_options, false },
	{ "server_options", put_server_options, false },
	{ "nameserver", put_nameserver, false },
	{ "all_letters", put_all_letters, false },
	{ "some_names", put_some_names, false },
};

static int put_value(const struct writer *w, const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (strncmp(values[i].name, name, len) || values[i].name[len])
			continue;
		assert(w->node || !values[i].of_node);
		return values[i].put(w);
	}
	assert(!"the template has a name that is not in the table");
	return -EINVAL;
}

/* ---- lines ------------------------------------------------------------------------------ */

static bool holds(const struct writer *w, const char *name, size_t len)
{
	const struct haproxy_settings *s = w->settings;
	const struct {
		const char *name;
		bool holds;
	} conditions[] = {
		{ "tls", s->tls != NULL },
		{ "dns", s->dns },
		{ "nameserver", s->dns && s->nameserver },
		{ "resolv_conf", s->dns && !s->nameserver },
		{ "one", w->fleet->n == 1 },
		{ "many", w->fleet->n > 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		if (!strncmp(conditions[i].name, name, len) && !conditions[i].name[len])
			return conditions[i].holds;
	assert(!"the template has a condition that is not in the table");
	return false;
}

static int put_line(const struct writer *w, const char *line, const char *end)
{
	int r = 0;
	while (r == 0 && line < end) {
		const char *at = memchr(line, '@', (size_t)(end - line));
		size_t len = (size_t)((at ? at : end) - line);
		r = buffer_append(w->out, line, len);
		line += len;
		if (r < 0 || !at)
			break;

		const char *close = memchr(at + 1, '@', (size_t)(end - at - 1));
		assert(close);
		r = put_value(w, at + 1, (size_t)(close - at - 1));
		line = close + 1;
	}
	return r == 0 ? buffer_append_char(w->out, '\n') : r;
}

static int put_each(struct writer *w, const char *line, const char *end)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < w->fleet->n; i++) {
		w->node = &w->fleet->nodes[i];
		r = put_line(w, line, end);
	}
	w->node = NULL;
	return r;
}

/* Moves *line behind the word and returns true when the line begins with it. */
static bool begins(const char **line, const char *word)
{
	size_t len = strlen(word);
	if (strncmp(*line, word, len))
		return false;
	*line += len;
	return true;
}

static int put_conditional(struct writer *w, const char *line, const char *end)
{
	while (begins(&line, "@if:")) {
		size_t len = strcspn(line, "@");
		if (!holds(w, line, len))
			return 0;
		line += len + 1;
	}
	return begins(&line, "@each@") ? put_each(w, line, end) : put_line(w, line, end);
}

/* The lines from *text to "@end@" for each node; *text is moved behind them. */
static int put_nodes(struct writer *w, const char **text)
{
	const char *first = *text, *last = strstr(first, "@end@\n");
	int r = 0;

	assert(last);
	for (size_t i = 0; r == 0 && i < w->fleet->n; i++) {
		for (const char *line = first; r == 0 && line < last;) {
			const char *end = strchr(line, '\n');
			w->node = &w->fleet->nodes[i];
			r = put_line(w, line, end);
			line = end + 1;
		}
	}
	w->node = NULL;
	*text = last + strlen("@end@\n");
	return r;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* A word that stands in the configuration as it is. */
static int check_word(const char *name, const char *word, struct error *e)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/_-*[]+,";
	if (!word || (*word && strspn(word, allowed) == strlen(word)))
		return 0;
	error_set(e, -EINVAL, "%s: '%.80s' cannot stand in the configuration", name, word);
	return error_remedy(e, "use letters, digits and .:/_-*[]+, only");
}

int haproxy_write(const struct fleet *f, const struct haproxy_settings *s, struct error *e,
	struct buffer *out)
{
	struct writer w = { .fleet = f, .settings = s, .out = out };
	const char *text = haproxy_sources[0].text;
	int r = check_word("listen", s->bind, e);

	assert(f->n);
	if (r == 0)
		r = check_word("tls", s->tls, e);
	if (r == 0)
		r = check_word("nameserver", s->nameserver, e);
	for (size_t i = 0; r == 0 && s->agent && !s->agent_port && i < f->n; i++)
		if (f->nodes[i].port == 65535)
			r = error_set(e, -EINVAL,
				"node %s: its agent would need a port above 65535: give --agent-port",
				f->nodes[i].name);
	if (r < 0)
		return r;

	while (r == 0 && *text) {
		if (begins(&text, "@nodes@\n")) {
			r = put_nodes(&w, &text);
			continue;
		}
		const char *end = strchr(text, '\n');
		r = put_conditional(&w, text, end);
		text = end + 1;
	}
	return r < 0 ? error_set_errno(e, r, "writing the configuration") : 0;
}
