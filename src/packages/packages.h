/*
 * Packages on demand, as the daemon and the commands see them: ask, hear how it goes, get a set.
 *
 * All on one loop, nothing blocks. What is in the store is answered at once, inside packages_ask().
 * Everything else is the work of an installer process, one per request however many ask for the
 * same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "packages/request.h"
#include "packages/settings.h"

struct packages;
struct packages_wait;
struct packages_hold;

/* The settings must outlive it. */
int packages_create(uv_loop_t *loop, const struct packages_settings *settings,
	const char *state_dir, struct error *e, struct packages **ret);

/*
 * Called before the server exits: ends installers, fails the waiting requests, and refuses further
 * requests. `p` may be NULL.
 */
void packages_stop(struct packages *p);

/*
 * Ends installers; whoever still waits is not called. Its memory goes in a later turn of the loop.
 * Holds must be gone. NULL is fine.
 */
void packages_destroy(struct packages *p);

/* False when the settings say that there are none. */
bool packages_enabled(const struct packages *p);

/* What jails must show so that sessions see the sets: a line as in tree_prepare(). */
const char *packages_shown(const struct packages *p);

struct packages_answer {
	const struct error *error; /* NULL when all is there */
	const char *log;           /* JSON array: the last lines of pip's output, or NULL */
	/* JSON object: what became of each name; NULL when it did not come so far */
	const char *report;
	const char *set;      /* the set's id, NULL when nothing had to be installed */
	const char *path;     /* where sessions see it, or NULL */
	char *const *modules; /* those at its top, NULL at the end */
	bool template;        /* it shall have a template of its own */
	bool cached;          /* it was in the store */
	bool replaces;        /* it holds another version of a package that the system has */
};

struct packages_listener {
	/*
	 * phase is resolving, downloading, building or storing; total is 0 when there is nothing to
	 * count
	 */
	void (*on_progress)(
		void *userdata, const char *phase, const char *text, unsigned done, unsigned total);
	/* once; all of it is valid during the call only */
	void (*on_done)(void *userdata, const struct packages_answer *a);
};

/*
 * Asks. 0: on_done was called already or will be; *ret is for packages_forget() and NULL when it
 * was. Negative: the request itself is wrong, and nothing is called.
 */
int packages_ask(struct packages *p, const struct packages_request *q,
	const struct packages_listener *listener, void *userdata, struct error *e,
	struct packages_wait **ret);

/*
 * Nobody listens any more. An installation that nobody waits for goes on for a while, so that who
 * asks again finds it; it ends at once when another one waits for its place. NULL is fine.
 */
void packages_forget(struct packages_wait *w);

/* Keeps a set from being removed. NULL when it is gone. */
struct packages_hold *packages_hold(struct packages *p, const char *set);
void packages_retain(void *hold); /* struct packages_hold *: once more */
void packages_release(void *hold);

/* From now on answers with this set say that it has a template. */
void packages_give_template(struct packages_hold *h);

struct packages_stats {
	uint64_t asked, hits, installed, failed, repaired;
	unsigned running;
};
const struct packages_stats *packages_stats(const struct packages *p);
