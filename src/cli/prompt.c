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
#include "base/paths.h"
#include "base/text.h"
#include "json/json_read.h"

enum { HISTORY_LINES = 2000 };

enum { MARK_MAX = 32 };

struct prompt {
	EditLine *edit; /* NULL for a pipe */
	History *history;
	char *history_path;
	bool more, colour;
	char marks[2][MARK_MAX];  /* before a new cell, and inside one */
	prompt_complete complete; /* NULL: a tab is a tab */
	void *userdata;
	char *line; /* of a pipe */
	size_t line_cap;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* '\1' encloses characters that take no space on the screen. */
static char *prompt_text(EditLine *edit)
{
	struct prompt *p;
	el_get(edit, EL_CLIENTDATA, &p);
	return p->marks[p->more];
}

void prompt_set_marks(struct prompt *p, const char *mark, const char *more)
{
	const char *const words[] = { mark, more }, *const colours[] = { "1;32", "32" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (p->colour)
			snprintf(p->marks[i], MARK_MAX, "\1\033[%sm\1%s\1\033[0m\1 ", colours[i],
				words[i]);
		else
			snprintf(p->marks[i], MARK_MAX, "%s ", words[i]);
	}
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

/*
 * Waits for a byte with SIGINT let in only while it waits: one that came a moment earlier is not
 * lost. False at the end, or when it was interrupted.
 */
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

static size_t common_length(char *const *names)
{
	size_t n = strlen(names[0]);
	for (size_t i = 1; names[i]; i++) {
		size_t same = 0;
		while (same < n && names[i][same] == names[0][same])
			same++;
		n = same;
	}
	while (n && (names[0][n] & 0xc0) == 0x80)
		n--; /* not within a character */
	return n;
}

static void list_names(char *const *names)
{
	enum { WIDTH = 80, LISTED_MAX = 200 };
	size_t widest = 0, column = 0, n = 0;
	for (; names[n]; n++)
		if (strlen(names[n]) > widest)
			widest = strlen(names[n]);
	fputc('\n', stdout);
	for (size_t i = 0; i < n && i < LISTED_MAX; i++) {
		bool last = column + 2 * (widest + 2) > WIDTH;
		printf("%-*s%s", last ? 0 : (int)widest + 2, names[i], last ? "\n" : "");
		column = last ? 0 : column + widest + 2;
	}
	if (column)
		fputc('\n', stdout);
	if (n > LISTED_MAX)
		printf("… and %zu more\n", n - LISTED_MAX);
}

static void matches_finish(struct prompt_matches *m)
{
	for (size_t i = 0; m->names && m->names[i]; i++)
		free(m->names[i]);
	free(m->names);
}

static unsigned char put_matches(EditLine *edit, const struct prompt_matches *m)
{
	if (!m->names || !m->names[0])
		return CC_REFRESH_BEEP;
	size_t common = common_length(m->names);
	if (common > m->word_len) {
		m->names[0][common] = '\0';
		return el_insertstr(edit, m->names[0] + m->word_len) < 0 ? CC_ERROR : CC_REFRESH;
	}
	if (!m->names[1])
		return CC_NORM; /* it is complete */
	list_names(m->names);
	return CC_REDISPLAY;
}

/* What Tab does: the part that all matches share, or the list of them. */
static unsigned char complete_word(EditLine *edit, int key)
{
	struct prompt_matches m = { 0 };
	struct prompt *p;
	(void)key;
	el_get(edit, EL_CLIENTDATA, &p);
	const LineInfo *line = el_line(edit);
	size_t len = (size_t)(line->cursor - line->buffer);
	size_t blanks = 0;
	while (blanks < len && (line->buffer[blanks] == ' ' || line->buffer[blanks] == '\t'))
		blanks++;
	if (!p->complete || blanks == len)
		return el_insertstr(edit, "\t") < 0 ? CC_ERROR : CC_REFRESH;

	p->complete(p->userdata, line->buffer, len, &m);
	unsigned char what = put_matches(edit, &m);
	matches_finish(&m);
	return what;
}

/* Bytes of a text from this character on. */
static size_t bytes_behind(const char *text, size_t character)
{
	for (; *text && character; character--)
		do
			text++;
		while ((*text & 0xc0) == 0x80);
	return strlen(text);
}

/*
 * The names come from the guest, which is not trusted: names that would move the cursor are
 * omitted.
 */
static bool is_plain_match(const char *name, const char *word)
{
	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return text_starts(name, word);
}

void prompt_read_matches(const char *code, const char *json, size_t len, struct prompt_matches *ret)
{
	enum { MATCHES_MAX = 1000 };
	_cleanup_json_ json_t *tree = NULL;
	if (json_read(json, len, NULL, &tree) < 0)
		return;
	const json_t *matches = json_object_get(tree, "matches"), *one;
	json_int_t start = json_integer_value(json_object_get(tree, "start"));
	size_t i, n = 0;

	ret->names = calloc(MATCHES_MAX + 1, sizeof(char *));
	ret->word_len = bytes_behind(code, start > 0 ? (size_t)start : 0);
	const char *word = code + strlen(code) - ret->word_len;
	json_array_foreach(matches, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "text"));
		if (ret->names && n < MATCHES_MAX && name && is_plain_match(name, word) &&
			(ret->names[n] = strdup(name)))
			n++;
	}
}

void prompt_set_completion(struct prompt *p, prompt_complete complete, void *userdata)
{
	p->complete = complete;
	p->userdata = userdata;
}

static int open_editor(struct prompt *p, const char *history_path)
{
	setlocale(LC_CTYPE, "");
	p->edit = el_init("glovebox", stdin, stdout, stderr);
	if (!p->edit)
		return -ENOMEM;
	p->colour = !getenv("NO_COLOR") && isatty(STDOUT_FILENO);
	prompt_set_marks(p, ">>>", "...");
	el_set(p->edit, EL_CLIENTDATA, p);
	el_set(p->edit, EL_EDITOR, "emacs");
	el_set(p->edit, EL_PROMPT_ESC, prompt_text, '\1');
	el_set(p->edit, EL_SIGNAL, 0);
	el_set(p->edit, EL_GETCFN, read_character);
	el_set(p->edit, EL_ADDFN, "complete-word", "complete the word", complete_word);
	el_set(p->edit, EL_BIND, "^I", "complete-word", NULL);
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
	if (!p->history_path || paths_make_parents(p->history_path) < 0)
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
