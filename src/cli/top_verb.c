/* glovebox top: memory, CPU and cells of the server's sessions, again and again. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/session_rows.h"
#include "json/json_read.h"

struct options {
	struct client_options client;
	double interval_s;
	int sort;
	bool once, help;
};

enum sort { SORT_CPU, SORT_MEMORY, SORT_CELLS, SORT_AGE };
static const char *const sorts[] = { "cpu", "memory", "cells", "age", NULL };

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "interval", 'i', OPTION_SECONDS, offsetof(struct options, interval_s), 0.2, 3600, "SECONDS", .fallback = "2",
	  .flag_only = true, .help = "time between two updates" },
	{ "sort", 's', OPTION_CHOICE, offsetof(struct options, sort), .value = "COLUMN", .fallback = "cpu", .choices = sorts,
	  .flag_only = true, .help = "cpu, memory, cells or age; the largest first" },
	{ "once", '1', OPTION_FLAG, offsetof(struct options, once), .flag_only = true,
	  .help = "print the table once (the default if the output is not a terminal)" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "top",
	.usage = "[options]",
	.about =
		"Shows the sessions of a server with their memory, CPU and cells, and updates the table until q or Ctrl-C is\n"
		"pressed. CPU% is the CPU time since the previous update, in percent of one core.",
	.rows = rows,
	.examples = "  glovebox top\n"
		    "  glovebox top --sort memory --once\n",
	.environment = true,
};

/* ---- figures ------------------------------------------------------------------------- */

struct line {
	const json_t *session; /* of the list */
	double cpu_percent, cpu_s, memory, age;
	long long cells;
};

static double usage_of(const json_t *session, const char *key)
{
	return json_number_value(json_object_get(json_object_get(session, "usage"), key));
}

static double cpu_before(const json_t *earlier, const json_t *session, double fallback)
{
	const json_t *known = earlier ? json_object_get(earlier, session_word(session, "id"))
				      : NULL;
	return known ? json_number_value(known) : fallback;
}

/* elapsed_s: since the earlier look; 0: there was none. */
static void measure(
	const json_t *session, const json_t *earlier, double elapsed_s, struct line *ret)
{
	*ret = (struct line){ .session = session,
		.cpu_s = usage_of(session, "cpu_s"),
		.memory = usage_of(session, "memory_bytes"),
		.age = session_age(session),
		.cells = json_integer_value(json_object_get(session, "cells")) };
	if (elapsed_s > 0)
		ret->cpu_percent = 100 * (ret->cpu_s - cpu_before(earlier, session, ret->cpu_s)) /
				   elapsed_s;
	if (ret->cpu_percent < 0)
		ret->cpu_percent = 0;
}

static int order;

static double key_of(const struct line *l)
{
	switch ((enum sort)order) {
	case SORT_MEMORY:
		return l->memory;
	case SORT_CELLS:
		return (double)l->cells;
	case SORT_AGE:
		return l->age;
	case SORT_CPU:
		break;
	}

	return l->cpu_percent + l->cpu_s * 1e-9; /* the sleeping ones by what they used */
}

static int compare(const void *a, const void *b)
{
	double x = key_of(a), y = key_of(b);
	return x < y ? 1 : x > y ? -1 : 0;
}

static json_t *remember(const json_t *sessions)
{
	json_t *all = json_object();
	for (size_t i = 0; i < json_array_size(sessions); i++) {
		const json_t *s = json_array_get(sessions, i);
		json_object_set_new(all, session_word(s, "id"), json_real(usage_of(s, "cpu_s")));
	}
	return all;
}

/* ---- the table ----------------------------------------------------------------------- */

static void print_line(const struct line *l)
{
	char memory[CLI_AMOUNT_MAX], age[CLI_AMOUNT_MAX];
	printf("%-28s  ", session_word(l->session, "id"));
	session_print_plain(session_word(l->session, "name"), 16);
	printf("%-8s  %5lld  %8s  %6.1f  %7.2f  %5s\n", session_word(l->session, "state"), l->cells,
		cli_format_size(l->memory, memory), l->cpu_percent, l->cpu_s,
		cli_format_age(l->age, age));
}

