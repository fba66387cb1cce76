/* What a client does with a process that runs: input, signals, the size of its terminal. */
#include <errno.h>

#include "base/clock.h"
#include "session/processes/processes_internal.h"

int session_process_write(struct session_process *p, const char *data, size_t len, struct error *e)
{
	int r = p->program && !process_has_ended(p) ? program_write(p->program, data, len) : -EPIPE;
	p->session->times.used_ns = clock_now_ns();
	if (r == -EPIPE) {
		error_set(e, r, "the standard input of the process is closed");
		error_remedy(e, "Start it with \"stdin_open\": true to write to it.");
		return error_slug(e, "no_stdin");
	}

	if (r < 0) {
		error_set(e, r, "the process does not read its standard input");
		error_remedy(e, "Wait until the process has read its earlier input.");
		return error_slug(e, "stdin_full");
	}
	return 0;
}

void session_process_close_input(struct session_process *p)
{
	if (p->program && !process_has_ended(p))
		program_close_input(p->program);
}

int session_process_signal(struct session_process *p, int sig, struct error *e)
{
	int r = p->program && !process_has_ended(p) ? program_signal(p->program, sig) : -ESRCH;
	if (r == 0)
		return 0;
	error_set(e, -ESRCH, "the process has ended");
	return error_slug(e, "process_ended");
}

int session_process_resize(
	struct session_process *p, unsigned rows, unsigned columns, struct error *e)
{
	int r = p->program && !process_has_ended(p) ? program_resize(p->program, rows, columns)
						    : -ENOTTY;
	if (r == 0)
		return 0;
	error_set(e, -ENOTTY, "the process has no terminal");
	error_remedy(e, "Start it with \"pty\": {\"rows\": 24, \"cols\": 80}.");
	return error_slug(e, "no_terminal");
}
