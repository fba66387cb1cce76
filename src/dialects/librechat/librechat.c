/* LibreChat: the dialect, its addresses, and its files. */
#include "dialects/librechat/librechat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/routes.h"
#include "api/workspace.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "json/json_write.h"

#define JSON "application/json"
#define CHAT_FLAGS (ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_API_KEY)

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct librechat *home = calloc(1, sizeof(*home));
	(void)a, (void)config;
	if (!home)
		return error_set(e, -ENOMEM, "not enough memory");
	chat_store_init(&home->store);
	LIST_INIT(&home->programs);
	*ret_state = home;
	return 0;
}

static void drain(void *state)
{
	struct librechat *home = state;
	chat_programs_drain(&home->programs);
}

static void destroy(void *state)
{
	struct librechat *home = state;
	chat_programs_finish(&home->programs);
	chat_store_finish(&home->store);
	free(home);
}

const struct dialect dialect_librechat = {
	.name = "librechat",
	.routes = librechat_routes,
	.create = create,
	.drain = drain,
	.destroy = destroy,
};

struct librechat *librechat_of(const struct call *c)
{
	return dialect_state(c->api, &dialect_librechat);
}

void chat_answer_error(struct call *c, int status, const char *text)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "error", text);
	json_field_cstr(&w, "message", text);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

/* ---- uploads ------------------------------------------------------------------------- */

static void put_upload(
	struct json_writer *w, const char *name, const struct chat_file *f, bool batch)
{
	json_open_object(w);
	json_field_cstr(w, "filename", name);
	if (f)
		json_field_cstr(w, "fileId", f->id);
	if (batch)
		json_field_cstr(w, "status", f ? "success" : "error");
	json_close(w);
}

static void upload(struct call *c, bool batch)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	char session[CHAT_ID_LEN + 1];
	struct json_writer w;
	struct form_part part;
	size_t len, at = 0;
	unsigned good = 0, bad = 0;
	int r;
	const char *body = http_body(c->x, &len), *type = http_header(c->x, "Content-Type");

	node_make_id(session, CHAT_ID_LEN);
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "message", "success");
	json_field_cstr(&w, "storage_session_id", session);
	json_field_cstr(&w, "session_id", session);
	json_key(&w, "files");
	json_open_array(&w);
	while ((r = multipart_next(type, body, len, &at, &part)) > 0) {
		if (!part.filename[0])
			continue;
		bool sound = workspace_check_path(part.filename, strlen(part.filename), NULL) >= 0;
		const struct chat_file *f = sound ? chat_store_add(&librechat_of(c)->store,
							    c->owner, session, part.filename,
							    part.data, part.len)
						  : NULL;
		put_upload(&w, part.filename, f, batch);
		good += f != NULL;
		bad += !f;
	}

	json_close(&w);
	if (batch) {
		json_field_uint(&w, "succeeded", good);
		json_field_uint(&w, "failed", bad);
	}

	json_close(&w);
	if (r < 0 || !good)
		chat_answer_error(c, 400, "the body must be multipart/form-data with a file");
	else
		call_respond(c, 200, &w, &b);
}

void handle_chat_upload(struct call *c)
{
	upload(c, false);
}

void handle_chat_upload_batch(struct call *c)
{
	upload(c, true);
}

/* ---- looking and fetching ---------------------------------------------------------------- */

void handle_chat_files(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const struct chat_file *f = NULL;
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_array(&w);
	while ((f = chat_store_next(&librechat_of(c)->store, c->owner, c->id, f))) {
		char name[2 * CHAT_ID_LEN + 2];
		snprintf(name, sizeof(name), "%s/%s", f->session, f->id);
		json_open_object(&w);
		json_field_cstr(&w, "id", f->id);
		json_field_cstr(&w, "name", name);
		json_field_cstr(&w, "filename", f->name);
		json_field_cstr(&w, "session_id", f->session);
		json_field_uint(&w, "size", f->len);
		json_key(&w, "metadata");
		json_open_object(&w);
		json_field_cstr(&w, "original-filename", f->name);
		json_close(&w);
		json_close(&w);
	}

	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_chat_download(struct call *c)
{
	const struct chat_file *f = chat_store_find(
		&librechat_of(c)->store, c->owner, c->id, c->path);
	if (f)
		call_respond_static(c, 200, "application/octet-stream", f->data, f->len);
	else
		chat_answer_error(c, 404, "there is no such file");
}

const struct route librechat_routes[] = {
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/exec",
		.flags = CHAT_FLAGS,
		.handle = handle_chat_exec,
		.operation = "librechatExec",
		.summary = "LibreChat: run code",
		.description =
			"lang (py, bash), code, args, files. The server keeps new and changed files and lists them in the answer.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/v1/exec -H 'Content-Type: application/json' -d '{\"lang\":\"py\",\"code\":\"print(6*7)\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/exec/programmatic",
		.flags = CHAT_FLAGS,
		.handle = handle_chat_programmatic,
		.operation = "librechatExecProgrammatic",
		.summary = "LibreChat: run code that calls tools",
		.description =
			"code, tools, lang (py, bash), timeout (milliseconds), files. While calls wait for results, the answer is "
			"{status: tool_call_required, continuation_token, tool_calls}; send {continuation_token, tool_results} to go on.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/v1/exec/programmatic -H 'Content-Type: application/json' -d "
			"'{\"code\":\"print(await add(a=1, b=2))\",\"tools\":[{\"name\":\"add\"}]}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/upload",
		.flags = CHAT_FLAGS | ROUTE_RAW_BODY,
		.handle = handle_chat_upload,
		.operation = "librechatUpload",
		.summary = "LibreChat: upload a file",
		.status = 200,
		.content_type = JSON,
		.example = "curl -s $URL/v1/upload -F file=@input.csv",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/upload/batch",
		.flags = CHAT_FLAGS | ROUTE_RAW_BODY,
		.handle = handle_chat_upload_batch,
		.operation = "librechatUploadBatch",
		.summary = "LibreChat: upload several files",
		.status = 200,
		.content_type = JSON,
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/files/{id}",
		.flags = CHAT_FLAGS,
		.handle = handle_chat_files,
		.operation = "librechatFiles",
		.summary = "LibreChat: list kept files",
		.status = 200,
		.content_type = JSON,
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/download/{id}/{path}",
		.flags = CHAT_FLAGS,
		.handle = handle_chat_download,
		.operation = "librechatDownload",
		.summary = "LibreChat: fetch a kept file",
		.status = 200,
		.content_type = "application/octet-stream",
	},
	{ 0 },
};
