/* The tasks extension: a tool call that goes on after its answer, asked for by `detach`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory_account.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"

enum { TASK_ID = 32, POLL_MS = 500, KEEP_MS = 3600 * 1000 };

struct mcp_task {
	TAILQ_ENTRY(mcp_task) link;
	char id[TASK_ID + 1];
	uint64_t owner, created_ns, updated_ns;
	struct mcp_request *request; /* NULL once it is over */
	bool cancelled;
	struct buffer result; /* the result object, once it is there */
	struct hold held;     /* its bytes */
};

static void task_free(struct mcp *home, struct mcp_task *t)
{
	if (t->request)
		t->request->task = NULL;
	TAILQ_REMOVE(&home->tasks, t, link);
	hold_set(&t->held, 0);
	buffer_finish(&t->result);
	free(t);
}

void mcp_tasks_free(struct mcp *home)
{
	struct mcp_task *t;
	while ((t = TAILQ_FIRST(&home->tasks)))
		task_free(home, t);
}

bool mcp_wants_task(const struct mcp_request *r)
{
	const json_t *capabilities = json_object_get(r->meta, MCP_META "clientCapabilities");
	return r->modern &&
	       json_object_get(json_object_get(capabilities, "extensions"), MCP_META "tasks");
}

/* ---- the record ------------------------------------------------------------------------------ */

/*
 * Makes room for one more task of the token: its ended tasks whose time is over, then its oldest
 * ended one.
 */
static bool make_room(struct mcp *home, uint64_t owner)
{
	uint64_t now_ns = clock_wall_ns();
	struct mcp_task *t, *next, *oldest = NULL;
	unsigned n = 0;

	for (t = TAILQ_FIRST(&home->tasks); t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->owner != owner)
			continue;
		if (!t->request && now_ns - t->updated_ns > (uint64_t)KEEP_MS * 1000000) {
			task_free(home, t);
			continue;
		}
		n++;
		if (!oldest && !t->request)
			oldest = t;
	}
	if (n >= MCP_TASKS_MAX && oldest)
		task_free(home, oldest);
	return n < MCP_TASKS_MAX || oldest;
}

static struct mcp_task *task_create(struct mcp_request *r)
{
	struct mcp_task *t = make_room(r->home, r->owner) ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;

	node_make_id(t->id, TASK_ID);
	t->owner = r->owner;
	t->created_ns = t->updated_ns = clock_wall_ns();
	t->request = r;
	buffer_init(&t->result, 0);
	TAILQ_INSERT_TAIL(&r->home->tasks, t, link);
	return t;
}

static const char *status_of(const struct mcp_task *t)
{
	return t->cancelled ? "cancelled" : t->request ? "working" : "completed";
}

static void put_task(struct json_writer *w, const struct mcp_task *t)
{
	char date[CLOCK_TEXT_MAX];
	json_field_cstr(w, "taskId", t->id);
	json_field_cstr(w, "status", status_of(t));
	json_field_cstr(w, "createdAt", clock_format(t->created_ns, date));
	json_field_cstr(w, "lastUpdatedAt", clock_format(t->updated_ns, date));
	json_field_uint(w, "ttlMs", KEEP_MS);
	json_field_uint(w, "pollIntervalMs", POLL_MS);
}

/* ---- a request becomes a task ------------------------------------------------------- */

/* The request's answer goes to the task, not to a client. */
static void on_send(struct mcp_request *r, struct buffer *message, bool last, int status)
{
	(void)r, (void)last, (void)status;
	buffer_finish(message);
}

static void on_cancelled(struct mcp_request *r)
{
	if (r->task)
		r->task->request = NULL;
	r->task = NULL;
}

static const struct mcp_sink task_sink = { .send = on_send, .cancelled = on_cancelled };

bool mcp_task_begin(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct mcp_task *t = task_create(r);
	if (!t) {
		mcp_tool_error(r, "too many tasks are running",
			"Wait for one of them to end, or leave detach out.");
		return false;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "jsonrpc", "2.0");
	json_key(&w, "id");
	mcp_put_value(&w, r->id);
	json_key(&w, "result");
	json_open_object(&w);
	json_field_cstr(&w, "resultType", "task");
	put_task(&w, t);
	json_close(&w);
	json_close(&w);

	/*
	 * From here on the client of the call has its answer, and the request lives for the task
	 * alone.
	 */
	r->sink->send(r, &b, true, 200);
	r->sink = &task_sink;
	r->target = NULL;
	if (r->client && !r->client->lease)
		r->client = NULL; /* the task outlives the handshake, but not a lease */
	r->progress_token = NULL;
	r->task = t;
	return true;
}

void mcp_task_take(struct mcp_request *r, struct buffer *result)
{
	static const char full[] =
		"{\"content\":[{\"type\":\"text\",\"text\":\"The server is out of memory: the result was dropped. Run the code again.\"}],"
		"\"structuredContent\":{\"error\":{\"type\":\"ToolError\",\"message\":\"out of memory\"}},\"isError\":true}";
	struct mcp_task *t = r->task;
	t->updated_ns = clock_wall_ns();
	if (hold_set(&t->held, result->len) < 0) {
		buffer_append(&t->result, full, sizeof(full) - 1);
		return;
	}
	t->result = *result;
	*result = (struct buffer){ 0 };
}

/* ---- methods ------------------------------------------------------------------------ */

static struct mcp_task *find_task(struct mcp_request *r)
{
	const char *id = json_string_value(json_object_get(r->params, "taskId"));
	struct mcp_task *t;
	TAILQ_FOREACH (t, &r->home->tasks, link)
		if (t->owner == r->owner && text_eq(t->id, id))
			return t;
	mcp_fail(r, MCP_INVALID_PARAMS, 200, "unknown taskId", NULL);
	return NULL;
}

void mcp_tasks_get(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct mcp_task *t = find_task(r);
	if (!t)
		return;
	mcp_begin_result(r, &w, &b);
	put_task(&w, t);
	if (t->result.len)
		json_field_raw(&w, "result", t->result.data, t->result.len);
	mcp_respond(r, &w, &b);
}

void mcp_tasks_cancel(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	struct mcp_task *t = find_task(r);
	if (!t)
		return;
	if (t->request) {
		t->cancelled = true;
		t->updated_ns = clock_wall_ns();
		mcp_cancel(t->request);
	}
	mcp_begin_result(r, &w, &b);
	mcp_respond(r, &w, &b);
}

void mcp_tasks_update(struct mcp_request *r)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (!find_task(r))
		return;
	mcp_begin_result(r, &w, &b);
	mcp_respond(r, &w, &b);
}
