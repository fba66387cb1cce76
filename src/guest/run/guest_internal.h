/* Declarations shared by the files of guest.h; private to them. */
#pragma once

#include "guest/run/guest.h"
#include "wire/wire.h"

/*
 * guest_setup.c: applies a SETUP frame. Ends the process when the executor profile cannot be
 * applied.
 */
void guest_setup(const struct wire_frame *f, const struct support *s);

/* guest.c: from now on a cell may be sent while another waits in a main loop. */
void guest_catch_cell_signal(void);
