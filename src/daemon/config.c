#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/paths.h"
#include "http/http_address.h"
#include "network/network_policy.h"

#define AT(member) offsetof(struct config, member)

enum { TOKEN_FILE_BYTES = 64 * 1024, TOKEN_MIN = 16 };

static const char system_file[] = "/etc/glovebox/glovebox.conf";

/* In the order of enum packages_mode. */
static const char *const package_modes[] = { "install", "store", "off", NULL };

/* In the order of enum jail_exec. */
static const char *const exec_names[] = { "system", "none", "any", NULL };
static const char *const log_levels[] = { "debug", "info", "warning", "error", "none", NULL };

/* clang-format off */
static const char *const displays_names[] = { "lazy", "ready", "plain", NULL }; /* as enum config_displays */

const struct option_row config_rows[] = {
	{ "listen", 'l', OPTION_TEXT, AT(listen), .value = "ADDRESS", .fallback = "127.0.0.1:8000", .group = "server",
	  .help = "where to listen: HOST:PORT, [V6ADDRESS]:PORT, or unix:/path for a socket file. Port 0 takes a free one." },
	{ "max-connections", 0, OPTION_COUNT, AT(max_connections), 1, 1000000, "N", "4096",
	  .help = "open connections at once" },
	{ "max-upload", 0, OPTION_SIZE, AT(max_upload), 1, 0, "SIZE", "1G",
	  .help = "largest file that may be put into a session" },
	{ "drain", 0, OPTION_SECONDS, AT(drain), 0, 86400, "SECONDS", "30",
	  .help = "how long running cells may go on after SIGTERM, before they are ended" },
	{ "state-dir", 0, OPTION_TEXT, AT(state_dir), .value = "DIRECTORY",
	  .help = "what is kept between runs (default /var/lib/glovebox for root, else ~/.local/state/glovebox)" },
	{ "log-level", 0, OPTION_CHOICE, AT(log_level), .value = "LEVEL", .fallback = "info", .choices = log_levels,
	  .help = "least important lines to log: debug, info, warning, error, none" },
	{ "access-log", 0, OPTION_FLAG, AT(access_log), .fallback = "yes",
	  .help = "log one line per request (on unless --no-access-log)" },
	{ "live-control", 0, OPTION_FLAG, AT(live_control), .fallback = "yes",
	  .help = "live views of a session's screen may take mouse and keyboard when they ask for it (on unless --no-live-control)" },

	{ "token", 0, OPTION_LIST, AT(token), .value = "TOKEN", .group = "security",
	  .help = "clients must send it as `Authorization: Bearer TOKEN`; several may be given, each sees its own sessions. "
		  "Others on this machine can read flags and variables: prefer --token-file." },
	{ "token-file", 0, OPTION_TEXT, AT(token_file), .value = "FILE",
	  .help = "tokens, one per line" },
	{ "allow-anonymous", 0, OPTION_FLAG, AT(allow_anonymous),
	  .help = "serve without a token also where other machines may reach the address: for containers, where what is published decides" },
	{ "allow-host", 0, OPTION_LIST, AT(allow_host), .value = "NAMES",
	  .help = "names by which clients may call the server besides its address and the loopback names; * for any" },
	{ "allow-origin", 0, OPTION_LIST, AT(allow_origin), .value = "ORIGINS",
	  .help = "web pages that may call the server, such as https://console.example" },

	{ "waive", 0, OPTION_LIST, AT(waive), .value = "LAYERS",
	  .help = "start although these layers of the wall are missing on this machine: landlock, cgroup (`glovebox doctor` tells which are)" },

	{ "preload", 0, OPTION_LIST, AT(preload), .value = "MODULES", .group = "sessions",
	  .help = "modules that sessions have imported from the start, or none "
		  "(default: common standard library, numpy, pandas, matplotlib, PIL)" },
	{ "profile", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "executor profile of sessions that name none: python, smolagents, restricted, restrictedpython, tinyagent, or one of your own "
		  "(default python; EXECUTOR_BACKEND is read too)" },
	{ "executor-backend", 0, OPTION_TEXT, AT(profile), .value = "NAME",
	  .help = "another name of --profile" },
	{ "additional-imports", 0, OPTION_LIST, AT(additional_imports), .value = "MODULES",
	  .help = "modules that every session may import beyond those of its profile (ADDITIONAL_IMPORTS is read too)" },
	{ "rootfs", 0, OPTION_TEXT, AT(rootfs), .value = "DIRECTORY",
	  .help = "system tree that sessions see, read-only, instead of this machine's own (made by debootstrap, or copied)" },
	{ "displays", 0, OPTION_CHOICE, AT(displays), .value = "WHEN", .fallback = "lazy", .choices = displays_names,
	  .help = "what sessions' screens need is started with the first session that wants one (lazy), ahead (ready: about 60 MB), or as a "
		  "new X server for each (plain)" },
	{ "ready", 0, OPTION_COUNT, AT(ready), 0, 1000, "N", "4",
	  .help = "guests kept ready, so that a session starts at once" },
	{ "renew", 0, OPTION_SECONDS, AT(renew), 0, 1e9, "SECONDS", "3600",
	  .help = "after this time sessions are forked from a newly started interpreter, with another address layout and hash seed; 0: never" },
	{ "low-idle-latency", 0, OPTION_FLAG, AT(low_idle_latency), .fallback = "yes",
	  .help = "on a virtual machine, while cells follow each other closely: idle CPUs wait for work instead of being given back to the host, "
		  "so that small cells take a fifth to a third less (on unless --no-low-idle-latency)" },
	{ "max-sessions", 0, OPTION_COUNT, AT(max_sessions), 1, 100000, "N", "2000",
	  .help = "sessions alive at once" },
	{ "max-sessions-per-token", 0, OPTION_COUNT, AT(max_sessions_per_token), 0, 100000, "N", "0",
	  .help = "sessions alive at once of one token; 0: with several tokens an equal share of --max-sessions each" },
	{ "queue", 0, OPTION_COUNT, AT(queue), 0, 1000, "N", "16",
	  .help = "cells that may wait in one session" },
	{ "ttl", 0, OPTION_SECONDS, AT(ttl), 1, 0, "SECONDS", "24h",
	  .help = "a session ends this long after its creation" },
	{ "idle-timeout", 0, OPTION_SECONDS, AT(idle_timeout), 1, 0, "SECONDS", "1h",
	  .help = "a session ends this long after its last cell" },
	{ "log", 0, OPTION_SIZE, AT(log), 0, 0, "SIZE", "16M",
	  .help = "output kept per session for `glovebox logs`" },
	{ "max-log", 0, OPTION_SIZE, AT(max_log), 0, 0, "SIZE", "256M",
	  .help = "the most a session may ask for" },

	{ "timeout", 't', OPTION_SECONDS, AT(timeout), 0.1, 3600, "SECONDS", "30", .group = "cells",
	  .help = "time limit of a cell that sets none" },
	{ "max-timeout", 0, OPTION_SECONDS, AT(max_timeout), 0.1, 3600, "SECONDS", "1h",
	  .help = "the most a cell may ask for" },
	{ "grace", 0, OPTION_SECONDS, AT(grace), 0, 3600, "SECONDS", "2",
	  .help = "between the interrupt at the limit and the kill" },
	{ "transactions", 0, OPTION_FLAG, AT(transactions), .fallback = "yes",
	  .help = "a cell that ends the interpreter does not cost the variables of before" },
	{ "keep-files", 0, OPTION_SIZE, AT(keep_files), 0, 0, "SIZE", "64M",
	  .help = "files of /workspace, /tmp and /dev/shm that go back with them; 0: none" },
	{ "max-checkpoints", 0, OPTION_COUNT, AT(max_checkpoints), 0, LIMIT_CHECKPOINTS, "N", "16",
	  .help = "of one session; beyond it the one that was not used for longest goes; 0: none" },
	{ "checkpoint-memory", 0, OPTION_SIZE, AT(checkpoint_memory), 0, 0, "SIZE", "0",
	  .help = "that they may hold before the one that was not used for longest goes; 0: half of the session's" },
	{ "output", 0, OPTION_SIZE, AT(output), 1024, 0, "SIZE", "1M",
	  .help = "stdout and stderr, each, in one answer" },
	{ "max-output", 0, OPTION_SIZE, AT(max_output), 1024, 0, "SIZE", "4M",
	  .help = "the most a session may ask for" },
	{ "memory", 'm', OPTION_SIZE, AT(memory), 16 << 20, 0, "SIZE", "2G",
	  .help = "memory of a session's interpreter" },
	{ "max-memory", 0, OPTION_SIZE, AT(max_memory), 0, 0, "SIZE", "0",
	  .help = "the most a session may ask for; 0: what the machine has" },
	{ "processes", 0, OPTION_COUNT, AT(processes), 1, 65536, "N", "256",
	  .help = "processes and threads of a session at once" },
	{ "max-processes", 0, OPTION_COUNT, AT(max_processes), 1, 65536, "N", "4096",
	  .help = "the most a session may ask for" },
	{ "cpus", 0, OPTION_NUMBER, AT(cpus), 0, 1024, "N", "0",
	  .help = "processors' worth of time of a session, such as 0.5; 0: as much as there is (needs control groups)" },
	{ "max-cpus", 0, OPTION_NUMBER, AT(max_cpus), 0, 1024, "N", "0",
	  .help = "the most a session may ask for; 0: no limit" },
	{ "cpu-time", 0, OPTION_SECONDS, AT(cpu_time), 0, 0, "SECONDS", "0",
	  .help = "processor time of a cell, all its processes together; 0: as much as its time limit allows" },
	{ "max-cpu-time", 0, OPTION_SECONDS, AT(max_cpu_time), 0, 0, "SECONDS", "0",
	  .help = "the most a session may ask for; 0: no limit" },
	{ "session-cpu-time", 0, OPTION_SECONDS, AT(session_cpu_time), 0, 0, "SECONDS", "0",
	  .help = "processor time of a whole session, which ends when it is used up; 0: no limit" },
	{ "max-session-cpu-time", 0, OPTION_SECONDS, AT(max_session_cpu_time), 0, 0, "SECONDS", "0",
	  .help = "the most a session may ask for; 0: no limit" },
	{ "inodes", 0, OPTION_SIZE, AT(inodes), 64, 0, "N", "65536",
	  .help = "files and directories in /workspace, and as many in /tmp" },
	{ "max-inodes", 0, OPTION_SIZE, AT(max_inodes), 64, 0, "N", "1M",
	  .help = "the most a session may ask for" },
	{ "file-size", 0, OPTION_SIZE, AT(file_size), 4096, 0, "SIZE", "1G",
	  .help = "size of one file" },
	{ "max-file-size", 0, OPTION_SIZE, AT(max_file_size), 0, 0, "SIZE", "0",
	  .help = "the most a session may ask for; 0: no limit" },
	{ "open-files", 0, OPTION_COUNT, AT(open_files), 16, 4096, "N", "1024",
	  .help = "files that one process of a session may have open" },
	{ "max-open-files", 0, OPTION_COUNT, AT(max_open_files), 16, 4096, "N", "4096",
	  .help = "the most a session may ask for" },
	{ "total-output", 0, OPTION_SIZE, AT(total_output), 1024, 0, "SIZE", "1G",
	  .help = "what a cell may print at all, shown or not, before it is stopped" },
	{ "max-total-output", 0, OPTION_SIZE, AT(max_total_output), 0, 0, "SIZE", "0",
	  .help = "the most a session may ask for; 0: no limit" },
	{ "exec", 0, OPTION_CHOICE, AT(exec), .value = "WHICH", .fallback = "system", .choices = exec_names,
	  .help = "programs that code may start when a session does not say: those of the system, none, or any" },
	{ "max-exec", 0, OPTION_CHOICE, AT(max_exec), .value = "WHICH", .fallback = "any", .choices = exec_names,
	  .help = "the most a session may ask for: none, system or any" },
	{ "disk", 0, OPTION_SIZE, AT(disk), 1 << 20, 0, "SIZE", "256M",
	  .help = "files in /workspace, and as much in /tmp" },
	{ "max-disk", 0, OPTION_SIZE, AT(max_disk), 1 << 20, 0, "SIZE", "4G",
	  .help = "the most a session may ask for" },

	{ "openenv-profile", 0, OPTION_TEXT, AT(openenv_profile), .value = "NAME", .group = "dialects",
	  .help = "executor profile of OpenEnv's environments (default: that of --profile, and without it smolagents, as in coding_env)" },
	{ "openenv-rewards", 0, OPTION_FLAG, AT(openenv_rewards), .fallback = "yes",
	  .help = "give OpenEnv's clients the rewards of coding_env (on unless --no-openenv-rewards)" },
	{ "openenv-lease", 0, OPTION_SECONDS, AT(openenv_lease), 0, 86400, "SECONDS", "60",
	  .help = "how long a named OpenEnv environment waits for a client whose connection broke" },
	{ "jupyter-timeout", 0, OPTION_SECONDS, AT(jupyter_timeout), 0.1, 3600, "SECONDS", "1h",
	  .help = "time limit of a cell that a Jupyter client runs (at most --max-timeout)" },

	{ "mcp-profile", 0, OPTION_TEXT, AT(mcp_profile), .value = "NAME",
	  .help = "executor profile of sessions that MCP clients start (default: that of --profile)" },
	{ "mcp-packages", 0, OPTION_LIST, AT(mcp_packages), .value = "PACKAGES",
	  .help = "packages that these sessions have from the start" },
	{ "mcp-display", 0, OPTION_FLAG, AT(mcp_display), .fallback = "yes",
	  .help = "give these sessions a screen, and MCP clients the tools screenshot and computer (on unless --no-mcp-display)" },
	{ "mcp-network", 0, OPTION_TEXT, AT(mcp_network), .value = "WHICH",
	  .help = "network of these sessions: none, loopback, or rules such as pypi.org:443 (default: that of --default-network)" },
	{ "mcp-tools", 0, OPTION_LIST, AT(mcp_tools), .value = "NAMES",
	  .help = "tools that MCP clients are offered (default: all; docs/mcp.md lists them)" },

	{ "packages", 0, OPTION_CHOICE, AT(packages.mode), .value = "WHICH", .fallback = "install", .choices = package_modes,
	  .group = "packages", .help = "packages that requests may have: install what they name, only what is in the store, or off" },
	{ "packages-index", 0, OPTION_TEXT, AT(packages.index), .value = "URL",
	  .help = "where packages come from (default https://pypi.org/simple)" },
	{ "packages-extra-index", 0, OPTION_LIST, AT(packages.extra_index), .value = "URLS", .help = "other indexes besides" },
	{ "packages-find-links", 0, OPTION_LIST, AT(packages.find_links), .value = "PLACES",
	  .help = "directories with wheels (or pages with links to them)" },
	{ "packages-offline", 0, OPTION_FLAG, AT(packages.offline), .help = "no index: only what packages-find-links has" },
	{ "packages-trusted-host", 0, OPTION_LIST, AT(packages.trusted_host), .value = "HOSTS",
	  .help = "hosts whose certificates are not checked" },
	{ "packages-host", 0, OPTION_LIST, AT(packages.hosts), .value = "HOSTS",
	  .help = "HOST or HOST:PORT that the installer may reach besides the indexes, when files come from there" },
	{ "packages-proxy", 0, OPTION_TEXT, AT(packages.proxy), .value = "URL", .help = "the proxy through which the indexes are reached" },
	{ "packages-uv", 0, OPTION_TEXT, AT(packages.uv), .value = "PROGRAM",
	  .help = "uv, which installs in place of pip; `no`: never (default: /usr/local/bin/uv or /usr/bin/uv, where it is there)" },
	{ "packages-constraints", 0, OPTION_TEXT, AT(packages.constraints), .value = "FILE",
	  .help = "versions that are allowed, as pip's --constraint" },
	{ "packages-allow", 0, OPTION_LIST, AT(packages.allow), .value = "NAMES",
	  .help = "only these packages, also as what others need; * stands for any characters" },
	{ "packages-deny", 0, OPTION_LIST, AT(packages.deny), .value = "NAMES", .help = "never these packages" },
	{ "packages-build", 0, OPTION_FLAG, AT(packages.build),
	  .help = "build source packages on request; their code runs in the installer's jail (default: wheels only)" },
	{ "packages-isolate", 0, OPTION_FLAG, AT(packages.isolate), .fallback = "yes",
	  .help = "builds get setuptools and such from the index; with --no-packages-isolate they use the system's" },
	{ "packages-require-hashes", 0, OPTION_FLAG, AT(packages.require_hashes), .help = "take packages by hash only" },
	{ "packages-strict", 0, OPTION_FLAG, AT(packages.strict),
	  .help = "end the server when a module of additional-imports cannot be had" },
	{ "packages-timeout", 0, OPTION_SECONDS, AT(packages.timeout_s), 1, 86400, "SECONDS", "300", .help = "of one installation" },
	{ "packages-max-size", 0, OPTION_SIZE, AT(packages.max_bytes), 1 << 20, 0, "SIZE", "1G",
	  .help = "of what one request installs, unpacked; an installation may need three times as much memory" },
	{ "packages-store-size", 0, OPTION_SIZE, AT(packages.store_bytes), 0, 0, "SIZE", "20G",
	  .help = "`glovebox packages gc` removes the least used sets beyond it; 0: no limit" },
	{ "packages-store-age", 0, OPTION_SECONDS, AT(packages.store_age_s), 0, 0, "SECONDS", "720h",
	  .help = "`glovebox packages gc` removes sets that nobody used for so long" },
	{ "network", 0, OPTION_LIST, AT(network), .value = "LIST", .group = "network",
	  .help = "the most a session may ask for: none, loopback, HOST:PORT rules, any (default: any; with tokens loopback and *:*, "
		  "which is every public address)" },
	{ "default-network", 0, OPTION_TEXT, AT(default_network), .value = "WHICH", .fallback = "none",
	  .help = "what a session gets that asks for nothing: none, loopback, or rules with commas between them" },

	{ "packages-warm", 0, OPTION_ITEMS, AT(packages.warm), .value = "PACKAGES",
	  .help = "a set to have ready with its modules imported, packages with spaces between them; may be repeated" },
	{ "packages-template-after", 0, OPTION_COUNT, AT(packages.template_after), 0, 1000000, "N", "20",
	  .help = "a set that more sessions than this asked for is kept ready in the same way, for each token by itself; "
		  "0: only those of packages-warm" },
	{ "packages-template-memory", 0, OPTION_SIZE, AT(packages.template_bytes), 0, 0, "SIZE", "1G",
	  .help = "memory of all sets kept ready; the least used ones go beyond it" },

	{ "config", 'c', OPTION_TEXT, AT(config), .value = "FILE", .group = "other",
	  .flag_only = true, .help = "settings file to read instead of ~/.config/glovebox/glovebox.conf or "
				     "/etc/glovebox/glovebox.conf" },
	{ "check", 0, OPTION_FLAG, AT(check), .flag_only = true, .help = "read all settings, say what is wrong, and end" },
	{ "help", 'h', OPTION_FLAG, AT(help), .flag_only = true, .help = "this text" },
	{ NULL },
};
/* clang-format on */

