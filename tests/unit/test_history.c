/*
 * Checkpoints, rollbacks, forks and recoveries against a fake of the layer below (fake_sandbox.h),
 * in every order of what can happen: requests, answers, refusals, deaths, deadlines, the session's
 * end. Whatever the order, every request and every cell is answered exactly once, and what the
 * answers say about the state is what the interpreter has.
 */
#include <stdlib.h>

#include "base/log.h"
#include "fake_sandbox.h"
#include "session/internal.h"
#include "tap.h"

enum {
	CELLS_MAX = 128,
	ALL_LENGTH = 4,
	RANDOM_LENGTH = 24,
	RANDOM_RUNS = 40000,
	FORKS = 2,
	REQUESTS_MAX = 64
};

static uv_loop_t loop;
static struct sessions *table;

/* What a client of the session knows. */
static struct {
	struct session *s; /* NULL once it has ended */
	char id[SESSION_ID_LEN + 1];
	uint64_t state;            /* its variables */
	uint64_t after[CELLS_MAX]; /* the state after each cell */
	uint64_t before;           /* the last cell, when nothing happened since; else 0 */
	unsigned cells, last_cell, done;
	unsigned asked, answered;
	unsigned code;
	char named[32], asked_name[32];
	/* when the request was made, its state was the one that the client knows */
	bool certain;
	char wanted[32]; /* id of the checkpoint that a rollback goes to */
	bool undo;
} client;

static char history[512]; /* of events, for whoever looks for what went wrong */
static unsigned wrong;
static const char *what;

#define CHECK(condition)                                                            \
	do {                                                                        \
		if (!(condition) && !wrong++) {                                     \
			what = #condition;                                          \
			printf("# line %d: %s after%s\n", __LINE__, what, history); \
		}                                                                   \
	} while (0)

