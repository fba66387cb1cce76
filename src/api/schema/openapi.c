/*
 * /openapi.json, written from the tables that route and decode requests, so that it cannot say
 * anything else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/batch/batch.h"
#include "api/call.h"
#include "api/handlers/docs.h"
#include "api/routes.h"
#include "api/schema/fields.h"
#include "api/schema/requests.h"
#include "api/schema/requests_console.h"
#include "api/schema/requests_input.h"
#include "api/schema/requests_processes.h"
#include "api/schema/shapes.h"
#include "base/text.h"
#include "json/json_write.h"

static void put_ref(struct json_writer *w, const char *name)
{
	char ref[96];
	snprintf(ref, sizeof(ref), "#/components/schemas/%s", name);
	json_key(w, "schema");
	json_open_object(w);
	json_field_cstr(w, "$ref", ref);
	json_close(w);
}

static void put_content(struct json_writer *w, const char *type, const char *schema)
{
	json_key_text(w, type, strlen(type));
	json_open_object(w);
	if (schema)
		put_ref(w, schema);
	json_close(w);
}

static void put_path_parameter(struct json_writer *w, const char *name, const char *help)
{
	json_open_object(w);
	json_field_cstr(w, "name", name);
	json_field_cstr(w, "in", "path");
	json_field_bool(w, "required", true);
	json_field_cstr(w, "description", help);
	json_key(w, "schema");
	json_put_raw(w, "{\"type\":\"string\"}", sizeof("{\"type\":\"string\"}") - 1);
	json_close(w);
}

static void put_query_parameter(struct json_writer *w, const struct field *f)
{
	json_open_object(w);
	json_field_cstr(w, "name", f->name);
	json_field_cstr(w, "in", "query");
	json_field_bool(w, "required", false);
	json_field_cstr(w, "description", f->help);
	if (f->type == FIELD_MATCH) {
		json_field_cstr(w, "style", "deepObject");
		json_field_bool(w, "explode", true);
	}
	json_key(w, "schema");
	fields_write_value_schema(f, w);
	json_close(w);
}

static void put_parameters(struct json_writer *w, const struct route *r)
{
	json_key(w, "parameters");
	json_open_array(w);
	if (strstr(r->pattern, "{id}"))
		put_path_parameter(w, "id", "The session's id.");
	if (strstr(r->pattern, "{path}"))
		put_path_parameter(w, "path", "A path below /workspace; may contain slashes.");
	if (strstr(r->pattern, "{part}"))
		put_path_parameter(w, "part", "The id of the process or context.");
	for (size_t i = 0; r->query && i < r->query->n; i++)
		put_query_parameter(w, &r->query->field[i]);
	json_close(w);
}

static bool body_is_required(const struct fields *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->field[i].flags & FIELD_REQUIRED)
			return true;
	return false;
}

static void put_body(struct json_writer *w, const struct route *r)
{
	static const char any[] = "{\"application/octet-stream\":{}}";
	if (!r->request && !(r->flags & ROUTE_RAW_BODY))
		return;
	json_key(w, "requestBody");
	json_open_object(w);
	json_field_bool(w, "required", !r->request || body_is_required(r->request));
	json_key(w, "content");
	if (r->request) {
		json_open_object(w);
		put_content(w, "application/json", r->request->name);
		json_close(w);
	} else {
		json_put_raw(w, any, sizeof(any) - 1);
	}

	json_close(w);
}

static void put_success(struct json_writer *w, const struct route *r)
{
	char status[8];
	snprintf(status, sizeof(status), "%d", r->status);
	json_key(w, status);
	json_open_object(w);
	json_field_cstr(w, "description", http_status_text(r->status));
	if (r->content_type) {
		json_key(w, "content");
		json_open_object(w);
		put_content(w, r->content_type, r->shape ? r->shape->name : NULL);
		if (r->flags & ROUTE_EVENTS)
			put_content(w, "text/event-stream", NULL);
		json_close(w);
	}

	json_close(w);
}

static void put_responses(struct json_writer *w, const struct route *r)
{
	json_key(w, "responses");
	json_open_object(w);
	put_success(w, r);
	json_key(w, "default");
	json_open_object(w);
	json_field_cstr(w, "description", "The problem and its remedy.");
	json_key(w, "content");
	json_open_object(w);
	put_content(w, "application/problem+json", shape_problem.name);
	json_close(w);
	json_close(w);
	json_close(w);
}

static void put_operation(struct json_writer *w, const struct route *r)
{
	char method[16];
	const char *name = http_method_name(r->method);
	size_t n = 0;

	for (; name[n] && n < sizeof(method) - 1; n++)
		method[n] = (char)(name[n] | 0x20);
	method[n] = '\0';
	json_key(w, method);
	json_open_object(w);
	json_field_cstr(w, "operationId", r->operation);
	json_field_cstr(w, "summary", r->summary);
	if (r->description)
		json_field_cstr(w, "description", r->description);
	if (r->flags & ROUTE_PUBLIC) {
		json_key(w, "security");
		json_put_raw(w, "[]", 2);
	}

	put_parameters(w, r);
	put_body(w, r);
	put_responses(w, r);
	json_close(w);
}

/* Has an earlier row opened this path already? */
static bool path_is_done(const struct route_table *t, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (text_eq(t->patterns[i], t->patterns[index]))
			return true;
	return false;
}

