#include <errno.h>
#include <stdlib.h>

#include "api/schema/fields.h"
#include "api/schema/requests.h"
#include "base/buffer.h"
#include "tap.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Decodes and gives back the error's text ("" when all went well). */
static const char *decode(const struct fields *f, const char *json, struct error *e)
{
	struct run_request run = { 0 };
	struct socket_request message = { 0 };
	union {
		struct create_request create;
		struct session_params session;
		struct execute_request execute;
		struct tools_request tools;
	} other;
	memset(&other, 0, sizeof(other));
	void *to = f == &run_fields ? (void *)&run
		   : f == &socket_execute_fields || f == &socket_plain_fields ||
				   f == &socket_tools_fields || f == &socket_answer_fields
			   ? (void *)&message
			   : (void *)&other;
	*e = (struct error){ 0 };
	int r = fields_decode_text(f, json, strlen(json), to, e);
	fields_finish(f, to);
	OK((r < 0) == (e->err < 0));
	return e->text;
}

static void values(void)
{
	static const char json[] =
		"{\"code\":\"print(1)\",\"stdin\":\"a\\u0000b\",\"timeout_s\":2.5,"
		"\"name\":\"n\",\"env\":{\"A\":\"1\",\"_b2\":\"\"},"
		"\"preload\":[\"json\",\"os.path\"],\"metadata\":{\"k\":[1,\"é\"]},"
		"\"limits\":{\"timeout_s\":10,\"output_bytes\":2048},"
		"\"ttl_s\":60,\"seed\":4294967295,\"files\":{\"a/"
		"b.txt\":\"hi\\u0000\",\"c\":{\"base64\":\"AAEC/w==\"}}}";
	struct run_request run = { 0 };
	struct error e = { 0 };
	OK(fields_decode_text(&run_fields, json, strlen(json), &run, &e) == 0);
	OK_STR(e.text, "");
	OK_STR(run.execute.code.data, "print(1)");
	OK(run.execute.input.len == 3 && !memcmp(run.execute.input.data, "a\0b", 3));
	OK(run.execute.timeout_s == 2.5);
	OK_STR(run.session.name, "n");
	OK_STR(run.session.env[0], "A=1");
	OK_STR(run.session.env[1], "_b2=");
	OK(!run.session.env[2]);
	OK_STR(run.session.preload[1], "os.path");
	OK(!run.session.preload[2]);
	OK_STR(run.session.metadata, "{\"k\":[1,\"é\"]}");
	OK(run.session.limits.timeout_s == 10 && run.session.limits.output_bytes == 2048);
	OK(run.session.has_seed && run.session.seed == 4294967295);
	OK(run.files.n == 2 && run.files.file[0].content.len == 3);
	OK_STR(run.files.file[1].path, "c");
	OK(run.files.file[1].content.len == 4 &&
		!memcmp(run.files.file[1].content.data, "\0\1\2\xff", 4));
	fields_finish(&run_fields, &run);
	OK(!run.session.env && !run.files.n && !run.execute.code.data);

	struct session_params none = { 0 };
	OK(fields_decode_text(&session_fields, "", 0, &none, &e) == 0);
	OK(fields_decode_text(&session_fields, "{\"name\":null,\"seed\":7.0}", 24, &none, &e) == 0);
	OK(!none.name && none.has_seed && none.seed == 7);
}

