/* What a reset may say, and what environments have without saying it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/common/dialect_words.h"
#include "dialects/openenv/openenv.h"
#include "profile/profiles.h"
#include "json/json_write.h"

enum { NAMES_MAX = 48, KNOWN_BYTES = 640 };

/* Those that are the dialect's own. */
static const char *const own_names[] = { "episode_id", "rewards" };

static size_t known_names(const char *names[NAMES_MAX + 1])
{
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(own_names); i++)
		names[n++] = own_names[i];
	for (size_t i = 0; i < session_fields.n && n < NAMES_MAX; i++)
		names[n++] = session_fields.field[i].name;
	names[n] = NULL;
	return n;
}

static bool is_known(const char *const *names, const char *name)
{
	while (*names && !text_eq(*names, name))
		names++;
	return *names != NULL;
}

void reset_check_names(json_t *data, struct pydantic *p)
{
	const char *names[NAMES_MAX + 1], *name;
	char words[KNOWN_BYTES];
	json_t *value;
	size_t n = known_names(names), len = (size_t)snprintf(words, sizeof(words),
					       "Extra inputs are not permitted. Known fields: ");
	for (size_t i = 0; i < n && len < sizeof(words); i++)
		len += (size_t)snprintf(
			words + len, sizeof(words) - len, "%s%s", i ? ", " : "", names[i]);

	json_object_foreach(data, name, value) if (!is_known(names, name))
		pydantic_add(p, "extra_forbidden", name, words, value, NULL);
}

/*
 * coding_env authorises these whatever ADDITIONAL_IMPORTS says: pictures are taken of what they
 * show.
 */
int openenv_add_imports(struct session_params *params)
{
	static const char *const always[] = { "tkinter", "matplotlib" };
	size_t n = 0;

	while (params->additional_imports && params->additional_imports[n])
		n++;
	char **grown = realloc(
		params->additional_imports, (n + ARRAY_LEN(always) + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	params->additional_imports = grown;
	params->imports_below = true;
	for (size_t i = 0; i < ARRAY_LEN(always); i++) {
		if ((grown[n] = strdup(always[i])))
			n++;
		grown[n] = NULL;
	}

	return 0;
}

/* A profile that does not exist is wrong in the field that named it. */
static int check_profile(const struct openenv *o, const struct reset_request *r,
	const struct session_params *params, struct pydantic *p, struct error *err)
{
	_cleanup_(profile_choice_finish) struct profile_choice choice = { 0 };
	const char *field = json_object_get(r->session, "profile") ? "profile" : "executor_backend";
	char words[ERROR_TEXT_MAX + EDGE_TEXT_MAX + 2], remedy[EDGE_TEXT_MAX];

	if (!params->profile)
		return 0;
	int result = profiles_choose(o->api->profiles, params->profile, NULL,
		params->additional_imports, true, err, &choice);
	if (result < 0 && p) {
		snprintf(words, sizeof(words), "%s. %s", err->text,
			edge_expand(&dialect_words, err->remedy, remedy, sizeof(remedy)));
		pydantic_add(
			p, "value_error", field, words, json_object_get(r->session, field), NULL);
	}

	return result;
}

int openenv_check_reset(const struct openenv *o, const struct reset_request *r, struct pydantic *p,
	struct error *err)
{
	struct session_params probe = { 0 };
	int result = r->given ? 0 : reset_read_params(r, p, err, &probe);
	if (!result)
		result = check_profile(o, r, r->given ? r->given : &probe, p, err);
	fields_finish(&session_fields, &probe);
	return result < 0 ? result : api_check_open(o->api, err);
}

/* ---- the first observation ---------------------------------------------------- */

/* The report of its packages, when something of it failed. */
static const char *failed_report(const struct env *e)
{
	static const char none[] = "\"failed\":[]";
	struct session_info info;
	struct session *s;
	if (!e || !*e->session || session_find(e->home->api->sessions, e->session, NULL, &s) < 0)
		return NULL;
	session_info(s, &info);
	return info.packages && !strstr(info.packages, none) ? info.packages : NULL;
}

void openenv_put_first(struct json_writer *w, const struct env *e, bool rewards)
{
	static const char first[] = "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":0}";
	const char *report = failed_report(e);
	json_open_object(w);
	json_field_raw(w, "observation", first, sizeof(first) - 1);
	step_put_reward(w, rewards, 0);
	json_field_bool(w, "done", false);
	if (report) {
		json_key(w, "metadata");
		json_open_object(w);
		json_field_raw(w, "packages", report, strlen(report));
		json_close(w);
	}
	json_close(w);
}
