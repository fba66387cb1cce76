#include "session/output_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fds.h"

enum { SPOOL_MEMORY = 32 * 1024, SPOOL_ENTRY_MAX = 1 << 20, SPOOL_MAGIC = 0x676f4c21 };

struct entry_head {
	uint32_t magic, len, cell, stream;
	uint64_t wall_ns;
};

void output_log_init(struct output_log *s, const char *dir, uint64_t max)
{
	*s = (struct output_log){ .dir = dir, .max = max, .fd = -1 };
}

void output_log_finish(struct output_log *s)
{
	fd_close_clear(&s->fd);
	buffer_finish(&s->memory);
	buffer_finish(&s->page);
}

/* A file without a name is gone with its descriptor, whatever happens to us. */
static int open_file(struct output_log *s)
{
	int fd = s->dir ? open(s->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		fd = memfd_create("glovebox-log", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;

	int r = fd_write_full(fd, s->memory.data, s->memory.len);
	if (r < 0) {
		fd_close(fd);
		return r;
	}

	buffer_finish(&s->memory);
	s->fd = fd;
	return 0;
}

static int put(struct output_log *s, const void *data, size_t len)
{
	return s->fd >= 0 ? fd_write_full(s->fd, data, len) : buffer_append(&s->memory, data, len);
}

void output_log_add(struct output_log *s, unsigned cell, enum stream stream, uint64_t wall_ns,
	const char *data, size_t len)
{
	struct entry_head h = { SPOOL_MAGIC, (uint32_t)len, cell, stream, wall_ns };
	if (len > SPOOL_ENTRY_MAX || s->size + sizeof(h) + len > s->max) {
		s->dropped += len;
		/* a hole would look like the whole: what comes later is dropped too */
		s->max = s->size;
		return;
	}

	if (s->fd < 0 && s->memory.len + sizeof(h) + len > SPOOL_MEMORY && open_file(s) < 0) {
		s->dropped += len;
		return;
	}

	uint64_t before = s->size;
	if (put(s, &h, sizeof(h)) == 0 && put(s, data, len) == 0) {
		s->size += sizeof(h) + len;
		return;
	}

	/* The disk is full: back to the last whole entry, and no more. */
	s->dropped += len;
	s->max = before;
	if (s->fd >= 0 &&
		(ftruncate(s->fd, (off_t)before) < 0 || lseek(s->fd, (off_t)before, SEEK_SET) < 0))
		s->size = before;
	else if (s->fd < 0)
		s->memory.len = (size_t)before;
}

static int get(struct output_log *s, uint64_t at, void *to, size_t len)
{
	if (at > s->size || len > s->size - at)
		return -EINVAL;
	if (s->fd < 0) {
		memcpy(to, s->memory.data + at, len);
		return 0;
	}
	return pread(s->fd, to, len, (off_t)at) == (ssize_t)len ? 0 : -EIO;
}

int output_log_read(struct output_log *s, uint64_t position, struct log_entry *ret)
{
	struct entry_head h;
	if (position == s->size)
		return 0;

	int r = get(s, position, &h, sizeof(h));
	if (r < 0)
		return r;
	if (h.magic != SPOOL_MAGIC || h.len > SPOOL_ENTRY_MAX || h.stream > STREAM_STDERR)
		return -EINVAL;

	s->page.len = 0;
	if ((r = buffer_reserve(&s->page, h.len)) < 0 ||
		(r = get(s, position + sizeof(h), s->page.data, h.len)) < 0)
		return r;

	*ret = (struct log_entry){ .position = position,
		.next = position + sizeof(h) + h.len,
		.cell = h.cell,
		.stream = (enum stream)h.stream,
		.wall_ns = h.wall_ns,
		.len = h.len,
		.data = s->page.data };
	return 1;
}
