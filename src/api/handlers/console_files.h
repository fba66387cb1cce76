/* The files of the console (console/dist), embedded by scripts/embed-files. */
#pragma once

#include <stddef.h>

struct console_file {
	const char *path; /* "/index.html"; NULL in the last row */
	const char *type;
	const unsigned char *plain;
	size_t plain_len;
	const unsigned char *gzip;
	size_t gzip_len;
};

extern const struct console_file console_files[];
