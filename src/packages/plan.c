#include "packages/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "packages/names.h"
#include "packages/requirement.h"

enum { MODULE_MAX = 128 };

/* ---- names -------------------------------------------------------------------------- */

/* "numpy.random.*" → "numpy"; false for "*" and what is no module. */
static bool top_of(const char *import, char ret[MODULE_MAX + 1])
{
	size_t n = strcspn(import, ".");
	if (!n || n > MODULE_MAX)
		return false;
	memcpy(ret, import, n);
	ret[n] = '\0';
	for (const char *p = ret; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
			    *p == '-' || (*p >= '0' && *p <= '9')))
			return false;
	return true;
}

json_t *plan_modules(const json_t *packages, const json_t *imports)
{
	json_t *all = json_array(), *value;
	size_t i;
	char top[MODULE_MAX + 1];
	json_array_foreach(imports, i, value)
	{
		if (!top_of(json_string_value(value), top))
			continue;
		const char *meant = names_slip(top);
		if (!meant || top_of(meant, top))
			json_array_append_new(all, json_string(top));
	}
	(void)packages; /* those are looked for among the distributions */
	return all;
}

static bool in_list(const json_t *list, const char *word)
{
	const json_t *value;
	size_t i;
	json_array_foreach(list, i, value) if (text_eq(json_string_value(value), word)) return true;
	return false;
}

static bool matches_any(const json_t *patterns, const char *name)
{
	const json_t *value;
	size_t i;
	json_array_foreach(patterns, i,
		value) if (requirement_matches(json_string_value(value), name)) return true;
	return false;
}

bool plan_allows(const json_t *settings, const char *name)
{
	const json_t *allow = json_object_get(settings, "allow");
	return !matches_any(json_object_get(settings, "deny"), name) &&
	       (!json_array_size(allow) || matches_any(allow, name));
}

static int refuse(struct error *e, const char *name)
{
	error_set(e, -EPERM, "this server does not allow the package %s", name);
	error_remedy(e,
		"Use another package. {setting:packages-allow} and {setting:packages-deny} of the server say what is allowed.");
	return error_slug(e, "package_refused");
}

/* ---- the report ------------------------------------------------------------------------ */

static void add(struct plan *p, const char *list, json_t *value)
{
	json_array_append_new(json_object_get(p->report, list), value);
}

static void add_stdlib(struct plan *p, const char *module)
{
	if (!in_list(json_object_get(p->report, "stdlib"), module))
		add(p, "stdlib", json_string(module));
}

static void add_present(struct plan *p, const char *name, const char *version, const char *module)
{
	json_t *one = json_object();
	json_object_set_new(one, "name", json_string(name));
	json_object_set_new(one, "version", version ? json_string(version) : json_null());
	if (module)
		json_object_set_new(one, "module", json_string(module));
	add(p, "present", one);
}

static void add_corrected(struct plan *p, const char *from, const char *to)
{
	json_t *one = json_object();
	json_object_set_new(one, "from", json_string(from));
	json_object_set_new(one, "to", json_string(to));
	add(p, "corrected", one);
}

static void add_failed(struct plan *p, const char *name, const char *reason, const char *suggestion)
{
	json_t *one = json_object();
	json_object_set_new(one, "name", json_string(name));
	json_object_set_new(one, "reason", json_string(reason));
	json_object_set_new(one, "suggestion", suggestion ? json_string(suggestion) : json_null());
	add(p, "failed", one);
}

static void add_requirement(struct plan *p, const char *text, const char *name, const char *module)
{
	json_t *one = json_object();
	json_object_set_new(one, "text", json_string(text));
	json_object_set_new(one, "name", json_string(name));
	if (module)
		json_object_set_new(one, "module", json_string(module));
	json_array_append_new(p->requirements, one);
}

/* ---- imports ---------------------------------------------------------------------------- */