static void put_paths(struct json_writer *w, const struct route_table *t)
{
	json_key(w, "paths");
	json_open_object(w);
	for (size_t i = 0; i < t->n; i++) {
		if (path_is_done(t, i))
			continue;
		json_key_text(w, t->patterns[i], strlen(t->patterns[i]));
		json_open_object(w);
		for (size_t j = i; j < t->n; j++)
			if (text_eq(t->patterns[j], t->patterns[i]))
				put_operation(w, t->rows[j]);
		json_close(w);
	}
	json_close(w);
}

static void put_components(struct json_writer *w)
{
	static const struct fields *const requests[] = { &create_fields, &packages_fields,
		&execute_fields, &run_fields, &batch_fields, &no_fields, &tools_fields,
		&tool_answer_fields, &socket_execute_fields, &socket_tools_fields,
		&socket_answer_fields, &socket_plain_fields, &checkpoint_fields, &rollback_fields,
		&fork_fields, &input_fields, &recording_fields, &live_link_fields, &share_fields,
		&session_update_fields, &resume_fields, &drain_fields, &introspect_fields,
		&volume_fields, &process_fields, &process_input_fields, &process_signal_fields,
		&process_resize_fields, &context_fields };
	static const char schemes[] = "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}";

	json_key(w, "components");
	json_open_object(w);
	json_field_raw(w, "securitySchemes", schemes, sizeof(schemes) - 1);
	json_key(w, "schemas");
	json_open_object(w);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		json_key(w, requests[i]->name);
		fields_write_schema(requests[i], w);
	}

	for (size_t i = 0; shapes[i]; i++) {
		json_key(w, shapes[i]->name);
		shape_write_schema(shapes[i], w);
	}

	json_close(w);
	json_close(w);
}

int openapi_write(const struct route_table *t, struct buffer *out)
{
	struct json_writer w;
	json_writer_init(&w, out);
	json_open_object(&w);
	json_field_cstr(&w, "openapi", "3.1.0");
	json_key(&w, "info");
	json_open_object(&w);
	json_field_cstr(&w, "title", "Glovebox");
	/* of the API, v1; the program's own is in /version */
	json_field_cstr(&w, "version", "1.0.0");
	json_field_cstr(&w, "description",
		"Runs Python code written by a language model, in jailed sessions.");
	json_close(&w);
	json_key(&w, "security");
	json_put_raw(&w, "[{\"token\":[]}]", sizeof("[{\"token\":[]}]") - 1);
	put_paths(&w, t);
	put_components(&w);
	json_close(&w);
	return json_writer_end(&w);
}

void handle_openapi(struct call *c)
{
	struct api *a = c->api;
	if (!a->openapi) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		if (openapi_write(&a->routes, &b) < 0) {
			call_problem(c, 503, "no_memory", "out of memory", "Try again later.");
			return;
		}
		a->openapi = buffer_take(&b, &a->openapi_len);
	}
	call_respond_static(c, 200, "application/json", a->openapi, a->openapi_len);
}
