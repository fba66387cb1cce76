#include "base/file_identity.h"

#include <sys/fsuid.h>
#include <unistd.h>

struct file_identity file_identity_enter(uid_t uid, gid_t gid)
{
	struct file_identity own = { geteuid(), getegid() };
	if (own.uid == 0) {
		setfsgid(gid);
		setfsuid(uid);
	}
	return own;
}

void file_identity_leave(const struct file_identity *own)
{
	if (own->uid == 0) {
		setfsuid(own->uid);
		setfsgid(own->gid);
	}
}