const char *const config_other_variables[] = { "GLOVEBOX_URL", "GLOVEBOX_CONFIG", "GLOVEBOX_SESSION", NULL };

void config_finish(struct config *c)
{
	options_finish(config_rows, c);
	free(c->file);
	c->file = NULL;
}

/* ---- addresses -------------------------------------------------------- */

bool config_is_local(const char *listen)
{
	struct http_address a;
	if (http_address_parse(listen, NULL, &a) < 0)
		return false;
	if (a.is_unix)
		return true;
	if (text_starts(a.host, "127.")) /* "127.example.org" is a name, and names may lead anywhere */
		return strspn(a.host, "0123456789.") == strlen(a.host);
	return text_eq(a.host, "localhost") || text_eq(a.host, "::1");
}

/* ---- tokens ----------------------------------------------------------- */

static const struct option_row *row_named(const char *name)
{
	return option_find(config_rows, name, strlen(name));
}

/* Adds the file's lines to the tokens. */
static int read_token_file(struct config *c, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	struct stat st;
	bool more = c->token != NULL, found = false;
	int r = fd_read_file(c->token_file, TOKEN_FILE_BYTES, &text, &len);
	if (r < 0) {
		error_set_errno(e, r, "token-file %s", c->token_file);
		return error_remedy(e,
			"make it, for example: head -c 24 /dev/urandom | base64 > %s && chmod 600 %s",
			c->token_file, c->token_file);
	}
	if (stat(c->token_file, &st) == 0 && st.st_mode & 077)
		log_warning("token-file %s can be read by other users of this machine (chmod 600 %s)",
			c->token_file, c->token_file);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		line[strcspn(line, " \t\r")] = '\0';
		if (!*line || *line == '#')
			continue;
		r = option_set(row_named("token"), c, line, more, "token-file", e);
		if (r < 0)
			return r;
		found = more = true;
	}
	if (found)
		return 0;
	/* Without this the server would be open to all, against what was plainly meant. */
	error_set(e, -EINVAL, "token-file %s holds no token", c->token_file);
	return error_remedy(e, "put one in, for example: head -c 24 /dev/urandom | base64 >> %s", c->token_file);
}

