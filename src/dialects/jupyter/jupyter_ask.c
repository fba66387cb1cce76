/*
 * Requests that are questions: completion and inspection to the interpreter, the history of a
 * kernel, and comms, of which there are none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dialects/jupyter/jupyter.h"
#include "session/cells/introspect.h"
#include "json/json_read.h"
#include "json/json_write.h"

static void respond(
	struct kernel_request *r, const char *type, struct json_writer *w, struct buffer *b)
{
	kernel_publish_status(r->kernel, r->parent, "busy");
	if (r->asker && json_writer_end(w) >= 0)
		channels_reply(r->asker, r->kernel, r->channel, r->parent, type, b);
	kernel_publish_status(r->kernel, r->parent, "idle");
	buffer_finish(b);
	kernel_request_destroy(r);
}

/* ---- completion ------------------------------------------------------------------- */

static void put_matches(struct json_writer *w, const json_t *matches)
{
	json_key(w, "matches");
	json_open_array(w);
	for (size_t i = 0; i < json_array_size(matches); i++) {
		const json_t *text = json_object_get(json_array_get(matches, i), "text");
		if (json_is_string(text))
			json_put_text(w, json_string_value(text), json_string_length(text));
	}
	json_close(w);
}

static void reply_completion(struct kernel_request *r, const json_t *found)
{
	struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	const json_t *start = json_object_get(found, "start"), *end = json_object_get(found, "end");

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", "ok");
	put_matches(&w, json_object_get(found, "matches"));
	json_field_int(
		&w, "cursor_start", json_is_integer(start) ? json_integer_value(start) : r->cursor);
	json_field_int(
		&w, "cursor_end", json_is_integer(end) ? json_integer_value(end) : r->cursor);
	json_field_raw(&w, "metadata", "{}", 2);
	json_close(&w);
	respond(r, "complete_reply", &w, &b);
}

/* ---- inspection --------------------------------------------------------------------- */

static void append_part(struct json_writer *w, const char *title, const json_t *text)
{
	if (!json_string_length(text))
		return;
	json_string_append(w, title, strlen(title));
	json_string_append(w, json_string_value(text), json_string_length(text));
	json_string_append(w, "\n", 1);
}

static void reply_inspection(struct kernel_request *r, const json_t *found)
{
	struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	bool known = json_is_true(json_object_get(found, "found"));

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", "ok");
	json_field_bool(&w, "found", known);
	json_key(&w, "data");
	json_open_object(&w);
	if (known) {
		json_key(&w, "text/plain");
		json_string_begin(&w);
		append_part(&w, "Signature: ", json_object_get(found, "signature"));
		append_part(&w, "Type: ", json_object_get(found, "type"));
		append_part(&w, "String form: ", json_object_get(found, "repr"));
		append_part(&w, "Docstring:\n", json_object_get(found, "doc"));
		json_string_end(&w);
	}

	json_close(&w);
	json_field_raw(&w, "metadata", "{}", 2);
	json_close(&w);
	respond(r, "inspect_reply", &w, &b);
}

/* ---- asking the interpreter -------------------------------------------------------------- */

static void on_answer(void *userdata, const char *json, size_t len)
{
	struct kernel_request *r = userdata;
	_cleanup_json_ json_t *found = NULL;
	r->kernel->question = NULL;
	if (json && json_read(json, len, NULL, &found) < 0)
		found = NULL;
	if (r->completes)
		reply_completion(r, found);
	else
		reply_inspection(r, found);
}

static int ask(struct kernel_request *r, const json_t *content)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const json_t *code = json_object_get(content, "code");
	struct session *s;
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "what", r->completes ? "complete" : "inspect");
	json_field_text(&w, "code", json_string_value(code) ? json_string_value(code) : "",
		json_string_length(code));
	json_field_int(&w, "cursor", r->cursor);
	json_close(&w);
	if (!json_is_string(code) || json_writer_end(&w) < 0 || r->kernel->question ||
		kernel_session(r->kernel, NULL, &s) < 0)
		return -EINVAL;
	return session_introspect(s, b.data, b.len, on_answer, r, NULL);
}

/* While a cell runs nobody can be asked: the answer is that nothing was found. */
static void question(struct kernel_request *r, const json_t *content)
{
	json_int_t at = json_integer_value(json_object_get(content, "cursor_pos"));
	r->cursor = at > 0 ? at : 0;
	if (ask(r, content) < 0) {
		if (r->completes)
			reply_completion(r, NULL);
		else
			reply_inspection(r, NULL);
	} else {
		r->kernel->question = r;
	}
}

void kernel_complete(struct kernel_request *r, json_t *content)
{
	r->completes = true;
	question(r, content);
}

void kernel_inspect(struct kernel_request *r, json_t *content)
{
	question(r, content);
}

void kernel_forget_question(struct kernel *k)
{
	struct session *s;
	if (k->question && kernel_session(k, NULL, &s) >= 0)
		session_introspect_forget(s, k->question);
	k->question = NULL;
}

/* ---- history ------------------------------------------------------------------------------ */

struct kernel_input {
	unsigned count;
	char *code;
	size_t len;
	bool chosen; /* for the answer that is being written */
	STAILQ_ENTRY(kernel_input) link;
};

static void drop_first(struct kernel *k)
{
	struct kernel_input *first = STAILQ_FIRST(&k->inputs);
	STAILQ_REMOVE_HEAD(&k->inputs, link);
	k->inputs_n--;
	k->inputs_bytes -= first->len;
	free(first->code);
	free(first);
}

