/* glovebox profiles */
#include <stdio.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "profile/profiles.h"
#include "json/json_read.h"
#include "json/json_write.h"

struct options {
	bool json, help;
};

static const struct option_row rows[] = {
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "profiles",
	.usage = "[--json] [NAME]",
	.about =
		"Lists the executor profiles of this machine, or explains one profile: its allowed imports and its refusals.\n"
		"Profiles of your own are files NAME.json or NAME.ini in ~/.config/glovebox/profiles or /etc/glovebox/profiles.",
	.rows = rows,
	.examples =
		"  glovebox profiles\n  glovebox profiles smolagents\n  glovebox run --profile restricted -c 'print(1)'\n",
};

static const char *text_of(const json_t *p, const char *key)
{
	const char *s = json_string_value(json_object_get(p, key));
	return s ? s : "";
}

static void print_words(const char *head, const json_t *list, const char *separator)
{
	if (!json_array_size(list))
		return;
	printf("%s", head);
	for (size_t i = 0; i < json_array_size(list); i++)
		printf("%s%s", i ? separator : "", json_string_value(json_array_get(list, i)));
	printf("\n");
}

static void print_limit(const json_t *p, const char *key, const char *what)
{
	json_int_t n = json_integer_value(json_object_get(p, key));
	if (n)
		printf("  limit     %lld %s\n", (long long)n, what);
}

static void explain(const json_t *p)
{
	printf("%s (%s)\n  %s\n", text_of(p, "name"), text_of(p, "stands_for"),
		text_of(p, "summary"));
	print_words("  imports   ", json_object_get(p, "imports"), " ");
	print_words("  builtins  ", json_object_get(p, "builtins"), " ");
	print_words("  refuses   ", json_object_get(p, "refuses"), "\n            ");
	print_limit(p, "max_operations", "operations of a cell");
	print_limit(p, "max_while_iterations", "rounds of a while loop");
	print_limit(p, "print_chars", "characters printed by a cell");
}

static int show(const json_t *list, const char *name)
{
	bool found = false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		if (!name)
			printf("%-18s %s\n", text_of(p, "name"), text_of(p, "summary"));
		else if (text_eq(name, text_of(p, "name")))
			explain(p);
		found = found || !name || text_eq(name, text_of(p, "name"));
	}
	if (!found)
		cli_complain(page.verb,
			"there is no profile '%.60s' (`glovebox profiles` lists them)", name);
	return found ? CLI_OK : CLI_FAILED;
}

static int list_all(const struct options *o, const char *name)
{
	struct error e = { 0 };
	struct profiles *p = NULL;
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0);
	_cleanup_json_ json_t *list = NULL;
	struct json_writer w;
	int r = profiles_load(NULL, &e, &p);

	if (r == 0) {
		json_writer_init(&w, &text);
		profiles_write(p, &w);
		profiles_destroy(p);
		r = json_writer_end(&w);
	}

	if (r == 0)
		r = json_read(text.data, text.len, &e, &list);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}

	if (!o->json)
		return show(list, name);
	printf("%.*s\n", (int)text.len, text.data);
	return CLI_OK;
}

int cli_profiles(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first < 0)
		return code;
	if (first + 1 < argc)
		return cli_usage(page.verb, "give only one name; unexpected argument '%.60s'",
			argv[first + 1]);
	return list_all(&o, first < argc ? argv[first] : NULL);
}