static int check_tokens(struct config *c, struct error *e)
{
	int r = c->token_file ? read_token_file(c, e) : 0;
	if (r < 0)
		return r;
	if (c->token && !c->token[0]) {
		option_list_free(c->token);
		c->token = NULL;
	}
	for (char **t = c->token; t && *t; t++) {
		if (strlen(*t) < TOKEN_MIN) {
			error_set(e, -EINVAL, "token: '%.2s…' is shorter than %d characters", *t, TOKEN_MIN);
			return error_remedy(e, "take a random one: head -c 24 /dev/urandom | base64");
		}
	}
	if (c->token || c->allow_anonymous || config_is_local(c->listen))
		return 0;
	error_set(e, -EPERM, "listening on %s would let anybody who reaches this machine run code on it",
		c->listen);
	return error_remedy(e,
		"give a token (head -c 24 /dev/urandom | base64 > FILE; chmod 600 FILE; --token-file FILE), "
		"or listen on 127.0.0.1:8000");
}

/* ---- the sources ------------------------------------------------------ */

static int read_file_if_there(struct config *c, char *path, struct error *e)
{
	if (access(path, F_OK) < 0) {
		free(path);
		return 0;
	}
	c->file = path;
	return options_parse_file(config_rows, c, path, e);
}

static int read_files(struct config *c, const char *named, struct error *e)
{
	if (named) {
		c->file = strdup(named);
		int r = c->file ? options_parse_file(config_rows, c, c->file, e) : -ENOMEM;
		if (r == -ENOENT)
			error_remedy(e, "give an existing file to --config, or leave it out");
		return r;
	}
	char *own = places_home_file("XDG_CONFIG_HOME", ".config", "glovebox/glovebox.conf");
	int r = own ? read_file_if_there(c, own, e) : 0;
	if (r < 0 || c->file)
		return r;
	char *common = strdup(system_file);
	return common ? read_file_if_there(c, common, e) : -ENOMEM;
}

