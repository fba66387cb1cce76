/* Steps: a CodeAction becomes a cell, its outcome a CodeObservation with a reward. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "base/text.h"
#include "dialects/common/python_json.h"
#include "dialects/openenv/openenv.h"
#include "dialects/openenv/openenv_reward.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* ---- the action ------------------------------------------------------------ */

/* What is about the screen is the native API's, and its tables read it. */
static void read_picture(json_t *data, struct pydantic *p, struct action *a)
{
	static const char *const names[] = { "code", "capture_screenshot", "screenshot", "on_block",
		NULL };
	_cleanup_json_ json_t *part = NULL;
	struct error e = { 0 };
	if (!json_object_get(data, "capture_screenshot") && !json_object_get(data, "screenshot"))
		return;
	part = json_object();
	for (size_t i = 0; names[i]; i++)
		json_object_set(part, names[i], json_object_get(data, names[i]));
	if (fields_decode(&execute_fields, part, &a->execute, &e) < 0)
		pydantic_add(p, "value_error", "screenshot", e.text,
			json_object_get(data, "screenshot"), NULL);
	a->pictured = a->execute.capture_screenshot || a->execute.has_screenshot;
}

void action_finish(struct action *a)
{
	fields_finish(&execute_fields, &a->execute);
}

static void read_code(json_t *data, struct pydantic *p, struct action *ret)
{
	json_t *code = pydantic_string(p, data, "code", false, 0);
	if (!json_object_get(data, "code"))
		pydantic_missing(p, "code", data);
	if (!code)
		return;
	ret->code = json_string_value(code);
	ret->code_len = json_string_length(code);
	if (ret->code_len > LIMIT_CODE_BYTES)
		pydantic_add(
			p, "value_error", "code", "Value error, the code is too long", NULL, NULL);
}

void action_read(json_t *data, struct pydantic *p, struct action *ret)
{
	static const char *const known[] = { "metadata", "code", "capture_screenshot", "screenshot",
		"on_block", "timeout_s", "render_timeout", "printed_final_answer", NULL };
	double render_s;

	*ret = (struct action){ 0 };
	pydantic_dict(p, data, "metadata", false);
	read_code(data, p, ret);
	pydantic_bool(p, data, "capture_screenshot");
	pydantic_positive(p, data, "timeout_s", &ret->timeout_s);
	ret->printed_answer = json_is_true(pydantic_bool(p, data, "printed_final_answer"));
	pydantic_forbid_extra(p, data, known);
	bool rendered = pydantic_up_to(p, data, "render_timeout", LIMIT_RENDER_SECONDS, &render_s);
	if (!pydantic_count(p))
		read_picture(data, p, ret);
	ret->execute.has_render_timeout = rendered;
	ret->execute.render_timeout = rendered ? render_s : 0;
}

/* ---- the observation --------------------------------------------------------- */

static const struct bundle_item *form(const struct bundle *b, const char *mime)
{
	for (unsigned i = 0; b && i < b->n; i++)
		if (text_eq(b->item[i].mime, mime))
			return &b->item[i];
	return NULL;
}

static void append_captured(struct json_writer *w, const struct captured *c)
{
	char gap[64];
	json_string_append(w, c->head, c->head_len);
	if (c->left_out) {
		int n = snprintf(
			gap, sizeof(gap), "\n… %" PRIu64 " bytes left out …\n", c->left_out);
		json_string_append(w, gap, (size_t)n);
	}
	json_string_append(w, c->tail, c->tail_len);
}

/* The value as json.dumps() spells it, or its repr. */
static void append_value(struct json_writer *w, const struct bundle *value)
{
	const struct bundle_item *json = form(value, "application/json"),
				 *loose = form(value, "application/vnd.python.json"),
				 *plain = form(value, "text/plain");
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (json && json->is_json && python_json_dumps(&b, json->data, json->len) >= 0)
		json_string_append(w, b.data, b.len);
	else if (loose)
		json_string_append(w, loose->data, loose->len);
	else if (plain)
		json_string_append(w, plain->data, plain->len);
}

