/*
 * A child of the zygote that becomes a program beside the interpreters of a session (wire/start.h).
 */
#pragma once

#include <stddef.h>

#include "jail/jail.h"

/*
 * The child, from its first instruction: fds are those of struct wire_spawn, of which n_join are
 * files of control groups to join. `load_filter` loads the system call filter of the session's
 * guests; it is called with every descriptor closed that the program does not get.
 */
void __attribute__((noreturn)) program_run(const int *fds, size_t n_join, enum jail_exec exec,
	enum jail_net net, int (*load_filter)(enum jail_exec exec, enum jail_net net));
