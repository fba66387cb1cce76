#include "session/cells/cell_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

const char *const cell_record_kind_names[RECORD_KINDS] = { [RECORD_CELL] = "cell",
	[RECORD_ROLLBACK] = "rollback",
	[RECORD_RESET] = "reset",
	[RECORD_CHECKPOINT] = "checkpoint" };

struct cell_record *cell_record_create(
	enum cell_record_kind kind, unsigned cell, const char *text, size_t len)
{
	size_t keep = len < LIMIT_RECORD_CODE_BYTES ? len : LIMIT_RECORD_CODE_BYTES;
	struct cell_record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;

	keep -= utf8_unfinished(text, keep);
	r->code = text ? malloc(keep + 1) : NULL;
	if (text && !r->code) {
		free(r);
		return NULL;
	}

	if (text) {
		memcpy(r->code, text, keep);
		r->code[keep] = '\0';
	}

	r->kind = kind;
	r->cell = cell;
	r->code_len = keep;
	r->code_cut = len - keep;
	r->wall_ns = clock_wall_ns();
	r->running = kind == RECORD_CELL;
	r->dialect = "native";
	r->bytes = sizeof(*r) + keep + 1;
	return r;
}

void cell_record_destroy(struct cell_record *r)
{
	if (!r)
		return;
	free(r->code);
	free(r->block);
	free(r);
}

/* ---- copying an outcome -------------------------------------------------------- */

/* Where the copy goes. It is made twice: first without memory, to learn its size. */
struct block {
	char *base; /* NULL: only count */
	size_t used;
};

static void *place(struct block *b, size_t len)
{
	size_t at = (b->used + 7) & ~(size_t)7;
	b->used = at + len;
	return b->base ? b->base + at : NULL;
}

static const char *copy_text(struct block *b, const char *text, size_t len)
{
	if (!text)
		return NULL;

	char *to = place(b, len + 1);
	if (!to)
		return text;

	memcpy(to, text, len);
	to[len] = '\0';
	return to;
}

static const char *copy_word(struct block *b, const char *text)
{
	return text ? copy_text(b, text, strlen(text)) : NULL;
}

/* The first three quarters and the last quarter of what may be kept. */
static void copy_output(struct block *b, const struct captured *from, struct captured *to)
{
	size_t head = from->head_len, tail = from->tail_len;
	*to = *from;
	if (head > LIMIT_RECORD_OUTPUT_BYTES / 4 * 3) {
		head = LIMIT_RECORD_OUTPUT_BYTES / 4 * 3;
		head -= utf8_unfinished(from->head, head);
	}

	const char *last = tail ? from->tail : from->head + head;
	size_t last_len = tail ? tail : from->head_len - head;
	size_t skip = last_len > LIMIT_RECORD_OUTPUT_BYTES / 4
			      ? last_len - LIMIT_RECORD_OUTPUT_BYTES / 4
			      : 0;
	while (skip && skip < last_len && ((unsigned char)last[skip] & 0xc0) == 0x80)
		skip++; /* not in the middle of a character */

	to->head = copy_text(b, from->head ? from->head : "", head);
	to->head_len = head;
	to->tail = copy_text(b, last ? last + skip : "", last_len - skip);
	to->tail_len = last_len - skip;
	to->left_out += from->head_len + from->tail_len - to->head_len - to->tail_len;
}

static void copy_bundle(struct block *b, const struct bundle *from, struct bundle *to)
{
	struct bundle copy = *from;
	for (unsigned i = 0; i < from->n; i++) {
		copy.item[i].mime = copy_word(b, from->item[i].mime);
		copy.item[i].data = copy_text(b, from->item[i].data, from->item[i].len);
	}
	if (to)
		*to = copy;
}

static void copy_values(struct block *b, const struct observation *from, struct observation *to)
{
	if (from->result) {
		struct bundle *result = place(b, sizeof(*result));
		copy_bundle(b, from->result, result);
		to->result = result ? result : from->result;
	}

	if (from->n_displays) {
		struct bundle *all = place(b, from->n_displays * sizeof(*all));
		for (unsigned i = 0; i < from->n_displays; i++)
			copy_bundle(b, &from->displays[i], all ? &all[i] : NULL);
		to->displays = all ? all : from->displays;
	}

	if (from->answer) {
		struct final_answer *a = place(b, sizeof(*a));
		const char *data = copy_text(b, from->answer->data, from->answer->len);
		if (a)
			*a = (struct final_answer){ .data = data,
				.len = from->answer->len,
				.is_json = from->answer->is_json };
		to->answer = a ? a : from->answer;
	}
}