static int check_order(const char *low_name, double low, const char *high_name, double high, struct error *e)
{
	if (low <= high || high == 0)
		return 0;
	error_set(e, -EINVAL, "%s is larger than %s", low_name, high_name);
	return error_remedy(e, "raise %s or lower %s", high_name, low_name);
}

static int check_network(const struct config *c, struct error *e)
{
	_cleanup_(network_most_finish) struct network_most most = { 0 };
	_cleanup_(network_policy_finish) struct network_policy own = { 0 };
	int r = network_most_parse(c->network, e, &most);
	if (r < 0)
		return error_wrap(e, "network");
	r = network_policy_parse(c->default_network, e, &own);
	return r < 0 ? error_wrap(e, "default-network") : 0;
}

static int check_values(struct config *c, struct error *e)
{
	struct http_address address;
	int r = http_address_parse(c->listen, e, &address);
	if (r < 0)
		return error_wrap(e, "listen");
	r = check_order("timeout", c->timeout, "max-timeout", c->max_timeout, e);
	if (r == 0)
		r = check_order("output", (double)c->output, "max-output", (double)c->max_output, e);
	if (r == 0)
		r = check_order("memory", (double)c->memory, "max-memory", (double)c->max_memory, e);
	if (r == 0)
		r = check_order("processes", c->processes, "max-processes", c->max_processes, e);
	if (r == 0)
		r = check_order("cpus", c->cpus, "max-cpus", c->max_cpus, e);
	if (r == 0)
		r = check_order("cpu-time", c->cpu_time, "max-cpu-time", c->max_cpu_time, e);
	if (r == 0)
		r = check_order("session-cpu-time", c->session_cpu_time, "max-session-cpu-time", c->max_session_cpu_time, e);
	if (r == 0)
		r = check_order("inodes", (double)c->inodes, "max-inodes", (double)c->max_inodes, e);
	if (r == 0)
		r = check_order("file-size", (double)c->file_size, "max-file-size", (double)c->max_file_size, e);
	if (r == 0)
		r = check_order("open-files", c->open_files, "max-open-files", c->max_open_files, e);
	if (r == 0)
		r = check_order("total-output", (double)c->total_output, "max-total-output", (double)c->max_total_output, e);
	if (r == 0)
		r = check_order("disk", (double)c->disk, "max-disk", (double)c->max_disk, e);
	if (r == 0)
		r = check_order("log", (double)c->log, "max-log", (double)c->max_log, e);
	if (r == 0 && !c->state_dir)
		r = places_state_dir(e, &c->state_dir);
	if (r == 0)
		r = check_network(c, e);
	return r == 0 ? check_tokens(c, e) : r;
}

