#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/paths.h"
#include "base/text.h"
#include "daemon/config.h"
#include "daemon/tokens.h"
#include "tap.h"

static char folder[] = "/tmp/test_config.XXXXXX";

/* No settings but those of a test: no file of the user's, no variables. */
static void isolate(void)
{
	setenv("HOME", folder, 1);
	setenv("XDG_CONFIG_HOME", folder, 1);
	for (const struct option_row *row = config_rows; row->name; row++) {
		char variable[OPTION_VARIABLE_MAX];
		unsetenv(options_variable(row->name, variable));
	}
	unsetenv("GLOVEBOX_CONFIG");
}

static const char *in_folder(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *write_file(const char *name, const char *text)
{
	const char *path = in_folder(name);
	FILE *f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	chmod(path, 0600);
	return path;
}

/* Loads with these flags (NULL at the end). */
static int load(struct config *c, struct error *e, const char *const *flags)
{
	char *argv[32] = { (char *)"serve" };
	int argc = 1;
	while (flags && *flags)
		argv[argc++] = (char *)*flags++;
	*e = (struct error){ 0 };
	*c = (struct config){ 0 };
	return config_load(argc, argv, e, c);
}
#define LOAD(c, e, ...) load(c, e, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void test_defaults(void)
{
	struct config c;
	struct error e;
	OK(LOAD(&c, &e) == 0);
	OK_STR(c.listen, "127.0.0.1:8000");
	OK(c.timeout == 30 && c.output == 1 << 20 && c.ttl == 86400);
	OK(c.access_log && c.log_level == LOG_INFO);
	OK(!c.token && !c.preload && !c.file && c.state_dir);
	config_finish(&c);
}

static void test_forms_of_flags(void)
{
	struct config c;
	struct error e;
	OK(LOAD(&c, &e, "--timeout=90s", "--grace", "0.5", "-m512M", "-t", "5m", "--no-access-log",
		   "--max_sessions", "7", "--log-level", "error", "--ttl", "2d") == 0);
	OK(c.timeout == 300 && c.grace == 0.5 && c.memory == 512ULL << 20);
	OK(!c.access_log && c.max_sessions == 7 && c.log_level == LOG_ERROR && c.ttl == 2 * 86400);
	config_finish(&c);
}

static void test_lists(void)
{
	struct config c;
	struct error e;
	OK(LOAD(&c, &e, "--preload", "json,re", "--preload", "numpy pandas") == 0);
	OK_STR(c.preload[0], "json");
	OK_STR(c.preload[1], "re");
	OK_STR(c.preload[3], "pandas");
	OK(!c.preload[4]);
	config_finish(&c);

	OK(LOAD(&c, &e, "--preload", "none") == 0);
	OK(c.preload && !c.preload[0]);
	config_finish(&c);

	setenv("GLOVEBOX_PRELOAD", "math", 1);
	OK(LOAD(&c, &e, "--preload", "json") == 0);
	OK_STR(c.preload[0], "json");
	OK(!c.preload[1]); /* a stronger source replaces, it does not add */
	config_finish(&c);
	isolate();
}

static void test_precedence(void)
{
	struct config c;
	struct error e;
	mkdir(in_folder("glovebox"), 0700);
	write_file("glovebox/glovebox.conf", "timeout = 10\ngrace = 1\nready = 1\n");
	OK(LOAD(&c, &e) == 0);
	OK(c.timeout == 10 && c.grace == 1 && c.ready == 1);
	OK_STR(c.file, in_folder("glovebox/glovebox.conf"));
	config_finish(&c);

	setenv("GLOVEBOX_TIMEOUT", "20", 1);
	setenv("GLOVEBOX_GRACE", "2", 1);
	OK(LOAD(&c, &e, "--timeout", "25") == 0);
	OK(c.timeout == 25 && c.grace == 2 && c.ready == 1);
	config_finish(&c);

	setenv("GLOVEBOX_GRACE", "", 1); /* as good as not set */
	OK(LOAD(&c, &e) == 0);
	OK(c.grace == 1);
	config_finish(&c);

	_cleanup_free_ char *other = strdup(write_file("other.conf", "timeout = 11"));
	OK(LOAD(&c, &e, "--config", other) == 0);
	OK(c.timeout == 20 && c.ready != 1); /* the named file stands instead of the user's own */
	config_finish(&c);
	unlink(in_folder("glovebox/glovebox.conf"));
	isolate();
}

static void test_file(void)
{
	struct config c;
	struct error e;
	_cleanup_free_ char *path = strdup(
		write_file("a.conf", "# a comment\n; another\n\n[Server]\nlisten = [::1]:9000 \n"
				     "[sessions]\npreload = json\npreload = re, math\r\n"
				     "allow_host = 'a.example'\n  max-memory=  128G\n"));
	setenv("GLOVEBOX_CONFIG", path, 1);
	OK(LOAD(&c, &e) == 0);
	OK_STR(c.listen, "[::1]:9000");
	OK_STR(c.preload[2], "math");
	OK_STR(c.allow_host[0], "a.example");
	OK(c.max_memory == 128ULL << 30);
	config_finish(&c);
	isolate();
}

/* What is wrong in a file, and the words that must be in the error and its remedy. */
static void test_file_errors(void)
{
	static const struct {
		const char *text, *says, *remedy;
	} cases[] = {
		{ "\ntimeot = 3", "line 2: unknown setting 'timeot'", "'timeout'" },
		{ "xyzzy = 3", "line 1: unknown setting 'xyzzy'", "--help" },
		{ "[sesions]", "unknown section 'sesions'", "'sessions'" },
		{ "[server", "closing bracket", "" },
		{ "timeout 3", "is not a setting", "key = value" },
		{ "timeout = soon", "line 1: timeout: 'soon' is not a duration", "90s" },
		{ "timeout = 0", "line 1: timeout: 0 is out of range", "between 0.1 and 3600" },
		{ "memory = 1k", "out of range", "at least 16M" },
		{ "memory = lots", "is not a size", "512M" },
		{ "ready = -1", "is not a whole number", "4" },
		{ "access-log = perhaps", "is not yes or no", "yes or no" },
		{ "log-level = loud", "there is no 'loud'", "debug, info, warning" },
		{ "grace = 1\ngrace = 2", "line 2: set a second time: 'grace'", "" },
		{ "help = yes", "unknown setting 'help'", "" },
		{ "listen = 8000", "is not an address", "127.0.0.1:8000" },
		{ "listen = ::1:8000", "is not an address", "[ipv6]:port" },
		{ "listen = https://127.0.0.1:8000", "only plain HTTP", "127.0.0.1:8000" },
		{ "listen = unix:", "listen: 'unix:' is not an address", "unix:/path" },
		{ "timeout = 20m\nmax-timeout = 10m", "timeout is larger than max-timeout",
			"raise max-timeout" },
		{ "token = short", "shorter than", "random" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config c;
		struct error e;
		OK(LOAD(&c, &e, "--config", write_file("bad.conf", cases[i].text)) < 0);
		OK(strstr(e.text, cases[i].says) && strstr(e.remedy, cases[i].remedy));
		if (!strstr(e.text, cases[i].says) || !strstr(e.remedy, cases[i].remedy))
			printf("# for  %s\n# got  %s (%s)\n", cases[i].text, e.text, e.remedy);
	}
}

static void test_flag_errors(void)
{
	struct config c;
	struct error e;
	OK(LOAD(&c, &e, "--timeut", "3") == -EINVAL);
	OK_STR(e.text, "unknown option --timeut");
	OK(strstr(e.remedy, "--timeout"));
	OK(LOAD(&c, &e, "-z") == -EINVAL);
	OK(LOAD(&c, &e, "--timeout") == -EINVAL &&
		strstr(e.text, "--timeout needs a value (SECONDS)"));
	OK(LOAD(&c, &e, "--timeout", "x") == -EINVAL && text_starts(e.text, "--timeout: 'x'"));
	OK(LOAD(&c, &e, "--no-timeout") == -EINVAL);
	OK(LOAD(&c, &e, "word") == -EINVAL && strstr(e.text, "'word'"));
	OK(LOAD(&c, &e, "--config", "/nonexistent/x.conf") == -ENOENT &&
		strstr(e.text, "/nonexistent/x.conf"));
	setenv("GLOVEBOX_MAX_SESSIONS", "many", 1);
	OK(LOAD(&c, &e) == -EINVAL && text_starts(e.text, "GLOVEBOX_MAX_SESSIONS: 'many'"));
	isolate();
}

static void test_who_may_listen(void)
{
	struct config c;
	struct error e;
	OK(config_is_local("127.0.0.1:80") && config_is_local("127.8.9.1:80") &&
		config_is_local("[::1]:80"));
	OK(config_is_local("localhost:80") && config_is_local("unix:/run/x"));
	OK(!config_is_local("0.0.0.0:80") && !config_is_local("[::]:80") && !config_is_local("80"));
	OK(!config_is_local("127.example.org:80") && !config_is_local("10.0.0.1:80"));
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:8000") == -EPERM);
	OK(strstr(e.text, "0.0.0.0:8000") && strstr(e.remedy, "--token-file"));
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:8000", "--token", "0123456789abcdef") == 0);
	config_finish(&c);
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:8000", "--token", "none") == -EPERM);
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:8000", "--allow-anonymous") == 0 && c.allow_anonymous);
	config_finish(&c);
}

static void test_token_file(void)
{
	struct config c;
	struct error e;
	_cleanup_free_ char *path = strdup(
		write_file("tokens", "# ours\n0123456789abcdef\n\n  fedcba9876543210  \n"));
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:1", "--token-file", path, "--token",
		   "aaaabbbbccccdddd") == 0);
	OK_STR(c.token[0], "aaaabbbbccccdddd");
	OK_STR(c.token[1], "0123456789abcdef");
	OK_STR(c.token[2], "fedcba9876543210");
	OK(!c.token[3]);
	config_finish(&c);
	write_file("tokens", "# nothing\n");
	OK(LOAD(&c, &e, "--listen", "0.0.0.0:1", "--token-file", path) == -EINVAL);
	OK(LOAD(&c, &e, "--token-file", "/nonexistent/tokens") == -ENOENT &&
		strstr(e.remedy, "/dev/urandom"));
}

