/* What the files of cgroup.h share; not for others. */
#pragma once

#include <stdint.h>

/* Indexes of the homes in version 1's hierarchies. */
enum { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_CPUACCT };

/* The number behind `key ` in a file of lines, or the file's first number when key is NULL; 0 when there is none. */
uint64_t cgroup_read_number(int dir, const char *name, const char *file, const char *key);
