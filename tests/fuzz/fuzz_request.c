/*
 * Requests as clients send them: the first byte chooses what the rest is taken for (the body of a
 * route, a WebSocket message, a query string, a path, a Host). Decoding refuses with an error that
 * names itself, or gives a struct in which everything keeps the promises of its table.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/guard.h"
#include "api/schema/requests.h"
#include "api/workspace.h"
#include "base/buffer.h"
#include "base/limits.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union decoded {
	struct create_request create;
	struct session_params session;
	struct execute_request execute;
	struct run_request run;
	struct socket_request message;
	struct session_query sessions;
	struct log_query log;
	struct list_query list;
};

static void check_error(const struct error *e)
{
	assert(e->err < 0 && e->slug[0] && e->text[0]);
	assert(strnlen(e->text, sizeof(e->text)) < sizeof(e->text));
	/* Whatever a client sent, what it gets back can be put into JSON as it is or nearly so. */
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	json_put_cstr(&w, e->text);
	assert(json_writer_end(&w) == 0 && json_validate(b.data, b.len, NULL) == 0);
}

static void check_execute(const struct execute_request *x)
{
	/* a NUL in it is an error of the code, not of the request */
	assert(x->code.data && x->code.len <= LIMIT_CODE_BYTES);
	assert(text_is_utf8(x->code.data, x->code.len));
	assert(x->timeout_s == 0 || (x->timeout_s >= 0.1 && x->timeout_s <= 3600));
}

static void check_session(const struct session_params *p)
{
	assert(!p->name || (*p->name && strlen(p->name) <= LIMIT_NAME_BYTES));
	for (char **v = p->env; v && *v; v++)
		assert(strchr(*v, '=') > *v);
	assert(!p->metadata || (*p->metadata == '{' &&
				       json_validate(p->metadata, strlen(p->metadata), NULL) == 0));
	assert(p->seed <= UINT32_MAX);
}

static void check_files(const struct field_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		assert(!workspace_check_path(
			files->file[i].path, strlen(files->file[i].path), NULL));
		assert(files->file[i].content.data);
	}
}

static void body(const struct fields *f, const char *text, size_t len)
{
	union decoded d;
	struct error e = { 0 };
	memset(&d, 0, sizeof(d));
	if (fields_decode_text(f, text, len, &d, &e) < 0)
		check_error(&e);
	else if (f == &execute_fields)
		check_execute(&d.execute);
	else if (f == &session_fields)
		check_session(&d.session);
	else if (f == &socket_execute_fields)
		check_execute(&d.message.execute);
	else if (f == &run_fields) {
		check_execute(&d.run.execute);
		check_session(&d.run.session);
		check_files(&d.run.files);
	}
	fields_finish(f, &d);
}

static void query(const struct fields *f, const char *text)
{
	union decoded d;
	struct error e = { 0 };
	memset(&d, 0, sizeof(d));
	if (fields_decode_query(f, text, &d, &e) < 0)
		check_error(&e);
	fields_finish(f, &d);
}

static void path(const char *text, size_t len)
{
	struct error e = { 0 };
	if (workspace_check_path(text, len, &e) < 0) {
		check_error(&e);
		return;
	}
	assert(len && *text != '/' && text[len - 1] != '/' && !strstr(text, "//") &&
		!memchr(text, 0, len));
	assert(strcmp(text, "..") && strncmp(text, "../", 3) && !strstr(text, "/../"));
}

static void door(const char *text)
{
	static char *hosts[] = { (char *)"box.example", NULL };
	static char *tokens[] = { (char *)"secret", NULL };
	struct guard g;
	struct error e = { 0 };
	uint64_t owner = 0;
	bool foreign;
	assert(guard_init(&g, hosts, NULL, tokens, &e) == 0);
	if (guard_host(&g, text, &e) < 0)
		check_error(&e);
	guard_origin(&g, text, text, text, &e, &foreign);
	if (guard_token(&g, text, &e, &owner) == 0)
		assert(strstr(text, "secret") && owner == 1);
	guard_finish(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fields *const bodies[] = { &execute_fields, &create_fields, &run_fields,
		&socket_execute_fields, &socket_plain_fields, &socket_tools_fields,
		&socket_answer_fields, &no_fields };
	static const struct fields *const queries[] = { &session_query_fields, &log_query_fields,
		&list_query_fields, &no_fields };
	if (!size)
		return 0;
	unsigned kind = *data % 14;
	char *text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (kind < ARRAY_LEN(bodies))
		body(bodies[kind], text, size - 1);
	else if (kind < 10)
		query(queries[kind - 6], text);
	else if (kind == 10)
		path(text, size - 1);
	else
		door(text);
	free(text);
	return 0;
}
