#include "cli/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/cleanup.h"
#include "daemon/paths.h"

enum { HISTORY_LINES = 2000 };

struct prompt {
	EditLine *edit; /* NULL for a pipe */
	History *history;
	char *history_path;
	bool more, colour;
	char *line; /* of a pipe */
	size_t line_cap;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* '\1' encloses what takes no room on the screen. */
static char *prompt_text(EditLine *edit)
{
	static char plain[] = ">>> ", more[] = "... ";
	static char coloured[] = "\1\033[1;32m\1>>>\1\033[0m\1 ",
		    coloured_more[] = "\1\033[32m\1...\1\033[0m\1 ";
	struct prompt *p;
	el_get(edit, EL_CLIENTDATA, &p);
	if (p->colour)
		return p->more ? coloured_more : coloured;
	return p->more ? more : plain;
}

static void open_history(struct prompt *p, const char *path)
{
	HistEvent event;
	p->history = history_init();
	if (!p->history)
		return;
	history(p->history, &event, H_SETSIZE, HISTORY_LINES);
	history(p->history, &event, H_SETUNIQUE, 1);
	el_set(p->edit, EL_HIST, history, p->history);
	if (!path)
		return;
	p->history_path = strdup(path);
	history(p->history, &event, H_LOAD, path);
}

/* Waits for a byte with SIGINT let in only while it waits: one that came a moment earlier is not lost. False at the end, or when
 * it was interrupted. */
static bool next_byte(char *ret)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	sigset_t open;
	sigprocmask(SIG_SETMASK, NULL, &open);
	sigdelset(&open, SIGINT);
	while (!interrupted) {
		if (ppoll(&in, 1, NULL, &open) > 0)
			return read(STDIN_FILENO, ret, 1) == 1;
		if (errno != EINTR)
			return false;
	}
	return false;
}

/* One character for the editor, of as many bytes as it has. */
static int read_character(EditLine *edit, wchar_t *ret)
{
	mbstate_t state = { 0 };
	char byte;
	(void)edit;
	while (next_byte(&byte)) {
		size_t n = mbrtowc(ret, &byte, 1, &state);
		if (n == 0 || n == 1)
			return 1;
		if (n == (size_t)-1)
			state = (mbstate_t){ 0 }; /* not a character: go on with what follows */
	}
	return interrupted ? -1 : 0;
}

static int open_editor(struct prompt *p, const char *history_path)
{
	setlocale(LC_CTYPE, "");
	p->edit = el_init("glovebox", stdin, stdout, stderr);
	if (!p->edit)
		return -ENOMEM;
	p->colour = !getenv("NO_COLOR") && isatty(STDOUT_FILENO);
	el_set(p->edit, EL_CLIENTDATA, p);
	el_set(p->edit, EL_EDITOR, "emacs");
	el_set(p->edit, EL_PROMPT_ESC, prompt_text, '\1');
	el_set(p->edit, EL_SIGNAL, 0);
	el_set(p->edit, EL_GETCFN, read_character);
	/* A tab indents, as in Python's own prompt. */
	el_set(p->edit, EL_BIND, "^I", "ed-insert", NULL);
	open_history(p, history_path);
	el_source(p->edit, NULL);
	return 0;
}

int prompt_create(const char *history_path, struct prompt **ret)
{
	struct prompt *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	int r = isatty(STDIN_FILENO) ? open_editor(p, history_path) : 0;
	if (r < 0) {
		prompt_destroy(p);
		return r;
	}
	*ret = p;
	return 0;
}

static void save_history(struct prompt *p)
{
	HistEvent event;
	if (!p->history_path || places_make_parents(p->history_path) < 0)
		return;
	/* Made first, so that libedit finds it private: what people type is nobody else's. */
	fd_close(open(p->history_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	history(p->history, &event, H_SAVE, p->history_path);
}

void prompt_destroy(struct prompt *p)
{
	if (!p)
		return;
	if (p->history) {
		save_history(p);
		history_end(p->history);
	}
	if (p->edit)
		el_end(p->edit);
	free(p->history_path);
	free(p->line);
	free(p);
}

bool prompt_is_terminal(const struct prompt *p)
{
	return p->edit != NULL;
}

static enum prompt_event read_pipe(struct prompt *p, const char **ret_line)
{
	if (getline(&p->line, &p->line_cap, stdin) < 0)
		return PROMPT_END;
	*ret_line = p->line;
	return PROMPT_LINE;
}

static enum prompt_event read_edited(struct prompt *p, const char **ret_line)
{
	HistEvent event;
	int count = 0;
	struct sigaction catch = { .sa_handler = on_interrupt }, before;
	sigset_t interrupt, mask;
	interrupted = 0;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &mask); /* let in by next_byte() */
	sigaction(SIGINT, &catch, &before);
	const char *line = el_gets(p->edit, &count);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGINT, &before, NULL);
	if (interrupted) {
		el_reset(p->edit);
		fputs("\nKeyboardInterrupt\n", stdout);
		return PROMPT_INTERRUPT;
	}
	if (!line || count <= 0)
		return PROMPT_END;
	if (p->history && strspn(line, " \t\r\n") < strlen(line))
		history(p->history, &event, H_ENTER, line);
	*ret_line = line;
	return PROMPT_LINE;
}

enum prompt_event prompt_read(struct prompt *p, bool more, const char **ret_line)
{
	p->more = more;
	return p->edit ? read_edited(p, ret_line) : read_pipe(p, ret_line);
}
