/* What a sandbox can be made of, and what it printed. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b_control.h"
#include "profile/profiles.h"

enum { LOG_ENTRIES = 1000, NAME_BYTES = 64 };

static const char *const builtin[] = { "base", "code-interpreter-v1", "desktop", NULL };

/* ---- templates ---------------------------------------------------------------------- */

static bool is_builtin(const char *name)
{
	for (size_t i = 0; builtin[i]; i++)
		if (text_eq(builtin[i], name))
			return true;
	return false;
}

/* Profiles are the server's own templates. */
static bool is_profile(const struct call *c, const char *name)
{
	struct profile_choice choice = { 0 };
	struct error e = { 0 };
	if (!*name || strlen(name) >= NAME_BYTES || *name == '{' ||
		profiles_choose(c->api->profiles, name, NULL, NULL, false, &e, &choice) < 0)
		return false;
	profile_choice_finish(&choice);
	return true;
}

enum e2b_template e2b_template(const struct call *c, const char *name)
{
	return !name                 ? E2B_TEMPLATE_UNKNOWN
	       : is_builtin(name)    ? E2B_TEMPLATE_BUILTIN
	       : is_profile(c, name) ? E2B_TEMPLATE_PROFILE
				     : E2B_TEMPLATE_UNKNOWN;
}

void e2b_list_templates(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_array(&w);
	for (size_t i = 0; builtin[i]; i++) {
		json_open_object(&w);
		json_field_cstr(&w, "templateID", builtin[i]);
		json_field_cstr(&w, "buildID", builtin[i]);
		json_field_cstr(&w, "buildStatus", "ready");
		json_field_bool(&w, "public", true);
		json_key(&w, "aliases");
		json_open_array(&w);
		json_put_cstr(&w, builtin[i]);
		json_close(&w);
		json_close(&w);
	}

	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void e2b_template_alias(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	if (e2b_template(c, c->id) == E2B_TEMPLATE_UNKNOWN) {
		e2b_error(c, 404, "there is no such template");
		return;
	}
	json_writer_init(&w, &b);
	json_open_object(&w);
	json_field_cstr(&w, "templateID", c->id);
	json_field_bool(&w, "public", true);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

/* ---- logs --------------------------------------------------------------------------- */

static void put_entry(struct json_writer *w, const struct log_entry *entry, bool plain)
{
	char when[CLOCK_TEXT_MAX];
	size_t len = entry->len && entry->data[entry->len - 1] == '\n' ? entry->len - 1
								       : entry->len;
	json_open_object(w);
	json_field_cstr(w, "timestamp", clock_format(entry->wall_ns, when));
	json_field_text(w, plain ? "line" : "message", entry->data, len);
	if (!plain) {
		json_field_cstr(w, "level", entry->stream == STREAM_STDERR ? "error" : "info");
		json_field_raw(w, "fields", "{}", 2);
	}
	json_close(w);
}

static void put_log(struct json_writer *w, struct session *s, const char *key, bool plain)
{
	struct log_entry entry;
	uint64_t at = 0;
	json_key(w, key);
	json_open_array(w);
	for (int i = 0; i < LOG_ENTRIES && session_log_read(s, at, &entry) > 0; i++) {
		put_entry(w, &entry, plain);
		at = entry.next;
	}
	json_close(w);
}

void e2b_logs(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_COUNTED(0);
	bool newer = !strncmp(http_path(c->x), "/v2/", 4);
	struct session *s = e2b_named(c);
	struct json_writer w;
	if (!s)
		return;
	json_writer_init(&w, &b);
	json_open_object(&w);
	put_log(&w, s, "logs", !newer);
	if (!newer)
		put_log(&w, s, "logEntries", false);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}
