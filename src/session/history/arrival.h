/*
 * The arrival of a fork's first guest: a copy from the outer jail says that it is in the fork's jail (WIRE_LIVED); the mover (jail/mover.h)
 * checks it and puts it into the fork's control groups; only then is it the berth's guest, and told to go on (WIRE_JOINED).
 */
#pragma once

#include <sys/types.h>

struct nursery;
struct berth;

/* Something will arrive soon: starts the mover when it does not run, and has it prepare. */
void arrival_expect(struct nursery *n);

/* This process says that it is the berth's guest. Takes the pidfd. The berth has its guest, or fails, later. */
void arrival_begin(struct berth *b, int pidfd, pid_t pid);

void arrival_restart(struct nursery *n); /* starts the mover again when somebody needs it and it died */
void arrival_destroy(struct nursery *n); /* ends the mover; asynchronous */