/* Settings behind a token start as the server's and hold for that token alone. */
static void test_token_settings(void)
{
	struct config c;
	struct error e;
	_cleanup_free_ char *path = strdup(write_file("tokens",
		"0123456789abcdef # all\n"
		"fedcba9876543210,1111222233334444\tmcp-tools=run_python,read_file  mcp-display=no mcp-memory=64M #x=y\n"));
	OK(LOAD(&c, &e, "--token-file", path, "--mcp-profile", "smolagents", "--mcp-tools",
		   "none") == 0);
	OK(c.n_token_options == 3 && !c.token_options[0].given && c.token_options[2].given);

	const struct mcp_options *own = &c.token_options[1].mcp;
	OK(!own->display && own->memory == 64 << 20 && c.mcp.display && !c.mcp.memory);
	OK_STR(own->profile, "smolagents");
	OK(c.mcp.tools && !c.mcp.tools[0]);
	OK_STR(own->tools[1], "read_file");
	OK_STR(c.token_options[2].mcp.tools[0], "run_python");
	config_finish(&c);

	write_file("tokens", "0123456789abcdef mcp-memry=1G\n");
	OK(LOAD(&c, &e, "--token-file", path) == -EINVAL && strstr(e.text, "line 1") &&
		strstr(e.remedy, "mcp-memory=VALUE"));
	write_file("tokens", "0123456789abcdef mcp-memory=lots\n");
	OK(LOAD(&c, &e, "--token-file", path) == -EINVAL);
}

