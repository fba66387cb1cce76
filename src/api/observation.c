/*
 * Observations as JSON. What they hold comes from a guest: nothing is trusted to be UTF-8, or to be
 * JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/answers.h"
#include "api/api_words.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

void answer_put_captured(struct json_writer *w, const struct captured *c)
{
	char gap[96];
	json_string_begin(w);
	json_string_append(w, c->head, c->head_len);
	if (c->left_out) {
		int n = snprintf(gap, sizeof(gap), "\n… %" PRIu64 " bytes left out%s …\n",
			c->left_out, c->is_short ? ": the server held too much output" : "");
		json_string_append(w, gap, (size_t)n);
	}
	json_string_append(w, c->tail, c->tail_len);
	json_string_end(w);
}

/* A guest may send one media type twice; an object must not have one name twice. */
static bool seen_before(const struct bundle *b, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (text_eq(b->item[j].mime, b->item[i].mime))
			return true;
	return false;
}

void answer_put_bundle(struct json_writer *w, const struct bundle *b)
{
	json_open_object(w);
	for (unsigned i = 0; i < b->n; i++) {
		const struct bundle_item *item = &b->item[i];
		if (seen_before(b, i))
			continue;
		json_key_text(w, item->mime, strlen(item->mime));
		if (item->is_json && json_validate(item->data, item->len, NULL) >= 0)
			json_put_raw(w, item->data, item->len);
		else
			json_put_text(w, item->data, item->len);
	}
	json_close(w);
}

static void put_displays(struct json_writer *w, const struct observation *o)
{
	json_key(w, "displays");
	json_open_array(w);
	for (unsigned i = 0; i < o->n_displays; i++)
		answer_put_bundle(w, &o->displays[i]);
	json_close(w);
}

static void put_word(struct json_writer *w, const char *key, const char *word)
{
	json_field_cstr(w, key, word && *word ? word : NULL);
}

void answer_put_error(struct json_writer *w, const struct cell_error *e)
{
	json_key(w, "error");
	if (!e) {
		json_put_null(w);
		return;
	}

	json_open_object(w);
	json_field_cstr(w, "type", e->type);
	json_field_text(w, "message", e->message, e->message_len);
	json_field_text(w, "traceback", e->traceback, e->traceback_len);
	if (e->line > 0)
		json_field_int(w, "line", e->line);
	else
		json_field_null(w, "line");
	put_word(w, "code", e->code);
	char remedy[EDGE_TEXT_MAX];
	put_word(w, "remediation", api_remedy(e->remedy, remedy));
	json_close(w);
}

void answer_put_files(struct json_writer *w, const struct observation *o)
{
	static const char *const changes[] = { "created", "modified", "deleted" };
	json_key(w, "files");
	json_open_array(w);
	for (unsigned i = 0; i < o->n_files; i++) {
		json_open_object(w);
		json_field_cstr(w, "path", o->files[i].path);
		json_field_uint(w, "size", o->files[i].size);
		json_field_cstr(w, "change", changes[o->files[i].change]);
		json_close(w);
	}
	json_close(w);
}

void answer_put_truncated(struct json_writer *w, const struct observation *o)
{
	json_key(w, "truncated");
	json_open_object(w);
	json_field_uint(w, "stdout", o->out.left_out);
	json_field_uint(w, "stderr", o->err.left_out);
	json_field_uint(w, "displays", o->displays_left_out);
	json_field_bool(w, "files", o->files_cut);
	json_field_bool(w, "server_memory", o->out.is_short || o->err.is_short);
	json_close(w);
}

void answer_put_usage(struct json_writer *w, const struct observation *o)
{
	json_key(w, "usage");
	json_open_object(w);
	json_field_double(w, "wall_ms", round(o->wall_ms * 1000) / 1000);
	json_field_double(w, "cpu_ms", round(o->cpu_ms * 1000) / 1000);
	json_field_uint(w, "peak_memory_bytes", o->peak_memory_bytes);
	json_close(w);
}

/* As JSON where it is some; what is not, and what a guest only calls so, is its text. */
static void put_answer(struct json_writer *w, const struct final_answer *a)
{
	json_field_bool(w, "is_final_answer", a != NULL);
	if (!a)
		json_field_null(w, "final_answer");
	else if (a->is_json && json_validate(a->data, a->len, NULL) >= 0)
		json_field_raw(w, "final_answer", a->data, a->len);
	else
		json_field_text(w, "final_answer", a->data, a->len);
	if (a && a->encoded) /* beside the fields that every observation has */
		json_field_text(w, "final_answer_encoded", a->encoded, a->encoded_len);
}