/* The standard library's names as a list that can be searched for the nearest one. */
static const char **stdlib_words(const json_t *stdlib)
{
	size_t n = json_array_size(stdlib);
	const char **words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++)
		words[i] = json_string_value(json_array_get(stdlib, i));
	return words;
}

static void plan_missing(
	struct plan *p, const char *top, const json_t *survey, const json_t *settings)
{
	const char *package = names_package_of(top);
	char name[REQUIREMENT_NAME_MAX + 1];

	if (names_was_stdlib(top)) {
		add_failed(p, top,
			"it belongs to the standard library of another Python version, or to a part that is not installed on the server",
			NULL);
		return;
	}

	if (!package && !names_known(top)) {
		/*
		 * A name that is one slip from a well-known one is not asked of the index: people
		 * wait there for such slips.
		 */
		_cleanup_free_ const char **words = stdlib_words(json_object_get(survey, "stdlib"));
		const char *near = names_suggest(top, words);
		if (near) {
			char reason[256];
			snprintf(reason, sizeof(reason),
				"there is no module %s here; did you mean %s?", top, near);
			add_failed(p, top, reason, near);
			return;
		}
	}

	if (!requirement_normalise(package ? package : top, name))
		add_failed(p, top, "it is not the name of a module", NULL);
	else if (!plan_allows(settings, name))
		add_failed(p, top, "this server does not allow its package", NULL);
	else if (json_is_true(json_object_get(settings, "require_hashes")))
		add_failed(p, top,
			"this server takes packages by hash only: name it under `packages` with its --hash",
			NULL);
	else
		add_requirement(p, name, name, top);
}

static void plan_import(
	struct plan *p, const char *import, const json_t *survey, const json_t *settings)
{
	char top[MODULE_MAX + 1];
	if (!top_of(import, top))
		return; /* "*" and such: a matter of the profile alone */
	const char *meant = names_slip(top);
	if (meant) {
		add_corrected(p, top, meant);
		top_of(meant, top);
	}

	if (in_list(json_object_get(survey, "stdlib"), top)) {
		add_stdlib(p, top);
		return;
	}

	const json_t *owner = json_object_get(json_object_get(survey, "modules"), top);
	if (owner) {
		const char *name = json_string_value(owner);
		const char *version = name ? json_string_value(json_object_get(
						     json_object_get(survey, "dists"), name))
					   : NULL;
		add_present(p, name ? name : top, version, top);
		return;
	}

	plan_missing(p, top, survey, settings);
}

/* ---- packages ------------------------------------------------------------------------------ */

static int plan_package(struct plan *p, const char *text, const json_t *survey,
	const json_t *settings, struct error *e)
{
	struct requirement q;
	int r = requirement_parse(text, &q, e);

	if (r < 0)
		return r;
	const char *package = names_package_of(q.given), *slip = names_slip(q.given);
	char top[MODULE_MAX + 1];
	if (q.plain && slip && top_of(slip, top) &&
		in_list(json_object_get(survey, "stdlib"), top) && !names_known(q.given)) {
		add_corrected(p, q.given, slip);
		add_stdlib(p, top);
		return 0;
	}

	if (q.plain && in_list(json_object_get(survey, "stdlib"), q.given)) {
		add_stdlib(p, q.given);
		return 0;
	}

	/* a module's name where its package was meant */
	if (package && !text_eq(package, q.name)) {
		char fixed[REQUIREMENT_TEXT_MAX + 1];
		snprintf(fixed, sizeof(fixed), "%s%s", package, q.text + strlen(q.name));
		add_corrected(p, q.given, package);
		r = requirement_parse(fixed, &q, e);
		if (r < 0)
			return r;
	}

	if (!plan_allows(settings, q.name))
		return refuse(e, q.name);
	const char *version = json_string_value(
		json_object_get(json_object_get(survey, "dists"), q.name));
	if (q.plain && version) {
		add_present(p, q.name, version, NULL);
		return 0;
	}

	if (!q.hashed && json_is_true(json_object_get(settings, "require_hashes"))) {
		error_set(e, -EPERM, "this server takes packages by hash only, and %s has none",
			q.name);
		error_remedy(e,
			"Write \"%s==VERSION --hash=sha256:…\", and name what it depends on in the same way.",
			q.name);
		return error_slug(e, "package_refused");
	}

	add_requirement(p, q.text, q.name, NULL);
	return 0;
}

