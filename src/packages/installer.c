#include "packages/installer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "driver_source.h"
#include "local/local.h"
#include "packages/claims.h"
#include "packages/index_hosts.h"
#include "packages/request.h"
#include "packages/set_store.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum {
	WORK_LEAST = 256 << 20,
	LINE_BYTES = 4 << 20,
	TEXT_BYTES = 300,
	WORK_FACTOR = 3,
	WORK_MEMORY_MB = 2048,
	REACH_MAX = 64,
	INCOMPLETE_S = 60
};

/* ---- what goes out -------------------------------------------------------------------- */

static void put_line(json_t *line)
{
	_cleanup_free_ char *text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	if (!text)
		return;
	size_t len = strlen(text);
	text[len] = '\n';
	fd_write_waiting(STDOUT_FILENO, text, len + 1);
}

static void tell(const char *phase, const char *text)
{
	json_t *line = json_object();
	json_object_set_new(line, "phase", json_string(phase));
	json_object_set_new(line, "text", json_string(text));
	put_line(line);
}

static void tell_error(const struct installer *in, const struct error *e, const json_t *log)
{
	json_t *line = json_object(), *error = json_object();
	json_object_set_new(error, "code", json_string(*e->slug ? e->slug : "package_failed"));
	json_object_set_new(error, "text", json_string(e->text));
	json_object_set_new(error, "remedy", json_string(e->remedy));
	if (log)
		json_object_set(error, "log", (json_t *)log);
	json_object_set_new(line, "error", error);
	if (in->plan.report)
		json_object_set(line, "report", in->plan.report);
	put_line(line);
}

/* ---- what the jail says ----------------------------------------------------------------- */

/* Passed on in our own words and lengths: the text is pip's, or a package's. */
static void take_progress(json_t *said)
{
	static const char *const phases[] = { "resolving", "downloading", "building", "storing" };
	const char *phase = json_string_value(json_object_get(said, "phase")),
		   *text = json_string_value(json_object_get(said, "text"));
	char cut[TEXT_BYTES];

	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		if (!text_eq(phase, phases[i]))
			continue;
		json_t *line = json_object();
		snprintf(cut, sizeof(cut), "%s", text ? text : "");
		while (*cut && !text_is_utf8(cut, strlen(cut))) /* it was cut inside a character */
			cut[strlen(cut) - 1] = '\0';
		json_object_set_new(line, "phase", json_string(phases[i]));
		json_object_set_new(line, "text", json_string(cut));
		json_t *done = json_object_get(said, "done"),
		       *total = json_object_get(said, "total");
		if (json_is_integer(done) && json_is_integer(total)) {
			json_object_set(line, "done", done);
			json_object_set(line, "total", total);
		}
		put_line(line);
	}
}

static void take_line(struct installer *in, const char *text, size_t len)
{
	_cleanup_json_ json_t *said = NULL;
	const struct {
		const char *key;
		json_t **to;

	} answers[] = { { "survey", &in->survey }, { "resolved", &in->resolved },
		{ "fetched", &in->fetched }, { "arranged", &in->arranged },
		{ "failed", &in->failed }, { "refused", &in->refused } };
	if (json_read(text, len, NULL, &said) < 0 || !json_is_object(said))
		return;
	if (json_object_get(said, "phase"))
		take_progress(said);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		json_t *value = json_object_get(said, answers[i].key);
		if (!value)
			continue;
		json_decref(*answers[i].to);
		*answers[i].to = json_incref(value);
	}
}

static void on_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct installer *in = userdata;
	if (stream != STREAM_STDOUT || in->overflow)
		return;
	if (buffer_append(&in->line, data, len) < 0) {
		in->overflow = true;
		return;
	}
	for (char *end; (end = in->line.len ? memchr(in->line.data, '\n', in->line.len) : NULL);) {
		size_t n = (size_t)(end - in->line.data);
		take_line(in, in->line.data, n);
		buffer_consume(&in->line, n + 1);
	}
}

static void on_done(void *userdata, const struct observation *o)
{
	struct installer *in = userdata;
	in->status = o->status;
}

/* ---- cells ---------------------------------------------------------------------------------- */

