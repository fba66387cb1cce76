/*
 * What a message of MCP over HTTP must be like: its JSON-RPC, its version, and the headers that
 * repeat parts of it.
 */
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"

enum { BATCH_MAX = 8 }; /* all of them start in one turn of the loop */

/* ---- JSON-RPC ------------------------------------------------------------------------------- */

bool mcp_is_notification(const json_t *message)
{
	return !json_object_get(message, "id") || json_object_get(message, "result") ||
	       (json_object_get(message, "error") && !json_object_get(message, "method"));
}

const char *mcp_check_shape(const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	if (!json_is_object(message))
		return "a JSON-RPC message must be an object";
	if (!text_eq(json_string_value(json_object_get(message, "jsonrpc")), "2.0"))
		return "jsonrpc must be \"2.0\"";
	if (!json_is_string(json_object_get(message, "method")) &&
		!(json_object_get(message, "id") && mcp_is_notification(message)))
		return "method must be a string";
	if (id && !json_is_string(id) && !json_is_integer(id))
		return "id must be a string or an integer";
	return NULL;
}

/* ---- versions ------------------------------------------------------------------------------- */

bool mcp_is_modern(const json_t *message)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	return json_object_get(meta, MCP_META "protocolVersion") != NULL;
}

static bool known_version(const char *version)
{
	static const char *const known[] = { MCP_MODERN_VERSION, "2025-11-25", "2025-06-18",
		"2025-03-26", "2024-11-05" };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (text_eq(version, known[i]))
			return true;
	return !version;
}

const char *mcp_check_batch(const struct call *c, const json_t *batch)
{
	bool modern = text_eq(http_header(c->x, "MCP-Protocol-Version"), MCP_MODERN_VERSION);
	for (size_t i = 0; i < json_array_size(batch); i++)
		modern |= mcp_is_modern(json_array_get(batch, i));
	if (modern)
		return "revision " MCP_MODERN_VERSION
		       " has no batches: send one message per request";
	if (!json_array_size(batch) || json_array_size(batch) > BATCH_MAX)
		return "a batch has 1 to 8 messages";
	return NULL;
}

const char *mcp_check_version(const struct call *c, const json_t *message, int *ret_code)
{
	const char *version = http_header(c->x, "MCP-Protocol-Version");
	*ret_code = MCP_INVALID_REQUEST;
	if (mcp_is_modern(message))
		return NULL;
	if (!known_version(version))
		return "unknown MCP-Protocol-Version; this server knows " MCP_MODERN_VERSION
		       ", 2025-11-25, 2025-06-18 and 2025-03-26";
	if (!text_eq(version, MCP_MODERN_VERSION) || mcp_check_shape(message) ||
		mcp_is_notification(message))
		return NULL;
	*ret_code = MCP_INVALID_PARAMS;
	return "revision " MCP_MODERN_VERSION " needs _meta[\"" MCP_META
	       "protocolVersion\"] in params";
}

/* ---- headers of the modern era -------------------------------------------------------------- */

/* `=?base64?…?=` around UTF-8, or the text itself. */
static bool header_equals(const char *header, const char *want)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(LIMIT_HEADER_BYTES);
	size_t len = header ? strlen(header) : 0;
	if (!header || !want)
		return false;
	if (len < 11 || strncmp(header, "=?base64?", 9) || strcmp(header + len - 2, "?="))
		return text_eq(header, want);
	return text_base64_decode(&b, header + 9, len - 11) == 0 && b.len == strlen(want) &&
	       !memcmp(b.data, want, b.len);
}

/* The value that Mcp-Name must have; NULL when the method needs none. */
static const char *name_of(const char *method, const json_t *params)
{
	static const struct {
		const char *method, *member;

	} named[] = {
		{ "tools/call", "name" },
		{ "prompts/get", "name" },
		{ "resources/read", "uri" },
		{ "tasks/get", "taskId" },
		{ "tasks/cancel", "taskId" },
		{ "tasks/update", "taskId" },
	};
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (text_eq(named[i].method, method))
			return json_string_value(json_object_get(params, named[i].member));
	return NULL;
}

bool mcp_headers_match(struct mcp_request *r, const struct call *c)
{
	const char *method = json_string_value(json_object_get(r->message, "method"));
	const char *version = json_string_value(
		json_object_get(r->meta, MCP_META "protocolVersion"));
	const char *name = name_of(method, r->params);
	const char *wrong = NULL;

	if (!version)
		return true; /* not a string: mcp_dispatch() says so */
	if (!header_equals(http_header(c->x, "MCP-Protocol-Version"), version))
		wrong = "the header MCP-Protocol-Version must equal _meta[\"" MCP_META
			"protocolVersion\"]";
	else if (!header_equals(http_header(c->x, "Mcp-Method"), method))
		wrong = "the header Mcp-Method must equal the method of the request";
	else if (name && !header_equals(http_header(c->x, "Mcp-Name"), name))
		wrong = "the header Mcp-Name must equal the name, uri or taskId of the request";
	if (wrong)
		mcp_fail(r, MCP_HEADER_MISMATCH, 400, wrong, NULL);
	return !wrong;
}
