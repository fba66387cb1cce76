#include "guest/run/own_limits.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

bool own_limits_apply(const struct wire_field *f)
{
	static const struct {
		uint8_t tag;
		int resource;

	} rows[] = { { WIRE_PROCESSES, RLIMIT_NPROC }, { WIRE_FILE_BYTES, RLIMIT_FSIZE },
		{ WIRE_OPEN_FILES, RLIMIT_NOFILE }, { WIRE_CPU_SECONDS, RLIMIT_CPU } };
	uint64_t n;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit now;
		if (f->tag != rows[i].tag || wire_field_u64(f, &n) < 0)
			continue;
		getrlimit((__rlimit_resource_t)rows[i].resource, &now);
		if (n > now.rlim_max)
			n = now.rlim_max;
		setrlimit((__rlimit_resource_t)rows[i].resource,
			&(struct rlimit){ .rlim_cur = n, .rlim_max = n });
		return true;
	}

	return false;
}
