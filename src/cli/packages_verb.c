/* glovebox packages: what is in the store, and what shall be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/fetch.h"
#include "daemon/config.h"
#include "packages/set_store.h"
#include "json/json_read.h"

struct options {
	char *config, *state_dir, *index, **find_links;
	bool offline, build, refresh, deep, json, help;
	double older;
	uint64_t size;
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{ "config", 'c', OPTION_TEXT, AT(config), .value = "FILE", .help = "settings file of the server (default: the file that `serve` reads)" },
	{ "state-dir", 0, OPTION_TEXT, AT(state_dir), .value = "DIRECTORY", .help = "state directory of the server" },
	{ "index", 0, OPTION_TEXT, AT(index), .value = "URL", .help = "as the setting packages-index" },
	{ "find-links", 0, OPTION_ITEMS, AT(find_links), .value = "PLACE", .help = "as the setting packages-find-links; may be repeated" },
	{ "offline", 0, OPTION_FLAG, AT(offline), .help = "as the setting packages-offline" },
	{ "build", 0, OPTION_FLAG, AT(build), .fallback = "yes",
	  .help = "add: build source packages in a jail (--no-build: wheels only, the default of sessions)" },
	{ "refresh", 0, OPTION_FLAG, AT(refresh), .help = "add: ask the index again for newer versions" },
	{ "older", 0, OPTION_SECONDS, AT(older), 0, 0, "SECONDS", .help = "gc: remove sets that were not used for this long (default: packages-store-age)" },
	{ "size", 0, OPTION_SIZE, AT(size), 0, 0, "SIZE", .help = "gc: keep at most this size (default: packages-store-size)" },
	{ "deep", 0, OPTION_FLAG, AT(deep), .help = "check: compare every byte, not only sizes and times" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "packages",
	.usage = "list | add NAME… | warm | remove ID… | check | gc [options]",
	.about = "Manages the store of packages for sessions.\n\n"
		 "  list      the sets in the store, last used first\n"
		 "  add       installs packages, so that later requests for them are quick\n"
		 "  warm      installs all sets that the settings name (packages-warm)\n"
		 "  remove    removes sets that no session uses\n"
		 "  check     removes damaged sets; they are installed again on request\n"
		 "  gc        removes sets that are old or beyond the size limit, and unused files",
	.rows = rows,
	.examples = "  glovebox packages add rich 'pandas>=2'\n"
		    "  glovebox packages add --offline --find-links ./wheels mypackage\n"
		    "  glovebox packages list --json | jq -r '.[].id'\n"
		    "  glovebox packages gc --older 168h --size 5G\n",
};

/* ---- settings ------------------------------------------------------------------ */

/* The settings as `serve` would read them, with our own flags on top. */
static int load_settings(const struct options *o, struct config *ret, struct error *e)
{
	char *argv[OPTION_LIST_MAX * 2 + 12] = { (char *)"serve" };
	int n = 1;
	const struct {
		const char *flag;
		char *value;

	} texts[] = { { "--config", o->config }, { "--state-dir", o->state_dir },
		{ "--packages-index", o->index } };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!texts[i].value)
			continue;
		argv[n++] = (char *)texts[i].flag;
		argv[n++] = texts[i].value;
	}

	for (char **link = o->find_links; link && *link; link++) {
		argv[n++] = (char *)"--packages-find-links";
		argv[n++] = *link;
	}

	if (o->offline)
		argv[n++] = (char *)"--packages-offline";
	return config_load(n, argv, e, ret);
}

/* ---- list ------------------------------------------------------------------------ */

static void print_set(const struct store_set *set, const json_t *record)
{
	char size[CLI_AMOUNT_MAX], age[CLI_AMOUNT_MAX];
	const json_t *one;
	size_t i;
	printf("%s  %8s  %6s  ", set->id, cli_format_size((double)set->bytes, size),
		cli_format_age((double)(clock_wall_ns() - set->used_wall_ns) / 1e9, age));
	json_array_foreach(json_object_get(record, "packages"), i, one)
		printf("%s%s %s", i ? ", " : "", json_string_value(json_object_get(one, "name")),
			json_string_value(json_object_get(one, "version")));
	putchar('\n');
}

