/* Tools about the history of a session: rollback, fork, end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"

/* A pending rollback or fork whose client left is no longer told about. */
static void abandon(struct mcp_request *r)
{
	struct session *s;
	if (session_find(r->home->api->sessions, r->session, NULL, &s) == 0)
		session_history_abandon(s, r);
}

static void on_rolled_back(void *userdata, const struct error *e, const struct checkpoint_result *a)
{
	struct mcp_request *r = userdata;
	const struct checkpoint_info *c = a ? a->checkpoint : NULL;
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;

	r->release = NULL;
	if (e) {
		mcp_tool_error_of(r, e);
		return;
	}

	if (c)
		buffer_printf(&text, "rolled back to checkpoint %s, after cell %u\n",
			c->name ? c->name : c->id, c->cell);
	else
		buffer_append_str(&text, "rolled back to the state before the last cell\n");
	if (a->replayed.n)
		buffer_printf(&text,
			"%u cells were run again to get there; results that depend on time or chance may differ\n",
			a->replayed.n);
	buffer_printf(&text, "session_id: %s", r->session);
	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_cstr(&w, "checkpoint", c ? c->id : NULL);
	if (c)
		json_field_uint(&w, "cell", c->cell);
	else
		json_field_null(&w, "cell");
	json_field_null(&w, "error");
	json_close(&w);
	mcp_tool_done(r, &text, &structured, false);
}

/*
 * `done` may be called before the call returns: the flag `executing` keeps the request alive until
 * then.
 */
static void finish_start(struct mcp_request *r, int err, const struct error *e)
{
	r->executing = false;
	if (r->over)
		mcp_request_finish(r);
	else if (err < 0) {
		r->release = NULL;
		mcp_tool_error_of(r, e);
	}
}

void mcp_call_rollback(struct mcp_request *r, struct session *s)
{
	struct error e = { 0 };
	r->release = abandon;
	r->executing = true;
	int err = session_rollback(s, r->arguments->to, on_rolled_back, r, &e);
	finish_start(r, err, &e);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void on_forked(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct mcp_request *r = userdata;
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct session_info info;
	struct json_writer w;

	r->release = NULL;
	if (e) {
		mcp_tool_error_of(r, e);
		return;
	}
	buffer_append_str(&text, "session_ids:");
	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_key(&w, "session_ids");
	json_open_array(&w);
	for (unsigned i = 0; i < n; i++) {
		session_info(sessions[i], &info);
		buffer_printf(&text, " %s", info.id);
		json_put_cstr(&w, info.id);
		if (r->client && r->client->lease)
			mcp_client_own(r->client, info.id);
	}
	buffer_append_str(&text, "\nForks have no screen.");
	json_close(&w);
	json_field_null(&w, "error");
	json_close(&w);
	mcp_tool_done(r, &text, &structured, false);
}

void mcp_call_fork(struct mcp_request *r, struct session *s)
{
	struct fork_request q = { .count = r->arguments->count ? (unsigned)r->arguments->count
							       : 1 };
	struct error e = { 0 };
	int err = api_check_quota_for(r->home->api, r->owner, q.count, &e);
	if (err < 0) {
		mcp_tool_error_of(r, &e);
		return;
	}
	r->release = abandon;
	r->executing = true;
	err = session_fork(s, &q, on_forked, r, &e);
	finish_start(r, err, &e);
}

/* ---- close ----------------------------------------------------------------------------------- */

void mcp_call_close(struct mcp_request *r, struct session *s)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;
	session_end(s, "it was closed");
	buffer_printf(&text, "closed %s", r->session);
	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_null(&w, "error");
	json_close(&w);
	mcp_tool_done(r, &text, &structured, false);
}
