#include "local/local_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/text.h"
#include "profile/profiles.h"

enum { FILM_LOOK_MS = 5 };

static const double forever_s = 1e9;
static const int watched[LOCAL_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

const char *const local_exec_names[] = { "system", "none", "any", NULL };

enum { FORKS_MAX = 64 }; /* sessions of a shell that forks its own */

struct session *local_find(struct local *l)
{
	struct session *s = NULL;
	return session_find(l->sessions, l->id, NULL, &s) < 0 ? NULL : s;
}

void local_end(struct local *l)
{
	struct session *s = local_find(l);
	if (s)
		session_end(s, "it was ended");
}

/* ---- signals ---------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
	struct local *l = handle->data;
	struct session *s = local_find(l);
	l->signal = number;
	/* Before the guest is there nothing can be interrupted: then ending is what was meant. */
	if (s && number == SIGINT && l->interrupts++ == 0 && session_interrupt(s))
		return;
	local_end(l);
}

static void watch_signals(struct local *l)
{
	l->interrupts = 0;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		uv_signal_start(&l->signals[i], on_signal, watched[i]);
}

static void unwatch_signals(struct local *l)
{
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		uv_signal_stop(&l->signals[i]);
}

int local_signal(struct local *l)
{
	int number = l->signal;
	l->signal = 0;
	return number;
}

/* ---- life ------------------------------------------------------------- */

static void init_handles(struct local *l)
{
	uv_timer_init(&l->loop, &l->patience);
	l->patience.data = l;
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		uv_signal_init(&l->loop, &l->signals[i]);
		l->signals[i].data = l;
	}
}

/* Who runs this owns the machine's share: what he asks for holds. */
static void override_limits(struct sessions_config *sc, const struct session_limits *l)
{
	struct session_limits *d = &sc->defaults, *m = &sc->maxima;
	const struct {
		uint64_t asked, *fallback, *most;
	} counts[] = { { l->disk_bytes, &d->disk_bytes, &m->disk_bytes },
		{ l->inodes, &d->inodes, &m->inodes },
		{ l->file_bytes, &d->file_bytes, &m->file_bytes },
		{ l->open_files, &d->open_files, &m->open_files },
		{ l->processes, &d->processes, &m->processes },
		{ l->total_output_bytes, &d->total_output_bytes, &m->total_output_bytes } };
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		if (!counts[i].asked)
			continue;
		*counts[i].fallback = counts[i].asked;
		*counts[i].most = 0;
	}
	d->cpus = l->cpus;
	d->cpu_s = l->cpu_s;
}

static int start_table(struct local *l, const struct local_config *config, struct error *e)
{
	struct sessions_config sc;
	int r = paths_guest(e, &l->guest_module);
	if (r == 0)
		r = config->state_dir ? (l->state_dir = strdup(config->state_dir)) ? 0 : -ENOMEM
				      : paths_state_dir(e, &l->state_dir);
	if (r == 0 && config->shown && !(l->shown = strdup(config->shown)))
		r = -ENOMEM;
	if (r == 0)
		r = profiles_load(NULL, e, &l->profiles);
	if (r < 0)
		return r;
	sessions_config_init(&sc);
	sc.loop = &l->loop;
	sc.guest_module = l->guest_module;
	sc.state_dir = l->state_dir;
	sc.preload = config->preload;
	sc.shown = l->shown;
	sc.mounts = config->mount_names;
	sc.rootfs = config->rootfs;
	sc.profiles = l->profiles;
	sc.ready_guests = 1;
	sc.default_exec = config->exec;
	sc.max_sessions = FORKS_MAX;
	sc.default_ttl_s = sc.default_idle_timeout_s = forever_s;
	sc.defaults.timeout_s = config->timeout_s > 0 ? config->timeout_s : forever_s;
	sc.maxima.timeout_s = forever_s;
	if (config->memory_bytes)
		sc.defaults.memory_bytes = config->memory_bytes;
	if (config->disk_bytes)
		sc.defaults.disk_bytes = sc.maxima.disk_bytes = config->disk_bytes;
	if (config->output_bytes)
		sc.defaults.output_bytes = config->output_bytes;
	if (sc.maxima.memory_bytes < sc.defaults.memory_bytes)
		sc.maxima.memory_bytes = sc.defaults.memory_bytes;
	if (sc.maxima.output_bytes < sc.defaults.output_bytes)
		sc.maxima.output_bytes = sc.defaults.output_bytes;
	/* so that the one guest that is forked ahead is of its kind */
	struct network_policy network = { 0 };
	if ((r = local_network(config, e, &network)) < 0)
		return r;
	sc.default_network.net = network.net;
	network_policy_finish(&network);
	override_limits(&sc, &config->limits);
	r = sessions_create(&sc, e, &l->sessions);
	if (r == 0 && config->limits.cpus > 0 && *sessions_not_enforced(l->sessions)) {
		error_set(e, -ENOTSUP, "--cpus cannot be enforced without control groups");
		return error_remedy(e,
			"omit --cpus, or run where control groups can be created (`glovebox doctor` says how)");
	}
	return r;
}

