/*
 * Names that do not compile here (forced into every unit by the build), each with a bounded
 * replacement.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(GLOVEBOX_NO_BANNED)
/* Some are macros under clang with _FORTIFY_SOURCE; poisoning a macro is a warning there. */
#undef strcpy
#undef strcat
#undef sprintf
#undef vsprintf
#undef gets
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof system popen gets mktemp \
	tmpnam
#endif
