/* LibreChat's /v1/exec: a program with kept files beside it, whose own files are kept in turn. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/provision.h"
#include "api/run_files.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/dialects.h"
#include "dialects/librechat/librechat.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define TIMEOUT_S 60.0
#define PATIENCE_S 60.0

/*
 * The folder that LibreChat tells its models about; it is not in the jail, whose only folder for
 * files is the other one.
 */
static const char their_folder[] = "/mnt/data", our_folder[] = "/workspace";

/* ---- the answer ---------------------------------------------------------------------- */

static void keep_file(struct chat_store *store, uint64_t owner, struct session *s,
	const char *session, const char *path, struct run_files_budget *budget,
	struct json_writer *w)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0);
	if (!run_files_fetch(s, path, budget, &content))
		return;
	const struct chat_file *f = chat_store_add(
		store, owner, session, path, content.data ? content.data : "", content.len);
	if (!f)
		return;
	json_open_object(w);
	json_field_cstr(w, "id", f->id);
	json_field_cstr(w, "name", f->name);
	json_field_cstr(w, "storage_session_id", session);
	json_close(w);
}

void chat_put_files(struct json_writer *w, struct api *a, uint64_t owner, const char *session,
	struct session *s, const struct observation *o)
{
	struct librechat *home = dialect_state(a, &dialect_librechat);
	struct run_files_budget budget = RUN_FILES_BUDGET;
	json_key(w, "files");
	json_open_array(w);
	for (unsigned i = 0; s && i < o->n_files; i++)
		if (o->files[i].change != FILE_DELETED)
			keep_file(&home->store, owner, s, session, o->files[i].path, &budget, w);
	json_close(w);
}

static void answer_run(struct call *c, void *extra, const struct job_outcome *outcome)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0), out = BUFFER_COUNTED(0),
				       err = BUFFER_COUNTED(0);
	const struct observation *o = outcome->o;
	char session[CHAT_ID_LEN + 1];
	struct json_writer w;

	(void)extra;
	if (!o) {
		chat_answer_error(c, 503, outcome->error->text);
		return;
	}

	node_make_id(session, CHAT_ID_LEN);
	script_stdout(o, &out);
	script_stderr(o, &err);
	if (script_timed_out(o))
		buffer_append_str(&err, "the code took longer than 60 s\n");
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", session);
	json_field_text(&w, "stdout", out.data ? out.data : "", out.len);
	json_field_text(&w, "stderr", err.data ? err.data : "", err.len);
	chat_put_files(&w, c->api, c->owner, session, outcome->session, o);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* ---- the request ------------------------------------------------------------------------ */

static int set_code(struct field_text *to, const char *code, size_t len)
{
	struct buffer b = BUFFER_INIT(0);
	const char *end = code + len, *hit;
	int r = 0;

	while (r == 0 && (hit = memmem(code, (size_t)(end - code), their_folder,
				  sizeof(their_folder) - 1))) {
		r = buffer_append(&b, code, (size_t)(hit - code));
		if (r == 0)
			r = buffer_append_str(&b, our_folder);
		code = hit + sizeof(their_folder) - 1;
	}

	if (r == 0)
		r = buffer_append(&b, code, (size_t)(end - code));
	if (r == 0)
		r = buffer_append_char(&b, '\0');
	size_t n = b.len;
	if (r < 0)
		buffer_finish(&b);
	else
		*to = (struct field_text){ buffer_take(&b, NULL), n - 1 };
	return r;
}

/* `bytes`: of all files that were taken. -EFBIG when they are too many. */
static int take_file(struct call *c, const json_t *ref, struct run_request *run, size_t *bytes)
{
	const char *id = json_string_value(json_object_get(ref, "id")),
		   *name = json_string_value(json_object_get(ref, "name")),
		   *session = json_string_value(json_object_get(ref, "storage_session_id"));

	if (!session)
		session = json_string_value(json_object_get(ref, "session_id"));
	const struct chat_file *f = id && session ? chat_store_find(&librechat_of(c)->store,
							    c->owner, session, id)
						  : NULL;
	const char *path = f ? script_path(name ? name : f->name) : NULL;
	struct field_text content = { 0 };
	if (!path || run->files.n >= LIMIT_RUN_FILES)
		return 0; /* it is gone: the code sees that it is not there */
	*bytes += f->len;
	if (*bytes > LIMIT_RUN_FILES_BYTES)
		return -EFBIG;
	if (script_set_text(&content, f->data, f->len) < 0)
		return -ENOMEM;
	int r = run_files_add(&run->files, path, &content);
	field_text_finish(&content);
	return r;
}

static int take_arguments(const json_t *args, struct run_request *run)
{
	size_t n = json_array_size(args);
	run->arguments = calloc(n + 1, sizeof(char *));
	if (!run->arguments)
		return -ENOMEM;
	for (size_t i = 0, k = 0; i < n; i++) {
		const char *word = json_string_value(json_array_get(args, i));
		if (word && !(run->arguments[k++] = strdup(word)))
			return -ENOMEM;
	}
	return 0;
}

int chat_fill_run(struct call *c, const json_t *body, struct run_request *run, size_t *bytes)
{
	const json_t *code = json_object_get(body, "code"), *files = json_object_get(body, "files");
	int r = set_code(&run->execute.code, json_string_value(code), json_string_length(code));
	if (r == 0)
		r = take_arguments(json_object_get(body, "args"), run);
	for (size_t i = 0; r == 0 && i < json_array_size(files); i++)
		r = take_file(c, json_array_get(files, i), run, bytes);
	return r;
}

static int fill_run(struct call *c, const json_t *body, enum script_language language,
	struct run_request *run, size_t *bytes)
{
	run->language = language;
	run->execute.timeout_s = TIMEOUT_S;
	int r = chat_fill_run(c, body, run, bytes);
	return r < 0 ? r : script_prepare(run, NULL);
}

void handle_chat_exec(struct call *c)
{
	static const struct script_ops ops = { answer_run, NULL };
	struct run_request run = { 0 };
	struct error e = { 0 };
	size_t len, files = 0;
	int r;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	const char *lang = json_string_value(json_object_get(body, "lang"));
	bool python = lang && (text_eq(lang, "py") || text_eq(lang, "python"));

	if (!body || !json_is_string(json_object_get(body, "code"))) {
		chat_answer_error(c, 400, body ? "code is required" : e.text);
	} else if (!python && !(lang && text_eq(lang, "bash"))) {
		chat_answer_error(c, 400, "lang must be py or bash");
	} else if ((r = fill_run(c, body, python ? SCRIPT_PYTHON : SCRIPT_BASH, &run, &files)) <
		   0) {
		provision_finish(&run);
		if (r == -EFBIG)
			chat_answer_error(c, 413, "the files are larger than 24 MiB together");
		else
			call_no_memory(c);
	} else {
		run.session.dialect = "librechat";
		script_call_start(c, &run, len + files, PATIENCE_S, &ops, NULL);
	}
}