static void test_unknown_variables(void)
{
	size_t position = 0;
	const char *near = NULL;
	setenv("GLOVEBOX_TIMEUOT", "3", 1);
	setenv("GLOVEBOX_URL", "http://127.0.0.1:1", 1);
	OK_STR(options_unknown_variable(config_rows, config_other_variables, &position, &near),
		"GLOVEBOX_TIMEUOT");
	OK_STR(near, "timeout");
	OK(!options_unknown_variable(config_rows, config_other_variables, &position, &near));
	unsetenv("GLOVEBOX_TIMEUOT");
	unsetenv("GLOVEBOX_URL");
}

static void test_words_between_flags(void)
{
	static const struct option_row rows[] = {
		{ "follow", 'f', OPTION_FLAG, 0 },
		{ NULL },
	};
	bool follow = false;
	char *argv[] = { (char *)"logs", (char *)"a", (char *)"-f", (char *)"b", (char *)"--",
		(char *)"-c" };
	struct error e;
	int first = options_parse_flags(rows, &follow, 6, argv, true, &e);
	OK(first == 3 && follow);
	OK_STR(argv[3], "a");
	OK_STR(argv[4], "b");
	OK_STR(argv[5], "-c");
}

static void test_help(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	options_print(config_rows, f);
	fclose(f);
	for (const struct option_row *row = config_rows; row->name; row++) {
		char flag[64];
		snprintf(flag, sizeof(flag), "--%s", row->name);
		OK(strstr(text, flag));
	}
	OK(strstr(text, "(default 127.0.0.1:8000)"));
	size_t longest = 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		longest = strlen(line) > longest ? strlen(line) : longest;
	OK(longest <= 100);
	free(text);
}

static void test_nearest(void)
{
	static const char *const words[] = { "serve", "shell", "ps", "kill", NULL };
	OK(nearest_distance("serve", "serve") == 0 && nearest_distance("serve", "srve") == 1);
	OK(nearest_distance("serve", "sevre") == 1 && nearest_distance("", "abc") == 3);
	OK_STR(nearest_word("sevre", words), "serve");
	OK_STR(nearest_word("KILL", words), "kill");
	OK(!nearest_word("teleport", words));
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	log_set_level(LOG_NONE);
	isolate();
	test_defaults();
	test_forms_of_flags();
	test_lists();
	test_precedence();
	test_file();
	test_file_errors();
	test_flag_errors();
	test_who_may_listen();
	test_token_file();
	test_token_settings();
	test_unknown_variables();
	test_words_between_flags();
	test_help();
	test_nearest();
	char command[64];
	static const char *const made[] = { "bad.conf", "a.conf", "other.conf", "tokens", NULL };
	for (const char *const *name = made; *name; name++)
		unlink(in_folder(*name));
	snprintf(command, sizeof(command), "%s/glovebox", folder);
	rmdir(command);
	OK(rmdir(folder) == 0);
	return tap_done();
}
