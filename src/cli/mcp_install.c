#include "cli/mcp_install.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"

/* Where a host keeps its servers, and how an entry looks there. */
static const struct host {
	const char *name, *title;
	const char *file;   /* below the home directory; NULL: the host has a command of its own */
	const char *member; /* that holds the servers by name */
	bool typed;         /* an entry says "type": "stdio" */
} hosts[] = {
	{ .name = "claude", .title = "Claude Desktop", .file = ".config/Claude/claude_desktop_config.json", .member = "mcpServers" },
	{ .name = "claude-code", .title = "Claude Code", .file = NULL },
	{ .name = "cursor", .title = "Cursor", .file = ".cursor/mcp.json", .member = "mcpServers" },
	{ .name = "vscode", .title = "VS Code", .file = ".config/Code/User/mcp.json", .member = "servers", .typed = true },
	{ .name = "zed", .title = "Zed", .file = ".config/zed/settings.json", .member = "context_servers" },
};

static const struct host *find_host(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (text_eq(hosts[i].name, name))
			return &hosts[i];
	return NULL;
}

static int own_path(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

static json_t *entry_of(const struct host *h, const char *program, const char *url)
{
	json_t *arguments = url ? json_pack("[s, s, s]", "mcp", "--url", url) : json_pack("[s]", "mcp");
	json_t *entry = json_pack("{s:s, s:o}", "command", program, "args", arguments);
	if (entry && h->typed)
		json_object_set_new(entry, "type", json_string("stdio"));
	return entry;
}

static int print_entry(const struct host *h, const char *program, const char *url)
{
	json_t *entry = entry_of(h, program, url);
	json_t *whole = json_pack("{s:{s:O}}", h->member, "glovebox", entry);
	if (whole) {
		json_dumpf(whole, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	fprintf(stderr, "%s reads this from ~/%s; --write puts it there.\n", h->title, h->file);
	json_decref(entry);
	json_decref(whole);
	return CLI_OK;
}

/* The old file stays beside the new one, as FILE.backup. */
static int replace_file(const char *path, const json_t *whole)
{
	_cleanup_free_ char *backup = NULL, *temporary = NULL;
	if (asprintf(&backup, "%s.backup", path) < 0 || asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	if (json_dump_file(whole, temporary, JSON_INDENT(2)) < 0)
		return -EIO;
	if (!access(path, F_OK) && rename(path, backup) < 0)
		return -errno;
	return rename(temporary, path) < 0 ? -errno : 0;
}

static void make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static int merge(const struct host *h, const char *program, const char *url)
{
	_cleanup_free_ char *path = NULL;
	const char *home = getenv("HOME");
	json_error_t wrong = { 0 };
	if (!home || asprintf(&path, "%s/%s", home, h->file) < 0)
		return cli_usage("mcp", "HOME is not set: use --install %s without --write", h->name);

	json_t *whole = access(path, F_OK) ? json_object() : json_load_file(path, 0, &wrong);
	if (!json_is_object(whole)) { /* comments, for instance: a person must do it */
		json_decref(whole);
		cli_complain("mcp", "%s is not plain JSON (line %d: %s); nothing was changed", path, wrong.line, wrong.text);
		fprintf(stderr, "  add this by hand:\n");
		print_entry(h, program, url);
		return CLI_FAILED;
	}
	json_t *servers = json_object_get(whole, h->member);
	if (!json_is_object(servers)) {
		servers = json_object();
		json_object_set_new(whole, h->member, servers);
	}
	json_object_set_new(servers, "glovebox", entry_of(h, program, url));
	make_parents(path);
	int r = replace_file(path, whole);
	json_decref(whole);
	if (r < 0) {
		cli_complain("mcp", "cannot write %s: %s", path, strerror(-r));
		return CLI_FAILED;
	}
	printf("%s now starts glovebox; restart it. The file before: %s.backup\n", h->title, path);
	return CLI_OK;
}

int mcp_install(const char *name, bool write, const char *url)
{
	char program[4096];
	const struct host *h = find_host(name);
	if (!h)
		return cli_usage("mcp", "unknown host \"%s\": give claude, claude-code, cursor, vscode or zed", name);
	if (own_path(program, sizeof(program)) < 0)
		snprintf(program, sizeof(program), "glovebox");
	if (h->file)
		return write ? merge(h, program, url) : print_entry(h, program, url);

	printf("claude mcp add glovebox -- %s mcp%s%s\n", program, url ? " --url " : "", url ? url : "");
	if (write)
		fprintf(stderr, "Run the line above: Claude Code keeps its configuration itself.\n");
	return CLI_OK;
}
