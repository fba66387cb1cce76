/* Errors about limits that the code of a cell reached. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "session/internal.h"

void session_say_stop(
	struct session *s, bool killed, char *text, size_t size, struct cell_error *ret)
{
	const struct session_limits *l = &s->params.limits;
	const char *how = killed ? "killed, because it did not stop when interrupted"
				 : "interrupted";

	if (s->queue.running->stop == STOP_CPU) {
		snprintf(text, size, "the cell used more than its %g s of CPU time and was %s",
			l->cpu_s, how);
		*ret = (struct cell_error){
			.type = "TimeoutError",
			.code = "cpu_limit",
			.remedy =
				"Make the code do less work in one cell, or allow more with {cpu_s}."
		};
	} else if (s->queue.running->stop == STOP_VOLUME) {
		snprintf(text, size, "the cell exceeded the quota of its volume and was %s", how);
		*ret = (struct cell_error){
			.type = "VolumeFullError",
			.code = "volume_full",
			.remedy =
				"Remove files from the volume in the next cell. If code writes more before that, the session ends."
		};
	} else {
		snprintf(text, size, "the cell printed more than %llu bytes and was %s",
			(unsigned long long)l->total_output_bytes, how);
		*ret = (struct cell_error){
			.type = "OutputLimitError",
			.code = "output_limit",
			.remedy =
				"Print less, write to files instead, or allow more with {total_output_bytes}."
		};
	}
}

/* True when the control group refused a process since the last look. */
static bool process_was_refused(struct session *s)
{
	struct cgroup_usage u;
	sandbox_usage(s->sandbox, &u);
	bool more = u.process_refusals > s->usage.process_refusals;
	s->usage.process_refusals = u.process_refusals;
	return more;
}

static bool is_about_processes(struct session *s, const struct outcome *o)
{
	if (text_eq(o->error.type, "RuntimeError") &&
		strstr(o->error.message, "can't start new thread"))
		return true;
	if (o->error_errno != EAGAIN)
		return false;
	return process_was_refused(s) || strstr(o->error.traceback, "fork") ||
	       strstr(o->error.traceback, "subprocess");
}

void session_explain_memory(struct session *s)
{
	struct outcome *o = &s->outcome;
	uint64_t most = s->params.limits.memory_bytes;
	char limit[64] = "";

	if (most)
		snprintf(limit, sizeof(limit), "The session may use %llu bytes of memory. ",
			(unsigned long long)most);
	snprintf(o->remedy_text, sizeof(o->remedy_text),
		"%sUse less at once (files in /workspace and /tmp count), or allow more with {memory_bytes}.",
		limit);
	o->error.code = "out_of_memory";
	o->error.remedy = o->remedy_text;
}

/* Which limit the error is about: its code, and the remedy into text; NULL for none. */
static const char *explain_limit(struct session *s, char *text, size_t size)
{
	const struct session_limits *l = &s->params.limits;
	const struct outcome *o = &s->outcome;

	if (o->error_errno == ENOSPC) {
		snprintf(text, size,
			"/workspace and /tmp hold %llu bytes and %llu files each, /dev/shm %d bytes. Delete files that are not needed, or "
			"allow more with {disk_bytes} or {inodes}.",
			(unsigned long long)l->disk_bytes, (unsigned long long)l->inodes,
			JAIL_SHM_BYTES);
		return "disk_full";
	}

	if (o->error_errno == EFBIG) {
		snprintf(text, size,
			"A file may have at most %llu bytes. Write smaller files, or allow more with {file_bytes}.",
			(unsigned long long)l->file_bytes);
		return "file_too_large";
	}

	if (o->error_errno == EMFILE) {
		snprintf(text, size,
			"At most %llu files may be open at once. Close files that are not needed (with open(…) as f:), or allow more with "
			"{open_files}.",
			(unsigned long long)l->open_files);
		return "too_many_files";
	}

	if (is_about_processes(s, o)) {
		snprintf(text, size,
			"At most %llu processes and threads may run at once. Wait for some to end, use a pool, or allow more with "
			"{processes}.",
			(unsigned long long)l->processes);
		return "too_many_processes";
	}
	return NULL;
}

/* Which property of the jail the error is about. */
static const char *explain_jail(const struct outcome *o, char *text, size_t size)
{
	if (o->error_errno == EROFS) {
		snprintf(text, size,
			"The system is read-only, and so are files that were given to the session. Write new files below /workspace or /tmp.");
		return "read_only";
	}

	if (o->error_errno == ENOENT && strstr(o->error.message, "'/proc/")) {
		snprintf(text, size,
			"/proc shows the session's own processes only. os.cpu_count(), os.sched_getaffinity(0), os.sysconf, resource.getrusage "
			"and platform return the available information about the machine.");
		return "hidden";
	}
	return NULL;
}

void session_explain_error(struct session *s)
{
	struct outcome *o = &s->outcome;
	if (!o->has_error || (o->error.remedy && *o->error.remedy))
		return;

	const char *code = explain_limit(s, o->remedy_text, sizeof(o->remedy_text));
	if (!code)
		code = explain_jail(o, o->remedy_text, sizeof(o->remedy_text));
	if (code) {
		o->error.code = code;
		o->error.remedy = o->remedy_text;
	}
}
