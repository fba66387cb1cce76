/* Progress of a request: what its code prints, and a sign of life in silence. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dialects/mcp/mcp.h"

/* of silence, then a request with a progress token says that it still runs */
enum { HEARTBEAT_MS = 5000 };

void mcp_tell_output(struct mcp_request *r, const char *data, size_t len)
{
	if (!r->progress_token)
		return;
	if (len > MCP_PROGRESS_BYTES) {
		data += len - MCP_PROGRESS_BYTES;
		len = MCP_PROGRESS_BYTES;
	}
	/* the newest output is the one worth telling */
	if (r->output.len + len > MCP_PROGRESS_BYTES)
		buffer_consume(&r->output, r->output.len + len - MCP_PROGRESS_BYTES);
	buffer_append(&r->output, data, len);
}

static void send_progress(struct mcp_request *r, const char *text, size_t len)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "jsonrpc", "2.0");
	json_field_cstr(&w, "method", "notifications/progress");
	json_key(&w, "params");
	json_open_object(&w);
	json_key(&w, "progressToken");
	mcp_put_value(&w, r->progress_token);
	json_field_uint(&w, "progress", ++r->progress);
	json_field_text(&w, "message", text, len);
	json_close(&w);
	json_close(&w);

	r->told_ns = clock_now_ns();
	if (json_writer_end(&w) == 0)
		r->sink->send(r, &b, false, 200);
}

void mcp_tell_progress(struct mcp_request *r, uint64_t now_ns)
{
	char text[64];
	if (r->output.len) {
		send_progress(r, r->output.data, r->output.len);
		buffer_consume(&r->output, r->output.len);
	} else if (now_ns - r->told_ns > (uint64_t)HEARTBEAT_MS * 1000000) {
		int n = snprintf(text, sizeof(text), "still running after %.0f s",
			(double)(now_ns - r->started_ns) / 1e9);
		send_progress(r, text, (size_t)n);
	}
}
