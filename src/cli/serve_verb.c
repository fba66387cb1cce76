/* glovebox serve */
#include "daemon/serve.h"

#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/user_scope.h"
#include "daemon/config.h"

static const struct cli_page page = {
	.verb = "serve",
	.usage = "[options]",
	.about =
		"Starts the server and runs until SIGTERM or Ctrl-C.\n"
		"Every option except those of the last group is also a variable (GLOVEBOX_ and the name in capitals: "
		"GLOVEBOX_MAX_SESSIONS)\n"
		"and a line of the settings file (max-sessions = 100). A flag overrides a variable, a "
		"variable overrides the file.\n"
		"Settings with a maximum show it: a session may request at most --max-NAME; a maximum of 0 is no limit.",
	.rows = config_rows,
	.examples = "  glovebox serve\n"
		    "  glovebox serve --listen 127.0.0.1:9000 --timeout 10 --memory 512M\n"
		    "  glovebox serve --listen 0.0.0.0:8000 --token-file /etc/glovebox/tokens\n"
		    "  GLOVEBOX_PRELOAD=numpy,scipy glovebox serve\n",
};

static bool is_waived(const struct config *c, const char *layer)
{
	for (char **name = c->waive; name && *name; name++)
		if (text_eq(*name, layer))
			return true;
	return false;
}

int cli_serve(int argc, char **argv)
{
	struct config config = { 0 };
	struct error e = { 0 };
	int code;

	/* Help first: it must not depend on what the settings file says. */
	int first = cli_parse(&page, &config, argc, argv, false, &code);
	config_finish(&config);
	if (first < 0)
		return code;
	config = (struct config){ 0 };
	if (config_load(argc, argv, &e, &config) < 0) {
		cli_show_error(page.verb, &e);
		return CLI_USAGE;
	}

	if (config.check)
		printf("The settings are valid%s%s.\n",
			config.file ? ": flags, variables and " : "",
			config.file ? config.file : "");
	if (!config.check && !is_waived(&config, "cgroup"))
		user_scope_enter(argv);
	code = config.check ? CLI_OK : serve_run(&config);
	config_finish(&config);
	return code;
}