/*
 * What was printed, a line end, and the value of the last statement: the way coding_env joins them.
 */
static void put_stdout(struct json_writer *w, const struct observation *o)
{
	bool printed = o->out.head_len || o->out.tail_len;
	json_key(w, "stdout");
	json_string_begin(w);
	append_captured(w, &o->out);
	if (o->result) {
		if (printed)
			json_string_append(w, "\n", 1);
		append_value(w, o->result);
	}
	json_string_end(w);
}

/* The text that was written to stderr, and the traceback. */
static void put_stderr(struct json_writer *w, const struct observation *o)
{
	const struct cell_error *e = o->error;
	char line[DEATH_LINE_MAX];

	json_key(w, "stderr");
	json_string_begin(w);
	if (o->died) {
		answer_death_line(o->died, line);
		json_string_append(w, line, strlen(line));
	}

	append_captured(w, &o->err);
	if (e) {
		json_string_append(w, e->traceback, e->traceback_len);
		/* What the daemon decided (a time limit, a kill) is in no traceback. */
		bool told = memmem(e->traceback, e->traceback_len, e->message, e->message_len) !=
			    NULL;
		if (!told && !text_eq(e->type, "SystemExit")) {
			json_string_append(w, e->type, strlen(e->type));
			json_string_append(w, ": ", 2);
			json_string_append(w, e->message, e->message_len);
			json_string_append(w, "\n", 1);
		}
	}

	json_string_end(w);
}

void step_put_reward(struct json_writer *w, bool rewards, double reward)
{
	char text[32];
	if (!rewards) {
		json_field_null(w, "reward");
		return;
	}
	/* All parts are tenths; one digit is what Python prints of their sums. */
	int n = snprintf(text, sizeof(text), "%.1f", reward);
	json_field_raw(w, "reward", text, (size_t)n);
}

/* The code was no Python: nothing ran, so the traceback has no frame of it. */
static bool is_syntax_error(const struct cell_error *e)
{
	return e &&
	       (text_eq(e->type, "SyntaxError") || text_eq(e->type, "IndentationError") ||
		       text_eq(e->type, "TabError")) &&
	       !text_starts(e->traceback, "Traceback");
}

/* The file in base64, as clients of coding_env's screenshots read it. */
static void put_picture(struct json_writer *w, const struct screenshot *shot)
{
	if (shot && shot->data)
		json_field_base64(w, "screenshot", shot->data, shot->len);
	else
		json_field_null(w, "screenshot");
}

static void put_final_answer(struct json_writer *w, const struct final_answer *a)
{
	if (a->is_json && json_validate(a->data, a->len, NULL) >= 0)
		json_field_raw(w, "final_answer", a->data, a->len);
	else
		json_field_text(w, "final_answer", a->data, a->len);
}

#define NO_SCREEN                                                                                            \
	"the environment has no display: it was reset with \"display\": false, it is a fork of another, or " \
	"the server has no X server (apt-get install xvfb)"

/* Only there when it has something to say: OpenEnv's own answers have none. */
static void put_metadata(struct json_writer *w, const struct step *s, const struct observation *o)
{
	const struct screenshot *shot = o->screenshot;
	bool unpictured = s->pictured && !(shot && shot->data),
	     replaced = o->state_lost || o->rolled_back;
	bool noted = shot && shot->data && (shot->no_window || shot->info.reason == SHOT_CAP);
	if (!unpictured && !noted && !o->answer && !replaced)
		return;
	json_key(w, "metadata");
	json_open_object(w);
	if (o->answer)
		put_final_answer(w, o->answer);
	if (unpictured)
		json_field_cstr(w, "screenshot_error", shot && shot->text ? shot->text : NO_SCREEN);
	if (noted)
		json_field_cstr(w, "screenshot_note", screenshot_note(shot));
	if (replaced) {
		json_field_bool(w, "state_lost", o->state_lost);
		json_field_bool(w, "rolled_back", o->rolled_back);
		json_field_bool(w, "files_lost", o->files_lost);
	}

	json_close(w);
}

