/*
 * Deaths of a session's interpreter: why it died, what the death cost, and who is told.
 *
 * A death while a cell runs is told with the cell's observation. A death between cells is told to
 * the listeners at once and with the next observation: `report` is kept until then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/process.h"
#include "session/session.h"

struct session_deaths {
	struct {
		struct process_exit end;
		bool broken;         /* the code wrote to the control socket */
		bool out_of_memory;  /* the kernel killed it for want of memory */
		bool jail;           /* its jail ended, too */
		const char *display; /* its display had ended, and that is why; else NULL */
		unsigned back_to;    /* the cell after which the state was as it is restored */
		uint64_t wall_ns;
	} last; /* the interpreter that died last */
	struct {
		bool state; /* cells have run */
		bool files; /* there may be files */
	} holds;            /* what a death would cost */
	bool has_report;
	struct session_death report; /* between cells; told with the next observation */
	TAILQ_HEAD(, session_listener) listeners;
	char remedy[1024]; /* of the error that is being told */
};

/* Notes why the interpreter died in s->death.last. */
void death_note(struct session *s, const struct process_exit *end, bool broken);
/* Says why in a sentence. */
void death_say_why(const struct session *s, char *text, size_t size);
/* Tells the listeners, and keeps the report for the next observation. */
void death_between_cells(struct session *s, bool restored);
void death_drop_listeners(struct session *s);
