/*
 * The Connect protocol with JSON: errors of unary calls, and the frames of streams. Pure encoding.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/edge_words.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "json/json_write.h"

static const struct {
	const char *code;
	int status;
} codes[] = { { "not_found", 404 }, { "invalid_argument", 400 }, { "already_exists", 409 },
	{ "unauthenticated", 401 }, { "permission_denied", 403 }, { "failed_precondition", 400 },
	{ "resource_exhausted", 429 }, { "unimplemented", 501 }, { "internal", 500 },
	{ "unavailable", 503 }, { "deadline_exceeded", 504 } };

void e2b_connect_error(struct call *c, const char *code, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	int status = 500;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (text_eq(codes[i].code, code))
			status = codes[i].status;
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "code", code);
	json_field_cstr(&w, "message", message);
	json_close(&w);
	call_respond(c, status, &w, &b);
}

static const char *code_of(int status)
{
	if (status == 400)
		return "invalid_argument"; /* of two in the table */
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status == 410 ? "not_found" : status < 500 ? "invalid_argument" : "internal";
}

const char *e2b_connect_code(const struct error *e)
{
	if (text_eq(e->slug, "no_stdin"))
		return "failed_precondition";
	return code_of(call_status_of(e));
}

bool e2b_is_connect(const struct http_exchange *x)
{
	const char *path = http_path(x);
	return !strncmp(path, E2B_PROCESS, strlen(E2B_PROCESS)) ||
	       !strncmp(path, E2B_FILESYSTEM, strlen(E2B_FILESYSTEM));
}

static int write_problem(const struct http_exchange *x, int status, const char *detail,
	const char *remedy, struct buffer *out)
{
	char text[ERROR_TEXT_MAX + EDGE_TEXT_MAX + 4];
	struct json_writer w;

	snprintf(text, sizeof(text), "%s%s%s", detail ? detail : http_status_text(status),
		remedy && *remedy ? ". " : "", remedy ? remedy : "");
	json_writer_init(&w, out);
	json_open_object(&w);
	if (e2b_is_connect(x))
		json_field_cstr(&w, "code", code_of(status));
	else
		json_field_int(&w, "code", status);
	json_field_cstr(&w, "message", text);
	json_close(&w);
	return json_writer_end(&w);
}

const struct http_problem_form e2b_problem_form = { "application/json", write_problem };

int e2b_frame(struct buffer *out, unsigned char flags, const char *json, size_t len)
{
	unsigned char head[5] = { flags, (unsigned char)(len >> 24), (unsigned char)(len >> 16),
		(unsigned char)(len >> 8), (unsigned char)len };
	int r = buffer_append(out, head, sizeof(head));
	return r < 0 ? r : buffer_append(out, json, len);
}

int e2b_path(const char *path, char *ret, size_t size)
{
	int n;
	if (!path || !*path || text_eq(path, "~") || text_eq(path, "."))
		n = snprintf(ret, size, "%s", E2B_HOME);
	else if (path[0] == '/')
		n = snprintf(ret, size, "%s", path);
	else
		n = snprintf(ret, size, E2B_HOME "/%s",
			path[0] == '~' && path[1] == '/' ? path + 2 : path);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	while (n > 1 && ret[n - 1] == '/')
		ret[--n] = '\0';
	return 0;
}

const char *e2b_below_home(const char *absolute)
{
	static const char *const homes[] = { E2B_HOME, "/workspace" };
	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		size_t n = strlen(homes[i]);
		if (strncmp(absolute, homes[i], n))
			continue;
		if (!absolute[n])
			return "";
		if (absolute[n] == '/')
			return absolute + n + 1;
	}
	return NULL;
}