int local_network(const struct local_config *config, struct error *e, struct network_policy *ret)
{
	int r = 0;
	if (config->allow) {
		r = network_policy_allow(config->allow, e, ret);
		if (r < 0)
			error_wrap(e, "--allow");
	} else if (config->network) {
		r = network_policy_parse(config->network, e, ret);
		if (r < 0)
			error_wrap(e, "--network");
	}
	return r;
}

static int copy_list(char *const *env, char ***ret)
{
	size_t n = 0;
	while (env && env[n])
		n++;
	if (!n)
		return 0;
	char **copy = calloc(n + 1, sizeof(char *));
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	for (size_t i = 0; i < n; i++)
		if (!(copy[i] = strdup(env[i])))
			return -ENOMEM;
	return 0;
}

static int start_session(struct local *l, const struct local_config *config, struct error *e)
{
	_cleanup_(session_params_finish) struct session_params params = { 0 };
	struct session *s;
	struct session_info info;
	params.packages = config->packages;
	params.has_display = config->display;
	params.display = config->display_size;
	params.imports_below = config->imports_below;
	int r = local_network(config, e, &params.network);
	if (r < 0)
		return r;
	r = copy_list(config->env, &params.env);
	if (r == 0)
		r = copy_list(config->imports, &params.additional_imports);
	if (r == 0)
		r = copy_list(config->mounts, &params.mounts);
	if (r == 0 && config->profile && !(params.profile = strdup(config->profile)))
		r = -ENOMEM;
	if (r < 0)
		return error_set_errno(e, r, "the session's parameters");
	r = session_create(l->sessions, &params, e, &s);
	if (r < 0)
		return r;
	session_info(s, &info);
	snprintf(l->id, sizeof(l->id), "%s", info.id);
	return 0;
}

int local_create(const struct local_config *config, struct error *e, struct local **ret)
{
	struct local *l = calloc(1, sizeof(*l));
	if (!l)
		return error_set_errno(e, -ENOMEM, "starting");
	int r = uv_loop_init(&l->loop);
	if (r < 0) {
		free(l);
		return error_set_errno(e, r, "the event loop");
	}
	log_set_level(LOG_WARNING); /* what the code does is its own to say */
	/* a guest that is gone, or a reader of our output, shows as EPIPE */
	signal(SIGPIPE, SIG_IGN);
	init_handles(l);
	r = reaper_start(&l->reaper, &l->loop);
	r = r < 0 ? error_set_errno(e, r, "becoming the parent of orphaned processes")
		  : start_table(l, config, e);
	if (r == 0)
		r = start_session(l, config, e);
	else
		session_package_free(config->packages);
	if (r < 0) {
		local_destroy(l);
		return r;
	}
	*ret = l;
	return 0;
}

static void on_gone(void *userdata)
{
	struct local *l = userdata;
	l->gone = true;
}

void local_destroy(struct local *l)
{
	if (!l)
		return;
	if (l->sessions) {
		sessions_destroy(l->sessions, 0, on_gone, l);
		while (!l->gone)
			uv_run(&l->loop, UV_RUN_ONCE);
	}
	reaper_stop(&l->reaper);
	uv_close((uv_handle_t *)&l->patience, NULL);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		uv_close((uv_handle_t *)&l->signals[i], NULL);
	uv_run(&l->loop, UV_RUN_DEFAULT);
	uv_loop_close(&l->loop);
	reaper_sweep_all();
	profiles_destroy(l->profiles);
	free(l->guest_module);
	free(l->state_dir);
	free(l->shown);
	free(l->answer);
	free(l);
}

/* ---- cells ------------------------------------------------------------ */

static void forward_started(void *userdata, unsigned cell)
{
	struct local *l = userdata;
	if (l->observer->on_started)
		l->observer->on_started(l->userdata, cell);
}

static void forward_output(void *userdata, enum stream stream, const char *data, size_t len)
{
	struct local *l = userdata;
	if (l->observer->on_output)
		l->observer->on_output(l->userdata, stream, data, len);
}

static void forward_display(void *userdata, const struct bundle *b)
{
	struct local *l = userdata;
	if (l->observer->on_display)
		l->observer->on_display(l->userdata, b);
}

static void forward_done(void *userdata, const struct observation *o)
{
	struct local *l = userdata;
	if (l->observer->on_done)
		l->observer->on_done(l->userdata, o);
	l->done = true;
}