static void print_table(const struct line *lines, size_t n, size_t most)
{
	double memory = 0, cpu = 0;
	char size[CLI_AMOUNT_MAX];
	for (size_t i = 0; i < n; i++) {
		memory += lines[i].memory;
		cpu += lines[i].cpu_percent;
	}

	printf("%zu %s, %s of memory, %.1f %% CPU\n\n", n, n == 1 ? "session" : "sessions",
		cli_format_size(memory, size), cpu);
	printf("%-28s  %-16s  %-8s  %5s  %8s  %6s  %7s  %5s\n", "ID", "NAME", "STATE", "CELLS",
		"MEMORY", "CPU%", "CPU s", "AGE");
	for (size_t i = 0; i < n && i < most; i++)
		print_line(&lines[i]);
	if (n > most)
		printf("… and %zu more\n", n - most);
}

static size_t room(bool live)
{
	struct winsize size = { 0 };
	enum { HEAD_LINES = 5 };
	if (!live || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row <= HEAD_LINES)
		return live ? 20 : SIZE_MAX;
	return size.ws_row - HEAD_LINES;
}

static int show(
	const json_t *sessions, const json_t *earlier, double elapsed_s, bool live, struct error *e)
{
	size_t n = json_array_size(sessions);
	struct line *lines = calloc(n + 1, sizeof(*lines));
	if (!lines)
		return error_set_errno(e, -ENOMEM, "the table");
	for (size_t i = 0; i < n; i++)
		measure(json_array_get(sessions, i), earlier, elapsed_s, &lines[i]);
	qsort(lines, n, sizeof(*lines), compare);
	if (live)
		fputs("\033[H\033[2J", stdout);
	print_table(lines, n, room(live));
	fflush(stdout);
	free(lines);
	return 0;
}

/* ---- the screen ---------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static struct termios before;

static bool enter_screen(void)
{
	struct termios plain;
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		sigaction(ends[i], &(struct sigaction){ .sa_handler = on_signal }, NULL);
	fputs("\033[?1049h\033[?25l", stdout);
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return false;
	plain = before;
	plain.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &plain) == 0;
}

static void leave_screen(bool changed)
{
	if (changed)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
}

/* Waits for the next look; false when the user wants no more. */
static bool wait_next(double seconds, bool keys)
{
	struct pollfd in = { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN };
	char c = 0;
	if (stopped)
		return false;
	if (poll(&in, 1, (int)(seconds * 1000)) > 0 && (read(STDIN_FILENO, &c, 1) != 1 || c == 'q'))
		return false;
	return !stopped;
}

static int watch(const struct options *o, struct client *c, bool live, struct error *e)
{
	_cleanup_json_ json_t *earlier = NULL;
	uint64_t last = 0;
	bool keys = live && enter_screen();
	int r = 0;
	for (;;) {
		_cleanup_json_ json_t *sessions = NULL;
		r = client_sessions(c, true, e, &sessions);
		uint64_t now = clock_now_ns();
		if (r == 0)
			r = show(sessions, earlier,
				last ? (double)(now - last) / (double)NSEC_PER_SEC : 0, live, e);
		if (r < 0 || !live)
			break;
		json_decref(earlier);
		earlier = remember(sessions);
		last = now;
		if (!wait_next(o->interval_s, keys))
			break;
	}

	if (live)
		leave_screen(keys);
	return r;
}

static int run_top(const struct options *o)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	struct error e = { 0 };
	bool live = !o->once && isatty(STDOUT_FILENO);
	order = o->sort;
	int r = client_create(&o->client, &e, &c);
	if (r == 0)
		r = watch(o, c, live, &e);
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_top(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first >= 0 && first < argc)
		code = cli_usage(page.verb, "unexpected argument '%.60s'", argv[first]);
	else if (first >= 0)
		code = run_top(&o);
	options_finish(rows, &o);
	return code;
}