static int run(struct installer *in, const char *code, size_t len, struct error *e)
{
	const struct cell_observer observer = {
		.on_output = on_output, .on_done = on_done, .uncapped = true
	};
	in->line.len = 0;
	int r = local_execute(in->local, &(struct cell_request){ .code = code, .code_len = len },
		&observer, in, e);
	if (r < 0)
		return r;
	if (in->status == CELL_TIMEOUT) {
		error_set(e, -ETIMEDOUT, "installing took longer than %g s",
			json_number_value(json_object_get(in->request, "timeout_s")));
		error_remedy(e, "Ask for less at once, or {start_larger:packages-timeout}.");
		return error_slug(e, "package_timeout");
	}

	if (in->status == CELL_OUT_OF_MEMORY) {
		error_set(e, -ENOMEM, "the installation ran out of memory");
		return error_slug(e, "package_failed");
	}

	if (in->status != CELL_OK || in->overflow) {
		error_set(
			e, -EIO, "the installer's jail failed (%s)", cell_status_name(in->status));
		return error_slug(e, "package_failed");
	}

	return 0;
}

/* A JSON text is a Python string. */
int installer_call(struct installer *in, const char *function, json_t *argument, struct error *e)
{
	_cleanup_buffer_ struct buffer code = BUFFER_INIT(LIMIT_CODE_BYTES);
	_cleanup_free_ char *json = json_dumps(argument, JSON_COMPACT);
	struct json_writer w;
	if (!json || buffer_printf(&code, "%s(json.loads(", function) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	json_writer_init(&w, &code);
	json_put_cstr(&w, json);
	if (json_writer_end(&w) < 0 || buffer_append_str(&code, "))\n") < 0)
		return error_set(e, -E2BIG, "the request is too large");
	return run(in, code.data, code.len, e);
}

int installer_load(struct installer *in, struct error *e)
{
	const char *driver = driver_sources[0].text;
	return run(in, driver, strlen(driver), e);
}

static int survey(struct installer *in, struct error *e)
{
	_cleanup_json_ json_t *modules = plan_modules(
		json_object_get(in->request, "packages"), json_object_get(in->request, "imports"));
	int r = installer_load(in, e);
	if (r == 0)
		r = installer_call(in, "survey", modules, e);
	if (r == 0 && !in->survey)
		r = error_set(e, -EIO, "the interpreter did not report its variables");
	return r;
}

/* ---- the jail ----------------------------------------------------------------------- */

/* Wheel folders are shown to the jail, and named as it sees them. */
static int show_links(struct installer *in, struct buffer *shown)
{
	json_t *links = json_object_get(in->settings, "find_links"), *link;
	size_t i;

	json_array_foreach(links, i, link)
	{
		char name[32];
		const char *path = json_string_value(link);
		if (strstr(path, "://"))
			continue;
		snprintf(name, sizeof(name), "wheels%zu", i);
		if (buffer_printf(shown, "%s%s\t%s", shown->len ? "\n" : "", path, name) < 0)
			return -ENOMEM;
		char inner[40];
		snprintf(inner, sizeof(inner), "/%s", name);
		json_array_set_new(links, i, json_string(inner));
	}

	return 0;
}

/*
 * The same for the folder of the uv that the settings name; the system's own is seen in any case.
 */
static int show_uv(struct installer *in, struct buffer *shown)
{
	const char *path = json_string_value(json_object_get(in->request, "uv")),
		   *slash = path ? strrchr(path, '/') : NULL;
	char inner[PATH_MAX];
	if (!slash) {
		if (path)
			json_object_set(in->settings, "uv", json_object_get(in->request, "uv"));
		return 0;
	}
	snprintf(inner, sizeof(inner), "/uv/%s", slash + 1);
	json_object_set_new(in->settings, "uv", json_string(inner));
	return buffer_printf(shown, "%s%.*s\tuv", shown->len ? "\n" : "",
		slash > path ? (int)(slash - path) : 1, path);
}

static int start_jail(struct installer *in, struct error *e)
{
	static char *no_modules[] = { NULL };
	_cleanup_buffer_ struct buffer shown = BUFFER_INIT(64 * 1024);
	uint64_t max = (uint64_t)json_integer_value(json_object_get(in->request, "max_bytes"));
	char *allow[REACH_MAX + 1] = { NULL };
	_cleanup_json_ json_t *rules = NULL;
	int r = reach_rules(in->settings, e, &rules);

	if (r < 0)
		return r;
	for (size_t i = 0; i < json_array_size(rules) && i < REACH_MAX; i++)
		allow[i] = (char *)json_string_value(json_array_get(rules, i));
	if (show_links(in, &shown) < 0 || show_uv(in, &shown) < 0 || !buffer_cstr(&shown))
		return error_set(e, -ENOMEM, "out of memory");
	/*
	 * Files in the jail are memory: the downloads, what they unpack to, and what builds leave
	 * lying about.
	 */
	uint64_t work = WORK_FACTOR * max > WORK_LEAST ? WORK_FACTOR * max : WORK_LEAST;
	return local_create(
		&(struct local_config){ .preload = no_modules,
			.state_dir = in->state_dir,
			.shown = shown.len ? shown.data : NULL,
			.timeout_s = json_number_value(json_object_get(in->request, "timeout_s")),
			.disk_bytes = work,
			.memory_bytes = work + ((uint64_t)WORK_MEMORY_MB << 20),
			.allow = allow[0] ? allow : NULL,
			.exec = JAIL_EXEC_ANY },
		e, &in->local);
}

/* ---- into the store ----------------------------------------------------------------- */

int installer_quiet(struct installer *in, struct error *e)
{
	int r = local_reset(in->local, e);
	return r < 0 ? r : run(in, "pass", 4, e);
}

/* Members of the set's record: what it holds, for lists and templates. */
static char *set_fields(const struct installer *in)
{
	_cleanup_json_ json_t *fields = json_object();
	json_object_set(fields, "packages", json_object_get(in->installed, "packages"));
	json_object_set(fields, "modules", json_object_get(in->installed, "modules"));
	json_object_set_new(fields, "built", json_boolean(in->built));
	char *text = json_dumps(fields, JSON_COMPACT);
	if (!text)
		return NULL;
	size_t len = strlen(text); /* without its braces */
	memmove(text, text + 1, len - 2);
	text[len - 2] = '\0';
	return text;
}

static int keep(struct installer *in, struct error *e, char *ret_id)
{
	struct store_intake *intake = NULL;
	bool found;
	_cleanup_free_ char *fields = set_fields(in),
			    *identity = in->built ? NULL
						  : claims_identity(json_object_get(
							    in->installed, "packages"));

	tell("storing", "taking the files over");
	int r = fields ? installer_quiet(in, e) : error_set(e, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	_cleanup_fd_ int tree = openat(local_workspace(in->local), "tree",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0)
		return error_set_errno(e, -errno, "reading what was installed");
	r = store_intake_begin(in->store,
		(uint64_t)json_integer_value(json_object_get(in->request, "max_bytes")), e,
		&intake);
	if (r == 0)
		r = store_intake_tree(intake, tree, e);
	if (r == 0)
		r = store_intake_commit(intake, identity, fields, e, ret_id, &found);
	store_intake_finish(intake);
	if (r == -ENOSPC) {
		error_remedy(e, "Make room on the disk, for example with `glovebox packages gc`.");
		error_slug(e, "store_full");
	}

	return r;
}

static int answer(struct installer *in, const char *id, struct error *e)
{
	_cleanup_json_ json_t *record = json_object();
	bool replaces = false;
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(in->installed, "packages"), i, one)
		replaces |= json_is_string(json_object_get(one, "replaces"));
	if (*id) {
		json_object_set_new(record, "set", json_string(id));
		json_object_set(record, "modules", json_object_get(in->installed, "modules"));
		json_object_set_new(record, "replaces", json_boolean(replaces));
	}

	json_object_set_new(
		record, "seconds", json_real((double)(clock_now_ns() - in->started_ns) / 1e9));
	json_object_set(record, "report", in->plan.report);
	if (in->incomplete)
		json_object_set_new(record, "until",
			json_integer((json_int_t)(clock_wall_ns() / NSEC_PER_SEC) + INCOMPLETE_S));
	_cleanup_free_ char *text = json_dumps(record, JSON_COMPACT);
	if (!text)
		return error_set(e, -ENOMEM, "out of memory");
	/*
	 * Packages that were built for a client are that client's alone, since their code may have
	 * changed all that is in the set.
	 */
	return store_request_write(
		in->store, in->built && in->own_key ? in->own_key : in->key, text, strlen(text), e);
}

/* ---- all of it ---------------------------------------------------------------------- */

static int install(struct installer *in, struct error *e)
{
	char id[STORE_ID_LEN + 1] = "";
	int r = start_jail(in, e);
	if (r == 0)
		r = survey(in, e);
	if (r == 0)
		r = plan_make(json_object_get(in->request, "packages"),
			json_object_get(in->request, "imports"), in->survey, in->settings, e,
			&in->plan);
	if (r == 0)
		r = installer_pip(in, e);
	if (r == 0 && json_array_size(json_object_get(in->installed, "packages")))
		r = keep(in, e, id);
	return r < 0 ? r : answer(in, id, e);
}

/* Two processes with the same request: the second waits here and finds the answer of the first. */
static int lock_request(const struct installer *in)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/packages/requests/.%s.lock", in->state_dir, in->key) < 0)
		return -ENOMEM;
	_cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

static bool answered_under(struct installer *in, const char *key)
{
	_cleanup_free_ char *json = NULL, *record = NULL;
	_cleanup_json_ json_t *tree = NULL;
	_cleanup_fd_ int hold = -1;
	size_t len;
	if (!key || store_request_read(in->store, key, &json, &len) < 0 ||
		json_read(json, len, NULL, &tree) < 0)
		return false;
	const char *id = json_string_value(json_object_get(tree, "set"));
	return !id || (store_set_hold(in->store, id, &hold, &record, &len) == 0 &&
			      store_check(in->store, id, false, NULL) == 0);
}

static bool answered_meanwhile(struct installer *in)
{
	return !json_is_true(json_object_get(in->request, "refresh")) &&
	       (answered_under(in, in->key) || answered_under(in, in->own_key));
}

static int read_request(struct installer *in, struct error *e)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(REQUEST_BYTES_MAX);
	ssize_t n = 1;

	while (n > 0) {
		if (buffer_reserve(&text, 64 * 1024) < 0)
			return error_set(e, -E2BIG, "the request is too large");
		n = read(STDIN_FILENO, text.data + text.len, text.cap - text.len);
		text.len += n > 0 ? (size_t)n : 0;
	}

	int r = json_read(text.data, text.len, e, &in->request);
	if (r < 0)
		return r;
	in->settings = json_object_get(in->request, "settings");
	in->key = json_string_value(json_object_get(in->request, "key"));
	in->own_key = json_string_value(json_object_get(in->request, "own_key"));
	in->state_dir = json_string_value(json_object_get(in->request, "state_dir"));
	if (in->settings)
		json_object_set(in->settings, "build", json_object_get(in->request, "build"));
	if (!json_is_object(in->settings) || !in->key || !in->state_dir)
		return error_set(e, -EINVAL, "the request is incomplete");
	return store_open(in->state_dir, e, &in->store);
}

static void finish(struct installer *in)
{
	local_destroy(in->local);
	plan_finish(&in->plan);
	json_decref(in->survey);
	json_decref(in->resolved);
	json_decref(in->fetched);
	json_decref(in->arranged);
	json_decref(in->installed);
	json_decref(in->failed);
	json_decref(in->refused);
	json_decref(in->request);
	buffer_finish(&in->line);
	store_close(in->store);
}

int installer_main(int argc, char **argv)
{
	struct installer in = { .line = BUFFER_INIT(LINE_BYTES), .started_ns = clock_now_ns() };
	struct error e = { 0 };

	(void)argc;
	(void)argv;
	int r = read_request(&in, &e);
	_cleanup_fd_ __attribute__((unused)) int lock = r < 0 ? -1 : lock_request(&in);
	if (r == 0 && !answered_meanwhile(&in))
		r = install(&in, &e);
	if (r < 0)
		tell_error(&in, &e, in.failed);
	else
		put_line(json_pack("{s:b}", "done", 1));
	finish(&in);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
