#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
	int code = cli_main(argc, argv);
	/* Output that could not be written is a failure too, but one that a reader who left has chosen. */
	if (fflush(stdout) != 0 && errno != EPIPE && code == CLI_OK) {
		perror("glovebox: writing the output");
		return CLI_FAILED;
	}
	return code;
}
