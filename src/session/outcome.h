/*
 * The guest's report about the running cell, collected from its frames within the daemon's limits,
 * until it becomes an observation. Frames are hostile: everything is copied, counted and cut here.
 */
#pragma once

#include "base/buffer.h"
#include "base/memory_account.h"
#include "session/session.h"
#include "wire/timing.h"
#include "wire/wire.h"

struct outcome {
	struct bundle *displays; /* owned, with their texts */
	unsigned n_displays, displays_left_out;
	size_t display_bytes;
	struct hold held; /* what displays, result, error and answer take */
	size_t error_bytes, answer_bytes;
	struct bundle result;
	bool has_result, has_error, has_answer, done;
	struct cell_error error;
	char *error_type, *error_message, *error_traceback, *error_code, *error_remedy;
	unsigned rule; /* enum policy_rule of a violation, POLICY_RULES for any other error */
	struct final_answer answer; /* its texts are owned */
	int error_errno;            /* of an OSError, else 0 */
	char remedy_text[384];      /* where error.remedy points when it was composed */
	struct file_entry *files;
	unsigned n_files;
	bool files_cut;
	enum wire_outcome kind;
	int exit_code;
	double cpu_ms;
	unsigned effects; /* enum wire_effects, or'ed */
	uint64_t peak_memory_bytes;
	struct step_times steps;
};

void outcome_init(struct outcome *o);
void outcome_finish(struct outcome *o);

/*
 * Takes one frame of the running cell. What would be more than the daemon keeps of everybody's is
 * left out and counted. -EPROTO for one that cannot be; -ENOMEM. *ret_display: the new display, or
 * NULL.
 */
int outcome_take(struct outcome *o, const struct wire_frame *f, const struct bundle **ret_display);