static void errors(void)
{
	static const struct {
		const struct fields *fields;
		const char *json, *text, *slug;
	} cases[] = {
		{ &execute_fields, "{}", "$.code: is required", "missing_field" },
		{ &execute_fields, "{\"code\":null}", "$.code: is required", "missing_field" },
		{ &execute_fields, "{\"code\":7}", "$.code: must be a string, not 7",
			"invalid_field" },
		{ &execute_fields, "[]", "$: must be an object, not a list", "invalid_field" },
		{ &execute_fields, "{\"code\":\"\",\"timeout_s\":\"5\"}",
			"$.timeout_s: must be a number between 0.1 and 3600, not a string",
			"invalid_field" },
		{ &execute_fields, "{\"code\":\"\",\"timeout_s\":0}",
			"$.timeout_s: must be a number between 0.1 and 3600, not 0",
			"invalid_field" },
		{ &execute_fields, "{\"code\":\"\",\"timeout_s\":3600.5}",
			"$.timeout_s: must be a number between 0.1 and 3600, not 3600.5",
			"invalid_field" },
		{ &execute_fields, "{\"code\":\"\",\"detach\":1}",
			"$.detach: must be true or false, not 1", "invalid_field" },
		{ &execute_fields, "{\"code\":\"\",\"timeout\":1}",
			"$.timeout: unknown field; did you mean \"timeout_s\"?", "unknown_field" },
		{ &session_fields, "{\"profile\":\"python\",\"executor_backend\":\"restricted\"}",
			"$.executor_backend: is another name of a field that is also given: give only one of the two",
			"invalid_field" },
		{ &execute_fields, "{\"cod\":\"\"}", "$.cod: unknown field; did you mean \"code\"?",
			"unknown_field" },
		{ &execute_fields, "{\"code\":\"\",\"zzzzzz\":1}", "$.zzzzzz: unknown field",
			"unknown_field" },
		{ &execute_fields, "{\"code\":\"\",\"a b\\n\":1}", "$[\"a b?\"]: unknown field",
			"unknown_field" },
		{ &execute_fields, "{\"code\":\"\"", NULL, "malformed_json" },
		{ &session_fields, "{\"name\":\"\"}", "$.name: must not be empty",
			"invalid_field" },
		{ &create_fields, "{\"from\":\"\"}", "$.from: must not be empty", "invalid_field" },
		{ &create_fields, "{\"from\":[]}", "$.from: must be a string, not a list",
			"invalid_field" },
		{ &session_fields, "{\"seed\":1.5}",
			"$.seed: must be a whole number between 0 and 4294967295, not 1.5",
			"invalid_field" },
		{ &session_fields, "{\"seed\":-1}",
			"$.seed: must be a whole number between 0 and 4294967295, not -1",
			"invalid_field" },
		{ &session_fields, "{\"limits\":[]}", "$.limits: must be an object, not a list",
			"invalid_field" },
		{ &session_fields, "{\"limits\":{\"timeout_s\":true}}",
			"$.limits.timeout_s: must be a number between 0.1 and 3600, not a boolean",
			"invalid_field" },
		{ &session_fields, "{\"limits\":{\"memory\":1}}",
			"$.limits.memory: unknown field; did you mean \"memory_bytes\"?", NULL },
		{ &session_fields, "{\"env\":{\"1A\":\"\"}}",
			"$.env[\"1A\"]: is not a variable name (letters, digits and _, not beginning with a "
			"digit)",
			"invalid_field" },
		{ &session_fields, "{\"env\":{\"A\":5}}", "$.env.A: must be a string, not 5",
			"invalid_field" },
		{ &session_fields, "{\"env\":{\"A\":\"x\\u0000\"}}",
			"$.env.A: must not contain a NUL character (there is one at byte 1)",
			"invalid_field" },
		{ &session_fields, "{\"env\":[]}",
			"$.env: must be an object of names and texts, not a list",
			"invalid_field" },
		{ &session_fields, "{\"preload\":\"json\"}",
			"$.preload: must be a list of strings, not a string", "invalid_field" },
		{ &session_fields, "{\"preload\":[\"a\",\"\"]}", "$.preload[1]: must not be empty",
			"invalid_field" },
		{ &session_fields, "{\"preload\":[\"a\",{}]}",
			"$.preload[1]: must be a string, not an object", "invalid_field" },
		{ &session_fields, "{\"metadata\":\"x\"}",
			"$.metadata: must be an object, not a string", "invalid_field" },
		{ &session_fields, "{\"ttl_s\":0.5}",
			"$.ttl_s: must be a number between 1 and 31536000, not 0.5",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"../x\":\"\"}}",
			"$.files[\"../x\"]: the path must not hold \".\" or \"..\"",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"/etc/x\":\"\"}}", NULL,
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"x\":7}}",
			"$.files.x: must be a text or {\"base64\": \"…\"}, not a number",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"x\":{\"base64\":\"AA=\"}}}",
			"$.files.x.base64: is not base64 (the standard alphabet, padded with =)",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"x\":{\"base64\":\"AB==\"}}}",
			"$.files.x.base64: is not base64 (the standard alphabet, padded with =)",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"files\":{\"x\":{\"base64\":\"AA==\",\"b\":1}}}",
			"$.files.x: must be a text, or an object with just \"base64\"",
			"invalid_field" },
		{ &run_fields, "{\"code\":\"\",\"detach\":true}", "$.detach: unknown field",
			"unknown_field" },
		{ &no_fields, "{\"x\":1}", "$.x: unknown field", "unknown_field" },
		{ &socket_plain_fields, "{\"type\":\"ping\"}", "$.id: is required",
			"missing_field" },
		{ &socket_tools_fields, "{\"id\":1,\"type\":\"tools\"}", "$.tools: is required",
			"missing_field" },
		{ &tools_fields, "{\"tools\":{}}", "$.tools: must be a list, not an object",
			"invalid_field" },
		{ &socket_answer_fields, "{\"id\":1,\"type\":\"tool_result\",\"call\":0}",
			"$.call: must be a whole number between 1 and 9007199254740991, not 0",
			"invalid_field" },
		{ &tool_answer_fields, "{\"error\":{\"message\":\"x\"}}",
			"$.error.type: is required", "missing_field" },
		{ &socket_plain_fields, "{\"id\":[],\"type\":\"ping\"}",
			"$.id: must be a string or a whole number, not a list", "invalid_field" },
		{ &socket_plain_fields, "{\"id\":1,\"type\":\"pin\"}",
			"$.type: must be one of \"execute\", \"interrupt\", \"ping\", \"tools\", \"tool_result\"",
			"invalid_field" },
	};
	struct error e;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = decode(cases[i].fields, cases[i].json, &e);
		OK(e.err == -EINVAL);
		if (cases[i].text)
			OK_STR(text, cases[i].text);
		if (cases[i].slug)
			OK_STR(e.slug, cases[i].slug);
	}
	decode(&execute_fields, "{\"code\":\"\",\"x\":1}", &e);
	OK_STR(e.remedy,
		"Known fields: code, stdin, timeout_s, context, detach, transaction, capture_screenshot, screenshot, render_timeout, on_block, record, variables, typed_result, data_forms, printed_final_answer.");
	decode(&execute_fields, "{}", &e);
	OK_STR(e.remedy, "Add \"code\" (string, at most 8 MiB).");
}

