/*
 * What this process and this machine have left of the resources that sessions need. A value that is
 * not known is UINT64_MAX.
 */
#pragma once

#include <stdint.h>

struct machine_room {
	uint64_t descriptors_limit, descriptors_left; /* of this process */
	uint64_t processes_limit, processes_left;     /* of the machine, or of our control group */
	uint64_t memory_limit, memory_left;           /* bytes; the same */
	uint64_t disk_left;                           /* bytes; 0 until somebody fills it in */
};

/* Reads a handful of small files. */
void machine_room_look(struct machine_room *ret);

/* The parts of it. */
uint64_t machine_processes_limit(void);
uint64_t machine_memory_left(void); /* of the machine */
uint64_t group_memory_left(void);   /* of the control group that we are in */
uint64_t machine_memory(void);      /* all that it has */
unsigned descriptors_open(void);    /* of this process */