/* Variables by which other executors are configured; ours, and flags, come over them. */
static int read_foreign_variables(struct config *c, struct error *e)
{
	static const char *const variables[][2] = { { "EXECUTOR_BACKEND", "profile" }, { "ADDITIONAL_IMPORTS", "additional-imports" } };
	int r = 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i][0]);
		if (value && *value)
			r = option_set(row_named(variables[i][1]), c, value, false, variables[i][0], e);
	}
	return r;
}

int config_load(int argc, char **argv, struct error *e, struct config *ret)
{
	struct config flags = { 0 }, c = { 0 };
	/* The flags are read twice: first to learn which file is meant, then over what it says. */
	int words = options_parse_flags(config_rows, &flags, argc, argv, false, e), r = words;
	if (r >= 0 && words < argc) {
		r = error_set(e, -EINVAL, "'%.60s' is not an option", argv[words]);
		error_remedy(e, "settings are given as --name VALUE; --help lists them");
	}
	if (r >= 0) {
		const char *named = flags.config ? flags.config : getenv("GLOVEBOX_CONFIG");
		options_init(config_rows, &c);
		r = read_files(&c, named && *named ? named : NULL, e);
	}
	if (r >= 0)
		r = read_foreign_variables(&c, e);
	if (r >= 0)
		r = options_parse_environment(config_rows, &c, e);
	if (r >= 0)
		r = options_parse_flags(config_rows, &c, argc, argv, false, e);
	if (r >= 0)
		r = check_values(&c, e);
	config_finish(&flags);
	if (r < 0) {
		config_finish(&c);
		return r;
	}
	*ret = c;
	return 0;
}
