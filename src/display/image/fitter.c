#include "display/image/fitter.h"

#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "display/image/decode.h"

enum { MEMORY_MAX = 512 * 1024 * 1024, CPU_SECONDS = 10, CHUNK = 256 * 1024 };

static int set_limits(void)
{
	static const struct {
		int resource;
		rlim_t value;

	} limits[] = {
		{ RLIMIT_AS, MEMORY_MAX },
		{ RLIMIT_CPU, CPU_SECONDS },
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_NOFILE, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit l = { limits[i].value, limits[i].value };
		if (setrlimit((__rlimit_resource_t)limits[i].resource, &l) < 0)
			return -errno;
	}

	return 0;
}

/*
 * An attacker who takes over the decoder finds neither files nor sockets nor processes, and no
 * executable memory: any other call ends the process.
 */
static int load_filter(void)
{
	static const int allowed[] = { SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(munmap),
		SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(exit),
		SCMP_SYS(exit_group) };
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = c ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_LEN(allowed); i++)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!r)
		r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!r)
		r = seccomp_load(c); /* sets no_new_privs too */
	seccomp_release(c);
	return r;
}

static int read_all(struct buffer *b)
{
	for (;;) {
		int r = buffer_reserve(b, CHUNK);
		if (r < 0)
			return r;
		ssize_t n = read(STDIN_FILENO, b->data + b->len, CHUNK);
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		b->len += (size_t)n;
	}
}

int fitter_main(uint32_t side, uint32_t max_bytes)
{
	_cleanup_buffer_ struct buffer in = BUFFER_INIT(FITTER_INPUT_MAX), out = BUFFER_INIT(0);
	enum shot_format format;
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : set_limits();
	if (!r)
		r = load_filter();
	if (!r)
		r = read_all(&in);
	if (!r)
		r = picture_fit((const uint8_t *)in.data, in.len, side, max_bytes, &out, &format);
	if (r < 0)
		return EXIT_FAILURE;

	char kind = format == SHOT_JPEG ? FITTER_JPEG : FITTER_PNG;
	r = fd_write_full(STDOUT_FILENO, &kind, 1);
	if (!r)
		r = fd_write_full(STDOUT_FILENO, out.data, out.len);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
