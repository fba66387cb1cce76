/*
 * The user as whom the kernel checks and makes files. The daemon opens files of a session as that
 * session's user, so that no name or link planted by the session reaches a file that its own code
 * cannot open. The daemon has one thread, so nothing else runs under these ids.
 */
#pragma once

#include <sys/types.h>

struct file_identity {
	uid_t uid;
	gid_t gid;
};

/* Does nothing unless the process is root. Returns the process's own identity, for the way back. */
struct file_identity file_identity_enter(uid_t uid, gid_t gid);
void file_identity_leave(const struct file_identity *own);
