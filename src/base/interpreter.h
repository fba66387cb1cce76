/*
 * The Python that sessions run: the one that the system calls /usr/bin/python3, never another that
 * comes first on PATH. It is looked up once, when the program runs, so that one build serves
 * systems with different versions.
 */
#pragma once

/*
 * The program itself, without links: "/usr/bin/python3.11". Never NULL: the path that was found
 * while building when there is none now, so that starting it fails with its name.
 */
const char *interpreter_path(void);

/* Its name: "python3.11". */
const char *interpreter_name(void);

/* "3.11.2" where it is the version that this program was built with, else "3.13". */
const char *interpreter_version(void);
