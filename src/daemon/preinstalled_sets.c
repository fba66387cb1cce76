#include "daemon/preinstalled_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "options/options.h"
#include "packages/names.h"
#include "session/session.h"
#include "json/json_read.h"

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct warm_set *s = userdata;
	s->wait = NULL;
	if (a->error) {
		log_warning("packages-warm '%s': %s", s->line, a->error->text);
	} else if (!a->set) {
		log_info("packages-warm '%s': all packages are part of the system", s->line);
	} else if ((s->hold = packages_hold(s->all->packages, a->set))) {
		packages_give_template(s->hold);
		sessions_warm_template(s->all->sessions, a->path, a->modules, a->replaces);
	}
}

static void start(struct warm_set *s)
{
	static const struct packages_listener listener = { .on_done = on_done };
	_cleanup_free_ char *copy = strdup(s->line);
	char *names[REQUEST_NAMES_MAX + 1] = { NULL };
	struct error e = { 0 };
	size_t n = 0;
	for (char *rest = copy, *word;
		rest && n < REQUEST_NAMES_MAX && (word = strsep(&rest, " "));)
		if (*word)
			names[n++] = word;
	struct packages_request q = { .packages = names };
	if (packages_ask(s->all->packages, &q, &listener, s, &e, &s->wait) < 0)
		log_warning("packages-warm '%s': %s", s->line, e.text);
}

void warm_sets_start(struct warm_sets *w, struct packages *packages, struct sessions *sessions,
	char *const *lines)
{
	w->packages = packages;
	w->sessions = sessions;
	for (; lines && *lines && w->n < WARM_SETS_MAX; lines++) {
		struct warm_set *s = &w->set[w->n++];
		s->all = w;
		s->line = *lines;
		start(s);
	}
	if (lines && *lines)
		log_warning("packages-warm: only the first %d sets are kept ready", WARM_SETS_MAX);
}

/* One entry for an installation that failed as a whole. */
static json_t *failed_at_all(char *const *imports, const char *reason)
{
	json_t *list = json_array();
	for (; imports && *imports; imports++)
		json_array_append_new(
			list, json_pack("{s:s, s:s}", "name", *imports, "reason", reason));
	return list;
}

static json_t *failed_of(const char *report)
{
	_cleanup_json_ json_t *tree = NULL;
	if (!report || json_read(report, strlen(report), NULL, &tree) < 0)
		return NULL;
	return json_incref(json_object_get(tree, "failed"));
}

/*
 * Each that could not be had is a line of the log, and all of them are told to the server. Takes
 * the list over.
 */
static void tell_failed(struct warm_sets *w, json_t *failed)
{
	_cleanup_json_ json_t *list = failed;
	_cleanup_buffer_ struct buffer names = BUFFER_INIT(LIMIT_NAME_BYTES * REQUEST_NAMES_MAX);
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name")),
			   *reason = json_string_value(json_object_get(one, "reason"));
		log_warning("additional-imports: %s cannot be installed: %s", name ? name : "?",
			reason ? reason : "unknown");
		buffer_printf(&names, "%s%s", i ? ", " : "", name ? name : "?");
	}

	_cleanup_free_ char *text = json_array_size(list) ? json_dumps(list, JSON_COMPACT) : NULL;
	w->told(w->userdata, text, text && buffer_append(&names, "", 1) >= 0 ? names.data : NULL);
}

static void on_common(void *userdata, const struct packages_answer *a)
{
	struct warm_sets *w = userdata;
	w->common_wait = NULL;
	if (!a->error && a->report)
		log_info("additional-imports: %s", a->report);
	w->common = !a->error && a->set ? packages_hold(w->packages, a->set) : NULL;
	sessions_set_packages(w->sessions, w->common ? a->path : NULL, a->replaces);
	tell_failed(
		w, a->error ? failed_at_all(w->authorised, a->error->text) : failed_of(a->report));
}

bool warm_sets_common(struct warm_sets *w, struct packages *packages, struct sessions *sessions,
	char *const *imports, warm_sets_told told, void *userdata)
{
	static const struct packages_listener listener = { .on_done = on_common };
	struct error e = { 0 };

	w->packages = packages;
	w->sessions = sessions;
	w->told = told;
	w->userdata = userdata;
	if (!imports || !imports[0] || !packages_enabled(packages))
		return false;
	sessions_await_packages(sessions);
	if (packages_ask(packages, &(struct packages_request){ .imports = imports }, &listener, w,
		    &e, &w->common_wait) < 0) {
		sessions_set_packages(sessions, NULL, false);
		tell_failed(w, failed_at_all(w->authorised, e.text));
	}

	return true;
}

int warm_sets_authorise(struct warm_sets *w, char *const *imports, char ***ret)
{
	size_t n = 0;
	*ret = NULL;
	while (imports && imports[n])
		n++;
	if (!n)
		return 0;
	w->authorised = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; w->authorised && i < n; i++)
		if (!(w->authorised[i] = strdup(imports[i])))
			return -ENOMEM;
	if (!w->authorised || names_correct_imports(w->authorised) < 0)
		return -ENOMEM;
	*ret = w->authorised;
	return 0;
}

void warm_sets_finish(struct warm_sets *w)
{
	packages_forget(w->common_wait);
	packages_release(w->common);
	option_list_free(w->authorised);
	w->authorised = NULL;
	for (unsigned i = 0; i < w->n; i++) {
		packages_forget(w->set[i].wait);
		packages_release(w->set[i].hold);
	}
	w->n = 0;
}
