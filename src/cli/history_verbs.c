/* glovebox checkpoint, rollback, fork, tree: a session's way through time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { TARGET_MAX = 192, DEPTH_MAX = 64 };

struct options {
	struct client_options client;
	unsigned count;
	char *at;
	bool undo, reseed, json, help;
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct option_row plain_rows[] = {
	CLIENT_ROWS(struct options),
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};
static const struct option_row rollback_rows[] = {
	CLIENT_ROWS(struct options),
	{ "undo", 0, OPTION_FLAG, AT(undo), .flag_only = true, .help = "undo the last cell" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};
static const struct option_row fork_rows[] = {
	CLIENT_ROWS(struct options),
	{ "count", 'n', OPTION_COUNT, AT(count), 1, LIMIT_FORKS, "N", "1", .help = "number of new sessions" },
	{ "at", 0, OPTION_TEXT, AT(at), .value = "CHECKPOINT", .help = "fork this checkpoint (an id or a name) instead of the current state" },
	{ "reseed", 0, OPTION_FLAG, AT(reseed), .fallback = "yes", .help = "reseed the random number generators of each fork (--no-reseed: keep the seeds)" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page checkpoint_page = {
	.verb = "checkpoint",
	.usage = "[options] SESSION [NAME]",
	.about =
		"Takes a checkpoint of a session's variables and files, and prints its id. `glovebox rollback` restores it.",
	.rows = plain_rows,
	.examples = "  glovebox checkpoint analysis \"clean data\"\n",
	.environment = true,
};
static const struct cli_page rollback_page = {
	.verb = "rollback",
	.usage = "[options] SESSION CHECKPOINT | SESSION --undo",
	.about = "Rolls a session back to a checkpoint (an id or a name), or undoes its last cell.",
	.rows = rollback_rows,
	.examples =
		"  glovebox rollback analysis \"clean data\"\n  glovebox rollback analysis --undo\n",
	.environment = true,
};
static const struct cli_page fork_page = {
	.verb = "fork",
	.usage = "[options] SESSION",
	.about = "Makes copies of a session, each in its own jail, and prints their ids.",
	.rows = fork_rows,
	.examples =
		"  glovebox fork analysis --count 8\n  glovebox fork analysis --at \"clean data\"\n",
	.environment = true,
};
static const struct cli_page tree_page = {
	.verb = "tree",
	.usage = "[options] SESSION",
	.about =
		"Shows the checkpoints of a session as a tree; * marks the checkpoint that the session continues from.",
	.rows = plain_rows,
	.examples = "  glovebox tree analysis\n",
	.environment = true,
};

/* ---- calls ---------------------------------------------------------------- */

/* One call about the session that a word names; `body` (whose reference it takes) may be NULL. */
static int call(const struct options *o, const char *word, const char *method, const char *path,
	json_t *body, struct error *e, json_t **ret)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	_cleanup_free_ char *id = NULL, *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char target[TARGET_MAX];
	json_decref(body);
	int r = client_create(&o->client, e, &c);
	if (r == 0)
		r = client_find_session(c, word, e, &id);
	if (r < 0)
		return r;
	snprintf(target, sizeof(target), "/v1/sessions/%s/%s", id, path);
	return client_send(c, method, target, text, e, ret);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static int show(const struct options *o, const struct cli_page *page, int r, const struct error *e,
	const json_t *answer)
{
	if (r < 0) {
		cli_show_error(page->verb, e);
		return CLI_FAILED;
	}
	if (o->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		printf("\n");
	}
	return CLI_OK;
}

/* ---- verbs ----------------------------------------------------------------- */

static int checkpoint(const struct options *o, int n, char *const *words)
{
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };
	if (n < 1 || n > 2)
		return cli_usage("checkpoint", "give a session and, optionally, a name");
	json_t *body = n == 2 ? json_pack("{s:s}", "name", words[1]) : json_object();
	int r = call(o, words[0], "POST", "checkpoints", body, &e, &answer);
	int code = show(o, &checkpoint_page, r, &e, answer);
	if (code == CLI_OK && !o->json)
		printf("%s\n", text_of(json_object_get(answer, "checkpoint"), "id"));
	return code;
}

static int rollback(const struct options *o, int n, char *const *words)
{
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };

	if (n != (o->undo ? 1 : 2))
		return cli_usage(
			"rollback", "give a session and a checkpoint, or a session and --undo");
	json_t *body = o->undo ? json_pack("{s:b}", "undo", 1)
			       : json_pack("{s:s}", "checkpoint", words[1]);
	int r = call(o, words[0], "POST", "rollback", body, &e, &answer);
	int code = show(o, &rollback_page, r, &e, answer);
	const json_t *at = json_object_get(answer, "checkpoint");
	if (code == CLI_OK && !o->json && json_is_object(at))
		printf("rolled back to the state after cell %lld\n",
			(long long)json_integer_value(json_object_get(at, "cell")));
	return code;
}

static int fork_session(const struct options *o, int n, char *const *words)
{
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };
	if (n != 1)
		return cli_usage("fork", "which session? Give an id or a name");
	json_t *body = json_pack("{s:i,s:b}", "count", (int)o->count, "reseed", o->reseed);
	if (o->at)
		json_object_set_new(body, "at", json_string(o->at));
	int r = call(o, words[0], "POST", "fork", body, &e, &answer);
	int code = show(o, &fork_page, r, &e, answer);
	const json_t *made = json_object_get(answer, "sessions");
	for (size_t i = 0; code == CLI_OK && !o->json && i < json_array_size(made); i++)
		printf("%s\n", text_of(json_array_get(made, i), "id"));
	return code;
}

static void print_branch(const json_t *all, const char *parent, unsigned depth)
{
	for (size_t i = 0; i < json_array_size(all) && depth < DEPTH_MAX; i++) {
		const json_t *c = json_array_get(all, i);
		if (strcmp(text_of(c, "parent"), parent))
			continue;
		printf("%*s%s %-24s after cell %-4lld %6.1f MB  %s\n", (int)depth * 2, "",
			json_is_true(json_object_get(c, "current")) ? "*" : "-",
			*text_of(c, "name") ? text_of(c, "name") : "(automatic)",
			(long long)json_integer_value(json_object_get(c, "cell")),
			(double)json_integer_value(json_object_get(c, "size_bytes")) / 1e6,
			text_of(c, "id"));
		print_branch(all, text_of(c, "id"), depth + 1);
	}
}

static int tree(const struct options *o, int n, char *const *words)
{
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };
	if (n != 1)
		return cli_usage("tree", "which session? Give an id or a name");
	int r = call(o, words[0], "GET", "checkpoints", NULL, &e, &answer);
	int code = show(o, &tree_page, r, &e, answer);
	if (code == CLI_OK && !o->json)
		print_branch(json_object_get(answer, "checkpoints"), "", 0);
	return code;
}

static int run(const struct cli_page *page, int (*verb)(const struct options *, int, char *const *),
	int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(page, &o, argc, argv, true, &code);
	if (first >= 0)
		code = verb(&o, argc - first, argv + first);
	options_finish(page->rows, &o);
	return code;
}

int cli_checkpoint(int argc, char **argv)
{
	return run(&checkpoint_page, checkpoint, argc, argv);
}

int cli_rollback(int argc, char **argv)
{
	return run(&rollback_page, rollback, argc, argv);
}

int cli_fork(int argc, char **argv)
{
	return run(&fork_page, fork_session, argc, argv);
}

int cli_tree(int argc, char **argv)
{
	return run(&tree_page, tree, argc, argv);
}