static void know(uint64_t state)
{
	client.state = state;
	client.after[client.s->queue.cells] = state;
	client.before = 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

static void on_cell(void *userdata, const struct observation *o)
{
	unsigned code = (unsigned)(uintptr_t)userdata;
	client.done++;
	CHECK(o->cell < CELLS_MAX);
	uint64_t start = client.state, kept = client.after[o->cell ? o->cell - 1 : 0];
	if (o->died)
		start = o->died->state_lost ? 0 : client.after[o->died->cell];
	(void)kept;
	CHECK(!o->died || o->died->state_lost == o->state_lost || o->status != CELL_OK);
	CHECK(!o->died || *o->died->why);

	if (o->status == CELL_OK)
		client.state = fake_mix(start, code);
	else
		client.state = o->rolled_back ? start : 0;
	CHECK(o->status == CELL_OK || o->died || o->rolled_back != o->state_lost);
	CHECK(o->status == CELL_OK || o->rolled_back || o->state_lost);
	client.before = o->status == CELL_OK && !o->died ? start : 0;
	client.after[o->cell] = client.state;
	client.last_cell = o->cell;
}

static void on_checkpoint(void *userdata, const struct error *e, const struct checkpoint_result *a)
{
	bool settled;
	const struct checkpoint_info *c = a ? a->checkpoint : NULL;
	(void)userdata;
	client.answered++;
	if (e) {
		CHECK(*e->text && *e->slug && *e->remedy);
		return;
	}
	CHECK(c && c->name && !strcmp(c->name, client.asked_name));
	CHECK(c && fake_snapshot_state(c->id) == fake_state(client.s, &settled));
	CHECK(!client.certain || (c && fake_snapshot_state(c->id) == client.state));
	snprintf(client.named, sizeof(client.named), "%s", c ? c->id : "");
}

/*
 * A death of which the client has not heard cost the last cell: an undo takes back the one before.
 */
static bool fell_back(void)
{
	const struct session *s = client.s;
	return s->death.has_report && s->death.report.cell != s->queue.cells;
}

static void on_rollback(void *userdata, const struct error *e, const struct checkpoint_result *a)
{
	bool settled;
	const struct checkpoint_info *c = a ? a->checkpoint : NULL;
	(void)userdata;
	client.answered++;
	if (e) {
		CHECK(*e->text && *e->slug && *e->remedy);
		return;
	}
	uint64_t now = fake_state(client.s, &settled);
	if (!client.undo) {
		CHECK(c && !strcmp(c->id, client.wanted));
		CHECK(fake_snapshot_state(client.wanted) == now);
	} else if (client.before && !fell_back()) {
		CHECK(now == client.before);
	}
	know(now);
}

static void on_fork(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	bool settled;
	struct session_info info;
	(void)userdata;
	client.answered++;
	CHECK(e ? n == 0 : n == FORKS);
	CHECK(!e || (*e->text && *e->slug && *e->remedy));
	for (unsigned i = 0; i < n; i++) {
		session_info(sessions[i], &info);
		CHECK(info.state == SESSION_IDLE);
		CHECK(fake_state(sessions[i], &settled) == fake_state(client.s, &settled));
		CHECK(!client.certain || fake_state(sessions[i], &settled) == client.state);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void do_cell(void)
{
	static const struct cell_observer observer = { .on_done = on_cell };
	char code[16];
	struct error e = { 0 };
	struct cell *c;
	unsigned number = ++client.code;
	snprintf(code, sizeof(code), "%u", number);
	struct cell_request q = { .code = code, .code_len = strlen(code) };
	client.cells++;
	if (session_execute(client.s, NULL, &q, &observer, (void *)(uintptr_t)number, &e, &c) < 0)
		client.cells--;
}

static void do_checkpoint(void)
{
	struct error e = { 0 };
	if (client.s->history.request)
		return;
	snprintf(client.asked_name, sizeof(client.asked_name), "number %u", client.asked);
	client.certain = !client.s->death.has_report && !client.s->history.recovery;
	client.asked++;
	if (session_checkpoint(client.s, client.asked_name, on_checkpoint, NULL, &e) < 0)
		client.asked--;
}

static void roll_back(const char *which)
{
	struct error e = { 0 };
	if (client.s->history.request)
		return;
	client.undo = !which;
	snprintf(client.wanted, sizeof(client.wanted), "%s", which ? which : "");
	client.asked++;
	if (session_rollback(client.s, which, on_rollback, NULL, &e) < 0)
		client.asked--;
}

static void do_rollback(void)
{
	if (client.named[0])
		roll_back(client.named);
}

static void do_undo(void)
{
	roll_back(NULL);
}

static void do_fork(void)
{
	struct error e = { 0 };
	if (client.s->history.request)
		return;
	client.certain = !client.s->death.has_report && !client.s->history.recovery;
	client.asked++;
	if (session_fork(client.s, &(struct fork_request){ .count = FORKS }, on_fork, NULL, &e) < 0)
		client.asked--;
}

static struct session *child(void)
{
	for (struct session *s = sessions_next(table, NULL); s; s = sessions_next(table, s))
		if (s->origin.fork_of)
			return s;
	return NULL;
}

static void do_child_ready(void)
{
	struct session *s = child();
	if (s)
		fake_step(s);
}

static void do_child_fails(void)
{
	struct session *s = child();
	if (s)
		fake_fail(s);
}

static void do_child_ends(void)
{
	struct session *s = child();
	if (s)
		session_end(s, "it was deleted");
}

static void do_step(void)
{
	fake_step(client.s);
}

static void do_steps(void)
{
	for (unsigned i = 0; i < 32 && client.s && fake_step(client.s); i++)
		;
}

static void do_death(void)
{
	fake_die(client.s);
}

static void do_jail(void)
{
	fake_jail_dies(client.s);
}

static void do_snapshots(void)
{
	fake_snapshots_die(client.s);
}

static void do_refuse(void)
{
	fake_refuse(client.s);
}

static void do_deadline(void)
{
	if (client.s->clock.mode == CLOCK_RECOVERING)
		operation_timed_out(client.s);
}

static void do_reset(void)
{
	struct error e = { 0 };
	bool starts = !session_has_guest(client.s) && !session_is_restoring(client.s);
	session_reset(client.s, &e);
	if (!starts)
		know(0);
}

/* While it runs its own cell, code that says that it has ended harms nobody else. */
static void do_forge(void)
{
	if (session_is_restoring(client.s))
		fake_forge(client.s);
}

static void do_end(void)
{
	session_end(client.s, "it was deleted");
}

static const struct {
	const char *name;
	void (*act)(void);
} events[] = {
	{ "cell", do_cell },
	{ "step", do_step },
	{ "steps", do_steps },
	{ "death", do_death },
	{ "checkpoint", do_checkpoint },
	{ "rollback", do_rollback },
	{ "undo", do_undo },
	{ "fork", do_fork },
	{ "child-ready", do_child_ready },
	{ "child-fails", do_child_fails },
	{ "deadline", do_deadline },
	{ "end", do_end },
	/* these only in random runs */
	{ "child-ends", do_child_ends },
	{ "refuse", do_refuse },
	{ "snapshots-die", do_snapshots },
	{ "jail-dies", do_jail },
	{ "reset", do_reset },
	{ "forge", do_forge },
};
enum { EVENTS = sizeof(events) / sizeof(events[0]), EVENTS_ALL = 12 };

/* ---- runs ------------------------------------------------------------------------------------ */

/* What the interpreter has is what the client knows, or will be told with the next observation. */
static void compare(void)
{
	struct session *s = client.s;
	bool settled;
	CHECK(!s || !session_is_restoring(s) || s->clock.mode == CLOCK_RECOVERING);
	if (!s || s->phase != PHASE_IDLE || s->queue.n_waiting || operation_active(s))
		return;
	uint64_t now = fake_state(s, &settled), known = client.state;
	if (s->death.has_report)
		known = s->death.report.state_lost ? 0 : client.after[s->death.report.cell];
	CHECK(now == known);
}

static void act(unsigned event)
{
	size_t at = strlen(history);
	snprintf(history + at, sizeof(history) - at, " %s", events[event].name);
	if (!client.s)
		return;
	events[event].act();
	struct error e = { 0 };
	struct session *s;
	if (session_find(table, client.id, &e, &s) < 0)
		client.s = NULL;
	compare();
}

static void begin(void)
{
	struct session_params p = { 0 };
	struct error e = { 0 };
	struct session_info info;
	memset(&client, 0, sizeof(client));
	history[0] = '\0';
	CHECK(session_create(table, &p, &e, &client.s) == 0);
	session_info(client.s, &info);
	snprintf(client.id, sizeof(client.id), "%s", info.id);
}

static void end(void)
{
	struct session *s;
	if (client.s)
		session_end(client.s, "the test is over");
	client.s = NULL;
	while ((s = sessions_next(table, NULL))) {
		CHECK(!s->origin.fork_of); /* of a fork that was answered: all are there, or none */
		session_end(s, "the test is over");
	}
	CHECK(client.asked == client.answered);
	CHECK(client.cells == client.done);
	CHECK(sessions_stats(table)->live == 0 && sessions_stats(table)->queued_cells == 0 &&
		sessions_stats(table)->running_cells == 0);
	while (table->end.closing_sessions)
		uv_run(&loop, UV_RUN_NOWAIT);
	fake_finish();
}

/* Where a session can be when it begins. */
static const char *const starts[] = { "", "2", "2 0 2", "2 4 2 0 2", "2 4 2 0 2 4 2 0", "2 0 2 3",
	"2 0 2 7" };

static void run_words(const char *words)
{
	for (char *next; *words; words = next + (*next == ' '))
		act((unsigned)strtoul(words, &next, 10));
}

static void all_orders(void)
{
	unsigned runs = 1;
	for (int i = 0; i < ALL_LENGTH; i++)
		runs *= EVENTS_ALL;
	for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
		wrong = 0;
		for (unsigned i = 0; i < runs && !wrong; i++) {
			begin();
			run_words(starts[k]);
			for (unsigned n = i, j = 0; j < ALL_LENGTH; j++, n /= EVENTS_ALL)
				act(n % EVENTS_ALL);
			end();
		}
		OK(!wrong);
	}
}

static void random_orders(void)
{
	uint64_t x = 88172645463325252ULL;
	wrong = 0;
	for (unsigned i = 0; i < RANDOM_RUNS && !wrong; i++) {
		begin();
		for (unsigned j = 0; j < RANDOM_LENGTH; j++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* steps more often: else little ever gets done */
			unsigned event = (unsigned)(x >> 33) % (EVENTS + 8);
			act(event < EVENTS ? event : 2);
		}
		end();
	}
	OK(!wrong);
}

/* ---- the orders that were found wrong before ---------------------------------------- */

static void run_named(const char *names)
{
	char text[256], *rest = NULL;
	snprintf(text, sizeof(text), "%s", names);
	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		for (unsigned i = 0; i < EVENTS; i++)
			if (!strcmp(name, events[i].name))
				act(i);
}

static void known_orders(void)
{
	static const char *const orders[] = {
		"steps cell steps fork death steps", /* crashed: a fork without children was answered */
		"steps cell steps cell checkpoint death steps", /* was answered with another checkpoint */
		"steps cell steps fork child-ready death steps cell steps",
		"steps cell steps checkpoint steps cell steps rollback death steps",
		"steps cell steps checkpoint steps rollback step death steps cell steps",
		"steps cell cell steps undo death steps cell steps",
		"steps cell death reset steps cell steps", /* the old variables came back */
		/*
		 * a cell that had died was answered by the code that was run again, which then had
		 * no limit
		 */
		"steps cell cell step step step death step forge death steps cell steps",
		/*
		 * an undo that failed left the wrong cells to run again: the next one went nowhere,
		 * and said that it had
		 */
		"fork cell steps snapshots-die cell deadline steps undo undo steps",
		/*
		 * the report of the second death named a cell whose variables were gone since the
		 * first
		 */
		"cell death steps death refuse steps death steps death steps",
		/* the undo was answered with success, and had lost all variables */
		"cell cell steps death undo step death steps",
		/*
		 * the next observation said that the state was lost, which the rollback had brought
		 * back
		 */
		"cell steps cell steps checkpoint undo death rollback steps",
	};
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		wrong = 0;
		begin();
		run_named(orders[i]);
		end();
		OK(!wrong);
	}
}

/* A session that expires is one that ends, by its own clock. */
static void expiry(void)
{
	wrong = 0;
	begin();
	run_named("steps cell steps fork");
	client.s->params.ttl_s = 0.001;
	while (client.answered < client.asked)
		uv_run(&loop, UV_RUN_ONCE);
	client.s = NULL;
	end();
	OK(!wrong);
}

static void destroyed(void *userdata)
{
	*(bool *)userdata = true;
}

int main(void)
{
	struct sessions_config config;
	struct error e = { 0 };
	bool gone = false;
	log_set_level(LOG_ERROR);
	uv_loop_init(&loop);
	sessions_config_init(&config);
	config.loop = &loop;
	config.guest_module = (char *)"none";
	config.max_sessions = 64;
	config.keep_checkpoints = 3;
	OK(sessions_create(&config, &e, &table) == 0);

	known_orders();
	expiry();
	all_orders();
	random_orders();

	sessions_destroy(table, 0, destroyed, &gone);
	while (!gone)
		uv_run(&loop, UV_RUN_ONCE);
	uv_run(&loop, UV_RUN_DEFAULT);
	OK(uv_loop_close(&loop) == 0);
	return tap_done();
}
