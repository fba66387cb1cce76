/*
 * Deaths of interpreters while no cell runs: what the next observation says of them, and who hears
 * of them at once.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/internal.h"

void death_note(struct session *s, const struct process_exit *end, bool broken)
{
	s->death.last.end = *end;
	s->death.last.broken = broken;
	s->death.last.out_of_memory = end->signaled && end->status == SIGKILL &&
				      session_ran_out_of_memory(s);
	s->death.last.jail = !sandbox_has_jail(s->sandbox);
	s->death.last.wall_ns = clock_wall_ns();

	/* Xlib calls exit(1) when its connection breaks. */
	bool by_display = s->display && !end->signaled && end->status == 1;
	s->death.last.display = by_display ? display_death(s->display) : NULL;
	if (s->display)
		display_forget_death(s->display);
}

void death_say_why(const struct session *s, char *text, size_t size)
{
	const struct process_exit *end = &s->death.last.end;
	if (s->death.last.jail)
		snprintf(text, size,
			"the session's jail was ended, with all its processes and files");
	else if (s->death.last.display)
		snprintf(text, size,
			"%s; the interpreter, which had a connection to it, ended as well (exit code 1)",
			s->death.last.display);
	else if (s->death.last.broken)
		snprintf(text, size,
			"the interpreter was ended: the code wrote to its control socket");
	else if (s->death.last.out_of_memory)
		snprintf(text, size,
			"the session reached its memory limit of %llu bytes and its interpreter was killed",
			(unsigned long long)s->params.limits.memory_bytes);
	else if (end->signaled)
		snprintf(text, size, "the interpreter was ended by signal %d (%s)", end->status,
			strsignal(end->status));
	else
		snprintf(text, size,
			"the code ended the interpreter itself with exit code %d (os._exit%s)",
			end->status,
			end->status == WIRE_CUT_OFF
				? ", or it closed descriptor 1023, which is the session's own"
				: "");
}

/* ---- listeners -------------------------------------------------------------------- */

void session_listen(struct session *s, struct session_listener *l)
{
	l->session = s;
	TAILQ_INSERT_TAIL(&s->death.listeners, l, link);
}

void session_unlisten(struct session_listener *l)
{
	if (l->session)
		TAILQ_REMOVE(&l->session->death.listeners, l, link);
	l->session = NULL;
}

void death_drop_listeners(struct session *s)
{
	while (!TAILQ_EMPTY(&s->death.listeners))
		session_unlisten(TAILQ_FIRST(&s->death.listeners));
}

static void tell_listeners(struct session *s)
{
	for (struct session_listener *l = TAILQ_FIRST(&s->death.listeners), *next; l; l = next) {
		next = TAILQ_NEXT(l, link);
		l->on_death(l->userdata, &s->death.report);
	}
}

/* ---- between cells ---------------------------------------------------------------- */

/* Variables that were lost stay lost, whatever dies after them; so do files. */
static void merge(struct session *s, struct session_death *now)
{
	if (!s->death.has_report)
		return;
	if (s->death.report.state_lost && !now->state_lost) {
		now->state_lost = true;
		now->files_rolled_back = false;
	}
	now->files_lost |= s->death.report.files_lost;
}

static void advise(const struct session *s, struct session_death *d)
{
	char cell[48] = "before the first cell", again[REPLAY_WORDS_MAX];
	replay_words(s, again);
	if (d->cell)
		snprintf(cell, sizeof(cell), "after cell %u", d->cell);

	if (d->files_lost)
		snprintf(d->remedy, sizeof(d->remedy),
			"Variables and files are gone; send the files again, and run the imports and definitions again.");
	else if (d->state_lost)
		snprintf(d->remedy, sizeof(d->remedy),
			"Variables are gone, files under /workspace are still there; run the imports and definitions again. "
			"There was no snapshot to go back to: %s.",
			s->history.no_snapshot[0] ? s->history.no_snapshot : "none had been taken");
	else if (d->files_rolled_back)
		snprintf(d->remedy, sizeof(d->remedy),
			"Variables and files are as they were %s%s; threads, child processes and files uploaded since are gone.",
			cell, again);
	else
		snprintf(d->remedy, sizeof(d->remedy),
			"Variables are as they were %s%s; threads and child processes are gone, files were left as they are.",
			cell, again);
}

void death_between_cells(struct session *s, bool restored)
{
	struct session_death now = { .wall_ns = s->death.last.wall_ns,
		.state_lost = !restored,
		.files_lost = !restored && s->death.last.jail && s->death.holds.files,
		.files_rolled_back = restored && s->params.keep_files_bytes &&
				     !*sandbox_files_not_restored(s->sandbox),
		.cell = s->death.last.back_to };
	if (!restored && !s->death.holds.state && !now.files_lost)
		return; /* nothing had been run: a fresh interpreter is as good */

	death_say_why(s, now.why, sizeof(now.why));
	merge(s, &now);
	advise(s, &now);
	s->death.report = now;
	s->death.has_report = true;
	watch_died(s, now.why);
	tell_listeners(s);
}