void kernel_drop_inputs(struct kernel *k)
{
	while (!STAILQ_EMPTY(&k->inputs))
		drop_first(k);
}

void kernel_note_input(struct kernel *k, unsigned count, const char *code, size_t len)
{
	struct kernel_input *one = len <= LIMIT_JUPYTER_HISTORY_BYTES ? calloc(1, sizeof(*one))
								      : NULL;

	if (!one || !(one->code = malloc(len + 1))) {
		free(one);
		return;
	}

	memcpy(one->code, code, len);
	one->count = count;
	one->len = len;
	STAILQ_INSERT_TAIL(&k->inputs, one, link);
	k->inputs_n++;
	k->inputs_bytes += len;
	while (k->inputs_n > LIMIT_JUPYTER_HISTORY || k->inputs_bytes > LIMIT_JUPYTER_HISTORY_BYTES)
		drop_first(k);
}

/* `*` for any text and `?` for any character, as in a shell. Goes back to the last `*` only. */
static bool fits(const char *pattern, const char *at, const char *end)
{
	const char *star = NULL,
		   *from = NULL; /* what follows `*`, and the text that it begins at */
	while (at < end) {
		if (*pattern == '*') {
			star = ++pattern;
			from = at;
		} else if (*pattern && (*pattern == '?' || *pattern == *at)) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star;
			at = ++from;
		} else {
			return false;
		}
	}

	pattern += strspn(pattern, "*");
	return !*pattern;
}

static bool is_repeated(const struct kernel_input *one)
{
	const struct kernel_input *later = one;
	while ((later = STAILQ_NEXT(later, link)))
		if (later->len == one->len && !memcmp(later->code, one->code, one->len))
			return true;
	return false;
}

/* A search. A pattern that is too long finds nothing. */
static void choose_by_pattern(struct kernel *k, const json_t *content)
{
	const json_t *pattern = json_object_get(content, "pattern");
	bool unique = json_is_true(json_object_get(content, "unique")),
	     fair = json_string_length(pattern) <= LIMIT_NAME_BYTES;
	const char *text = json_is_string(pattern) ? json_string_value(pattern) : "*";
	struct kernel_input *one;

	STAILQ_FOREACH(one, &k->inputs, link)
	one->chosen = fair && fits(text, one->code, one->code + one->len) &&
		      !(unique && is_repeated(one));
}

static void choose_by_line(struct kernel *k, const json_t *content)
{
	json_int_t start = json_integer_value(json_object_get(content, "start")),
		   stop = json_integer_value(json_object_get(content, "stop"));
	struct kernel_input *one;
	STAILQ_FOREACH(one, &k->inputs, link)
	one->chosen = one->count >= start && (stop <= 0 || one->count < stop);
}

static void choose_all(struct kernel *k)
{
	struct kernel_input *one;
	STAILQ_FOREACH(one, &k->inputs, link)
	one->chosen = true;
}

/* Keeps only the last n of the selected inputs selected. */
static void keep_last(struct kernel *k, json_int_t n)
{
	struct kernel_input *one;
	json_int_t found = 0;
	STAILQ_FOREACH(one, &k->inputs, link)
	found += one->chosen;
	STAILQ_FOREACH(one, &k->inputs, link)
	if (one->chosen && found-- > n)
		one->chosen = false;
}

static void choose(struct kernel *k, const json_t *content)
{
	const char *type = json_string_value(json_object_get(content, "hist_access_type"));
	json_int_t n = json_integer_value(json_object_get(content, "n"));

	if (type && text_eq(type, "range")) {
		choose_by_line(k, content);
		return;
	}
	if (type && text_eq(type, "search"))
		choose_by_pattern(k, content);
	else
		choose_all(k);
	if (n > 0)
		keep_last(k, n);
}

/*
 * (session, line, input), or (session, line, (input, output)) when output is asked for: there is
 * none.
 */
static void put_input(struct json_writer *w, const struct kernel_input *one, bool output)
{
	json_open_array(w);
	json_put_int(w, 0);
	json_put_uint(w, one->count);
	if (output)
		json_open_array(w);
	json_put_text(w, one->code, one->len);
	if (output) {
		json_put_null(w);
		json_close(w);
	}
	json_close(w);
}

void kernel_history(struct kernel_request *r, json_t *content)
{
	struct buffer b = BUFFER_COUNTED(0);
	struct json_writer w;
	const struct kernel_input *one;
	bool output = json_is_true(json_object_get(content, "output"));

	choose(r->kernel, content);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "status", "ok");
	json_key(&w, "history");
	json_open_array(&w);
	STAILQ_FOREACH(one, &r->kernel->inputs, link)
	if (one->chosen)
		put_input(&w, one, output);
	json_close(&w);
	json_close(&w);
	respond(r, "history_reply", &w, &b);
}

/* ---- comms ---------------------------------------------------------------------------------- */

/* No target is registered here, so a comm that is opened is closed, as ipykernel does. */
void kernel_refuse_comm(struct kernel_request *r, json_t *content)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const json_t *id = json_object_get(content, "comm_id");
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_text(&w, "comm_id", json_string_value(id) ? json_string_value(id) : "",
		json_string_length(id));
	json_field_raw(&w, "data", "{}", 2);
	json_close(&w);
	kernel_publish_status(r->kernel, r->parent, "busy");
	if (json_writer_end(&w) >= 0)
		kernel_publish(r->kernel, r->parent, "comm_close", &b);
	kernel_publish_status(r->kernel, r->parent, "idle");
	kernel_request_destroy(r);
}
