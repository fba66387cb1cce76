#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

/*
 * Started with descriptors 0 to 2 closed, the first things we open would be taken for our input and
 * output.
 */
static void fill_standard_descriptors(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	int code = cli_main(argc, argv);
	/*
	 * Output that could not be written is also a failure, except when the reader closed the
	 * pipe on purpose.
	 */
	if (fflush(stdout) != 0 && errno != EPIPE && code == CLI_OK) {
		perror("glovebox: writing the output");
		return CLI_FAILED;
	}
	return code;
}
