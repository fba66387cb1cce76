#include "session/processes/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "session/contexts/contexts.h"
#include "session/processes/processes_internal.h"
#include "session/processes/start_frame.h"

const char *process_state_name(enum process_state s)
{
	static const char *const names[] = { "starting", "running", "exited", "failed" };
	return names[s];
}

/* ---- life ------------------------------------------------------------------------------------ */

static void timer_closed(uv_handle_t *h)
{
	struct session_process *p = h->data;
	for (int i = 0; i < 2; i++)
		output_finish(&p->output[i]);
	kept_output_finish(&p->kept);
	session_words_free(p->argv);
	session_words_free(p->env);
	free(p->command);
	free(p->cwd);
	free(p->tag);
	free(p);
}

/* Takes it out of its session, tells its readers, and frees it. */
static void forget(struct session_process *p)
{
	struct processes *all = p->session->processes;
	struct process_reader *r;
	if (p->ending)
		return;

	p->ending = true;
	TAILQ_REMOVE(&all->list, p, link);
	if (process_has_ended(p))
		all->ended--;
	else
		all->running--;
	while ((r = TAILQ_FIRST(&p->readers))) {
		process_reader_detach(r);
		r->on_gone(r);
	}
	program_close(TAKE_PTR(p->program));
	uv_close((uv_handle_t *)&p->timer, timer_closed);
}

static void forget_oldest(struct processes *all)
{
	struct session_process *p, *next;
	for (p = TAILQ_FIRST(&all->list); p && all->ended > LIMIT_ENDED_PROCESSES; p = next) {
		next = TAILQ_NEXT(p, link);
		if (process_has_ended(p) && TAILQ_EMPTY(&p->readers))
			forget(p);
	}
}

static void tell_readers(struct session_process *p)
{
	for (struct process_reader *r = TAILQ_FIRST(&p->readers), *next; r; r = next) {
		next = TAILQ_NEXT(r, link);
		r->on_news(r);
	}
}

static void end(struct session_process *p, enum process_state state)
{
	struct processes *all = p->session->processes;
	p->state = state;
	p->ended_ns = clock_now_ns();
	all->running--;
	all->ended++;
	uv_timer_stop(&p->timer);
	session_files_touched(p->session);
	p->session->times.used_ns = clock_now_ns();
	tell_readers(p);
}

/* ---- its time ----------------------------------------------------------------------- */

static void fail(struct session_process *p, int err)
{
	p->err = err;
	program_close(TAKE_PTR(p->program));
	end(p, PROCESS_FAILED);
}

static void on_timeout(uv_timer_t *t)
{
	struct session_process *p = t->data;
	p->timed_out = true;
	if (p->state == PROCESS_STARTING) {
		snprintf(p->why, sizeof(p->why), "the process did not start in time");
		fail(p, -ETIMEDOUT);
	} else if (p->program) {
		program_signal(p->program, SIGKILL);
	}
}

/*
 * Until it runs it has LIMIT_START_SECONDS, whatever the client allows; code of the session can
 * stop it on its way.
 */
static void set_timer(struct session_process *p)
{
	double left = p->timeout_s - (double)(clock_now_ns() - p->started_ns) / 1e9;
	if (p->state == PROCESS_STARTING && (p->timeout_s <= 0 || left > LIMIT_START_SECONDS))
		left = LIMIT_START_SECONDS;
	else if (p->timeout_s <= 0) {
		uv_timer_stop(&p->timer);
		return;
	}
	uv_timer_start(&p->timer, on_timeout, left > 0 ? (uint64_t)(left * 1000) + 1 : 1, 0);
}

/* ---- what its program tells --------------------------------------------------------- */

/* The number may be that of one that has ended long ago. */
static void drop_namesake(struct processes *all, unsigned id)
{
	struct session_process *p;
	TAILQ_FOREACH (p, &all->list, link) {
		if (p->id != id || !process_has_ended(p))
			continue;
		forget(p);
		return;
	}
}

static void on_started(void *owner, pid_t pid)
{
	struct session_process *p = owner;
	drop_namesake(p->session->processes, (unsigned)pid);
	p->id = (unsigned)pid;
	p->state = PROCESS_RUNNING;
	if (p->program && session_is_paused(p->session))
		program_signal(p->program, SIGSTOP); /* it was on its way when that happened */
	set_timer(p);
	tell_readers(p);
}

static void on_failed(void *owner, int err, const char *step)
{
	struct session_process *p = owner;
	snprintf(p->why, sizeof(p->why), "%s: %s", step, strerror(-err));
	fail(p, err);
}

/*
 * Drops the oldest output beyond the maximum, except output that the slowest attached reader has
 * not read yet.
 */
