/* The columns that `ps` and `top` share: a session of the server's list as text. */
#pragma once

#include <jansson.h>

/* A text of the session, or "-". */
const char *session_word(const json_t *session, const char *key);
/* Seconds since it was made. */
double session_age(const json_t *session);
/* Names come from other people: nothing in them moves the cursor. Two blanks follow. */
void session_print_plain(const char *s, int width);
