/*
 * Cleanup attributes for owning variables: when the scope of a variable ends, the object that it
 * owns is released. An owner starts empty (NULL, -1) and hands over with a take macro.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fds.h"

static inline void cleanup_free_pointer(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_fd(const int *fd)
{
	fd_close(*fd);
}

static inline void cleanup_close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(cleanup_free_pointer)
#define _cleanup_fd_ _cleanup_(cleanup_close_fd)
#define _cleanup_file_ _cleanup_(cleanup_close_file)

/* Moves ownership out of a variable, leaving it empty. */
#define TAKE_PTR(p)                                      \
	({                                               \
		__typeof__(p) *take_slot_ = &(p);        \
		__typeof__(p) take_value_ = *take_slot_; \
		*take_slot_ = NULL;                      \
		take_value_;                             \
	})

#define TAKE_FD(fd)                            \
	({                                     \
		int *take_slot_ = &(fd);       \
		int take_value_ = *take_slot_; \
		*take_slot_ = -1;              \
		take_value_;                   \
	})
