/* An item that runs: its program, then its checker, then the rest of its line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/api_words.h"
#include "api/batch/batch.h"
#include "api/provision.h"
#include "api/run_files.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json_write.h"

struct batch_work {
	struct batch *batch;
	struct jobs *jobs;
	uint64_t owner;
	size_t index;
	struct job_run *run; /* of the program, then of its checker */
	struct batch_grading grading;
	struct field_text input; /* of the program, for the checker */
	struct buffer rest;
	struct json_writer w;
	batch_work_done done;
};

static void destroy(struct batch_work *w)
{
	struct run_request none = { 0 };
	batch_item_finish(&none, &w->grading);
	field_text_finish(&w->input);
	buffer_finish(&w->rest);
	free(w);
}

/* The last member, the end of the line, and the end of the work. */
static void finish(struct batch_work *w, const struct verdict *v, bool ran)
{
	json_key(&w->w, "verdict");
	if (v)
		grade_write(&w->w, v);
	else
		json_put_null(&w->w);
	json_close(&w->w);
	if (json_writer_end(&w->w) < 0) {
		w->rest.len = 0;
		buffer_append_str(&w->rest,
			"{\"observation\":null,\"error\":{\"code\":\"server_memory\",\"detail\":\"the outcome was too large\","
			"\"remediation\":\"Request less output at once (limits.output_bytes).\"},\"verdict\":null}");
	}

	w->done(w->batch, w->index, &w->rest, v, ran);
	destroy(w);
}

static void put_error(struct json_writer *w, const struct error *e)
{
	char remedy[EDGE_TEXT_MAX];
	json_key(w, "error");
	json_open_object(w);
	json_field_cstr(w, "code", e->slug[0] ? e->slug : "internal");
	json_field_cstr(w, "detail", e->text);
	json_field_cstr(w, "remediation", api_remedy(e->remedy, remedy));
	json_close(w);
}

static void put_files(struct json_writer *w, char *const *paths, struct session *s)
{
	struct run_files_budget budget = RUN_FILES_BUDGET;
	json_key(w, "fetched");
	json_open_object(w);
	for (; paths && *paths; paths++) {
		_cleanup_buffer_ struct buffer content = BUFFER_INIT(0);
		json_key_text(w, *paths, strlen(*paths));
		if (s && run_files_fetch(s, *paths, &budget, &content))
			json_put_base64(w, content.data ? content.data : "", content.len);
		else
			json_put_null(w);
	}
	json_close(w);
}

static void on_checked(void *userdata, const struct job_outcome *outcome)
{
	struct batch_work *w = userdata;
	struct verdict v = { 0 };
	w->run = NULL;
	if (outcome->o)
		grade_checked(outcome->o, &v);
	else
		snprintf(v.reason, sizeof(v.reason), "the checker did not run: %.200s",
			outcome->error->text);
	finish(w, &v, true);
}

static void check(struct batch_work *w, const struct observation *o)
{
	struct run_request run = { 0 };
	struct verdict v = { 0 };
	if (grade_checker_run(&w->grading, &w->input, o, &run) == 0 &&
		job_run_start(w->jobs, &run, w->owner, 0, on_checked, w, NULL, &w->run) == 0)
		return;
	provision_finish(&run);
	snprintf(v.reason, sizeof(v.reason), "out of memory");
	finish(w, &v, true);
}

static void on_ran(void *userdata, const struct job_outcome *outcome)
{
	struct batch_work *w = userdata;
	struct verdict v = { 0 };

	w->run = NULL;
	json_field_double(&w->w, "waited_ms", outcome->waited_s * 1e3);
	json_key(&w->w, "observation");
	if (!outcome->o) {
		json_put_null(&w->w);
		put_error(&w->w, outcome->error);
		finish(w, NULL, false);
		return;
	}

	answer_put_observation(&w->w, outcome->o);
	json_field_null(&w->w, "error");
	if (w->grading.fetch)
		put_files(&w->w, w->grading.fetch, outcome->session);
	if (w->grading.checker.data) {
		check(w, outcome->o);
	} else if (w->grading.has_expected) {
		grade_output(&w->grading, outcome->o, &v);
		finish(w, &v, true);
	} else {
		finish(w, NULL, true);
	}
}

/* The checker sees the text that the program read, a string of the item. */
static int keep_input(struct batch_work *w, const struct run_request *run)
{
	if (!w->grading.checker.data || !run->execute.input.data)
		return 0;
	field_text_share(&w->input, run->execute.input.owner);
	return 0;
}

int batch_work_start(struct batch *b, struct jobs *jobs, uint64_t owner, const json_t *item,
	size_t index, batch_work_done done, struct batch_work **ret)
{
	struct run_request run = { 0 };
	struct batch_work *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct batch_work){
		.batch = b, .jobs = jobs, .owner = owner, .index = index, .done = done
	};
	w->rest = (struct buffer)BUFFER_COUNTED(0);
	json_writer_init(&w->w, &w->rest);
	json_open_object(&w->w);

	int r = batch_item_decode(item, index, &run, &w->grading, NULL);
	if (!r)
		r = keep_input(w, &run);
	if (!r)
		r = script_prepare(&run, NULL);
	if (r < 0)
		provision_finish(&run);
	else
		r = job_run_start(jobs, &run, owner, 0, on_ran, w, NULL, &w->run);
	if (r < 0)
		destroy(w);
	else
		*ret = w;
	return r;
}

void batch_work_cancel(struct batch_work *w)
{
	if (w->run)
		job_run_cancel(w->run);
	destroy(w);
}
