#include "session/processes/start_frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "session/internal.h"
#include "wire/start.h"

#define HOME "/workspace"

static const char *home_of(const struct process_request *q)
{
	return q->home ? q->home : HOME;
}

/* ---- the environment ---------------------------------------------------------------------- */

struct environment {
	char *list[START_ARGS + 1];
	unsigned n;
	bool failed;
};

static void put(struct environment *v, const char *text)
{
	size_t name = strcspn(text, "=");
	unsigned i = 0;

	while (i < v->n && (strncmp(v->list[i], text, name) || v->list[i][name] != '='))
		i++;
	char *copy = i < START_ARGS ? strdup(text) : NULL;
	if (!copy) {
		v->failed = true;
		return;
	}

	if (i == v->n)
		v->n++;
	else
		free(v->list[i]);
	v->list[i] = copy;
}

static void put_all(struct environment *v, char *const *list)
{
	for (; list && *list; list++)
		put(v, *list);
}

static void put_basics(struct environment *v, const struct process_request *q)
{
	static const char *const basics[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
		"LC_ALL=C.UTF-8", "SHELL=/bin/bash", "TMPDIR=/tmp", "XDG_CACHE_HOME=/tmp/.cache",
		"XDG_CONFIG_HOME=/tmp/.config", "XDG_DATA_HOME=/tmp/.local",
		"MPLCONFIGDIR=/tmp/.config/matplotlib" };
	char home[LIMIT_PATH_BYTES + 8];
	const char *user = q->home ? "user" : "sandbox";
	char name[2][32];

	for (size_t i = 0; i < ARRAY_LEN(basics); i++)
		put(v, basics[i]);
	snprintf(home, sizeof(home), "HOME=%s", home_of(q));
	snprintf(name[0], sizeof(name[0]), "USER=%s", user);
	snprintf(name[1], sizeof(name[1]), "LOGNAME=%s", user);
	put(v, home);
	put(v, name[0]);
	put(v, name[1]);
	if (q->rows)
		put(v, "TERM=xterm-256color");
}

/*
 * Shells call the working directory by this name when it is one, also where it leads through a
 * link.
 */
static void put_directory(struct environment *v, const struct process_request *q)
{
	_cleanup_free_ char *cwd = start_directory(q), *text = NULL;
	if (cwd && asprintf(&text, "PWD=%s", cwd) >= 0)
		put(v, text);
}

char **start_environment(const struct session *s, const struct process_request *q)
{
	struct environment v = { .n = 0 };
	put_basics(&v, q);
	for (const char *const *e = session_network_environment(s); e && *e; e++)
		put(&v, *e);
	for (const char *const *e = cell_picture_environment; s->display && *e; e++)
		put(&v, *e);
	put_all(&v, s->params.env);
	put_directory(&v, q);
	put_all(&v, q->env);
	char **list = v.failed ? NULL : calloc(v.n + 1, sizeof(*list));
	for (unsigned i = 0; i < v.n; i++) {
		if (list)
			list[i] = v.list[i];
		else
			free(v.list[i]);
	}

	return list;
}

/* ---- the command ----------------------------------------------------------------------------- */

char *start_directory(const struct process_request *q)
{
	char *text = NULL;
	const char *cwd = q->cwd;
	if (!cwd || !*cwd || text_eq(cwd, "~"))
		return strdup(home_of(q));

	if (cwd[0] == '~' && cwd[1] == '/')
		cwd += 2;
	else if (*cwd == '/')
		return strdup(cwd);
	return asprintf(&text, "%s/%s", home_of(q), cwd) < 0 ? NULL : text;
}

char **start_arguments(const struct process_request *q)
{
	const char *shell[] = { "bash", q->login ? "-lc" : "-c", q->command, NULL };
	return session_words_copy(q->command ? shell : (const char *const *)q->argv);
}

/* ---- the frame ---------------------------------------------------------------------- */

static int put_limits(const struct session *s, struct buffer *b)
{
	const struct session_limits *l = &s->params.limits;
	const struct {
		enum wire_tag tag;
		uint64_t value;

	} rows[] = {
		{ WIRE_PROCESSES,
			l->processes ? l->processes + (history_possible(s) ? LIMIT_SNAPSHOTS : 0)
				     : 0 },
		{ WIRE_FILE_BYTES, l->file_bytes },
		{ WIRE_OPEN_FILES, l->open_files },
		/* the daemon counts them together; this bounds each, come what may */
		{ WIRE_CPU_SECONDS, l->session_cpu_s > 0 ? (uint64_t)l->session_cpu_s + 5 : 0 },
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++)
		if (rows[i].value)
			r = wire_put_u64(b, rows[i].tag, rows[i].value);
	return r;
}

static int put_words(struct buffer *b, enum wire_tag tag, char *const *list)
{
	int r = 0;
	for (; r == 0 && *list; list++)
		r = wire_put(b, tag, *list, strlen(*list));
	return r;
}

int start_frame(const struct session *s, const struct process_request *q, char *const *argv,
	char *const *env, const char *cwd, struct buffer *ret, struct error *e)
{
	static char *const shells[] = { (char *)"/bin/bash", (char *)"/bin/sh", NULL };
	size_t start;

	buffer_init(ret, START_MESSAGE_BYTES);
	int r = wire_begin(ret, WIRE_START, 0, &start);
	if (r == 0)
		r = put_words(ret, WIRE_ARG, argv);
	if (r == 0 && q->command)
		r = put_words(ret, WIRE_PROGRAM, shells);
	if (r == 0)
		r = put_words(ret, WIRE_ENV, env);
	if (r == 0)
		r = wire_put(ret, WIRE_CWD, cwd, strlen(cwd));
	if (r == 0 && q->rows)
		r = wire_put_u64(ret, WIRE_TERMINAL, (uint64_t)q->rows << 16 | q->columns);
	if (r == 0)
		r = put_limits(s, ret);
	if (r == 0) {
		wire_end(ret, start);
		return 0;
	}

	buffer_finish(ret);
	error_set(e, -E2BIG, "the command with its environment is longer than %d bytes",
		START_MESSAGE_BYTES);
	error_remedy(e, "Write long input to a file, or send it as standard input.");
	return error_slug(e, "command_too_long");
}
