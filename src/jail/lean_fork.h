/*
 * Shared libraries that children of this process do not get. The program is one file with libraries
 * for HTTP, pictures and displays; the jailer and the inits, which are its copies, call none of
 * them. Each mapping of a library costs a fork and the exit of the child about 2 µs.
 */
#pragma once

/*
 * The process itself keeps them. Without effect for libraries that are not in the table of
 * lean_fork.c.
 */
void lean_fork_prepare(void);
