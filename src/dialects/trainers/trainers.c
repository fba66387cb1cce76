#include "dialects/trainers/trainers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/routes.h"
#include "dialects/dialects.h"
#include "json/json_write.h"

#define JSON "application/json"
/* Their clients send what they like, and can set no header. */
#define OPEN_FLAGS (ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_QUERY_TOKEN | ROUTE_API_KEY)

static int create(struct api *a, const struct api_config *config, struct error *e, void **ret_state)
{
	struct trainers *t = calloc(1, sizeof(*t));
	(void)config;
	if (!t || named_sessions_create(a, &t->named) < 0) {
		free(t);
		return error_set(e, -ENOMEM, "out of memory");
	}
	t->api = a;
	*ret_state = t;
	return 0;
}

static void destroy(void *state)
{
	struct trainers *t = state;
	named_sessions_destroy(t->named);
	free(t);
}

const struct dialect dialect_trainers = {
	.name = "trainers", .routes = trainers_routes, .create = create, .destroy = destroy
};

struct trainers *trainers_of(const struct call *c)
{
	return dialect_state(c->api, &dialect_trainers);
}

void trainers_detail(struct call *c, int status, const char *text)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "detail", text);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

void trainers_invalid(struct call *c, const char *field, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "detail");
	json_open_array(&w);
	json_open_object(&w);
	json_field_cstr(&w, "type", "value_error");
	json_key(&w, "loc");
	json_open_array(&w);
	json_put_cstr(&w, "body");
	if (field)
		json_put_cstr(&w, field);
	json_close(&w);
	json_field_cstr(&w, "msg", message);
	json_close(&w);
	json_close(&w);
	json_close(&w);
	call_respond(c, 422, &w, &b);
}

const struct route trainers_routes[] = {
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/run_code",
		.flags = OPEN_FLAGS,
		.handle = handle_run_code,
		.operation = "fusionRunCode",
		.summary = "SandboxFusion: run a program",
		.description =
			"code, language (python, bash, pytest), run_timeout, compile_timeout, memory_limit_MB, "
			"stdin, files, fetch_files. If the server is busy, the request waits; after too long a wait the answer is 504.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/run_code -H 'Content-Type: application/json' -d '{\"code\":\"print(6*7)\"}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/run_jupyter",
		.flags = OPEN_FLAGS,
		.handle = handle_run_jupyter,
		.operation = "fusionRunJupyter",
		.summary = "SandboxFusion: run cells",
		.description =
			"cells, cell_timeout, total_timeout, files, fetch_files: all cells in one fresh interpreter.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/run_jupyter -H 'Content-Type: application/json' -d '{\"cells\":[\"x = 6\",\"x * 7\"]}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/ping",
		.flags = OPEN_FLAGS | ROUTE_PUBLIC,
		.handle = handle_fusion_ping,
		.operation = "fusionPing",
		.summary = "SandboxFusion: is the server alive?",
		.status = 200,
		.content_type = JSON,
		.example = "curl -s $URL/v1/ping",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/execute",
		.flags = OPEN_FLAGS,
		.handle = handle_nemo_execute,
		.operation = "nemoExecute",
		.summary = "NeMo-Skills: run code",
		.description =
			"generated_code, std_input, timeout, language (ipython, python, shell), "
			"max_output_characters; the header X-Session-ID names a session that keeps its variables.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/execute -H 'X-Session-ID: demo' -H 'Content-Type: application/json' -d "
			"'{\"generated_code\":\"6*7\",\"language\":\"ipython\"}'",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/sessions/{id}",
		.flags = OPEN_FLAGS,
		.handle = handle_nemo_delete,
		.operation = "nemoDeleteSession",
		.summary = "NeMo-Skills: end a session",
		.status = 200,
		.content_type = JSON,
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sandbox/run",
		.flags = OPEN_FLAGS,
		.handle = handle_dify_run,
		.operation = "difyRun",
		.summary = "Dify: run the code of a node",
		.description = "language (python3), code, preload, enable_network.",
		.status = 200,
		.content_type = JSON,
		.example =
			"curl -s $URL/v1/sandbox/run -H 'X-Api-Key: any' -H 'Content-Type: application/json' -d "
			"'{\"language\":\"python3\",\"code\":\"print(6*7)\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sandbox/dependencies",
		.flags = OPEN_FLAGS,
		.handle = handle_dify_dependencies,
		.operation = "difyDependencies",
		.summary = "Dify: packages that code can import",
		.status = 200,
		.content_type = JSON,
		.example = "curl -s \"$URL/v1/sandbox/dependencies?language=python3\"",
	},
	{ 0 },
};
