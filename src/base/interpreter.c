#include "base/interpreter.h"

#include <linux/limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char link_path[] = "/usr/bin/python3";
static const char prefix[] = "python3.";

const char *interpreter_path(void)
{
	static char found[PATH_MAX];
	if (found[0])
		return found;

	/* Only a name with a version: it also names the library's folder and the guest module. */
	char path[PATH_MAX];
	const char *name = realpath(link_path, path) ? strrchr(path, '/') + 1 : "";
	const char *chosen = strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? path : BUILT_PYTHON;
	memcpy(found, chosen, strlen(chosen) + 1);
	return found;
}

const char *interpreter_name(void)
{
	return strrchr(interpreter_path(), '/') + 1;
}

const char *interpreter_version(void)
{
	bool built_with = strcmp(interpreter_path(), BUILT_PYTHON) == 0;
	return built_with ? BUILT_PYTHON_VERSION : interpreter_name() + strlen("python");
}
