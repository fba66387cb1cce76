/* NeMo-Skills' and NeMo-Gym's /execute. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/provision.h"
#include "base/text.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define DEFAULT_TIMEOUT_S 10.0
#define LEAST_TIMEOUT_S 0.1
#define MOST_TIMEOUT_S 3600.0
#define PATIENCE_S 8.0

enum { DEFAULT_CHARACTERS = 1000 };

enum nemo_language { NEMO_IPYTHON, NEMO_PYTHON, NEMO_PYTHON3, NEMO_PYPY, NEMO_SHELL };
static const char *const languages[] = {
	[NEMO_IPYTHON] = "ipython",
	[NEMO_PYTHON] = "python",
	[NEMO_PYTHON3] = "python3",
	[NEMO_PYPY] = "pypy3",
	[NEMO_SHELL] = "shell",
	NULL,
};

struct nemo {
	struct call *call;
	struct cell *cell; /* of a named session */
	size_t most_characters;
	bool is_new, executing, dead;
	bool shows_value; /* the last value goes to stdout, as in IPython */
};

/* ---- the answer ------------------------------------------------------------------------ */

/* Cut after so many characters, as their server does it. */
static void put_cut(struct json_writer *w, const char *key, const struct buffer *b, size_t most)
{
	size_t at = 0, n = 0;
	while (at < b->len && n < most) {
		at++;
		while (at < b->len && ((unsigned char)b->data[at] & 0xc0) == 0x80)
			at++;
		n++;
	}
	json_key(w, key);
	json_string_begin(w);
	json_string_append(w, b->data ? b->data : "", at);
	if (at < b->len)
		json_string_append(w, "<output cut>", strlen("<output cut>"));
	json_string_end(w);
}

static void respond(const struct nemo *n, const char *status, const struct buffer *out,
	const struct buffer *err)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "process_status", status);
	put_cut(&w, "stdout", out, n->most_characters);
	put_cut(&w, "stderr", err, n->most_characters);
	json_field_bool(&w, "new_session_created", n->is_new);
	json_close(&w);
	call_respond(n->call, 200, &w, &b);
}

static void put_value(const struct bundle *result, struct buffer *out)
{
	for (unsigned i = 0; result && i < result->n; i++)
		if (text_eq(result->item[i].mime, "text/plain")) {
			buffer_append(out, result->item[i].data, result->item[i].len);
			buffer_append_char(out, '\n');
		}
}

static void answer_observation(const struct nemo *n, const struct observation *o)
{
	_cleanup_buffer_ struct buffer out = BUFFER_COUNTED(0), err = BUFFER_COUNTED(0);
	if (script_timed_out(o)) {
		buffer_append_str(&err, "Timed out\n");
		respond(n, "timeout", &out, &err);
		return;
	}
	script_stdout(o, &out);
	script_stderr(o, &err);
	if (n->shows_value)
		put_value(o->result, &out);
	respond(n, o->status == CELL_OK ? "completed" : "error", &out, &err);
}

/* 502 is what their client tries again. */
static void answer_failed(struct call *c, const struct error *e)
{
	trainers_detail(c, 502, e->text);
}

/* ---- in a session of its own -------------------------------------------------------------- */

static void answer_run(struct call *c, void *extra, const struct job_outcome *outcome)
{
	(void)c;
	struct nemo *n = extra;
	if (outcome->o)
		answer_observation(n, outcome->o);
	else
		answer_failed(n->call, outcome->error);
}

static void run_alone(struct nemo *n, const json_t *body, size_t len, enum nemo_language language,
	double timeout_s)
{
	static const struct script_ops ops = { answer_run, free };
	const json_t *code = json_object_get(body, "generated_code"),
		     *input = json_object_get(body, "std_input");
	struct run_request run = { 0 };
	struct error e = { 0 };
	struct call *c = n->call;
	int r = script_set_text(
		&run.execute.code, json_string_value(code), json_string_length(code));

	if (r == 0)
		r = script_set_text(
			&run.execute.input, json_string_value(input), json_string_length(input));
	run.execute.timeout_s = timeout_s;
	run.language = language == NEMO_SHELL ? SCRIPT_BASH : SCRIPT_PYTHON;
	if (r == 0)
		r = script_prepare(&run, &e);
	if (r < 0) {
		provision_finish(&run);
		free(n);
		call_no_memory(c);
		return;
	}

	run.session.dialect = "nemo";
	script_call_start(c, &run, len, PATIENCE_S + timeout_s, &ops, n);
}

