/*
 * The arrival of a fork's first guest: a copy from the outer jail says that it is in the fork's
 * jail (WIRE_LIVED); the mover (jail/mover.h) checks it and puts it into the fork's control groups;
 * only then does the copy become the sandbox's guest, and is told to continue (WIRE_JOINED).
 */
#pragma once

#include <sys/types.h>

struct sandbox_pool;
struct sandbox;

/* Something will arrive soon: starts the mover when it does not run, and has it prepare. */
void arrival_expect(struct sandbox_pool *n);

/*
 * This process says that it is the sandbox's guest. Takes the pidfd. The sandbox has its guest, or
 * fails, later.
 */
void arrival_begin(struct sandbox *b, int pidfd, pid_t pid);

/* restarts the mover if it died and a sandbox needs it */
void arrival_restart(struct sandbox_pool *n);
void arrival_destroy(struct sandbox_pool *n); /* ends the mover; asynchronous */