static void trim(struct session_process *p)
{
	uint64_t from = p->kept.end;
	struct process_reader *r;
	TAILQ_FOREACH (r, &p->readers, link)
		if (r->position < from)
			from = r->position;
	kept_output_trim(&p->kept, from);
	if (p->program)
		program_hold_output(p->program, kept_output_is_full(&p->kept));
}

static void on_output(void *owner, enum stream stream, const char *data, size_t len)
{
	struct session_process *p = owner;
	output_add(&p->output[stream], data, len);
	kept_output_add(&p->kept, stream, data, len);
	tell_readers(p);
	trim(p);
}

static void on_exit_event(void *owner, const struct process_exit *how)
{
	struct session_process *p = owner;
	p->end = *how;
	end(p, PROCESS_EXITED);
}

static const struct program_events program_events = { on_started, on_failed, on_output,
	on_exit_event };

/* ---- starting ----------------------------------------------------------------------- */

static int refuse_start(const struct session *s, struct error *e)
{
	if (s->table->end.draining || s->phase == PHASE_ENDING) {
		error_set(e, -ESHUTDOWN, "the session is ending");
		return error_slug(e, "draining");
	}
	if (session_is_paused(s))
		return pause_refuse(s, e);
	if (session_is_context(s))
		return context_refuse(s, e);
	if (s->params.exec == JAIL_EXEC_NONE) {
		error_set(e, -EPERM,
			"this session may not start programs: it was created with exec none");
		error_remedy(e, "Make a session with \"exec\": \"system\".");
		return error_slug(e, "exec_not_allowed");
	}
	if (s->profile.rules && s->profile.rules[0]) {
		error_set(e, -EPERM,
			"the profile %s allows no processes, because a process is not bound by its rules",
			s->profile.name);
		error_remedy(e, "Make a session with the profile python.");
		return error_slug(e, "policy_process");
	}
	if (s->processes && s->processes->running >= LIMIT_PROCESSES) {
		error_set(e, -EBUSY, "%d processes of this session are already running",
			LIMIT_PROCESSES);
		error_remedy(e, "Delete some of them. {list_processes}.");
		return error_slug(e, "too_many_processes");
	}
	return 0;
}

static int no_memory(struct error *e)
{
	error_set(e, -ENOMEM, "out of memory");
	return error_slug(e, "server_memory");
}

static struct processes *processes_of(struct session *s)
{
	if (!s->processes && (s->processes = calloc(1, sizeof(*s->processes))))
		TAILQ_INIT(&s->processes->list);
	return s->processes;
}

static struct session_process *new_process(struct session *s, const struct process_request *q)
{
	struct session_process *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;

	p->session = s;
	TAILQ_INIT(&p->readers);
	kept_output_init(&p->kept, LIMIT_PROCESS_KEPT_BYTES);
	for (int i = 0; i < 2; i++)
		output_init(&p->output[i], s->params.limits.output_bytes);
	uv_timer_init(s->table->config.loop, &p->timer);
	p->timer.data = p;
	p->command = q->command ? strdup(q->command) : NULL;
	p->tag = q->tag ? strdup(q->tag) : NULL;
	p->cwd = start_directory(q);
	p->argv = start_arguments(q);
	p->env = q->env ? session_words_copy((const char *const *)q->env) : NULL;
	p->terminal = q->rows > 0;
	p->input = p->terminal || q->keep_input || q->input;
	p->timeout_s = q->timeout_s;
	p->started_ns = clock_now_ns();
	p->started_wall_ns = clock_wall_ns();
	if (p->cwd && p->argv && (!q->command || p->command) && (!q->tag || p->tag) &&
		(!q->env || p->env))
		return p;

	uv_close((uv_handle_t *)&p->timer, timer_closed);
	return NULL;
}

static int start(struct session_process *p, const struct process_request *q, struct error *e)
{
	struct session *s = p->session;
	_cleanup_buffer_ struct buffer frame = BUFFER_INIT(0);
	char **env = start_environment(s, q);

	if (!env)
		return no_memory(e);

	int r = start_frame(s, q, p->argv, env, p->cwd, &frame, e);
	session_words_free(env);
	if (r < 0)
		return r;

	struct program_spec spec = { .frame = &frame, .terminal = p->terminal, .input = p->input };
	r = sandbox_start_program(s->sandbox, &spec, &program_events, p, &p->program);
	if (r == -ENOENT) {
		error_set(e, -EAGAIN, "the session is still starting");
		error_remedy(e, "Try again.");
		return error_slug(e, "starting");
	}
	if (r < 0) {
		error_set_errno(e, r, "starting the process");
		return error_slug(e, "no_resources");
	}
	if (!p->program)
		return 0; /* it has failed already, and its readers were told */
	if (q->input && program_write(p->program, q->input, q->input_len) < 0) {
		error_set(e, -E2BIG,
			"%zu bytes of standard input are more than the server keeps for a process",
			q->input_len);
		error_remedy(e, "Write long input to a file, or send it in parts.");
		return error_slug(e, "stdin_full");
	}
	if (q->input && !q->keep_input && !p->terminal)
		program_close_input(p->program);
	return 0;
}