/* ---- in a named session --------------------------------------------------------------------- */

static void destroy(struct nemo *n)
{
	if (n->executing)
		n->dead = true;
	else
		free(n);
}

static void on_gone(struct call *c)
{
	struct nemo *n = c->work;
	if (n->cell)
		cell_abandon(n->cell);
	c->work = NULL;
	c->ops = NULL;
	destroy(n);
}

static void on_done(void *userdata, const struct observation *o)
{
	struct nemo *n = userdata;
	n->cell = NULL;
	n->call->work = NULL;
	n->call->ops = NULL;
	answer_observation(n, o);
	destroy(n);
}

static void run_named(struct nemo *n, const json_t *body, const char *name, double timeout_s)
{
	static const struct call_ops ops = { .on_gone = on_gone };
	static const struct cell_observer observer = { .on_done = on_done };
	const json_t *code = json_object_get(body, "generated_code"),
		     *input = json_object_get(body, "std_input");
	struct call *c = n->call;
	struct error e = { 0 };
	struct session *s;
	struct cell *cell = NULL;
	int r = named_session_get(trainers_of(c)->named, c->owner, name, &e, &s, &n->is_new);
	struct cell_request q = { .code = json_string_value(code),
		.code_len = json_string_length(code),
		.stdin_text = json_string_value(input),
		.stdin_len = json_string_length(input),
		.timeout_s = timeout_s };

	http_drop_body(c->x);
	c->ops = &ops;
	c->work = n;
	n->executing = true;
	if (r == 0)
		r = session_execute(s, http_request_id(c->x), &q, &observer, n, &e, &cell);
	n->executing = false;
	if (n->dead) {
		free(n);
	} else if (r < 0) {
		c->ops = NULL;
		c->work = NULL;
		free(n);
		answer_failed(c, &e);
	} else {
		n->cell = cell;
	}
}

/* ---- the request --------------------------------------------------------------------------- */

static bool find_language(const json_t *body, enum nemo_language *ret)
{
	const char *word = json_string_value(json_object_get(body, "language"));
	*ret = NEMO_IPYTHON;
	for (int i = 0; word && languages[i]; i++)
		if (text_eq(languages[i], word)) {
			*ret = (enum nemo_language)i;
			return true;
		}
	return !word;
}

static void start(struct call *c, const json_t *body, size_t len, enum nemo_language language)
{
	const json_t *timeout = json_object_get(body, "timeout"),
		     *most = json_object_get(body, "max_output_characters");
	const char *name = http_header(c->x, "X-Session-ID");
	double s = json_is_number(timeout) ? json_number_value(timeout) : DEFAULT_TIMEOUT_S;
	struct nemo *n = calloc(1, sizeof(*n));

	if (!n) {
		call_no_memory(c);
		return;
	}

	s = s < LEAST_TIMEOUT_S ? LEAST_TIMEOUT_S : s > MOST_TIMEOUT_S ? MOST_TIMEOUT_S : s;
	n->call = c;
	n->shows_value = language == NEMO_IPYTHON;
	n->most_characters = json_is_integer(most) && json_integer_value(most) >= 0
				     ? (size_t)json_integer_value(most)
				     : DEFAULT_CHARACTERS;
	if (language == NEMO_IPYTHON && name && *name) {
		run_named(n, body, name, s);
	} else {
		n->is_new = language == NEMO_IPYTHON;
		run_alone(n, body, len, language, s);
	}
}

void handle_nemo_execute(struct call *c)
{
	struct error e = { 0 };
	size_t len;
	enum nemo_language language;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	const json_t *code = json_object_get(body, "generated_code");

	if (!body)
		trainers_invalid(c, NULL, e.text);
	else if (!json_is_string(code))
		trainers_invalid(c, "generated_code", "Field required, a string");
	else if (!find_language(body, &language))
		trainers_invalid(c, "language",
			"Input should be 'ipython', 'python', 'python3', 'pypy3' or 'shell'");
	else
		start(c, body, len, language);
}

void handle_nemo_delete(struct call *c)
{
	static const char done[] = "{\"message\":\"the session has ended\"}";
	if (named_session_end(trainers_of(c)->named, c->owner, c->id) < 0)
		trainers_detail(c, 404, "there is no such session");
	else
		call_respond_static(c, 200, "application/json", done, sizeof(done) - 1);
}
