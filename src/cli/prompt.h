/* Lines from the keyboard with editing and history, or from a pipe without either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct prompt;

/* Standard input decides: a terminal gets editing, and the history file (may be NULL) is read. */
int prompt_create(const char *history_path, struct prompt **ret);
void prompt_destroy(struct prompt *p); /* saves the history; NULL is fine */

/* What stands before a new cell and before the further lines of one; Python's signs if not set. */
void prompt_set_marks(struct prompt *p, const char *mark, const char *more);

bool prompt_is_terminal(const struct prompt *p);

/*
 * Completion with Tab behind text (a tab is inserted behind blanks). The function gets the line up
 * to the cursor and returns the names that the word at its end can become (the caller's; NULL: none
 * are known), and the length of that word in bytes.
 */
struct prompt_matches {
	char **names; /* NULL at the end */
	size_t word_len;
};
typedef void (*prompt_complete)(
	void *userdata, const char *line, size_t len, struct prompt_matches *ret);
void prompt_set_completion(struct prompt *p, prompt_complete complete, void *userdata);
/* The same from the answer of …/complete, whose code ended with the line. */
void prompt_read_matches(
	const char *code, const char *json, size_t len, struct prompt_matches *ret);

enum prompt_event { PROMPT_LINE, PROMPT_INTERRUPT, PROMPT_END };

/*
 * Waits for a line. PROMPT_LINE: *ret_line (with its newline, if it had one) is valid until the
 * next call.
 */
enum prompt_event prompt_read(struct prompt *p, bool more, const char **ret_line);
