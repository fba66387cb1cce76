#include "api/script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/run_files.h"
#include "api/schema/requests.h"

/* A signal that ended the program ends this one, too, so that clients learn of the signal. */
static const struct launcher {
	const char *path, *code;
} launchers[] = {
	[SCRIPT_BASH] = { "main.sh",
		"import os, signal, subprocess, sys\n"
		"code = subprocess.call(['/bin/bash', 'main.sh', *sys.argv[1:]])\n"
		"if code < 0:\n"
		"    if code not in (-signal.SIGKILL, -signal.SIGSTOP):\n"
		"        signal.signal(-code, signal.SIG_DFL)\n"
		"    os.kill(os.getpid(), -code)\n"
		"sys.exit(code if code >= 0 else 128 - code)\n" },
	[SCRIPT_PYTEST] = { "test_main.py",
		"import pytest, sys\n"
		"sys.exit(int(pytest.main(['-p', 'no:cacheprovider', 'test_main.py', *sys.argv[1:]])))\n" },
};

int script_prepare(struct run_request *run, struct error *e)
{
	if (run->language == SCRIPT_PYTHON)
		return 0;

	const struct launcher *l = &launchers[run->language];
	char *code = strdup(l->code);
	if (!code || run_files_add(&run->files, l->path, &run->execute.code) < 0) {
		free(code);
		return error_set(e, -ENOMEM, "out of memory");
	}
	run->execute.code = (struct field_text){ code, strlen(code) };
	return 0;
}
