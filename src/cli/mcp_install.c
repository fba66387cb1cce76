#include "cli/mcp_install.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/config_merge.h"

/* Where a host keeps its servers, and how an entry looks there. */
static const struct host {
	const char *name, *title;
	const char *file;   /* below the home directory; NULL: the host has a command of its own */
	const char *member; /* that holds the servers by name */
	bool typed;         /* an entry says "type": "stdio" */
} hosts[] = {
	{ .name = "claude",
		.title = "Claude Desktop",
		.file = ".config/Claude/claude_desktop_config.json",
		.member = "mcpServers" },
	{ .name = "claude-code", .title = "Claude Code", .file = NULL },
	{ .name = "cursor", .title = "Cursor", .file = ".cursor/mcp.json", .member = "mcpServers" },
	{ .name = "vscode",
		.title = "VS Code",
		.file = ".config/Code/User/mcp.json",
		.member = "servers",
		.typed = true },
	{ .name = "zed",
		.title = "Zed",
		.file = ".config/zed/settings.json",
		.member = "context_servers" },
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

/* What the host starts: a program, the server that it uses, and the token of that server. */
struct start {
	const char *program, *url, *token;
};

static json_t *entry_of(const struct host *h, const struct start *s)
{
	json_t *arguments = s->url ? json_pack("[s, s, s]", "mcp", "--url", s->url)
				   : json_pack("[s]", "mcp");
	json_t *entry = json_pack("{s:s, s:o}", "command", s->program, "args", arguments);
	if (entry && s->token) /* not an argument: every user of the machine sees those */
		json_object_set_new(entry, "env", json_pack("{s:s}", "GLOVEBOX_TOKEN", s->token));
	if (entry && h->typed)
		json_object_set_new(entry, "type", json_string("stdio"));
	return entry;
}

/* The host's file; below XDG_CONFIG_HOME when the host looks there. -ENOENT without a home. */
static int path_of(const struct host *h, char **ret)
{
	static const char config[] = ".config/";
	const char *home = getenv("HOME"), *base = getenv("XDG_CONFIG_HOME");
	_cleanup_free_ char *path = NULL;
	int n;

	if (base && *base == '/' && text_starts(h->file, config))
		n = asprintf(&path, "%s/%s", base, h->file + strlen(config));
	else if (home && *home)
		n = asprintf(&path, "%s/%s", home, h->file);
	else
		return -ENOENT;
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}

	*ret = realpath(path, NULL); /* a link stays a link */
	if (!*ret)
		*ret = TAKE_PTR(path);
	return *ret ? 0 : -ENOMEM;
}

static int print_entry(const struct host *h, const struct start *s)
{
	_cleanup_free_ char *path = NULL;
	json_t *entry = entry_of(h, s);
	json_t *whole = json_pack("{s:{s:O}}", h->member, "glovebox", entry);
	if (whole) {
		json_dumpf(whole, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	if (path_of(h, &path) == 0)
		fprintf(stderr, "%s reads this from %s; --write puts it there.\n", h->title, path);
	json_decref(entry);
	json_decref(whole);
	return CLI_OK;
}

static int write_new(const char *path, mode_t mode, const char *data, size_t len)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	int r = fd_write_waiting(fd, data, len);
	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/* The old text is kept beside the file, as FILE.backup, and the file is never half written. */
static int replace_file(
	const char *path, const char *old, size_t old_len, const struct buffer *text)
{
	_cleanup_free_ char *backup = NULL, *temporary = NULL;
	struct stat st;
	bool there = stat(path, &st) == 0;
	mode_t mode = there ? st.st_mode & 0777 : 0600; /* it may hold tokens */
	if (asprintf(&backup, "%s.backup", path) < 0)
		return -ENOMEM;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	int r = there ? write_new(backup, mode, old, old_len) : 0;
	if (!r)
		r = write_new(temporary, mode, text->data, text->len);
	if (!r && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

static void make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

/*
 * Makes the new text of the file. Returns false if the file cannot be changed automatically; the
 * user was then told what to add.
 */
static bool merge_text(const struct host *h, const struct start *s, const char *path,
	const char *old, size_t len, struct buffer *ret)
{
	struct error e = { 0 };
	json_t *entry = entry_of(h, s);
	_cleanup_free_ char *value = entry ? json_dumps(entry, JSON_INDENT(2)) : NULL;
	json_decref(entry);
	if (value && config_merge(old, len, h->member, "glovebox", value, &e, ret) == 0)
		return true;
	cli_complain("mcp", "%s: %s; nothing was changed", path, value ? e.text : "out of memory");
	fprintf(stderr, "  add this by hand:\n");
	print_entry(h, s);
	return false;
}

static int merge(const struct host *h, const struct start *s)
{
	_cleanup_free_ char *path = NULL, *old = NULL;
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0);
	size_t len = 0;
	if (path_of(h, &path) < 0)
		return cli_usage(
			"mcp", "HOME is not set: use --install %s without --write", h->name);

	int r = fd_read_file(path, CONFIG_MERGE_MAX, &old, &len);
	bool there = r != -ENOENT;
	if (r == 0 || !there) {
		if (!merge_text(h, s, path, old ? old : "", len, &text))
			return CLI_FAILED;
		if (there && text.len == len && !memcmp(text.data, old, len)) {
			printf("%s starts glovebox already: %s was not changed\n", h->title, path);
			return CLI_OK;
		}
		make_parents(path);
		r = replace_file(path, old, len, &text);
	}
	if (r < 0) {
		cli_complain("mcp", "cannot write %s: %s", path, strerror(-r));
		return CLI_FAILED;
	}
	printf("%s now starts glovebox; restart it. Written: %s", h->title, path);
	printf(there ? "; the file before: %s.backup\n" : "\n", path);
	return CLI_OK;
}

static int print_command(const struct start *s, bool write)
{
	printf("claude mcp add glovebox%s%s -- %s mcp%s%s\n",
		s->token ? " --env GLOVEBOX_TOKEN=" : "", s->token ? s->token : "", s->program,
		s->url ? " --url " : "", s->url ? s->url : "");
	if (write)
		fprintf(stderr,
			"Run the line above: Claude Code keeps its configuration itself.\n");
	return CLI_OK;
}

int mcp_install(const char *name, bool write, const char *url, const char *token)
{
	char program[4096];
	const struct host *h = find_host(name);
	struct start s = { .program = program, .url = url, .token = token };
	if (!h)
		return cli_usage("mcp",
			"unknown host \"%s\": give claude, claude-code, cursor, vscode or zed",
			name);
	if (own_path(program, sizeof(program)) < 0)
		snprintf(program, sizeof(program), "glovebox");
	if (!h->file)
		return print_command(&s, write);
	return write ? merge(h, &s) : print_entry(h, &s);
}
