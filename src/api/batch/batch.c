/* POST /v1/batch: the request, its items one after another, and the stream of lines. */
#include "api/batch/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/idempotency.h"
#include "base/clock.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Items are looked at for so long before others have their turn. */
enum { CHECK_NS = 1000 * 1000 };

struct batch {
	struct call *call;
	struct batch_request request;
	size_t checked;              /* items that are sound */
	struct run_files_step files; /* how far the files of the next one are looked at */
	json_t *items;
	size_t n, next, done, running, concurrency;
	size_t *same_as;           /* the first item that is equal; its own index for the others */
	struct batch_work **works; /* those that run, by index */
	struct idempotent *record; /* or NULL */
	struct outbox out;
	uint64_t began_ns;
	size_t ran, passed, failed; /* failed: by a verdict */
	bool filling, summed_up, broken;
};

static void destroy(struct batch *b)
{
	for (size_t i = 0; b->works && i < b->n; i++)
		if (b->works[i])
			batch_work_cancel(b->works[i]);
	idempotent_release(b->record);
	outbox_finish(&b->out);
	json_discard(b->items);
	fields_finish(&batch_fields, &b->request);
	free(b->same_as);
	free(b->works);
	free(b);
}

/* ---- lines ------------------------------------------------------------------------ */

static void send_line(struct batch *b, struct buffer *line)
{
	if (buffer_append_char(line, '\n') < 0 || outbox_send(&b->out, line) < 0)
		b->broken = true; /* without one of its lines the stream must not look complete */
}

static void put_id(struct json_writer *w, const json_t *item)
{
	const json_t *id = json_object_get(item, "id");
	json_key(w, "id");
	if (json_is_string(id))
		json_put_text(w, json_string_value(id), json_string_length(id));
	else if (json_is_integer(id))
		json_put_int(w, json_integer_value(id));
	else
		json_put_null(w);
}

/* What is particular to the item, then the rest, which begins with a brace of its own. */
static void send_item(struct batch *b, size_t index, const char *rest, size_t len)
{
	_cleanup_buffer_ struct buffer line = BUFFER_COUNTED(0);
	struct json_writer w;

	json_writer_init(&w, &line);
	json_open_object(&w);
	json_field_uint(&w, "index", index);
	put_id(&w, json_array_get(b->items, index));
	if (b->same_as[index] != index)
		json_field_uint(&w, "duplicate_of", b->same_as[index]);
	json_close(&w);
	if (json_writer_end(&w) < 0) {
		b->broken = true;
		return;
	}

	line.data[line.len - 1] = ',';
	if (buffer_append(&line, rest + 1, len - 1) < 0)
		b->broken = true;
	else
		send_line(b, &line);
	b->done++;
}

/* The item, and all that are equal to it. */
static void send_all(struct batch *b, size_t index, const char *rest, size_t len)
{
	for (size_t i = index; i < b->n; i++)
		if (b->same_as[i] == index)
			send_item(b, i, rest, len);
}

static void send_summary(struct batch *b)
{
	_cleanup_buffer_ struct buffer line = BUFFER_INIT(0);
	struct json_writer w;

	b->summed_up = true;
	json_writer_init(&w, &line);
	json_open_object(&w);
	json_field_bool(&w, "done", true);
	json_field_uint(&w, "items", b->n);
	json_field_uint(&w, "ran", b->ran);
	json_field_uint(&w, "passed", b->passed);
	json_field_uint(&w, "failed", b->failed);
	json_field_double(&w, "wall_ms", (double)(clock_now_ns() - b->began_ns) / 1e6);
	json_close(&w);
	if (json_writer_end(&w) < 0)
		b->broken = true;
	else
		send_line(b, &line);
}

/* ---- items -------------------------------------------------------------------------- */

static void go_on(struct batch *b);

static void count_verdict(struct batch *b, int verdict)
{
	b->passed += verdict == 1;
	b->failed += verdict == 0;
}

static void on_item(
	struct batch *b, size_t index, struct buffer *rest, const struct verdict *v, bool ran)
{
	b->works[index] = NULL;
	b->running--;
	b->ran += ran;
	count_verdict(b, v ? v->passed : -1);
	if (b->record && ran)
		idempotent_keep(b->record, index, rest->data, rest->len, v ? v->passed : -1);
	send_all(b, index, rest->data, rest->len);
	go_on(b);
}

