#include "jail/lean_fork.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

/*
 * Beginnings of names. A table of what may go, not of what must stay: a library that somebody
 * preloads, or a sanitizer's, is called by all code.
 */
static const char *const unused[] = {
	"libXau.",
	"libXdmcp.",
	"libbsd.",
	"libedit.",
	"libisal.",
	"libjansson.",
	"libjpeg.",
	"libmd.",
	"libseccomp.", /* the filters are built before the first fork */
	"libtinfo.",
	"libuv.",
	"libwslay.",
	"libxcb",
	"libxkbcommon.",
};

static int leave_out(struct dl_phdr_info *library, size_t size, void *userdata)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = UINTPTR_MAX, end = 0;
	const char *slash = strrchr(library->dlpi_name, '/');
	bool named = false;

	(void)size, (void)userdata;
	for (size_t i = 0; slash && i < ARRAY_LEN(unused); i++)
		named |= text_starts(slash + 1, unused[i]);

	/* from its first segment to its last: the loader maps the gaps between them as well */
	for (size_t i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &library->dlpi_phdr[i];
		uintptr_t at = library->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + p->p_memsz > end ? at + p->p_memsz : end;
	}
	start &= ~(page - 1);
	end = (end + page - 1) & ~(page - 1);
	if (named && start < end)
		madvise((void *)start, end - start, MADV_DONTFORK); /* a failure costs time only */
	return 0;
}

void lean_fork_prepare(void)
{
	dl_iterate_phdr(leave_out, NULL);
}