static int list_sets(struct store *s, const struct options *o, struct error *e)
{
	struct store_list list;
	_cleanup_json_ json_t *all = json_array();
	int r = store_list(s, &list);

	if (r < 0)
		return error_set_errno(e, r, "reading the store");
	if (!o->json)
		printf("%-26s  %8s  %6s  %s\n", "SET", "SIZE", "UNUSED", "PACKAGES");
	for (size_t i = 0; i < list.n; i++) {
		json_t *record = NULL;
		if (json_read(list.sets[i].json, strlen(list.sets[i].json), NULL, &record) < 0)
			continue;
		if (!o->json)
			print_set(&list.sets[i], record);
		json_object_set_new(record, "unused_s",
			json_real((double)(clock_wall_ns() - list.sets[i].used_wall_ns) / 1e9));
		json_array_append_new(all, record);
	}

	if (o->json) {
		json_dumpf(all, stdout, JSON_COMPACT);
		putchar('\n');
	}

	store_list_finish(&list);
	return 0;
}

/* ---- add --------------------------------------------------------------------------- */

static void print_names(const json_t *report, const char *list, const char *words)
{
	const json_t *one;
	size_t i;
	json_array_foreach(json_object_get(report, list), i, one)
	{
		const char *name = json_string_value(
				   json_is_string(one) ? one : json_object_get(one, "name")),
			   *version = json_string_value(json_object_get(one, "version"));
		printf("%s %s%s%s\n", words, name ? name : "?", version ? " " : "",
			version ? version : "");
	}
}

static void print_report(const char *text)
{
	_cleanup_json_ json_t *report = NULL;
	if (json_read(text, strlen(text), NULL, &report) < 0)
		return;
	print_names(report, "installed",
		json_is_true(json_object_get(report, "cached")) ? "in the store:" : "installed:");
	print_names(report, "present", "part of the system:");
	print_names(report, "stdlib", "in the standard library:");
}

static int add(struct config *c, const struct options *o, char **names, struct error *e)
{
	struct fetched f;
	struct packages_request q = { .packages = names, .build = o->build, .refresh = o->refresh };
	c->packages.mode = PACKAGES_INSTALL; /* the operator himself asks */
	int r = fetch_packages(&f, &q, c, o->json ? FETCH_SILENT : FETCH_SHOW, e);
	if (r < 0)
		fetch_show_log(f.log);
	else if (o->json)
		printf("%s\n", f.report);
	else
		print_report(f.report);
	fetched_finish(&f);
	return r;
}

/* ---- the rest ------------------------------------------------------------------------ */

static int remove_sets(struct store *s, char **ids, struct error *e)
{
	struct store_garbage garbage;
	int r = 0;
	for (; r == 0 && *ids; ids++)
		r = store_remove(s, *ids, e);
	if (r == 0) /* their files, unless others share them; not now if somebody installs */
		store_collect(s, 1e18, 0, NULL, &garbage);
	return r;
}

static int check(struct store *s, const struct options *o, struct error *e)
{
	struct store_list list;
	unsigned bad = 0;
	int r = store_list(s, &list);

	if (r < 0)
		return error_set_errno(e, r, "reading the store");
	for (size_t i = 0; i < list.n; i++) {
		struct error why = { 0 };
		if (store_check(s, list.sets[i].id, o->deep, &why) == 0)
			continue;
		int gone = store_remove(s, list.sets[i].id, NULL);
		printf("%s: %s; %s\n", list.sets[i].id, why.text,
			gone < 0 ? "it is in use, and stays until its sessions end" : "removed");
		bad++;
	}

	printf("%zu sets, %u damaged\n", list.n, bad);
	store_list_finish(&list);
	return bad ? error_set(e, -EUCLEAN, "%u sets were damaged", bad) : 0;
}

