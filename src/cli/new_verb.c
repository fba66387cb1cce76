/* glovebox new: a session of a server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"

struct options {
	struct client_options client;
	char *name, *profile, *network, **env, **packages, **mounts, **volumes;
	double ttl_s, idle_s;
	uint64_t memory;
	bool display, json, help;
};

/* clang-format off */
#define AT(member) offsetof(struct options, member)
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "profile", 0, OPTION_TEXT, AT(profile), .value = "NAME", .flag_only = true,
	  .help = "executor profile (default: the server's)" },
	{ "env", 'e', OPTION_ITEMS, AT(env), .value = "NAME=VALUE", .flag_only = true,
	  .help = "an environment variable of the session; may be repeated" },
	{ "package", 'p', OPTION_ITEMS, AT(packages), .value = "PACKAGE", .flag_only = true,
	  .help = "a package that the session needs, such as 'pandas>=2'; may be repeated" },
	{ "mount", 0, OPTION_ITEMS, AT(mounts), .value = "NAME:/PLACE", .flag_only = true,
	  .help = "show the session a directory that the server's setting mount names, read-only; /PLACE is /NAME or below /mnt; may be repeated" },
	{ "volume", 0, OPTION_ITEMS, AT(volumes), .value = "NAME:/mnt/X[:ro]", .flag_only = true,
	  .help = "a volume (glovebox volumes), to write to or, with :ro, to read; may be repeated" },
	{ "network", 0, OPTION_TEXT, AT(network), .value = "WHICH", .flag_only = true,
	  .help = "network of the session: none or loopback (default: the server's)" },
	{ "memory", 'm', OPTION_SIZE, AT(memory), 16 << 20, 0, "SIZE", .flag_only = true,
	  .help = "memory limit of the session (default: the server's)" },
	{ "ttl", 0, OPTION_SECONDS, AT(ttl_s), 1, 0, "SECONDS", .flag_only = true,
	  .help = "end the session after this time" },
	{ "idle-timeout", 0, OPTION_SECONDS, AT(idle_s), 1, 0, "SECONDS", .flag_only = true,
	  .help = "end the session when no client has used it for this time" },
	{ "display", 0, OPTION_FLAG, AT(display), .flag_only = true,
	  .help = "give the session a screen for windows" },
	{ "json", 0, OPTION_FLAG, AT(json), .flag_only = true,
	  .help = "print the whole session as JSON instead of its id" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "new",
	.usage = "[options] [NAME]",
	.about =
		"Creates a session on a server and prints its id. Other commands accept the id or the name.",
	.rows = rows,
	.examples =
		"  glovebox new analysis\n"
		"  glovebox new --mount data:/data --volume results:/mnt/results\n"
		"  glovebox new --display --package pandas plots; glovebox exec plots -- python3\n"
		"  id=$(glovebox new); glovebox exec $id -- ls; glovebox kill $id\n",
	.environment = true,
};

/* A list of NAME, separator, value as an object. */
static int put_pairs(
	json_t *body, const char *key, char separator, char *const *list, struct error *e)
{
	json_t *values = json_object();
	for (; list && *list; list++) {
		const char *sign = strchr(*list, separator);
		if (!sign || sign == *list) {
			json_decref(values);
			error_set(e, -EINVAL, "'%.60s' has no name and value", *list);
			return error_remedy(e, "write NAME%c%s", separator,
				separator == '=' ? "VALUE" : "/PLACE");
		}
		_cleanup_free_ char *name = strndup(*list, (size_t)(sign - *list));
		if (name)
			json_object_set_new(values, name, json_string(sign + 1));
	}

	if (json_object_size(values))
		json_object_set_new(body, key, values);
	else
		json_decref(values);
	return 0;
}

static void put_text(json_t *body, const char *key, const char *text)
{
	if (text)
		json_object_set_new(body, key, json_string(text));
}

static void put_seconds(json_t *body, const char *key, double seconds)
{
	if (seconds > 0)
		json_object_set_new(body, key, json_real(seconds));
}

static int describe(const struct options *o, json_t *body, struct error *e)
{
	put_text(body, "name", o->name);
	put_text(body, "profile", o->profile);
	if (o->network && !text_eq(o->network, "none") && !text_eq(o->network, "loopback")) {
		error_set(e, -EINVAL, "--network: there is no '%.60s'", o->network);
		return error_remedy(e,
			"choose none or loopback; the server's setting default-network can open more");
	}
	put_text(body, "network", o->network);
	put_seconds(body, "ttl_s", o->ttl_s);
	put_seconds(body, "idle_timeout_s", o->idle_s);
	if (o->memory)
		json_object_set_new(
			body, "limits", json_pack("{s:I}", "memory_bytes", (json_int_t)o->memory));
	if (o->display)
		json_object_set_new(body, "display", json_true());
	if (o->packages) {
		json_t *list = json_array();
		for (char **p = o->packages; *p; p++)
			json_array_append_new(list, json_string(*p));
		json_object_set_new(body, "packages", list);
	}

	int r = put_pairs(body, "env", '=', o->env, e);
	if (r == 0)
		r = put_pairs(body, "mounts", ':', o->mounts, e);
	return r == 0 ? put_pairs(body, "volumes", ':', o->volumes, e) : r;
}

static int make(const struct options *o)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *text = NULL;
	struct error e = { 0 };
	json_t *body = json_object(), *answer = NULL;

	int r = describe(o, body, &e);
	if (r == 0 && !(text = json_dumps(body, JSON_COMPACT)))
		r = error_set(&e, -ENOMEM, "out of memory");
	json_decref(body);
	if (r == 0)
		r = client_create(&o->client, &e, &c);
	if (r == 0)
		r = client_send(c, "POST", "/v1/sessions", text, &e, &answer);
	if (r < 0) {
		cli_show_error(page.verb, &e);
		return CLI_FAILED;
	}

	const char *id = json_string_value(json_object_get(answer, "id"));
	_cleanup_free_ char *whole = o->json ? json_dumps(answer, JSON_COMPACT) : NULL;
	printf("%s\n", whole ? whole : id ? id : "");
	json_decref(answer);
	return CLI_OK;
}

int cli_new(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && first + 1 < argc)
		code = cli_usage(page.verb, "give only one name; unexpected argument '%.60s'",
			argv[first + 1]);
	else if (first >= 0) {
		if (first < argc)
			o.name = strdup(argv[first]);
		code = make(&o);
		free(o.name);
	}
	options_finish(rows, &o);
	return code;
}