/* Maxima: what is one over is refused, what is at the mark is not. */
static void sizes(void)
{
	struct buffer b = BUFFER_INIT(0);
	struct error e;
	buffer_append_str(&b, "{\"name\":\"");
	for (int i = 0; i < LIMIT_NAME_BYTES; i++)
		buffer_append_char(&b, 'n');
	buffer_append_str(&b, "\"}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e), "");
	b.len -= 2;
	buffer_append_str(&b, "n\"}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e),
		"$.name: must have at most 128 bytes, not 129");

	b.len = 0;
	buffer_append_str(&b, "{\"preload\":[\"m\"");
	for (int i = 0; i < LIMIT_PRELOAD_COUNT; i++)
		buffer_append_str(&b, ",\"m\"");
	buffer_append_str(&b, "]}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e),
		"$.preload: must have at most 64 items, not 65");

	b.len = 0;
	buffer_append_str(&b, "{\"env\":{\"A\":\"");
	for (int i = 0; i < LIMIT_ENV_BYTES - 2; i++)
		buffer_append_char(&b, 'v');
	buffer_append_str(&b, "\"}}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e),
		"$.env: must have at most 131072 bytes in all");

	b.len = 0;
	buffer_append_str(&b, "{\"env\":{\"A0\":\"\"");
	for (int i = 1; i <= LIMIT_ENV_COUNT; i++)
		buffer_printf(&b, ",\"A%d\":\"\"", i);
	buffer_append_str(&b, "}}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e),
		"$.env: must have at most 128 entries, not 129");

	b.len = 0;
	buffer_append_str(&b, "{\"metadata\":{\"k\":\"");
	for (int i = 0; i < LIMIT_METADATA_BYTES; i++)
		buffer_append_char(&b, 'v');
	buffer_append_str(&b, "\"}}");
	OK_STR(decode(&session_fields, buffer_cstr(&b), &e),
		"$.metadata: must have at most 16384 bytes as JSON");

	b.len = 0;
	buffer_append_str(&b, "{\"code\":\"");
	buffer_reserve(&b, LIMIT_CODE_BYTES + 16);
	memset(b.data + b.len, '#', LIMIT_CODE_BYTES + 1);
	b.len += LIMIT_CODE_BYTES + 1;
	buffer_append_str(&b, "\"}");
	OK_STR(decode(&execute_fields, buffer_cstr(&b), &e),
		"$.code: must have at most 8388608 bytes, not 8388609");

	/* A name from outside that is long is shown cut, and never in the middle of a character. */
	b.len = 0;
	buffer_append_str(&b, "{\"");
	for (int i = 0; i < 300; i++)
		buffer_append_str(&b, "é");
	buffer_append_str(&b, "\":1}");
	decode(&session_fields, buffer_cstr(&b), &e);
	OK(strlen(e.text) < 120);
	OK_STR(e.slug, "unknown_field");
	buffer_finish(&b);
}

static void queries(void)
{
	struct session_query q = { 0 };
	struct error e = { 0 };
	OK(fields_decode_query(&session_query_fields,
		   "name=a+b%21&state=idle&metadata.task=42&metadata%5Bx.y%5D=z&limit=7&&cursor=9",
		   &q, &e) == 0);
	OK_STR(q.name, "a b!");
	OK_STR(q.state, "idle");
	OK(q.metadata.n == 2 && q.limit == 7 && q.cursor == 9);
	OK_STR(q.metadata.pair[0].key, "task");
	OK_STR(q.metadata.pair[1].key, "x.y");
	OK_STR(q.metadata.pair[1].value, "z");
	fields_finish(&session_query_fields, &q);

	static const struct {
		const struct fields *fields;
		const char *query, *text;
	} cases[] = {
		{ &session_query_fields, "limit=0",
			"?limit: must be a whole number between 1 and 1000" },
		{ &session_query_fields, "limit=x",
			"?limit: must be a whole number between 1 and 1000" },
		{ &session_query_fields,
			"limit=", "?limit: must be a whole number between 1 and 1000" },
		{ &session_query_fields, "state=dead",
			"?state: must be one of starting, idle, busy, paused" },
		{ &session_query_fields, "nam=x",
			"?nam: unknown parameter; did you mean \"name\"?" },
		{ &session_query_fields, "metadata=x",
			"?metadata: unknown parameter; did you mean \"metadata.KEY\"?" },
		{ &session_query_fields, "name=", "?name: must not be empty" },
		{ &session_query_fields, "name=%zz",
			"?name: is too long, wrongly percent-encoded, or not UTF-8" },
		{ &session_query_fields, "name=%00",
			"?name: is too long, wrongly percent-encoded, or not UTF-8" },
		{ &session_query_fields, "name=%ff",
			"?name: is too long, wrongly percent-encoded, or not UTF-8" },
		{ &list_query_fields, "recursive=maybe", "?recursive: must be true or false" },
		{ &no_fields, "a=1", "?a: unknown parameter" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct session_query any = { 0 };
		struct list_query list = { 0 };
		void *to = cases[i].fields == &list_query_fields ? (void *)&list : (void *)&any;
		OK(fields_decode_query(cases[i].fields, cases[i].query, to, &e) == -EINVAL);
		OK_STR(e.text, cases[i].text);
		fields_finish(cases[i].fields, to);
	}
	struct list_query list = { 0 };
	OK(fields_decode_query(&list_query_fields, "recursive&path=a%2Fb&path=c", &list, &e) == 0);
	OK(list.recursive);
	OK_STR(list.path, "c");
	fields_finish(&list_query_fields, &list);
}

/* The schemas are JSON, and say what the decoder does. */
static void schemas(void)
{
	static const struct fields *const all[] = { &session_fields, &create_fields,
		&execute_fields, &run_fields, &no_fields, &socket_execute_fields,
		&socket_plain_fields, &socket_tools_fields, &socket_answer_fields, &tools_fields,
		&tool_answer_fields };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct buffer b = BUFFER_INIT(0);
		struct json_writer w;
		struct error e = { 0 };
		json_t *tree = NULL;
		json_writer_init(&w, &b);
		fields_write_schema(all[i], &w);
		OK(json_writer_end(&w) == 0);
		OK(json_read(b.data, b.len, &e, &tree) == 0);
		OK_STR(e.text, "");
		OK(json_is_false(json_object_get(tree, "additionalProperties")));
		OK(json_object_size(json_object_get(tree, "properties")) == all[i]->n);
		if (all[i] == &execute_fields) {
			json_t *timeout = json_object_get(
				json_object_get(tree, "properties"), "timeout_s");
			OK(json_number_value(json_object_get(timeout, "minimum")) == 0.1);
			OK(json_number_value(json_object_get(timeout, "maximum")) == 3600);
			OK_STR(json_string_value(
				       json_array_get(json_object_get(tree, "required"), 0)),
				"code");
		}
		json_decref(tree);
		buffer_finish(&b);
	}
}

int main(void)
{
	values();
	errors();
	sizes();
	queries();
	schemas();
	return tap_done();
}
