/*
 * The phases of a session: every transition of the table in session/phase.h is legal, and no other
 * one.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "session/internal.h"
#include "tap.h"

/*
 * The table of session/phase.h once more, as a reader would write it: a row per phase, a letter per
 * phase that may follow.
 */
static const struct {
	enum session_phase phase;
	const char *name, *next;
} rows[PHASE_COUNT] = {
	{ PHASE_STARTING, "starting", "isde" },
	{ PHASE_IDLE, "idle", "rpfRdse" },
	{ PHASE_RUNNING, "running", "idse" },
	{ PHASE_SNAPSHOT, "snapshot", "ifdse" },
	{ PHASE_FORKING, "forking", "idse" },
	{ PHASE_DEAD, "dead", "Rsde" },
	{ PHASE_RESTORING, "restoring", "irPRdse" },
	{ PHASE_REPLAYING, "replaying", "irRdse" },
	{ PHASE_ENDING, "ending", "" },
};
static const char letters[PHASE_COUNT + 1] = "sirpfdRPe";

static void walk_table(void)
{
	for (unsigned from = 0; from < PHASE_COUNT; from++) {
		OK(rows[from].phase == from);
		OK(!strcmp(session_phase_name((enum session_phase)from), rows[from].name));

		for (unsigned to = 0; to < PHASE_COUNT; to++)
			OK(session_phase_may_follow(
				   (enum session_phase)from, (enum session_phase)to) ==
				(strchr(rows[from].next, letters[to]) != NULL));
	}
}

/* Every phase can be reached from the first one, and the last one from every phase. */
static void reach_all(void)
{
	unsigned reached = 1u << PHASE_STARTING;
	for (unsigned round = 0; round < PHASE_COUNT; round++)
		for (unsigned from = 0; from < PHASE_COUNT; from++)
			for (unsigned to = 0; to < PHASE_COUNT; to++)
				if (reached & 1u << from &&
					session_phase_may_follow(
						(enum session_phase)from, (enum session_phase)to))
					reached |= 1u << to;
	OK(reached == (1u << PHASE_COUNT) - 1);

	for (unsigned from = 0; from < PHASE_ENDING; from++)
		OK(session_phase_may_follow((enum session_phase)from, PHASE_ENDING));
}

/* A transition that is not in the table ends the process. */
static bool dies(enum session_phase from, enum session_phase to)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct session s = { .phase = from };
		fclose(stderr);
		session_set_phase(&s, to);
		_exit(s.phase == to ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void assert_illegal(void)
{
	log_set_level(LOG_ERROR);
	OK(!dies(PHASE_STARTING, PHASE_IDLE));
	OK(!dies(PHASE_IDLE, PHASE_RUNNING));
	OK(dies(PHASE_STARTING, PHASE_RUNNING));
	OK(dies(PHASE_ENDING, PHASE_IDLE));
	OK(dies(PHASE_DEAD, PHASE_IDLE));
}

static void classes(void)
{
	struct session s = { 0 };
	for (unsigned i = 0; i < PHASE_COUNT; i++) {
		s.phase = (enum session_phase)i;
		OK(session_has_guest(&s) == (strchr("irpf", letters[i]) != NULL));
		OK(session_is_restoring(&s) == (strchr("RP", letters[i]) != NULL));
	}
}

int main(void)
{
	walk_table();
	reach_all();
	assert_illegal();
	classes();
	return tap_done();
}
