/* glovebox version */
#include <stdio.h>
#include <uv.h>

#include "cli/cli.h"

struct options {
	bool json, help;
};

static const struct option_row rows[] = {
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "version",
	.usage = "[--json]",
	.about = "Shows the version of this program.",
	.rows = rows,
};

int cli_version(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first < 0)
		return code;
	if (first < argc)
		return cli_usage(page.verb, "unexpected argument '%.60s'", argv[first]);
	if (o.json)
		printf("{\"version\":\"%s\",\"libuv\":\"%s\"}\n", GLOVEBOX_VERSION,
			uv_version_string());
	else
		printf("glovebox %s\n", GLOVEBOX_VERSION);
	return CLI_OK;
}
