/* Lines from the keyboard with editing and history, or from a pipe without either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct prompt;

/* Standard input decides: a terminal gets editing, and the history file (may be NULL) is read. */
int prompt_create(const char *history_path, struct prompt **ret);
void prompt_destroy(struct prompt *p); /* saves the history; NULL is fine */

bool prompt_is_terminal(const struct prompt *p);

enum prompt_event { PROMPT_LINE, PROMPT_INTERRUPT, PROMPT_END };

/* Waits for a line. PROMPT_LINE: *ret_line (with its newline, if it had one) is valid until the next call. */
enum prompt_event prompt_read(struct prompt *p, bool more, const char **ret_line);
