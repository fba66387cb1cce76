/*
 * How the session layer starts a zygote: descriptors beside 0, 1, 2, and the program's arguments.
 */
#pragma once

enum {
	ZYGOTE_SOCKET_FD = 3,
	ZYGOTE_JAILER_FD = 4,
	ZYGOTE_BOOK_FD = 5 /* may be missing: zygote/placement/heap_placement.h */
};

/* Whether it can find out what a first cell touches (zygote/placement/access_trace.h). */
#ifdef __x86_64__
enum { ZYGOTE_LEARNS = 1 };
#else
enum { ZYGOTE_LEARNS = 0 };
#endif

/*
 * argv: python3 -I -B -X utf8 -c ZYGOTE_BOOT path-of-the-module cache-dir module…
 * -I: neither the environment nor the current directory reach the interpreter.
 */
#define ZYGOTE_BOOT                                                       \
	"import sys, importlib.util as u\n"                               \
	"s = u.spec_from_file_location('_glovebox_guest', sys.argv[1])\n" \
	"m = u.module_from_spec(s)\n"                                     \
	"m.run(sys.argv[3:], sys.argv[2])\n"
