/*
 * Remedies of errors for a model, which can use only the MCP tools: remedies of the native API name
 * fields, paths and flags that a model cannot use.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "dialects/mcp/mcp.h"

enum { REMEDY_MAX = 320 };

/* By the error's code (also that of a cell), or by the type of a Python error. */
static const struct {
	const char *code, *remedy;
} remedies[] = {
	{ "session_not_found", "Leave session_id out to start a new session." },
	{ "session_gone", "Leave session_id out to start a new session." },
	{ "node_restarted", "Leave session_id out to start a new session." },
	{ "file_not_found", "Call list_files to see what is there." },
	{ "invalid_path", "Give a path below /workspace, such as data/a.csv." },
	{ "checkpoint_not_found", "Leave `to` out to undo the last call." },
	{ "cannot_checkpoint", "Run again the code that is needed to restore the state." },
	{ "out_of_memory",
		"Use less memory at once: smaller types, parts of the data, del what is not needed." },
	{ "cpu_limit", "Do less in one call: split the work over several calls." },
	{ "output_limit",
		"Print less, or write to a file in /workspace and page through it with read_file." },
	{ "queue_full", "Wait for the calls that are under way in this session." },
	{ "too_many_sessions",
		"Close sessions that are not needed with close_session, or use one of them." },
	{ "server_full",
		"Close sessions that are not needed with close_session, or use one of them." },
	{ "limit_too_large", "Ask for less." },
	{ "EOFError", "Nothing can be typed into input(): put the value into the code." },
};

static bool names_the_api(const char *remedy)
{
	static const char *const words[] = { "GET ", "POST ", "/v1", "--", "glovebox ", "limits.",
		"$.", "additional_imports", "\"network\"", "keep_checkpoints", "control groups" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(remedy, words[i]))
			return true;
	return false;
}

static const char *missing_module(const struct mcp_request *r, const char *message, char *text)
{
	const char *name = strchr(message, '\'');
	size_t n = name ? strcspn(name + 1, "'.") : 0;
	if (!mcp_config_of(r)->installs)
		return "This server installs no packages: use a module that is installed.";
	snprintf(text, REMEDY_MAX,
		"Call run_python again with packages: [\"%.*s\"] (the name that pip knows the package by).",
		(int)(n < 64 ? n : 64), name ? name + 1 : "");
	return text;
}

static const char *no_network(const struct mcp_request *r, char *text)
{
	const char *allowed = mcp_config_of(r)->network_text;
	if (!mcp_config_of(r)->open_world)
		return "Sessions have no network here, and no call can change that. Ask the user for the data, or write it "
		       "with write_file.";
	snprintf(text, REMEDY_MAX, "Sessions reach only %.200s, and no call can change that.",
		allowed ? allowed : "");
	return text;
}

const char *mcp_remedy(const struct mcp_request *r, const char *code, const char *type,
	const char *message, const char *remedy)
{
	static char text[REMEDY_MAX],
		expanded[EDGE_TEXT_MAX]; /* one thread; used before the next call */
	remedy = remedy ? remedy : "";
	for (size_t i = 0; i < ARRAY_LEN(remedies); i++)
		if (text_eq(remedies[i].code, code) || text_eq(remedies[i].code, type))
			return remedies[i].remedy;
	if (text_eq(type, "ModuleNotFoundError"))
		return missing_module(r, message, text);
	if (strstr(remedy, "\"network\""))
		return no_network(r, text);
	remedy = edge_expand(&mcp_words, remedy, expanded, sizeof(expanded));
	return names_the_api(remedy) ? "" : remedy;
}
