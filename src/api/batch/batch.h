/*
 * POST /v1/batch (private to its files): many programs, each in a session of its own, and a line of
 * JSON for each as soon as it is done.
 *
 * An item is kept as the JSON it came as and is decoded when its turn comes. The line of an item is
 * what is particular to it (index, id) and a rest that is the same for equal items; the rest is
 * also what a record keeps for a repeated request (Idempotency-Key).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/outbox.h"
#include "api/run_files.h"
#include "api/run_jobs.h"
#include "api/schema/fields.h"
#include "base/buffer.h"

struct batch;
struct call;
struct json_writer;

enum compare_mode {
	COMPARE_TRIMMED, /* blanks at the ends of lines and empty lines at the end do not count */
	COMPARE_EXACT,
	COMPARE_TOKENS,  /* words, however they are separated */
	COMPARE_NUMBERS, /* the same, and numbers may differ by a millionth */
	COMPARE_COUNT
};
extern const char *const compare_names[]; /* NULL at the end */

/* ---- requests (batch_fields.c) ------------------------------------------------ */

struct batch_request {
	json_t *items; /* an array */
	uint64_t concurrency;
	bool deduplicate;
};
extern const struct fields batch_fields;

/* What an item has beside the fields of a run. */
struct batch_grading {
	char *id; /* JSON text, or NULL */
	bool has_expected;
	struct field_text expected, checker;
	enum compare_mode compare;
	char **fetch; /* paths, NULL at the end; or NULL */
};

/*
 * Decodes both halves of an item, with errors that name its index. Release with
 * batch_item_finish().
 */
int batch_item_decode(const json_t *item, size_t index, struct run_request *ret_run,
	struct batch_grading *ret_grading, struct error *e);
void batch_item_finish(struct run_request *run, struct batch_grading *g);

/*
 * Whether the item can be decoded and its files are sound. 1: call again with the same `files`,
 * which is zero at first and after the last call for an item.
 */
int batch_item_check(
	const json_t *item, size_t index, struct run_files_step *files, struct error *e);

/* The item that is the first of its kind, for each: same_as[i] <= i. -ENOMEM. */
int batch_find_equal(const json_t *items, size_t *same_as);

/* ---- grading (batch_grade.c) ------------------------------------------------------ */

bool grade_equal(enum compare_mode mode, const char *a, size_t a_len, const char *b, size_t b_len);

struct verdict {
	bool passed;
	double score;
	char reason[256];
};
/* The output held against what is expected. */
void grade_output(const struct batch_grading *g, const struct observation *o, struct verdict *ret);
/*
 * What a checker said: its last value (a boolean, a number, an object), or an assertion that
 * failed.
 */
void grade_checked(const struct observation *o, struct verdict *ret);
void grade_write(struct json_writer *w, const struct verdict *v);

/* The request of a checker: its code, with the outcome as variables. -ENOMEM. */
int grade_checker_run(const struct batch_grading *g, const struct field_text *input,
	const struct observation *o, struct run_request *ret);

/* ---- one item (batch_item.c) ---------------------------------------------------------- */

struct batch_work; /* an item that runs */
typedef void (*batch_work_done)(
	struct batch *b, size_t index, struct buffer *rest, const struct verdict *v, bool ran);

/* Starts it; `done` comes once with the rest of its line, unless it is cancelled. -ENOMEM. */
int batch_work_start(struct batch *b, struct jobs *jobs, uint64_t owner, const json_t *item,
	size_t index, batch_work_done done, struct batch_work **ret);
void batch_work_cancel(struct batch_work *w);
