/*
 * What a process that is about to become a program tells the daemon, on the control socket
 * (SEQPACKET) that it was given.
 *
 * One message before the program is executed, with the number of the process in its jail and, when
 * a terminal was asked for, the terminal's master. Then the socket closes when the program runs, or
 * a second message names the step that failed. The code that sends them is ours: no code of the
 * session can reach the process before it has become the program.
 */
#pragma once

#include <stdint.h>

enum {
	START_MESSAGE_BYTES = 192 * 1024, /* of a START frame; it is one message */
	START_ARGS = 1024,                /* arguments, and as many variables */
	START_STEP_BYTES = 64,
};

struct wire_started {
	int32_t err; /* negative errno of the step that failed; 0: none has yet */
	int32_t pid; /* in the jail */
	char step[START_STEP_BYTES];
};