void step_put_seen(struct json_writer *w, const struct step *s, const struct observation *o)
{
	json_open_object(w);
	put_stdout(w, o);
	put_stderr(w, o);
	json_field_int(w, "exit_code", o->exit_code);
	if (s->pictured)
		put_picture(w, o->screenshot);
	json_close(w);
}

void step_put_outcome(struct json_writer *w, const struct step *s, const struct observation *o)
{
	json_key(w, "observation");
	step_put_seen(w, s, o);
	step_put_reward(w, s->rewards, s->reward - (is_syntax_error(o->error) ? 0.2 : 0));
	json_field_bool(w, "done", o->answer != NULL);
}

void step_put_observation(struct json_writer *w, const struct step *s, const struct observation *o)
{
	json_open_object(w);
	step_put_outcome(w, s, o);
	put_metadata(w, s, o);
	if (s->extras) {
		json_key(w, "info");
		answer_put_observation(w, o);
	}
	json_close(w);
}

/* ---- running ------------------------------------------------------------------- */

static void step_free(struct step *s)
{
	if (s->executing) {
		s->dead = true;
		return;
	}
	if (s->env) {
		TAILQ_REMOVE(&s->env->steps, s, link);
		if (s->target == s->env)
			s->env->ws_steps--;
	}
	free(s->id);
	free(s);
}

void step_abandon(struct step *s)
{
	if (s->cell)
		cell_abandon(s->cell);
	s->cell = NULL;
	step_free(s);
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct step *s = userdata;
	s->sink->on_output(s, stream, data, len);
}

static void on_done(void *userdata, const struct observation *o)
{
	struct step *s = userdata;
	s->cell = NULL;
	s->over = true;
	if (s->env) {
		s->env->step_count++;
		s->env->last_exit_code = o->exit_code;
	}
	s->sink->on_done(s, o);
	step_free(s);
}

static struct step *step_create(struct openenv *o, struct env *env, const char *session,
	const struct action *a, const char *id)
{
	struct step *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (id && !(s->id = strdup(id))) {
		free(s);
		return NULL;
	}

	s->api = o->api;
	s->env = env;
	s->rewards = env ? env->rewards : o->config.rewards;
	s->violation = openenv_violation(a->code, a->code_len);
	s->reward = openenv_reward(a->code, a->code_len, false);
	snprintf(s->session, sizeof(s->session), "%s", session);
	return s;
}

int step_start(struct openenv *o, struct env *env, const char *session, const struct action *a,
	const char *id, bool extras, bool detach, const struct step_sink *sink, void *target,
	struct error *err, struct step **ret)
{
	static const struct cell_observer quiet = { .on_done = on_done };
	static const struct cell_observer streaming = { .on_output = on_output,
		.on_done = on_done };
	struct session *found;
	int r = session_find(o->api->sessions, session, err, &found);

	if (r < 0)
		return r;
	struct step *s = step_create(o, env, session, a, id);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->sink = sink;
	s->target = target;
	s->extras = extras;
	if (env) {
		env->ran = true;
		TAILQ_INSERT_TAIL(&env->steps, s, link);
		if (target == env)
			env->ws_steps++;
	}

	struct cell_request request = { 0 };
	struct session_info info;
	session_info(found, &info);
	/*
	 * The step is more than its picture: it is run all the same, and its answer says what was
	 * missing.
	 */
	if (a->pictured && info.has_display)
		execute_cell_request(&a->execute, &request);
	request.code = a->code;
	request.code_len = a->code_len;
	request.timeout_s = a->timeout_s;
	request.printed_answer = a->printed_answer;
	request.detach = detach;
	request.dialect = "openenv";
	s->pictured = a->pictured;
	*ret = s;
	s->executing = true;
	r = session_execute(
		found, NULL, &request, sink->on_output ? &streaming : &quiet, s, err, &s->cell);
	s->executing = false;
	if (s->over || s->dead)
		s->cell = NULL;
	if (r < 0 || s->dead)
		step_free(s);
	return r;
}
