/* SandboxFusion's /run_code and /v1/ping, as verl and those who copied its function use them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/provision.h"
#include "base/text.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* verl waits ten seconds beyond both time limits; the code's grace is two of them. */
#define PATIENCE_S 7.0
#define DEFAULT_TIMEOUT_S 10.0
#define LEAST_TIMEOUT_S 0.1
#define MOST_TIMEOUT_S 3600.0

/*
 * MOST_MEMORY_MB only keeps the number of bytes within 64 bits; the limit of the server is much
 * lower.
 */
enum { LEAST_MEMORY_MB = 16, MOST_MEMORY_MB = 1 << 30 };

/* Known to SandboxFusion, and not here. */
static const char *const absent_languages[] = { "cpp", "nodejs", "go", "go_test", "java", "php",
	"csharp", "typescript", "sql", "rust", "cuda", "lua", "R", "perl", "D_ut", "ruby", "scala",
	"julia", "junit", "kotlin_script", "jest", "verilog", "python_gpu", "lean", "swift",
	"racket", NULL };

static bool is_among(const char *const *list, const char *word, size_t *ret_index)
{
	for (size_t i = 0; list[i]; i++)
		if (text_eq(list[i], word)) {
			*ret_index = i;
			return true;
		}
	return false;
}

static double timeout_of(const json_t *body, const char *key)
{
	const json_t *v = json_object_get(body, key);
	double s = json_is_number(v) ? json_number_value(v) : DEFAULT_TIMEOUT_S;
	return s < LEAST_TIMEOUT_S ? LEAST_TIMEOUT_S : s > MOST_TIMEOUT_S ? MOST_TIMEOUT_S : s;
}

/* ---- answers --------------------------------------------------------------------- */

static void put_head(struct json_writer *w, const char *status, const char *message)
{
	json_open_object(w);
	json_field_cstr(w, "status", status);
	json_field_cstr(w, "message", message);
	json_field_null(w, "compile_result");
}

static void answer_error(struct call *c, const char *message)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_head(&w, "SandboxError", message);
	json_field_null(&w, "run_result");
	json_field_null(&w, "executor_pod_name");
	json_field_raw(&w, "files", "{}", 2);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void put_text(struct json_writer *w, const char *key, const struct buffer *b)
{
	json_field_text(w, key, b->data ? b->data : "", b->len);
}

static void put_run_result(struct json_writer *w, const struct observation *o)
{
	_cleanup_buffer_ struct buffer out = BUFFER_COUNTED(0), err = BUFFER_COUNTED(0);
	script_stdout(o, &out);
	script_stderr(o, &err);
	json_key(w, "run_result");
	json_open_object(w);
	json_field_cstr(w, "status", script_timed_out(o) ? "TimeLimitExceeded" : "Finished");
	json_field_double(w, "execution_time", o->wall_ms / 1e3);
	if (script_timed_out(o))
		json_field_null(w, "return_code");
	else
		json_field_int(w, "return_code", script_return_code(o));
	put_text(w, "stdout", &out);
	put_text(w, "stderr", &err);
	json_close(w);
}

/* Retried by the clients: the server has no room, or is about to end. */
static bool is_busy(const struct error *e)
{
	static const char *const slugs[] = { "queue_timeout", "draining", "no_resources",
		"too_many_sessions", "server_full", "server_memory", "starting", NULL };
	size_t at;
	return is_among(slugs, e->slug, &at);
}

static void answer_run(struct call *c, void *extra, const struct job_outcome *outcome)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	const struct observation *o = outcome->o;
	struct json_writer w;

	if (!o) {
		if (is_busy(outcome->error))
			trainers_detail(c, 504, outcome->error->text);
		else
			answer_error(c, outcome->error->text);
		return;
	}

	bool good = !script_timed_out(o) && script_return_code(o) == 0;
	json_writer_init(&w, &b);
	put_head(&w, good ? "Success" : "Failed", "");
	put_run_result(&w, o);
	json_field_null(&w, "executor_pod_name");
	script_put_files(&w, extra, outcome->session);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

static void free_extra(void *extra)
{
	json_decref(extra);
}

static const struct script_ops run_ops = { answer_run, free_extra };

/* ---- requests ----------------------------------------------------------------------- */

static int fill_run(const json_t *body, size_t language, struct run_request *run, struct error *e)
{
	const json_t *code = json_object_get(body, "code"), *input = json_object_get(body, "stdin"),
		     *memory = json_object_get(body, "memory_limit_MB");

	if (script_set_text(&run->execute.code, json_string_value(code), json_string_length(code)) <
			0 ||
		script_set_text(&run->execute.input, json_string_value(input),
			json_string_length(input)) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	run->language = (enum script_language)language;
	run->execute.timeout_s = timeout_of(body, "run_timeout");
	if (json_is_number(memory) && json_number_value(memory) > 0) {
		double mb = json_number_value(memory);
		run->session.limits.memory_bytes = (uint64_t)(mb < LEAST_MEMORY_MB ? LEAST_MEMORY_MB
							      : mb > MOST_MEMORY_MB ? MOST_MEMORY_MB
										    : mb)
						   << 20;
	}

	int r = script_take_files(json_object_get(body, "files"), &run->files, e);
	return r < 0 ? r : script_prepare(run, e);
}

static void start(struct call *c, const json_t *body, size_t len, size_t language)
{
	struct run_request run = { 0 };
	struct error e = { 0 };
	json_t *fetch = json_object_get(body, "fetch_files");
	if (fill_run(body, language, &run, &e) < 0) {
		provision_finish(&run);
		answer_error(c, e.text);
		return;
	}
	run.session.dialect = "sandboxfusion";
	script_call_start(c, &run, len, timeout_of(body, "compile_timeout") + PATIENCE_S, &run_ops,
		json_incref(fetch));
}

void handle_run_code(struct call *c)
{
	struct error e = { 0 };
	size_t len, language = SCRIPT_PYTHON;
	_cleanup_json_ json_t *body = script_call_body(c, &len, &e);
	const json_t *word = json_object_get(body, "language");
	const char *name = json_string_value(word);
	char message[128];

	if (!body) {
		trainers_invalid(c, NULL, e.text);
	} else if (!json_is_string(json_object_get(body, "code"))) {
		trainers_invalid(c, "code", "Field required, a string");
	} else if (word && !name) {
		trainers_invalid(c, "language", "Input should be a string");
	} else if (name && is_among(absent_languages, name, &language)) {
		snprintf(message, sizeof(message),
			"%s is not installed here: use python, bash or pytest", name);
		answer_error(c, message);
	} else if (name && !is_among(script_languages, name, &language)) {
		trainers_invalid(c, "language", "Input should be 'python', 'bash' or 'pytest'");
	} else {
		start(c, body, len, language);
	}
}

void handle_fusion_ping(struct call *c)
{
	static const char pong[] = "\"pong\"";
	call_respond_static(c, 200, "application/json", pong, sizeof(pong) - 1);
}