int plan_make(const json_t *packages, const json_t *imports, const json_t *survey,
	const json_t *settings, struct error *e, struct plan *ret)
{
	static const char *const lists[] = { "stdlib", "present", "corrected", "installed",
		"failed" };
	struct plan p = { .report = json_object(), .requirements = json_array() };
	const json_t *value;
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_LEN(lists); i++)
		json_object_set_new(p.report, lists[i], json_array());
	for (i = 0; r == 0 && i < json_array_size(packages); i++)
		r = plan_package(
			&p, json_string_value(json_array_get(packages, i)), survey, settings, e);
	json_array_foreach(imports, i, value)
		plan_import(&p, json_string_value(value), survey, settings);
	if (r < 0) {
		plan_finish(&p);
		return r;
	}

	*ret = p;
	return 0;
}

void plan_finish(struct plan *p)
{
	json_decref(p->report);
	json_decref(p->requirements);
	*p = (struct plan){ 0 };
}

/* ---- afterwards ---------------------------------------------------------------------------- */

bool plan_fail(struct plan *p, const char *name, const char *reason)
{
	size_t i;
	json_t *one;
	json_array_foreach(p->requirements, i, one)
	{
		if (!text_eq(json_string_value(json_object_get(one, "name")), name))
			continue;
		const char *module = json_string_value(json_object_get(one, "module"));
		add_failed(p, module ? module : name, reason, names_suggest(name, NULL));
		p->failed |= !module;
		json_array_remove(p->requirements, i);
		return true;
	}
	return false;
}

/* Requirements that pip found to be satisfied by the system's packages. */
static void note_satisfied(struct plan *p, const json_t *installed)
{
	size_t i, k;
	const json_t *one, *got;

	json_array_foreach(p->requirements, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		bool found = false;
		json_array_foreach(json_object_get(installed, "packages"), k, got)
			found |= text_eq(json_string_value(json_object_get(got, "name")), name);
		if (!found)
			add_present(p, name,
				json_string_value(
					json_object_get(json_object_get(installed, "dists"), name)),
				json_string_value(json_object_get(one, "module")));
	}
}

/* The module that a package was asked for as; NULL when it was by its own name, or not at all. */
static json_t *module_of(const struct plan *p, const char *name)
{
	size_t i;
	const json_t *one;
	json_array_foreach(p->requirements, i,
		one) if (text_eq(json_string_value(json_object_get(one, "name")),
				 name)) return json_object_get(one, "module");
	return NULL;
}

int plan_installed(struct plan *p, const json_t *installed, const json_t *settings, struct error *e)
{
	size_t i;
	const json_t *got;
	char name[REQUIREMENT_NAME_MAX + 1];

	json_array_foreach(json_object_get(installed, "packages"), i, got)
	{
		const char *said = json_string_value(json_object_get(got, "name")),
			   *version = json_string_value(json_object_get(got, "version"));
		if (!said || !version || !requirement_normalise(said, name))
			return error_set(e, -EPROTO, "the installer's jail sent an invalid answer");
		if (!plan_allows(settings, name))
			return refuse(e, name);
		json_t *one = json_object();
		json_object_set_new(one, "name", json_string(name));
		json_object_set_new(one, "version", json_string(version));
		json_object_set_new(one, "requested",
			json_boolean(json_is_true(json_object_get(got, "requested"))));
		if (module_of(p, name))
			json_object_set(one, "module", module_of(p, name));
		add(p, "installed", one);
	}

	note_satisfied(p, installed);
	return 0;
}
