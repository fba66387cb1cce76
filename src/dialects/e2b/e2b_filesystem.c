/*
 * filesystem.Filesystem: each call is a small script in the sandbox, so that it sees what its user
 * sees.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "json/json_write.h"

enum { PATH_BYTES = 4096, FIELDS = 9 };

/* A line of find for each entry: its parts end with NUL bytes, which no name has. */
#define PRINT " -printf '%y\\0%s\\0%m\\0%M\\0%u\\0%g\\0%T@\\0%l\\0%p\\0'"

/* Exit codes of the scripts. */
enum { GONE = 44, EXISTS = 45, NOT_A_DIRECTORY = 46 };

static const char stat_script[] =
	"[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; find \"$1\" -maxdepth 0" PRINT;
static const char list_script[] =
	"[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] || exit 46; cd \"$1\" || exit 1; find -H \"$1\" -mindepth 1 -maxdepth \"$2\"" PRINT;
static const char make_script[] =
	"[ -d \"$1\" ] && exit 45; [ -e \"$1\" ] && exit 46; mkdir -p -- \"$1\" || exit 1; find \"$1\" -maxdepth 0" PRINT;
static const char move_script[] =
	"[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; mkdir -p -- \"$(dirname -- \"$2\")\" && mv -T -- \"$1\" \"$2\" && find \"$2\" -maxdepth 0" PRINT;
static const char remove_script[] = "rm -rf -- \"$1\"";

/* ---- entries ------------------------------------------------------------------------ */

static const char *type_of(char letter)
{
	return letter == 'd'   ? "FILE_TYPE_DIRECTORY"
	       : letter == 'l' ? "FILE_TYPE_SYMLINK"
			       : "FILE_TYPE_FILE";
}

/* find has its own idea of the name of the jail's user; these sandboxes call it `user`. */
static const char *user_name(const char *name)
{
	return text_eq(name, "sandbox") ? "user" : name;
}

static void put_entry(struct json_writer *w, const char *field[FIELDS], int root)
{
	char when[CLOCK_TEXT_MAX];
	const char *name = strrchr(field[8], '/');

	json_open_object(w);
	json_field_cstr(w, "name", name && name[1] ? name + 1 : field[8]);
	json_field_cstr(w, "type", type_of(*field[0]));
	json_field_cstr(w, "path", field[8]);
	json_field_cstr(w, "size", field[1]);
	json_field_int(w, "mode", (int)strtol(field[2], NULL, 8));
	json_field_cstr(w, "permissions", field[3]);
	json_field_cstr(w, "owner", user_name(field[4]));
	json_field_cstr(w, "group", user_name(field[5]));
	json_field_cstr(
		w, "modifiedTime", clock_format((uint64_t)(strtod(field[6], NULL) * 1e9), when));
	if (*field[7])
		json_field_cstr(w, "symlinkTarget", field[7]);
	if (*field[0] == 'f')
		e2b_metadata_put(w, root, field[8]);
	json_close(w);
}

/* Where files may have metadata, or -1. */
static int metadata_root(struct call *c)
{
	struct error e = { 0 };
	struct session *s;
	return call_session(c, &e, &s) == 0 ? e2b_metadata_root(s) : -1;
}

/* The next entry of what find printed; false at the end. */
static bool next_entry(const struct buffer *out, size_t *at, const char *field[FIELDS])
{
	for (int i = 0; i < FIELDS; i++) {
		const char *end = memchr(out->data + *at, '\0', out->len - *at);
		if (!end)
			return false;
		field[i] = out->data + *at;
		*at = (size_t)(end - out->data) + 1;
	}
	return true;
}

/* ---- answers ------------------------------------------------------------------------ */

static void answer_failure(struct call *c, int code, const struct buffer *err)
{
	char buf[E2B_FAILURE_TEXT];
	const char *text = e2b_shell_failure(code, err, buf);
	if (code == E2B_SHELL_TOO_MUCH)
		e2b_connect_error(c, "resource_exhausted",
			"the list is longer than 16 MiB. List fewer levels, or a directory below");
	else if (code == GONE)
		e2b_connect_error(c, "not_found", "path not found");
	else if (code == EXISTS)
		e2b_connect_error(c, "already_exists", "directory already exists");
	else if (code == NOT_A_DIRECTORY)
		e2b_connect_error(c, "invalid_argument", "path is not a directory");
	else
		e2b_connect_error(c,
			strstr(text, "ermission denied") ? "permission_denied" : "internal", text);
}

static void on_entry(struct call *c, void *userdata, int code, const struct buffer *out,
	const struct buffer *err)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	const char *field[FIELDS];
	struct json_writer w;
	size_t at = 0;

	(void)userdata;
	if (code || !next_entry(out, &at, field)) {
		answer_failure(c, code, err);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "entry");
	put_entry(&w, field, metadata_root(c));
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void on_entries(struct call *c, void *userdata, int code, const struct buffer *out,
	const struct buffer *err)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	const char *field[FIELDS];
	struct json_writer w;
	size_t at = 0;

	(void)userdata;
	if (code == E2B_SHELL_TOO_MUCH || (code && !out->len)) {
		answer_failure(c, code, err);
		return;
	}

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "entries");
	json_open_array(&w);
	int root = metadata_root(c);
	while (next_entry(out, &at, field))
		put_entry(&w, field, root);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void on_nothing(struct call *c, void *userdata, int code, const struct buffer *out,
	const struct buffer *err)
{
	(void)userdata, (void)out;
	if (code)
		answer_failure(c, code, err);
	else
		call_respond_static(c, 200, "application/json", "{}", 2);
}

/* ---- calls -------------------------------------------------------------------------- */

static const struct call_row {
	const char *method, *script;
	const char *first, *second; /* members of the request that are paths */
	e2b_shell_done done;
} calls[] = {
	{ "Stat", stat_script, "path", NULL, on_entry },
	{ "ListDir", list_script, "path", NULL, on_entries },
	{ "MakeDir", make_script, "path", NULL, on_entry },
	{ "Move", move_script, "source", "destination", on_entry },
	{ "Remove", remove_script, "path", NULL, on_nothing },
};

void e2b_filesystem(struct call *c, struct session *s, const char *method, json_t *request)
{
	char path[2][PATH_BYTES], depth[24];
	json_int_t levels = json_integer_value(json_object_get(request, "depth"));
	const char *arguments[3] = { path[0], depth, NULL };
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		const struct call_row *row = &calls[i];
		if (!text_eq(row->method, method))
			continue;
		const char *first = json_string_value(json_object_get(request, row->first));
		const char *second = row->second ? json_string_value(
							   json_object_get(request, row->second))
						 : NULL;
		if (e2b_path(first, path[0], PATH_BYTES) < 0 ||
			e2b_path(second, path[1], PATH_BYTES) < 0) {
			e2b_connect_error(c, "invalid_argument", "the path is too long");
			return;
		}
		snprintf(depth, sizeof(depth), "%lld", (long long)(levels > 0 ? levels : 1));
		if (row->second)
			arguments[1] = path[1];
		e2b_shell(c, s, row->script, arguments, NULL, 0, row->done, NULL, NULL);
		return;
	}

	e2b_connect_error(
		c, "unimplemented", "Glovebox does not serve this call of the file system");
}
