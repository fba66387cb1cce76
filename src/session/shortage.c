/*
 * Resources of the machine or of this process that have run out, so that the server cannot create
 * sessions.
 */
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/machine_room.h"
#include "session/internal.h"

enum {
	LOOK_MS = 300, /* between two looks at the machine */
	/* below this any session may be the one that the kernel kills for want of memory */
	MEMORY_LEAST = 64 << 20,
	DISK_LEAST = 8 << 20, /* of the state directory: logs, recordings and packages need it */
	INODES_LEAST = 32,
};

static void look_at_memory(char *why, size_t size)
{
	uint64_t machine = machine_memory_left(), group = group_memory_left();

	if (machine < MEMORY_LEAST)
		snprintf(why, size, "the machine has only %llu MB of memory left",
			(unsigned long long)machine >> 20);
	else if (group < MEMORY_LEAST)
		snprintf(why, size, "the server's control group has %llu MB of memory left",
			(unsigned long long)group >> 20);
}

static void look_at_disk(const char *dir, char *why, size_t size)
{
	struct statvfs v;
	if (!dir || statvfs(dir, &v) < 0)
		return;

	uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
	if (v.f_blocks && left < DISK_LEAST)
		snprintf(why, size, "the file system of the state directory is full (%llu kB left)",
			(unsigned long long)left / 1024);
	else if (v.f_files && v.f_favail < INODES_LEAST)
		snprintf(why, size, "the file system of the state directory has no inodes left");
}

const char *sessions_shortage(struct sessions *t)
{
	uint64_t now = clock_now_ns();
	if (!t->shortage.looked_ns || now - t->shortage.looked_ns > LOOK_MS * NSEC_PER_MSEC) {
		t->shortage.looked_ns = now;
		t->shortage.why[0] = '\0';
		look_at_memory(t->shortage.why, sizeof(t->shortage.why));
		if (!t->shortage.why[0])
			look_at_disk(t->config.state_dir, t->shortage.why, sizeof(t->shortage.why));
	}
	return t->shortage.why[0] ? t->shortage.why : sandbox_pool_shortage(t->pool);
}

/*
 * Guests that are ready take what has run out no more; only room for all else is looked at for
 * them.
 */
static const char *shortage_now(struct sessions *t)
{
	const char *why = sessions_shortage(t);
	if (t->shortage.why[0] || sandbox_pool_stats(t->pool)->ready)
		return t->shortage.why[0] ? why : NULL;
	int r = why ? 0 : fd_check_room(POOL_SPARE_FDS);
	sandbox_pool_note_shortage(t->pool, r, "another session");
	return sandbox_pool_shortage(t->pool);
}

int sessions_check_shortage(struct sessions *t, struct error *e)
{
	const char *why = shortage_now(t);
	if (!why)
		return 0;
	error_set(e, -EAGAIN, "no session can be created now: %s", why);
	error_remedy(e,
		"Try again in a second; end sessions that are not needed, or give the server more resources. It accepts sessions again when resources are available.");
	return error_slug(e, "no_resources");
}

void sessions_room(const struct sessions *t, struct machine_room *ret)
{
	struct statvfs v;
	machine_room_look(ret);
	ret->disk_left = UINT64_MAX;
	if (t->config.state_dir && statvfs(t->config.state_dir, &v) == 0)
		ret->disk_left = (uint64_t)v.f_bavail * v.f_frsize;
}
