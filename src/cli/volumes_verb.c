/* glovebox volumes */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/session_rows.h"
#include "json/json_read.h"

struct options {
	struct client_options client;
	uint64_t quota;
	bool json, help;
};

static const struct option_row rows[] = {
	{ .name = "quota",
		.type = OPTION_SIZE,
		.offset = offsetof(struct options, quota),
		.min = 1 << 20,
		.value = "SIZE",
		.flag_only = true,
		.help = "create: bytes that the volume may have (default: max-volume-bytes of the server)" },
	CLI_JSON(struct options),
	CLIENT_ROWS(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "volumes",
	.usage = "[options] [create NAME | rm NAME…]",
	.about =
		"Lists, creates and removes volumes of a server: directories that outlive sessions. One session can write to a\n"
		"volume, or several sessions can read it.",
	.rows = rows,
	.examples = "  glovebox volumes create results --quota 100M\n"
		    "  glovebox new --volume results:/mnt/results\n"
		    "  glovebox new --volume results:/mnt/results:ro\n"
		    "  glovebox volumes\n"
		    "  glovebox volumes rm results\n",
	.environment = true,
};

static void print_volume(const json_t *v)
{
	char bytes[CLI_AMOUNT_MAX], quota[CLI_AMOUNT_MAX], readers[32] = "-";
	long long n = (long long)json_integer_value(json_object_get(v, "readers"));
	const char *writer = json_string_value(json_object_get(v, "writer"));

	if (n)
		snprintf(readers, sizeof(readers), "%lld readers", n);
	printf("%-32s  %8s  %8s  %7lld  %s%s\n", session_word(v, "name"),
		cli_format_size((double)json_integer_value(json_object_get(v, "bytes")), bytes),
		cli_format_size(
			(double)json_integer_value(json_object_get(v, "quota_bytes")), quota),
		(long long)json_integer_value(json_object_get(v, "files")),
		writer && *writer ? writer : readers,
		json_is_true(json_object_get(v, "full")) ? " (full)" : "");
}

static int list(struct client *c, const struct options *o, struct error *e)
{
	_cleanup_json_ json_t *answer = NULL;
	int r = client_call(c, "GET", "/v1/volumes", e, &answer);
	const json_t *volumes = json_object_get(answer, "volumes");

	if (r < 0)
		return r;
	if (o->json) {
		json_dumpf(volumes, stdout, JSON_COMPACT);
		putchar('\n');
		return 0;
	}

	printf("%-32s  %8s  %8s  %7s  %s\n", "NAME", "SIZE", "QUOTA", "FILES", "USED BY");
	for (size_t i = 0; i < json_array_size(volumes); i++)
		print_volume(json_array_get(volumes, i));
	return 0;
}

static int create(struct client *c, const struct options *o, const char *name, struct error *e)
{
	_cleanup_json_ json_t *body = json_pack("{s:s}", "name", name), *answer = NULL;
	if (o->quota)
		json_object_set_new(body, "quota_bytes", json_integer((json_int_t)o->quota));
	_cleanup_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	if (!text)
		return error_set(e, -EINVAL, "'%.60s' is not a name", name);
	int r = client_send(c, "POST", "/v1/volumes", text, e, &answer);
	if (r == 0)
		printf("%s\n", session_word(answer, "name"));
	return r;
}

static int remove_one(struct client *c, const char *name, struct error *e)
{
	char target[128];
	if (!*name || name[strspn(name,
			      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
		return error_set(e, -EINVAL, "'%.60s' is not the name of a volume", name);
	snprintf(target, sizeof(target), "/v1/volumes/%.64s", name);
	_cleanup_json_ json_t *nothing = NULL;
	return client_call(c, "DELETE", target, e, &nothing);
}

static int work(const struct options *o, int n, char **words)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	struct error e = { 0 };
	int r = client_create(&o->client, &e, &c);

	if (r == 0 && !n)
		r = list(c, o, &e);
	else if (r == 0 && text_eq(words[0], "create"))
		r = create(c, o, words[1], &e);
	else
		for (int i = 1; r == 0 && i < n; i++)
			r = remove_one(c, words[i], &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_volumes(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	int n = argc - first;

	if (first >= 0 && n > 0 && !text_eq(argv[first], "create") && !text_eq(argv[first], "rm"))
		code = cli_usage(page.verb, "create or rm, not '%.60s'", argv[first]);
	else if (first >= 0 && (n == 1 || (n > 2 && text_eq(argv[first], "create"))))
		code = cli_usage(page.verb, n == 1 ? "a NAME is missing" : "one NAME");
	else if (first >= 0)
		code = work(&o, n, argv + first);
	options_finish(rows, &o);
	return code;
}