static void copy_error(struct block *b, const struct cell_error *from, struct observation *to)
{
	struct cell_error *e = place(b, sizeof(*e));
	struct cell_error copy = *from;
	copy.type = copy_word(b, from->type);
	copy.message = copy_text(b, from->message, from->message_len);
	copy.traceback = copy_text(b, from->traceback, from->traceback_len);
	copy.code = copy_word(b, from->code);
	copy.remedy = copy_word(b, from->remedy);
	if (e)
		*e = copy;
	to->error = e ? e : from;
}

static void copy_files(struct block *b, const struct observation *from, struct observation *to)
{
	struct file_entry *all = place(b, from->n_files * sizeof(*all));
	for (unsigned i = 0; i < from->n_files; i++) {
		struct file_entry one = from->files[i];
		one.path = copy_word(b, one.path);
		if (all)
			all[i] = one;
	}

	to->files = all ? all : from->files;
}

/* A picture without the list of its windows. */
static const struct screenshot *copy_picture(struct block *b, const struct screenshot *from)
{
	if (!from || !from->data)
		return NULL;

	struct screenshot *p = place(b, sizeof(*p));
	const char *data = copy_text(b, from->data, from->len);
	if (!p)
		return from;

	*p = *from;
	p->data = data;
	p->windows = NULL;
	p->n_windows = 0;
	return p;
}

/*
 * What is told once, to the asker alone, is not part of it: packages, evicted checkpoints, deaths,
 * replays, films.
 */
static void copy_all(struct block *b, const struct observation *from, struct observation *to)
{
	*to = *from;
	to->id = copy_word(b, from->id);
	to->session = NULL;
	to->died = NULL;
	to->packages = to->evicted = NULL;
	to->replayed = (struct replayed){ 0 };
	to->film = NULL;
	to->source = NULL;
	copy_output(b, &from->out, &to->out);
	copy_output(b, &from->err, &to->err);
	copy_values(b, from, to);
	if (from->error)
		copy_error(b, from->error, to);
	copy_files(b, from, to);
	to->screenshot = copy_picture(b, from->screenshot);
	to->end_screenshot = copy_picture(b, from->end_screenshot);
}

static size_t size_of(const struct observation *o)
{
	struct observation copy;
	struct block count = { 0 };
	copy_all(&count, o, &copy);
	return count.used;
}

/* Makes it fit: pictures go first, then values, then the error's texts. */
static void slim(struct observation *o, struct cell_error *error)
{
	if (size_of(o) > LIMIT_RECORD_BYTES)
		o->screenshot = o->end_screenshot = NULL;
	if (size_of(o) > LIMIT_RECORD_BYTES) {
		o->displays_left_out += o->n_displays;
		o->n_displays = 0;
	}

	if (size_of(o) > LIMIT_RECORD_BYTES) {
		o->displays_left_out += o->result != NULL;
		o->result = NULL;
		o->answer = NULL;
	}

	if (o->error && size_of(o) > LIMIT_RECORD_BYTES) {
		*error = *o->error;
		if (error->message_len > LIMIT_RECORD_CODE_BYTES)
			error->message_len = LIMIT_RECORD_CODE_BYTES;
		o->error = error;
	}
}

int cell_record_finish(struct cell_record *r, const struct observation *o)
{
	struct observation slimmed = *o;
	struct cell_error error;
	r->running = false;
	r->after = (struct observation){ .status = o->status, .exit_code = o->exit_code };

	slim(&slimmed, &error);
	struct block b = { 0 };
	b.used = size_of(&slimmed);
	r->block = malloc(b.used + 1);
	if (!r->block)
		return -ENOMEM;

	r->bytes += b.used;
	b = (struct block){ .base = r->block };
	copy_all(&b, &slimmed, &r->after);
	return 0;
}