int session_process_start(struct session *s, const struct process_request *q,
	struct process_reader *reader, struct error *e, struct session_process **ret)
{
	int r = refuse_start(s, e);
	if (r < 0)
		return r;

	struct processes *all = processes_of(s);
	struct session_process *p = all ? new_process(s, q) : NULL;
	if (!p)
		return no_memory(e);

	TAILQ_INSERT_TAIL(&all->list, p, link);
	all->running++;
	if (reader)
		process_reader_attach(reader, p);
	r = start(p, q, e);
	if (r < 0) {
		if (reader)
			process_reader_detach(reader);
		forget(p);
		return r;
	}
	if (p->state == PROCESS_STARTING)
		set_timer(p);
	s->times.used_ns = clock_now_ns();
	session_files_touched(s);
	session_files_share(s);
	forget_oldest(all);
	*ret = p;
	return 0;
}

/* ---- looking ------------------------------------------------------------------------ */

int session_process_find(
	struct session *s, unsigned id, struct error *e, struct session_process **ret)
{
	struct session_process *p = NULL;
	if (s->processes && id)
		TAILQ_FOREACH (p, &s->processes->list, link)
			if (p->id == id)
				break;
	if (p) {
		*ret = p;
		return 0;
	}
	error_set(e, -ENOENT, "there is no process %u in this session", id);
	error_remedy(e, "{list_processes}.");
	return error_slug(e, "process_not_found");
}

struct session_process *session_process_find_tag(struct session *s, const char *tag)
{
	struct session_process *p;
	if (s->processes)
		TAILQ_FOREACH_REVERSE(p, &s->processes->list, process_list, link)
	if (p->tag && text_eq(p->tag, tag))
		return p;
	return NULL;
}

struct session_process *session_process_next(struct session *s, struct session_process *after)
{
	if (!s->processes)
		return NULL;
	return after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&s->processes->list);
}

void session_process_info(const struct session_process *p, struct process_info *ret)
{
	uint64_t until = process_has_ended(p) ? p->ended_ns : clock_now_ns();
	*ret = (struct process_info){ .id = p->id,
		.state = p->state,
		.command = p->command,
		.argv = p->argv,
		.env = p->env,
		.cwd = p->cwd,
		.tag = p->tag,
		.has_terminal = p->terminal,
		.has_input = p->input,
		.exit_code = p->end.signaled ? 128 + p->end.status : p->end.status,
		.signal = p->end.signaled ? p->end.status : 0,
		.timed_out = p->timed_out,
		.why = p->why,
		.err = p->err,
		.started_wall_ns = p->started_wall_ns,
		.wall_s = (double)(until - p->started_ns) / 1e9,
		.output_bytes = p->kept.end,
		.kept_from = p->kept.first };
}

void session_process_output(struct session_process *p, enum stream stream, struct captured *ret)
{
	output_view(&p->output[stream], ret);
}

/* ---- using -------------------------------------------------------------------------- */

void session_process_delete(struct session_process *p)
{
	forget(p);
}

/* ---- readers ------------------------------------------------------------------------ */

void process_reader_attach(struct process_reader *r, struct session_process *p)
{
	r->process = p;
	TAILQ_INSERT_TAIL(&p->readers, r, link);
}

void process_reader_detach(struct process_reader *r)
{
	struct session_process *p = r->process;
	if (!p)
		return;

	TAILQ_REMOVE(&p->readers, r, link);
	r->process = NULL;
	p->session->times.used_ns = clock_now_ns();
	if (!p->ending)
		trim(p);
}

bool process_reader_next(struct process_reader *r, struct kept_view *ret)
{
	struct session_process *p = r->process;
	if (!p)
		return false;

	/* what was read stays where it is until the next call */
	trim(p);
	if (!kept_output_read(&p->kept, r->position, ret))
		return false;

	r->position = ret->next;
	return true;
}

/* ---- the session -------------------------------------------------------------------- */

void processes_end(struct session *s)
{
	struct session_process *p;
	while (s->processes && (p = TAILQ_FIRST(&s->processes->list)))
		forget(p);
	free(s->processes);
	s->processes = NULL;
}

bool processes_running(const struct session *s)
{
	return s->processes && s->processes->running;
}

bool processes_attended(const struct session *s)
{
	const struct session_process *p;
	if (s->processes)
		TAILQ_FOREACH (p, &s->processes->list, link)
			if (!process_has_ended(p) && !TAILQ_EMPTY(&p->readers))
				return true;
	return false;
}
