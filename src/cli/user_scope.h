/*
 * Control groups for an ordinary user: the program starts itself again in a scope of the user's
 * systemd manager, which delegates a part of the control group tree to it.
 */
#pragma once

#include <stdbool.h>

/*
 * The command that gives a program control groups, for people: NULL when there is no user manager
 * that could.
 */
const char *user_scope_command(void);

/*
 * Restarts this program with these arguments (the verb first) in such a scope: where an ordinary
 * user has no control groups, and a user manager gives them. Returns otherwise, also when this is
 * the restarted program.
 */
void user_scope_enter(char **argv);