static void start_item(struct batch *b, size_t index)
{
	static const char no_memory[] =
		"{\"observation\":null,\"error\":{\"code\":\"server_memory\",\"detail\":\"out of memory\","
		"\"remediation\":\"Try again in a second.\"},\"verdict\":null}";
	size_t len;
	int verdict;
	const char *kept = b->record ? idempotent_get(b->record, index, &len, &verdict) : NULL;

	if (b->same_as[index] != index)
		return; /* answered with the other one */
	if (kept) {
		count_verdict(b, verdict);
		send_all(b, index, kept, len);
		return;
	}

	if (batch_work_start(b, b->call->api->jobs, b->call->owner, json_array_get(b->items, index),
		    index, on_item, &b->works[index]) < 0)
		send_all(b, index, no_memory, sizeof(no_memory) - 1);
	else
		b->running++;
}

/* Ends the call when all lines are out, or when one of them is lost. True: the batch is gone. */
static bool end_when_done(struct batch *b)
{
	struct call *c = b->call;
	if (!b->broken && (!b->summed_up || !outbox_empty(&b->out)))
		return false;
	bool broken = b->broken;
	destroy(b);
	if (broken)
		call_cut_stream(c);
	else
		call_finish_stream(c);
	return true;
}

/* Starts items as long as there is room for them, and the client takes what is done. */
static void go_on(struct batch *b)
{
	if (b->filling)
		return;
	b->filling = true;
	while (!b->broken && b->next < b->n && b->running < b->concurrency && outbox_empty(&b->out))
		start_item(b, b->next++);
	b->filling = false;
	if (b->done == b->n && !b->summed_up)
		send_summary(b);
	end_when_done(b);
}

/* ---- the client's side ---------------------------------------------------------------- */

static void on_drained(struct call *c)
{
	struct batch *b = c->work;
	outbox_drained(&b->out);
	go_on(b);
}

static void on_gone(struct call *c)
{
	destroy(c->work);
	c->work = NULL;
	c->ops = NULL;
}

static const struct call_ops batch_ops = { .on_drained = on_drained, .on_gone = on_gone };

static int send_piece(void *target, const char *data, size_t len)
{
	return http_stream_write(target, data, len);
}

/* ---- the request ---------------------------------------------------------------------- */

/* What becomes of a sound request. */
static int fill_in(struct batch *b, struct error *e)
{
	const struct batch_request *q = &b->request;
	unsigned most = jobs_max(b->call->api->jobs);
	b->concurrency = q->concurrency && q->concurrency < most ? q->concurrency : most;
	b->same_as = calloc(b->n + 1, sizeof(*b->same_as));
	b->works = calloc(b->n + 1, sizeof(struct batch_work *));
	if (!b->same_as || !b->works)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < b->n; i++)
		b->same_as[i] = i;
	if (q->deduplicate && batch_find_equal(q->items, b->same_as) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* Ends the call with an error, before anything ran. */
static void refuse(struct call *c, const struct error *e)
{
	on_gone(c);
	call_error(c, e);
}

static void start(struct call *c)
{
	struct batch *b = c->work;
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = fill_in(b, &e);

	if (r == 0)
		r = idempotent_take(c, body, len, b->n, &e, &b->record);
	http_drop_body(c->x);
	if (r < 0) {
		refuse(c, &e);
	} else if (hold_set(&c->held, len) < 0) {
		on_gone(c);
		call_no_memory(c);
	} else {
		http_stream_begin(c->x, 200, "application/x-ndjson", -1);
		go_on(b);
	}
}

/* Every item is sound before the first one runs. Looks at items for about a millisecond. */
static void check_more(struct call *c)
{
	struct batch *b = c->work;
	struct error e = { 0 };
	uint64_t began = clock_now_ns();
	int r = 0;

	while (r == 0 && b->checked < b->n) {
		r = batch_item_check(
			json_array_get(b->items, b->checked), b->checked, &b->files, &e);
		if (r >= 0 && clock_now_ns() - began > CHECK_NS)
			r = 1;
		if (!b->files.file && !b->files.at)
			b->checked += r >= 0;
	}
	if (r < 0)
		refuse(c, &e);
	else if (r > 0)
		call_later(c, check_more);
	else
		start(c);
}

void handle_batch(struct call *c)
{
	struct error e = { 0 };
	struct batch *b = calloc(1, sizeof(*b));
	size_t len;
	const char *body = http_body(c->x, &len);

	if (!b) {
		call_no_memory(c);
		return;
	}
	b->call = c;
	outbox_init(&b->out, send_piece, c->x);
	b->began_ns = clock_now_ns();
	c->ops = &batch_ops;
	c->work = b;

	int r = api_check_open(c->api, &e);
	if (!r)
		r = fields_decode_text(&batch_fields, body, len, &b->request, &e);
	if (r < 0) {
		refuse(c, &e);
		return;
	}
	b->items = json_incref(b->request.items);
	b->n = json_array_size(b->items);
	check_more(c);
}