int local_execute(struct local *l, const struct cell_request *request,
	const struct cell_observer *observer, void *userdata, struct error *e)
{
	struct cell_observer forward = { .on_started = forward_started,
		.on_output = forward_output,
		.on_display = forward_display,
		.on_done = forward_done,
		.uncapped = observer->uncapped };
	struct session *s;
	struct cell *cell;
	int r = session_find(l->sessions, l->id, e, &s);
	if (r < 0)
		return r;
	l->observer = observer;
	l->userdata = userdata;
	l->done = false;
	r = session_execute(s, NULL, request, &forward, l, e, &cell);
	if (r < 0)
		return r;
	watch_signals(l);
	while (!l->done)
		uv_run(&l->loop, UV_RUN_ONCE);
	unwatch_signals(l);
	return 0;
}

void local_on_patience(uv_timer_t *timer)
{
	struct local *l = timer->data;
	l->late = true;
}

bool local_wait_ready(struct local *l, double seconds)
{
	uv_timer_start(&l->patience, local_on_patience, (uint64_t)(seconds * 1000), 0);
	l->late = false;
	while (!sessions_ready(l->sessions) && !l->late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_timer_stop(&l->patience);
	return sessions_ready(l->sessions);
}

const char *local_preload_report(struct local *l)
{
	return sessions_preload_report(l->sessions);
}

int local_recording(
	struct local *l, unsigned id, enum film_format format, struct error *e, int *ret_fd)
{
	struct session *s;
	int r = session_find(l->sessions, l->id, e, &s);
	/* Its last frame is awaited, and a film that is made: both for a time that is bounded. */
	while (r == 0 && (r = recording_film(s, id, format, e, ret_fd)) == -EINPROGRESS) {
		/* recordings tell nobody when they are done */
		uv_timer_start(&l->patience, local_on_patience, FILM_LOOK_MS, 0);
		uv_run(&l->loop, UV_RUN_ONCE);
		r = 0;
	}
	uv_timer_stop(&l->patience);
	return r == -ENODATA
		       ? error_set(e, r, "the code opened no window, so there is nothing to show")
		       : r;
}

int local_workspace(struct local *l)
{
	struct session *s = local_find(l);
	return s ? session_workspace_fd(s) : -1;
}

int local_wait_workspace(struct local *l, double seconds)
{
	uv_timer_start(&l->patience, local_on_patience, (uint64_t)(seconds * 1000), 0);
	l->late = false;
	while (local_workspace(l) < 0 && !l->late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_timer_stop(&l->patience);
	return local_workspace(l);
}

int local_reset(struct local *l, struct error *e)
{
	struct session *s;
	int r = session_find(l->sessions, l->id, e, &s);
	return r < 0 ? r : session_reset(s, e);
}

const char *local_display_kind(struct local *l)
{
	return sessions_display_kind(l->sessions);
}

/* ---- time travel ---------------------------------------------------------------- */

struct trip {
	struct local *local;
	struct error e;
	bool over;
	char id[SESSION_ID_LEN + 1]; /* of a fork */
};

static void on_arrived(void *userdata, const struct error *e, const struct checkpoint_result *a)
{
	struct trip *t = userdata;
	(void)a;
	if (e)
		t->e = *e;
	t->over = true;
}

static void on_forked(
	void *userdata, const struct error *e, struct session *const *sessions, unsigned n)
{
	struct trip *t = userdata;
	struct session_info info;
	if (n) {
		session_info(sessions[0], &info);
		snprintf(t->id, sizeof(t->id), "%s", info.id);
	}
	on_arrived(userdata, e, NULL);
}

int local_history(struct local *l, enum local_history kind, const char *name, struct error *e)
{
	struct trip t = { .local = l };
	struct session *s;
	int r = session_find(l->sessions, l->id, e, &s);
	if (r < 0)
		return r;
	if (kind == LOCAL_CHECKPOINT)
		r = session_checkpoint(s, name, on_arrived, &t, e);
	else if (kind == LOCAL_ROLLBACK)
		r = session_rollback(s, name, on_arrived, &t, e);
	else
		r = session_fork(
			s, &(struct fork_request){ .at = name, .count = 1 }, on_forked, &t, e);
	while (r == 0 && !t.over)
		uv_run(&l->loop, UV_RUN_ONCE);
	if (r == 0 && t.e.err) {
		*e = t.e;
		r = t.e.err;
	}
	if (r == 0 && t.id[0])
		memcpy(l->id, t.id, sizeof(l->id));
	return r;
}

bool local_checkpoint(struct local *l, unsigned i, struct checkpoint_info *ret)
{
	struct session *s = local_find(l);
	return s && session_checkpoint_info(s, i, true, ret);
}
