#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/text.h"
#include "daemon/tokens.h"
#include "http/http_address.h"
#include "network/network_policy.h"

static const char system_file[] = "/etc/glovebox/glovebox.conf";

const char *const config_other_variables[] = { "GLOVEBOX_URL", "GLOVEBOX_CONFIG",
	"GLOVEBOX_SESSION", NULL };

void config_finish(struct config *c)
{
	options_finish(config_rows, c);
	tokens_finish(c);
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
	/* "127.example.org" is a host name, which may resolve to any address */
	if (text_starts(a.host, "127."))
		return strspn(a.host, "0123456789.") == strlen(a.host);
	return text_eq(a.host, "localhost") || text_eq(a.host, "::1");
}

/* ---- tokens ----------------------------------------------------------- */

static const struct option_row *row_named(const char *name)
{
	return option_find(config_rows, name, strlen(name));
}

static int check_tokens(struct config *c, struct error *e)
{
	int r = tokens_load(c, e);
	if (r < 0)
		return r;
	if (c->token || c->allow_anonymous || config_is_local(c->listen))
		return 0;
	error_set(e, -EPERM,
		"without a token, listening on %s would let everybody who can reach this machine run code on it",
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
	char *own = paths_home_file("XDG_CONFIG_HOME", ".config", "glovebox/glovebox.conf");
	int r = own ? read_file_if_there(c, own, e) : 0;
	if (r < 0 || c->file)
		return r;
	char *common = strdup(system_file);
	return common ? read_file_if_there(c, common, e) : -ENOMEM;
}

static int check_order(
	const char *low_name, double low, const char *high_name, double high, struct error *e)
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
		r = check_order(
			"output", (double)c->output, "max-output", (double)c->max_output, e);
	if (r == 0)
		r = check_order(
			"memory", (double)c->memory, "max-memory", (double)c->max_memory, e);
	if (r == 0)
		r = check_order("processes", c->processes, "max-processes", c->max_processes, e);
	if (r == 0)
		r = check_order("cpus", c->cpus, "max-cpus", c->max_cpus, e);
	if (r == 0)
		r = check_order("cpu-time", c->cpu_time, "max-cpu-time", c->max_cpu_time, e);
	if (r == 0)
		r = check_order("session-cpu-time", c->session_cpu_time, "max-session-cpu-time",
			c->max_session_cpu_time, e);
	if (r == 0)
		r = check_order(
			"inodes", (double)c->inodes, "max-inodes", (double)c->max_inodes, e);
	if (r == 0)
		r = check_order("file-size", (double)c->file_size, "max-file-size",
			(double)c->max_file_size, e);
	if (r == 0)
		r = check_order(
			"open-files", c->open_files, "max-open-files", c->max_open_files, e);
	if (r == 0)
		r = check_order("total-output", (double)c->total_output, "max-total-output",
			(double)c->max_total_output, e);
	if (r == 0)
		r = check_order("disk", (double)c->disk, "max-disk", (double)c->max_disk, e);
	if (r == 0)
		r = check_order("log", (double)c->log, "max-log", (double)c->max_log, e);
	if (r == 0 && !c->state_dir)
		r = paths_state_dir(e, &c->state_dir);
	if (r == 0)
		r = check_network(c, e);
	return r == 0 ? check_tokens(c, e) : r;
}

/* Variables by which other executors are configured; ours, and flags, come over them. */
static int read_foreign_variables(struct config *c, struct error *e)
{
	static const char *const variables[][2] = { { "EXECUTOR_BACKEND", "profile" },
		{ "ADDITIONAL_IMPORTS", "additional-imports" } };
	int r = 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i][0]);
		if (value && *value)
			r = option_set(
				row_named(variables[i][1]), c, value, false, variables[i][0], e);
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