static int collect(
	struct store *s, const struct config *c, const struct options *o, struct error *e)
{
	struct store_garbage g;
	char size[CLI_AMOUNT_MAX];
	int r = store_collect(s, o->older > 0 ? o->older : c->packages.store_age_s,
		o->size ? o->size : c->packages.store_bytes, e, &g);
	if (r < 0)
		return r;
	if (o->json)
		printf("{\"sets\":%u,\"in_use\":%u,\"files\":%u,\"bytes\":%llu}\n", g.sets, g.busy,
			g.objects, (unsigned long long)g.bytes);
	else
		printf("%u sets removed, %s freed; %u more would be removed, but are in use\n",
			g.sets, cli_format_size((double)g.bytes, size), g.busy);
	return 0;
}

/* A text of packages with spaces between them. */
static int add_line(struct config *c, const struct options *o, const char *line, struct error *e)
{
	_cleanup_free_ char *copy = strdup(line);
	char *names[REQUEST_NAMES_MAX + 1] = { NULL };
	size_t n = 0;
	for (char *rest = copy, *word;
		rest && n < REQUEST_NAMES_MAX && (word = strsep(&rest, " "));)
		if (*word)
			names[n++] = word;
	return add(c, o, names, e);
}

static int warm(struct config *c, const struct options *o, struct error *e)
{
	int r = 0;
	if (!c->packages.warm || !c->packages.warm[0]) {
		error_set(e, -ENOENT, "the settings contain no package sets");
		return error_remedy(e,
			"Set packages-warm in the settings file, or the variable GLOVEBOX_PACKAGES_WARM.");
	}
	for (char **line = c->packages.warm; r == 0 && line && *line; line++)
		r = add_line(c, o, *line, e);
	return r;
}

static int act(
	const char *verb, char **words, struct config *c, const struct options *o, struct error *e)
{
	struct store *s = NULL;
	if (text_eq(verb, "add"))
		return add(c, o, words, e);
	if (text_eq(verb, "warm"))
		return warm(c, o, e);
	int r = store_open(c->state_dir, e, &s);
	if (r < 0)
		return r;
	if (text_eq(verb, "list"))
		r = list_sets(s, o, e);
	else if (text_eq(verb, "remove"))
		r = remove_sets(s, words, e);
	else if (text_eq(verb, "check"))
		r = check(s, o, e);
	else
		r = collect(s, c, o, e);
	store_close(s);
	return r;
}

static int check_words(const char *verb, char **words)
{
	static const char *const verbs[] = { "list", "add", "warm", "remove", "check", "gc", NULL };
	size_t i = 0;
	while (verb && verbs[i] && !text_eq(verbs[i], verb))
		i++;
	if (!verb || !verbs[i])
		return cli_usage(page.verb, "%s%.40s%s", verb ? "'" : "say what to do: ",
			verb ? verb : "list, add, warm, remove, check or gc",
			verb ? "' is none of list, add, warm, remove, check, gc" : "");
	if (!*words && (text_eq(verb, "add") || text_eq(verb, "remove")))
		return cli_usage(page.verb, "%s needs %s", verb,
			text_eq(verb, "add") ? "names of packages"
					     : "ids of sets (`glovebox packages list`)");
	return CLI_OK;
}

int cli_packages(int argc, char **argv)
{
	struct options o = { 0 };
	struct config c = { 0 };
	struct error e = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);

	if (first >= 0) {
		const char *verb = first < argc ? argv[first++] : NULL;
		code = check_words(verb, argv + first);
		if (code == CLI_OK && (load_settings(&o, &c, &e) < 0 ||
					      act(verb, argv + first, &c, &o, &e) < 0)) {
			cli_show_error(page.verb, &e);
			code = CLI_FAILED;
		}
		config_finish(&c);
	}

	options_finish(rows, &o);
	return code;
}
