#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/batch/batch.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Numbers that differ by less are equal. */
#define TOLERANCE 1e-6

enum { NUMBER_BYTES = 64 };

/* ---- comparing ------------------------------------------------------------------- */

struct text {
	const char *at, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/* Empty lines and blanks at the end are cut off. */
static void trim_end(struct text *t)
{
	while (t->end > t->at && is_blank(t->end[-1]))
		t->end--;
}

/* The next line without the blanks at its end; false behind the last one. */
static bool next_line(struct text *t, struct text *ret)
{
	if (t->at >= t->end)
		return false;
	const char *eol = memchr(t->at, '\n', (size_t)(t->end - t->at));
	*ret = (struct text){ t->at, eol ? eol : t->end };
	t->at = eol ? eol + 1 : t->end;
	trim_end(ret);
	return true;
}

static bool next_word(struct text *t, struct text *ret)
{
	while (t->at < t->end && is_blank(*t->at))
		t->at++;
	ret->at = t->at;
	while (t->at < t->end && !is_blank(*t->at))
		t->at++;
	ret->end = t->at;
	return ret->end > ret->at;
}

static bool same_bytes(const struct text *a, const struct text *b)
{
	size_t n = (size_t)(a->end - a->at);
	return n == (size_t)(b->end - b->at) && !memcmp(a->at, b->at, n);
}

static bool as_number(const struct text *t, double *ret)
{
	char copy[NUMBER_BYTES], *end;
	size_t n = (size_t)(t->end - t->at);
	if (!n || n >= sizeof(copy))
		return false;
	memcpy(copy, t->at, n);
	copy[n] = '\0';
	*ret = strtod(copy, &end);
	return end == copy + n;
}

static bool same_number(const struct text *a, const struct text *b)
{
	double x, y;
	if (same_bytes(a, b))
		return true;
	if (!as_number(a, &x) || !as_number(b, &y))
		return false;
	return fabs(x - y) <= TOLERANCE * fmax(1.0, fmax(fabs(x), fabs(y)));
}

bool grade_equal(enum compare_mode mode, const char *a, size_t a_len, const char *b, size_t b_len)
{
	struct text x = { a, a + a_len }, y = { b, b + b_len }, p, q;
	bool (*next)(struct text *, struct text *) = mode == COMPARE_TRIMMED ? next_line
									     : next_word;
	bool (*same)(const struct text *,
		const struct text *) = mode == COMPARE_NUMBERS ? same_number : same_bytes;

	if (mode == COMPARE_EXACT)
		return same_bytes(&x, &y);
	trim_end(&x);
	trim_end(&y);
	for (;;) {
		bool more = next(&x, &p), also = next(&y, &q);
		if (!more || !also)
			return more == also;
		if (!same(&p, &q))
			return false;
	}
}

/* ---- verdicts --------------------------------------------------------------------- */

static void judge(struct verdict *v, bool passed, const char *reason)
{
	v->passed = passed;
	v->score = passed ? 1 : 0;
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

static int join(const struct captured *c, struct buffer *out)
{
	int r = buffer_append(out, c->head, c->head_len);
	return r < 0 ? r : buffer_append(out, c->tail, c->tail_len);
}

void grade_output(const struct batch_grading *g, const struct observation *o, struct verdict *ret)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(0);
	char reason[sizeof(ret->reason)];

	if (o->status != CELL_OK) {
		snprintf(reason, sizeof(reason), "%s%s%s", cell_status_name(o->status),
			o->error ? ": " : "", o->error ? o->error->type : "");
		judge(ret, false, reason);
	} else if (o->out.left_out) {
		judge(ret, false, "stdout was longer than limits.output_bytes");
	} else if (join(&o->out, &out) < 0) {
		judge(ret, false, "out of memory");
	} else {
		bool same = grade_equal(g->compare, out.data ? out.data : "", out.len,
			g->expected.data ? g->expected.data : "", g->expected.len);
		judge(ret, same, same ? "" : "stdout differs from expected_output");
	}
}

static const struct bundle_item *json_result(const struct observation *o)
{
	for (unsigned i = 0; o->result && i < o->result->n; i++)
		if (o->result->item[i].is_json &&
			text_eq(o->result->item[i].mime, "application/json"))
			return &o->result->item[i];
	return NULL;
}

static void judge_value(struct verdict *v, const json_t *value)
{
	const json_t *passed = json_object_get(value, "passed"),
		     *score = json_object_get(value, "score"),
		     *reason = json_object_get(value, "reason");
	const json_t *said = json_is_object(value) ? passed ? passed : score : value;
	judge(v, json_is_true(said) || (json_is_number(said) && json_number_value(said) > 0),
		json_is_string(reason) ? json_string_value(reason) : "");
	if (json_is_number(score))
		v->score = json_number_value(score);
	else if (json_is_number(said))
		v->score = json_number_value(said);
}

void grade_checked(const struct observation *o, struct verdict *ret)
{
	const struct bundle_item *item = json_result(o);
	_cleanup_json_ json_t *value = NULL;
	char reason[sizeof(ret->reason)];
	if (o->status != CELL_OK) {
		snprintf(reason, sizeof(reason), "the checker ended with %s: %.180s",
			o->error ? o->error->type : cell_status_name(o->status),
			o->error ? o->error->message : "");
		judge(ret, false, reason);
	} else if (item && json_read(item->data, item->len, NULL, &value) == 0) {
		judge_value(ret, value);
	} else {
		judge(ret, true, ""); /* no value: its assertions held */
	}
}

void grade_write(struct json_writer *w, const struct verdict *v)
{
	json_open_object(w);
	json_field_bool(w, "passed", v->passed);
	json_field_double(w, "score", v->score);
	json_field_cstr(w, "reason", v->reason);
	json_close(w);
}

/* ---- checkers ------------------------------------------------------------------------ */

static void put_variables(struct json_writer *w, const struct batch_grading *g,
	const struct field_text *input, const struct observation *o)
{
	json_open_object(w);
	json_key(w, "stdout");
	answer_put_captured(w, &o->out);
	json_key(w, "stderr");
	answer_put_captured(w, &o->err);
	json_field_int(w, "exit_code", o->exit_code);
	json_field_cstr(w, "status", cell_status_name(o->status));
	json_field_text(w, "stdin", input->data ? input->data : "", input->len);
	if (g->has_expected)
		json_field_text(w, "expected_output", g->expected.data, g->expected.len);
	else
		json_field_null(w, "expected_output");
	json_close(w);
}

int grade_checker_run(const struct batch_grading *g, const struct field_text *input,
	const struct observation *o, struct run_request *ret)
{
	struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	put_variables(&w, g, input, o);
	char *code = malloc(g->checker.len + 1);
	if (!code || json_writer_end(&w) < 0 || buffer_append_char(&b, '\0') < 0) {
		free(code);
		buffer_finish(&b);
		return -ENOMEM;
	}

	memcpy(code, g->checker.data, g->checker.len + 1);
	ret->execute.code = (struct field_text){ code, g->checker.len };
	ret->execute.variables = buffer_take(&b, NULL);
	return 0;
}
