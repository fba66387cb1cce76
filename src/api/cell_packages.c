/* Packages that a cell asks for itself: `%pip install x`. */
#include "api/cell_packages.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_words.h"
#include "api/call.h"
#include "api/provision.h"
#include "base/cleanup.h"
#include "packages/packages.h"
#include "json/json_read.h"

struct cell_packages {
	LIST_ENTRY(cell_packages) link;
	struct api *api;
	struct packages_wait *wait;
	uint64_t number;
	char session[SESSION_ID_LEN + 1];
	bool *over;
};

static void destroy(struct cell_packages *p)
{
	LIST_REMOVE(p, link);
	if (p->over)
		*p->over = true;
	packages_forget(p->wait);
	free(p);
}

static void answer(
	struct cell_packages *p, struct session_package *one, const char *report, const char *why)
{
	struct session *s;
	char *copy = report ? strdup(report) : NULL;
	if (session_find(p->api->sessions, p->session, NULL, &s) == 0) {
		session_answer_packages(s, p->number, one, copy, why);
	} else {
		session_package_free(one);
		free(copy);
	}
	destroy(p);
}

static void on_done(void *userdata, const struct packages_answer *a)
{
	struct cell_packages *p = userdata;
	struct session_package *one = NULL;
	char why[ERROR_TEXT_MAX + EDGE_TEXT_MAX + 4], remedy[EDGE_TEXT_MAX];

	p->wait = NULL;
	if (a->error) {
		snprintf(why, sizeof(why), "%s. %s", a->error->text,
			api_remedy(a->error->remedy, remedy));
		answer(p, NULL, NULL, why);
		return;
	}

	if (a->replaces) {
		answer(p, NULL, NULL,
			"the packages replace versions that this session's interpreter has already loaded; create a new session with `packages`");
		return;
	}

	if (a->set && !(one = provision_package(p->api->packages, a->set, a->path))) {
		answer(p, NULL, NULL, "out of memory");
		return;
	}

	answer(p, one, a->report, NULL);
}

/* The texts of {"packages": [...]}, as a list that points into the tree. */
static char **list_of(const json_t *tree)
{
	const json_t *list = json_object_get(tree, "packages");
	char **names = calloc(json_array_size(list) + 1, sizeof(*names));
	size_t n = 0;
	for (size_t i = 0; names && i < json_array_size(list); i++)
		if (json_is_string(json_array_get(list, i)))
			names[n++] = (char *)json_string_value(json_array_get(list, i));
	return names;
}

/* For whom the cell's session is. */
static void client_of(struct api *a, const char *id, char ret[GUARD_CLIENT_LEN + 1])
{
	struct session_info info = { 0 };
	struct session *s;
	if (session_find(a->sessions, id, NULL, &s) == 0)
		session_info(s, &info);
	guard_client(&a->guard, info.owner, ret);
}

static void ask(void *userdata, const char *id, uint64_t number, const char *json, size_t len)
{
	static const struct packages_listener listener = { .on_done = on_done };
	struct api *a = userdata;
	struct error e = { 0 };
	_cleanup_json_ json_t *tree = NULL;
	struct cell_packages *p = calloc(1, sizeof(*p));

	if (!p)
		return; /* the cell's own time limit ends it */
	*p = (struct cell_packages){ .api = a, .number = number };
	snprintf(p->session, sizeof(p->session), "%s", id);
	LIST_INSERT_HEAD(&a->cell_packages, p, link);
	_cleanup_free_ char **names = json_read(json, len, &e, &tree) < 0 ? NULL : list_of(tree);
	if (!names) {
		answer(p, NULL, NULL, "the request for packages is invalid");
		return;
	}

	bool over = false;
	struct packages_wait *wait = NULL;
	p->over = &over;
	char client[GUARD_CLIENT_LEN + 1];
	client_of(a, id, client);
	int r = packages_ask(a->packages,
		&(struct packages_request){ .packages = names, .client = client }, &listener, p, &e,
		&wait);
	if (over)
		return;
	p->over = NULL;
	p->wait = wait;
	if (r < 0)
		answer(p, NULL, NULL, e.text);
}

void cell_packages_start(struct api *a)
{
	LIST_INIT(&a->cell_packages);
	if (a->packages)
		sessions_on_packages(a->sessions, ask, a);
}

void cell_packages_stop(struct api *a)
{
	while (!LIST_EMPTY(&a->cell_packages))
		destroy(LIST_FIRST(&a->cell_packages));
}