void answer_put_words(struct json_writer *w, const char *key, const char *words)
{
	json_key(w, key);
	json_open_array(w);
	while (words && *words) {
		size_t n = strcspn(words, " ");
		json_put_text(w, words, n);
		words += n + (words[n] == ' ');
	}
	json_close(w);
}

/* Written now in every case: observation_keep() does not keep it. */
static void put_packages(struct json_writer *w, const char *packages)
{
	struct json_stream *stream = w->stream;
	w->stream = NULL;
	if (packages)
		json_field_raw(w, "packages", packages, strlen(packages));
	else
		json_field_null(w, "packages");
	w->stream = stream;
}

void answer_put_replayed(struct json_writer *w, const struct replayed *r)
{
	json_field_uint(w, "replayed", r->n);
	json_key(w, "may_differ");
	json_open_array(w);
	for (unsigned i = 0; i < r->n_may_differ; i++)
		json_put_uint(w, r->may_differ[i]);
	json_close(w);
}

void answer_put_death_fields(struct json_writer *w, const struct session_death *d)
{
	char at[CLOCK_TEXT_MAX];
	json_field_cstr(w, "at", clock_format(d->wall_ns, at));
	json_field_cstr(w, "why", d->why);
	json_field_bool(w, "state_lost", d->state_lost);
	if (d->state_lost)
		json_field_null(w, "rolled_back_to");
	else
		json_field_uint(w, "rolled_back_to", d->cell);
	json_field_bool(w, "files_rolled_back", d->files_rolled_back);
	json_field_bool(w, "files_lost", d->files_lost);
	json_field_cstr(w, "remediation", d->remedy);
}

const char *answer_death_line(const struct session_death *d, char line[DEATH_LINE_MAX])
{
	char at[CLOCK_TEXT_MAX];
	snprintf(line, DEATH_LINE_MAX, "[glovebox] before this cell, at %s, %s. %s\n",
		clock_format(d->wall_ns, at), d->why, d->remedy);
	return line;
}

static void put_death(struct json_writer *w, const struct session_death *d)
{
	json_key(w, "interpreter_died");
	if (!d) {
		json_put_null(w);
		return;
	}

	json_open_object(w);
	answer_put_death_fields(w, d);
	json_close(w);
}

void answer_put_observation(struct json_writer *w, const struct observation *o)
{
	json_open_object(w);
	json_field_cstr(w, "id", o->id);
	json_field_cstr(w, "session", o->session);
	json_field_uint(w, "cell", o->cell);
	json_field_cstr(w, "status", cell_status_name(o->status));
	json_field_int(w, "exit_code", o->exit_code);
	json_key(w, "stdout");
	answer_put_captured(w, &o->out);
	json_key(w, "stderr");
	answer_put_captured(w, &o->err);
	json_key(w, "result");
	if (o->result)
		answer_put_bundle(w, o->result);
	else
		json_put_null(w);
	put_displays(w, o);
	answer_put_error(w, o->error);
	put_answer(w, o->answer);
	json_key(w, "screenshot");
	answer_put_screenshot(w, o->screenshot, o->end_screenshot);
	if (o->recording && !o->film) /* that one's session is gone when this is read */
		json_field_uint(w, "recording", o->recording);
	else
		json_field_null(w, "recording");
	json_key(w, "film");
	answer_put_film(w, o->film);
	answer_put_files(w, o);
	json_field_bool(w, "state_lost", o->state_lost);
	put_packages(w, o->packages);
	if (o->evicted)
		answer_put_words(w, "checkpoints_evicted", o->evicted);
	else
		json_field_null(w, "checkpoints_evicted");
	json_field_bool(w, "rolled_back", o->rolled_back);
	json_field_bool(w, "files_rolled_back", o->files_rolled_back);
	json_field_bool(w, "files_lost", o->files_lost);
	put_death(w, o->died);
	answer_put_replayed(w, &o->replayed);
	answer_put_truncated(w, o);
	answer_put_usage(w, o);
	json_close(w);
}

static void leave_out(struct captured *c)
{
	c->left_out += c->head_len + c->tail_len;
	c->head_len = c->tail_len = 0;
	c->is_short = true;
}

void answer_without_output(const struct observation *o, struct observation *ret)
{
	*ret = *o;
	leave_out(&ret->out);
	leave_out(&ret->err);
	ret->displays_left_out += o->n_displays + (o->result != NULL);
	ret->n_displays = 0;
	ret->result = NULL;
	ret->answer = NULL;
	ret->screenshot = ret->end_screenshot = NULL;
	ret->film = NULL;
}
