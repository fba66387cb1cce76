/*
 * Between the zygote's clone and the program: the process enters the jail as a guest does, takes
 * its START frame, and executes the program.
 *
 * Code of the session may be running in the jail meanwhile. The process therefore stays undumpable
 * until execve, which makes it dumpable again: before that nobody in the jail can open its
 * descriptors or write into its memory, and after that it has the guests' filter and only
 * descriptors 0, 1 and 2.
 */
#include "zygote/zygote_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "guest/run/own_limits.h"
#include "wire/start.h"
#include "wire/wire.h"

enum { CONTROL = 3, PROGRAMS_MAX = 4, EXIT_FAILED = 127, SEARCH_MAX = 4096 };

/*
 * The decoded frame; texts lie in `frame`, each ended by a NUL that overwrites the tag of the next
 * field.
 */
static struct program {
	char frame[START_MESSAGE_BYTES + 1];
	char *argv[START_ARGS + 1], *envp[START_ARGS + 1], *programs[PROGRAMS_MAX + 1];
	unsigned n_args, n_env, n_programs;
	const char *cwd;
	uint64_t terminal; /* 0: none */
	int input;
} program;

static void __attribute__((noreturn)) fail(int control, const char *step, int err)
{
	struct wire_started m = { .err = err < 0 ? err : -EIO, .pid = getpid() };
	snprintf(m.step, sizeof(m.step), "%s", step);
	fd_send(control, &m, sizeof(m), NULL, 0);
	_exit(EXIT_FAILED);
}

/* ---- the frame ------------------------------------------------------------------------- */

static void add(char **list, unsigned *n, unsigned max, const struct wire_field *f)
{
	if (*n < max)
		list[(*n)++] = (char *)(uintptr_t)f->data;
}

static void take_field(const struct wire_field *f)
{
	uint64_t n;
	if (f->tag == WIRE_ARG)
		add(program.argv, &program.n_args, START_ARGS, f);
	else if (f->tag == WIRE_ENV)
		add(program.envp, &program.n_env, START_ARGS, f);
	else if (f->tag == WIRE_PROGRAM)
		add(program.programs, &program.n_programs, PROGRAMS_MAX, f);
	else if (f->tag == WIRE_CWD)
		program.cwd = f->data;
	else if (f->tag == WIRE_TERMINAL && wire_field_u64(f, &n) == 0)
		program.terminal = n;
	else
		own_limits_apply(f);
}

static void take_frame(int control)
{
	ssize_t len = fd_recv(control, program.frame, START_MESSAGE_BYTES, &program.input, 1, NULL);
	if (len < (ssize_t)WIRE_HEADER)
		fail(control, "receiving the command", len < 0 ? (int)len : -EPROTO);
	struct wire_frame f = { .type = (uint8_t)program.frame[4],
		.fields = program.frame + WIRE_HEADER,
		.len = (size_t)len - WIRE_HEADER };
	struct wire_field field, before = { 0 };
	size_t at = 0;
	int r;
	while ((r = wire_field_next(&f, &at, &field)) == 1) {
		take_field(&field);
		if (before.data)
			*((char *)(uintptr_t)before.data + before.len) = '\0';
		before = field;
	}

	if (before.data)
		*((char *)(uintptr_t)before.data + before.len) = '\0';
	if (f.type != WIRE_START || r < 0 || !program.n_args)
		fail(control, "reading the command", -EPROTO);
}

/* ---- standard streams -------------------------------------------------------------------- */

/* A terminal of the jail's own /dev/pts; returns the slave, and the master for the daemon. */
static int open_terminal(int control, int *ret_master)
{
	struct winsize size = { .ws_row = (unsigned short)(program.terminal >> 16),
		.ws_col = (unsigned short)(program.terminal & 0xffff) };
	int unlock = 0;
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		fail(control, "opening a terminal", -errno);
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		fail(control, "unlocking the terminal", -errno);
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		fail(control, "opening the terminal's other end", -errno);
	ioctl(master, TIOCSWINSZ, &size);
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		fail(control, "taking the terminal", -errno);
	*ret_master = master;
	return slave;
}

static void place_streams(int control, const int *fds, int *ret_master)
{
	int in = program.input, out = fds[2], err = fds[3];
	*ret_master = -1;
	if (program.terminal)
		in = out = err = open_terminal(control, ret_master);
	else if (in < 0)
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* all of them are above 2: the zygote has those three open */
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		dup2(err, STDERR_FILENO) < 0)
		fail(control, "placing the standard streams", -errno);
}

/* ---- the program ---------------------------------------------------------------------------- */

static const char *variable(const char *name)
{
	size_t n = strlen(name);
	for (unsigned i = 0; i < program.n_env; i++)
		if (!strncmp(program.envp[i], name, n) && program.envp[i][n] == '=')
			return program.envp[i] + n + 1;
	return NULL;
}

/* As execvp() does, with the program's own PATH. Returns the errno that says most. */
static int search(const char *name)
{
	static char path[SEARCH_MAX];
	const char *at = variable("PATH");
	int told = ENOENT;

	for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at; at += *at == ':') {
		size_t n = strcspn(at, ":");
		int len = snprintf(path, sizeof(path), "%.*s/%s", (int)n, at, name);
		at += n;
		if (!n || len >= (int)sizeof(path))
			continue;
		execve(path, program.argv, program.envp);
		if (errno != ENOENT && errno != ENOTDIR)
			told = errno;
	}

	return told;
}

static int execute(void)
{
	for (unsigned i = 0; i < program.n_programs; i++) {
		execve(program.programs[i], program.argv, program.envp);
		if (errno != ENOENT)
			return errno;
	}
	if (program.n_programs)
		return ENOENT;
	if (!strchr(program.argv[0], '/'))
		return search(program.argv[0]);
	execve(program.argv[0], program.argv, program.envp);
	return errno;
}

/* Python's handlers and the signals it ignores are not the program's. */
static void default_signals(void)
{
	sigset_t none;
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void program_run(const int *fds, size_t n_join, enum jail_exec exec, enum jail_net net,
	int (*load_filter)(enum jail_exec exec, enum jail_net net))
{
	const char *step = "";
	int control = fds[1], master, r;
	for (size_t i = 0; i < n_join; i++)
		if (write(fds[WIRE_SPAWN_FDS + i], "0", 1) != 1)
			fail(control, "joining the control groups", -errno);
	if ((r = jail_enter_closed(fds[0], exec, net, &step)) < 0)
		fail(control, step, r);
	default_signals();
	take_frame(control);
	place_streams(control, fds, &master);

	struct wire_started m = { .pid = getpid() };
	if (fd_send(control, &m, sizeof(m), &master, master >= 0 ? 1 : 0) < 0)
		_exit(EXIT_FAILED);
	if (control != CONTROL && dup3(control, CONTROL, O_CLOEXEC) < 0)
		fail(control, "placing the control socket", -errno);
	syscall(SYS_close_range, CONTROL + 1U, ~0U, 0);
	if ((r = load_filter(exec, net)) < 0)
		fail(CONTROL, "loading the system call filter", r);
	if (program.cwd && chdir(program.cwd) < 0)
		fail(CONTROL, "entering the working directory", -errno);
	fail(CONTROL, "executing the program", -execute());
}
