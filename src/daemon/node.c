#include "daemon/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/node_id.h"
#include "base/paths.h"
#include "base/text.h"

/* The number in the file, or a random one; the file may be missing or hold anything. */
static unsigned last_incarnation(const char *path)
{
	char text[16] = "";
	uint64_t number;
	unsigned random = 0;
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (n > 0 && text_parse_u64(text, 0, NODE_INCARNATIONS - 1, &number) == 0)
		return (unsigned)number;
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (unsigned)getpid();
	return random % NODE_INCARNATIONS;
}

/*
 * Written to a temporary file and renamed, so that a crash leaves either the old or the new number.
 */
static int keep_incarnation(const char *path, unsigned number)
{
	char text[16];
	_cleanup_free_ char *fresh = NULL;
	int r = paths_make_parents(path), len = snprintf(text, sizeof(text), "%u\n", number);

	if (r == 0 && asprintf(&fresh, "%s.%d", path, (int)getpid()) < 0)
		r = -ENOMEM;
	if (r < 0)
		return r;

	_cleanup_fd_ int fd = open(
		fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)len) != len || fsync(fd) < 0 || rename(fresh, path) < 0) {
		r = errno ? -errno : -EIO;
		unlink(fresh);
	}
	return r;
}

int node_start(const struct config *config, struct error *e)
{
	char letters[NODE_LETTERS + 1];
	_cleanup_free_ char *path = NULL;

	if (!config->node)
		return 0;
	if (node_letters(config->node, letters) < 0) {
		error_set(e, -EINVAL, "--node: '%.70s' is not a valid node name", config->node);
		return error_remedy(e,
			"use four letters of a-z and 2-7, or a host name (letters, digits, '.', '_', '-')");
	}

	if (asprintf(&path, "%s/node-%s", config->state_dir, letters) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	unsigned number = (last_incarnation(path) + 1) % NODE_INCARNATIONS;
	int r = keep_incarnation(path, number);
	if (r < 0)
		log_warning(
			"%s: %s; ids from before a restart are recognised in 1023 of 1024 cases only",
			path, strerror(-r));
	node_set(letters, number);
	log_info("node %s: ids begin with %s", config->node, node_tag());
	return 0;
}
