#include "daemon/warm_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/options.h"
#include "packages/names.h"
#include "session/session.h"

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct warm_set *s = userdata;
	s->wait = NULL;
	if (a->error) {
		log_warning("packages-warm '%s': %s", s->line, a->error->text);
	} else if (!a->set) {
		log_info("packages-warm '%s': the system has it all", s->line);
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
	for (char *rest = copy, *word; rest && n < REQUEST_NAMES_MAX && (word = strsep(&rest, " "));)
		if (*word)
			names[n++] = word;
	struct packages_request q = { .packages = names };
	if (packages_ask(s->all->packages, &q, &listener, s, &e, &s->wait) < 0)
		log_warning("packages-warm '%s': %s", s->line, e.text);
}

void warm_sets_start(struct warm_sets *w, struct packages *packages, struct sessions *sessions, char *const *lines)
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

static void on_common(void *userdata, const struct packages_answer *a)
{
	struct warm_sets *w = userdata;
	w->common_wait = NULL;
	if (a->error)
		log_warning("additional-imports: %s", a->error->text);
	else if (a->report)
		log_info("additional-imports: %s", a->report);
	w->common = !a->error && a->set ? packages_hold(w->packages, a->set) : NULL;
	sessions_set_packages(w->sessions, w->common ? a->path : NULL, a->replaces);
}

void warm_sets_common(struct warm_sets *w, struct packages *packages, struct sessions *sessions, char *const *imports)
{
	static const struct packages_listener listener = { .on_done = on_common };
	struct error e = { 0 };
	w->packages = packages;
	w->sessions = sessions;
	if (!imports || !imports[0] || !packages_enabled(packages))
		return;
	sessions_await_packages(sessions);
	if (packages_ask(packages, &(struct packages_request){ .imports = imports }, &listener, w, &e, &w->common_wait) < 0) {
		log_warning("additional-imports: %s", e.text);
		sessions_set_packages(sessions, NULL, false);
	}
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
