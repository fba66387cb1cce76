#include "cli/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "options/options.h"
#include "packages/names.h"
#include "json/json_read.h"

static const struct option_row rows[] = {
	{ "profile", 0, OPTION_TEXT, offsetof(struct backend, profile) },
	{ "additional-imports", 0, OPTION_LIST, offsetof(struct backend, imports) },
	{ NULL },
};

static int read_variable(
	const struct option_row *row, const char *name, struct backend *b, struct error *e)
{
	const char *value = getenv(name);
	return value && *value ? option_set(row, b, value, false, name, e) : 0;
}

/* The command's own flags come over the variables; its imports come besides. */
static int add_given(const char *profile, char *const *imports, struct backend *b, struct error *e)
{
	int r = profile ? option_set(&rows[0], b, profile, false, "--profile", e) : 0;
	for (; r == 0 && imports && *imports; imports++)
		r = option_set(&rows[1], b, *imports, true, "--import", e);
	return r;
}

static int read_all(struct backend *b, const char *profile, char *const *imports, struct error *e)
{
	int r = read_variable(&rows[0], "EXECUTOR_BACKEND", b, e);
	if (r == 0)
		r = read_variable(&rows[1], "ADDITIONAL_IMPORTS", b, e);
	b->install = b->imports != NULL;
	b->imports_below = b->profile || b->imports;
	return r == 0 ? add_given(profile, imports, b, e) : r;
}

/* Modules that could not be had do not stop the code, which may not need them. */
static void show_failed(const char *verb, const char *report)
{
	_cleanup_json_ json_t *tree = NULL;
	const json_t *one;
	size_t i;
	if (!report || json_read(report, strlen(report), NULL, &tree) < 0)
		return;
	json_array_foreach(json_object_get(tree, "failed"), i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name")),
			   *reason = json_string_value(json_object_get(one, "reason"));
		cli_complain(verb, "the module %s cannot be installed: %s", name ? name : "?",
			reason ? reason : "unknown");
	}
}

static int fetch(struct backend *b, const char *verb, char *const *packages, struct error *e)
{
	int r = 0;
	if (packages || b->install)
		r = fetch_for_local(
			&b->fetched, &b->settings, packages, b->install ? b->imports : NULL, e);
	if (r == 0 && b->install)
		show_failed(verb, b->fetched.report);
	if (r == 0 && (r = names_correct_imports(b->imports)) < 0)
		error_set_errno(e, r, "the modules");
	return r;
}

/*
 * coding_env authorises these whatever ADDITIONAL_IMPORTS says. Added after the installations: they
 * are not asked for.
 */
static int add_windows(struct backend *b, struct error *e)
{
	return b->imports_below ? option_set(&rows[1], b, "tkinter,matplotlib", true,
					  "ADDITIONAL_IMPORTS", e)
				: 0;
}

int backend_open(struct backend *b, const char *verb, const char *profile, char *const *imports,
	char *const *packages, struct error *e)
{
	*b = (struct backend){ 0 };
	int r = read_all(b, profile, imports, e);
	if (r == 0)
		r = fetch(b, verb, packages, e);
	if (r == 0)
		r = add_windows(b, e);
	if (r < 0)
		backend_finish(b);
	return r;
}

void backend_finish(struct backend *b)
{
	fetched_finish(&b->fetched);
	config_finish(&b->settings);
	options_finish(rows, b);
	*b = (struct backend){ 0 };
}
