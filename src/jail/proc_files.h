/*
 * The jail's /proc: processes of the session, and files about the machine whose content is the
 * session's own (figures.h).
 *
 * A /proc with subset=pid has no place to mount these files on. So a full /proc is mounted first,
 * the files are mounted over the files of the same name, and then this /proc is reduced to
 * processes: the kernel keeps the names with a mount on them, and drops all others. Only the init
 * sees the full /proc.
 *
 * The init holds a write lease on each file that changes. A process that opens such a file waits
 * until the init has written the current figures and has given the lease back. While a process
 * keeps the file open the init cannot take the lease; the content is then renewed once a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "jail/figures.h"

/*
 * The directory of the shared tree with the files that are the same in all jails; see
 * machine_add().
 */
#define PROC_FILES_SHARED "/etc/proc"

/*
 * Mounts /proc. Called by the init while it has its privileges; /dev/shm must be the jail's own.
 * The descriptors of the files that change are the caller's. *ret_step names what failed.
 */
int proc_files_mount(int ret_fds[FIGURES_FILES], const char **ret_step);

/*
 * Opens another /proc of this pid namespace, which hides no process, for the daemon, which looks
 * after the jail with it (members.h). Before proc_files_mount(), whose /proc covers it: no code of
 * the session can reach it.
 */
int proc_files_open_unhidden(int *ret, const char **ret_step);

/*
 * What the init keeps about them. All zero but the descriptors and the control socket at the start.
 */
struct proc_files {
	int fds[FIGURES_FILES];
	int control; /* on which the figures are asked for: JAIL_FIGURES */
	bool leased[FIGURES_FILES];
	bool asked;
	uint64_t due_ns;  /* when to look again; 0: nothing to do */
	unsigned wait_ms; /* until then; doubled while a file stays open */
	struct jail_figures last;
};

/* Fills the files and takes the leases; before the first guest comes. SIGIO must be blocked. */
void proc_files_start(struct proc_files *p);

/* To call after SIGIO: perhaps a process waits to open a file. */
void proc_files_opened(struct proc_files *p);

/* The daemon's answer. */
void proc_files_answered(struct proc_files *p, const struct jail_figures *f);

/* How long poll() may wait, in milliseconds or -1, and what to do when that time is over. */
int proc_files_wait_ms(const struct proc_files *p);
void proc_files_tick(struct proc_files *p);
