/* clang-format off */
/*
 * The order of the end (see api.h): refuse new work, let pending answers out, then end the sessions, then free. Whatever
 * waits has a deadline of its own, so that the end always comes:
 *
 *	SERVING ──signal──► DRAINING   until all answers are out and no cell runs, at most config.drain seconds
 *	                ──► FINISHING  sessions were ended: their cells' last answers go out, then connections are cut
 *	                ──► ENDING     the session table goes, with its jailer and zygote
 *	                ──► OVER       handles closed, the loop returns
 */
/* clang-format on */
#include "daemon/serve.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

#include "api/api.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/capacity.h"
#include "daemon/config.h"
#include "daemon/mcp_settings.h"
#include "daemon/custom_profiles.h"
#include "daemon/reaper.h"
#include "daemon/preinstalled_sets.h"
#include "profile/profiles.h"
#include "http/http.h"
#include "http/http_address.h"
#include "jail/filter_own.h"
#include "jail/layers.h"
#include "packages/packages.h"
#include "session/session.h"

enum { LARGE_BLOCK_BYTES = 256 * 1024 };
enum { TICK_MS = 10, ANSWER_MS = 2000, END_MS = 10000, WARM_NOTICE_MS = 10000 };

enum phase { SERVING, DRAINING, FINISHING, ENDING, OVER };

struct server {
	const struct config *config;
	uv_loop_t loop;
	struct packages *packages;
	struct warm_sets warm_sets;
	struct sessions *sessions;
	struct profiles *profiles;
	struct mcp_settings mcp;
	char *guest_module; /* the table looks at it again when it starts a helper anew */
	struct api *api;
	struct http_server *http; /* NULL once it is closed */
	struct reaper reaper;
	struct layer_state layers[LAYER_COUNT];
	uv_signal_t on_term, on_int, on_child;
	uv_timer_t tick;
	enum phase phase;
	bool warm;
	uint64_t started_ns, notice_ns, phase_until_ns;
	int exit_code;
};

/* ---- start ------------------------------------------------------------ */

static void warn_unknown_variables(void)
{
	size_t position = 0;
	const char *name, *nearest;
	while ((name = options_unknown_variable(config_rows, config_other_variables, &position, &nearest))) {
		char variable[OPTION_VARIABLE_MAX];
		if (nearest)
			log_warning("%s is no setting: did you mean %s?", name,
				options_variable(nearest, variable));
		else
			log_warning("%s is no setting, and is ignored", name);
	}
}

static int report(const struct error *e)
{
	if (*e->remedy)
		log_error("%s (%s)", e->text, e->remedy);
	else
		log_error("%s", e->text);
	return SERVE_FAILED;
}

static int start_sessions(struct server *s, struct error *e)
{
	struct sessions_config sc;
	int r = packages_create(&s->loop, &s->config->packages, s->config->state_dir, e, &s->packages);
	if (r == 0)
		r = config_sessions(s->config, e, &sc);
	if (r < 0)
		return r;
	if (warm_sets_authorise(&s->warm_sets, s->config->additional_imports, &sc.default_imports) < 0)
		return error_set_errno(e, -ENOMEM, "additional-imports");
	sc.loop = &s->loop;
	sc.shown = packages_shown(s->packages);
	sc.template_bytes = s->config->packages.template_bytes;
	s->guest_module = sc.guest_module;
	r = own_profiles_load(s->config->file, e, &s->profiles);
	if (r == 0)
		r = own_profiles_check(s->profiles, s->config, e);
	if (r == 0)
		r = mcp_settings_load(s->config, s->profiles, e, &s->mcp);
	if (r < 0)
		return r;
	sc.profiles = s->profiles;
	return sessions_create(&sc, e, &s->sessions);
}

/* The names a client may use for us: the host it was told to listen on, and those that were configured. */
static char **known_hosts(const struct config *c, struct http_address *own)
{
	size_t n = 0, used = 0;
	while (c->allow_host && c->allow_host[n])
		n++;
	char **hosts = calloc(n + 2, sizeof(char *));
	if (!hosts)
		return NULL;
	if (http_address_parse(c->listen, NULL, own) == 0 && !own->is_unix)
		hosts[used++] = own->host;
	for (size_t i = 0; i < n; i++)
		hosts[used++] = c->allow_host[i];
	return hosts;
}

/* Sessions one token may have: what was configured, else with several of them an equal part each, so that none can starve the others. */
static unsigned share_of_a_token(const struct config *c)
{
	unsigned n = 0;
	while (c->token && c->token[n])
		n++;
	if (c->max_sessions_per_token || n < 2)
		return c->max_sessions_per_token;
	return c->max_sessions >= n ? c->max_sessions / n : 1;
}

static int start_api(struct server *s, struct error *e)
{
	const struct config *c = s->config;
	struct http_address own;
	_cleanup_free_ char **hosts = known_hosts(c, &own);
	if (!hosts)
		return error_set_errno(e, -ENOMEM, "starting the API");
	struct api_config config = {
		.loop = &s->loop,
		.sessions = s->sessions,
		.packages = s->packages,
		.profiles = s->profiles,
		.tokens = c->token,
		.hosts = hosts,
		.origins = c->allow_origin,
		.max_upload_bytes = c->max_upload,
		.layers = s->layers,
		.max_sessions_per_token = share_of_a_token(c),
		.log_requests = c->access_log,
		.no_live_control = !c->live_control,
		.jupyter_timeout_s = c->jupyter_timeout < c->max_timeout ? c->jupyter_timeout : c->max_timeout,
		.mcp = s->mcp.config,
		.openenv = { .profile = own_profiles_openenv(c), .rewards = c->openenv_rewards, .lease_s = c->openenv_lease },
	};
	return api_create(&config, e, &s->api);
}

static int start_http(struct server *s, struct error *e)
{
	int r = http_server_create(&(struct http_server_config){ .loop = &s->loop,
					   .listen = s->config->listen,
					   .handler = api_handler(),
					   .userdata = s->api,
					   .max_connections = s->config->max_connections },
		e, &s->http);
	if (r == -EADDRINUSE && !*e->remedy)
		error_remedy(e, "another program has it: end that one, or take another --listen (make run LISTEN=127.0.0.1:8001)");
	if (r == 0)
		api_set_server(s->api, s->http);
	return r;
}

/* Once everything is open that needs more than the filter allows; helpers that start later come from the launcher. */
static int enter_filter(struct error *e)
{
	int r = filter_enter_own(FILTER_DAEMON);
	if (r < 0) {
		error_set_errno(e, r, "loading the daemon's own system call filter");
		return error_remedy(e, "use a kernel with CONFIG_SECCOMP_FILTER; `glovebox doctor` tells more");
	}
	return 0;
}

/* Every layer of the wall is tried before anybody can ask for a session: without one there is no server, unless it was waived by name. */
static int check_layers(struct server *s, struct error *e)
{
	layers_test(s->layers);
	int r = layers_waive(s->layers, s->config->waive, e);
	if (r == 0)
		r = layers_check(s->layers, e);
	for (int i = 0; r == 0 && i < LAYER_COUNT; i++)
		if (!s->layers[i].there)
			log_warning("without the layer %s, as it was waived (%s): %s", layer_name((enum layer)i), s->layers[i].why.text,
				layer_consequence((enum layer)i));
	return r;
}

static int start(struct server *s, struct error *e)
{
	int r = check_layers(s, e);
	if (r == 0)
		r = start_sessions(s, e);
	if (r == 0)
		r = start_api(s, e);
	if (r == 0)
		r = start_http(s, e);
	return r < 0 ? r : enter_filter(e);
}

/* ---- warm-up ---------------------------------------------------------- */

static void print_invitation(const struct server *s)
{
	const char *address = http_server_address(s->http),
		   *token = s->config->token ? " -H \"Authorization: Bearer $TOKEN\"" : "";
	char call[512];
	if (http_server_port(s->http))
		snprintf(call, sizeof(call), "curl -s%s http://%s", token, address);
	else
		snprintf(call, sizeof(call), "curl -s%s --unix-socket %s http://localhost", token,
			s->config->listen + strlen("unix:"));
	printf("\nGlovebox is ready. In another terminal, try:\n"
	       "  %s/v1/run -H 'Content-Type: application/json' -d '{\"code\": \"print(6 * 7)\"}'\n"
	       "  %s/v1/sessions -H 'Content-Type: application/json' -d '{\"name\": \"first\"}'\n"
	       "  %s run -c 'print(6 * 7)'      (needs no server)\n",
		call, call, program_invocation_name);
	if (http_server_port(s->http))
		printf("A page to try it: http://%s/    All calls: http://%s/docs\n", address, address);
	printf("Ctrl-C ends it.\n\n");
	fflush(stdout);
}

static void log_preload(char *const *modules)
{
	_cleanup_buffer_ struct buffer names = BUFFER_INIT(1024);
	if (!modules) {
		log_info("warming up: importing the default modules");
		return;
	}
	for (; *modules; modules++)
		buffer_printf(&names, " %s", *modules); /* a list too long for a line is cut */
	const char *text = names.len ? buffer_cstr(&names) : " nothing ahead";
	log_info("warming up: importing%s", text ? text : " many modules");
}

static void report_unknown_modules(const struct server *s)
{
	const char *line = sessions_preload_report(s->sessions);
	while (line && *line) {
		size_t len = strcspn(line, "\n");
		log_warning("not preloaded: %.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
}

static void watch_warm_up(struct server *s)
{
	uint64_t now = clock_now_ns();
	if (sessions_ready(s->sessions)) {
		s->warm = true;
		report_unknown_modules(s);
		log_info("ready after %.1f s on %s", (double)(now - s->started_ns) / NSEC_PER_SEC,
			http_server_address(s->http));
		print_invitation(s);
		uv_timer_stop(&s->tick);
	} else if (now > s->notice_ns) {
		s->notice_ns = now + WARM_NOTICE_MS * NSEC_PER_MSEC;
		log_warning("still warming up after %.0f s (the template was restarted %llu times)",
			(double)(now - s->started_ns) / NSEC_PER_SEC,
			(unsigned long long)sessions_stats(s->sessions)->zygote_restarts);
	}
}

/* ---- the end ---------------------------------------------------------- */

static void enter(struct server *s, enum phase phase, uint64_t at_most_ms)
{
	s->phase = phase;
	s->phase_until_ns = clock_now_ns() + at_most_ms * NSEC_PER_MSEC;
}

static void on_http_closed(void *userdata)
{
	struct server *s = userdata;
	api_set_server(s->api, NULL);
	s->http = NULL;
}

static void close_handles(struct server *s)
{
	enter(s, OVER, 0);
	uv_close((uv_handle_t *)&s->on_term, NULL);
	uv_close((uv_handle_t *)&s->on_int, NULL);
	uv_close((uv_handle_t *)&s->on_child, NULL);
	uv_close((uv_handle_t *)&s->tick, NULL);
	reaper_stop(&s->reaper);
}

static void on_sessions_gone(void *userdata)
{
	struct server *s = userdata;
	s->sessions = NULL;
	close_handles(s);
}

static void end_all_sessions(struct server *s)
{
	for (struct session *one = sessions_next(s->sessions, NULL), *next; one; one = next) {
		next = sessions_next(s->sessions, one);
		session_end(one, "the server is stopping");
	}
}

static void end_table(struct server *s)
{
	enter(s, ENDING, END_MS);
	packages_stop(s->packages); /* nobody is left who could be answered; its handles would keep the loop */
	sessions_destroy(s->sessions, 0, on_sessions_gone, s);
}

/* Moves to the next phase when this one has nothing left to wait for, or has waited long enough. */
static void watch_end(struct server *s)
{
	bool late = clock_now_ns() >= s->phase_until_ns;
	switch (s->phase) {
	case DRAINING:
		if (s->http || sessions_stats(s->sessions)->running_cells) {
			if (!late)
				return;
			log_warning("the drain is over: ending what still runs");
		}
		end_all_sessions(s);
		enter(s, FINISHING, ANSWER_MS);
		return;
	case FINISHING:
		if (!s->http)
			end_table(s);
		else if (late)
			http_server_cut(s->http);
		return;
	case ENDING:
		if (late) {
			log_error("sessions did not end in time; leaving without them");
			reaper_sweep_all();
			_exit(SERVE_FAILED);
		}
		return;
	case SERVING:
	case OVER:
		return;
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct server *s = timer->data;
	if (s->phase == SERVING)
		watch_warm_up(s);
	else
		watch_end(s);
}

static void begin_drain(struct server *s, const char *reason)
{
	uint64_t running = sessions_stats(s->sessions)->running_cells;
	log_info("%s: draining, %llu running cells get up to %.0f s (a second signal ends them now)", reason,
		(unsigned long long)running, s->config->drain);
	enter(s, DRAINING, (uint64_t)(s->config->drain * 1000));
	api_drain(s->api);
	http_server_close(s->http, on_http_closed, s);
	uv_timer_start(&s->tick, on_tick, 0, TICK_MS);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct server *s = handle->data;
	const char *name = number == SIGTERM ? "SIGTERM" : "SIGINT";
	if (s->phase == SERVING) {
		begin_drain(s, name);
	} else if (s->phase == DRAINING) {
		log_info("%s again: ending at once", name);
		s->phase_until_ns = 0;
	} else {
		log_warning("%s again: leaving now", name);
		reaper_sweep_all();
		_exit(SERVE_FAILED);
	}
}

/* Most children are guests and looked after elsewhere; this is about what starts helpers. */
static void on_child(uv_signal_t *handle, int number)
{
	struct server *s = handle->data;
	(void)number;
	int r = s->phase == SERVING && s->http ? launcher_mend() : 0;
	if (r > 0)
		log_warning("a launcher of helper processes ended; the other one has started it again");
	if (r >= 0)
		return;
	log_error("no launcher of helper processes is left and none can be started (%s): a server that cannot replace what dies ends here. Start it again",
		strerror(-r));
	s->exit_code = SERVE_FAILED;
	begin_drain(s, "without launchers");
}

/* ---- all of it -------------------------------------------------------- */

static int prepare_loop(struct server *s)
{
	int r = uv_loop_init(&s->loop);
	if (r < 0)
		return r;
	uv_timer_init(&s->loop, &s->tick);
	uv_signal_init(&s->loop, &s->on_term);
	uv_signal_init(&s->loop, &s->on_int);
	uv_signal_init(&s->loop, &s->on_child);
	s->tick.data = s->on_term.data = s->on_int.data = s->on_child.data = s;
	uv_signal_start(&s->on_term, on_signal, SIGTERM);
	uv_signal_start(&s->on_int, on_signal, SIGINT);
	uv_signal_start(&s->on_child, on_child, SIGCHLD);
	return reaper_start(&s->reaper, &s->loop);
}

/* The modules that every session may import are there, or never will be. */
static void on_packages(void *userdata, const char *failed, const char *names)
{
	struct server *s = userdata;
	api_tell_packages(s->api, false, failed);
	if (!failed || !s->config->packages.strict || s->phase != SERVING)
		return;
	log_error("Non-installed authorized modules: %s. Please install these modules or remove them from the authorized imports list.", names);
	s->exit_code = SERVE_FAILED;
	begin_drain(s, "packages-strict");
}

/* Starting failed half-way: takes down what was there already. */
static void take_down(struct server *s)
{
	if (s->sessions)
		sessions_destroy(s->sessions, 0, on_sessions_gone, s);
	else
		close_handles(s);
	uv_run(&s->loop, UV_RUN_DEFAULT);
}

static int serve(struct server *s)
{
	struct error e = { 0 };
	if (start(s, &e) < 0) {
		report(&e);
		take_down(s);
		return SERVE_FAILED;
	}
	log_info("listening on %s", http_server_address(s->http));
	api_tell_packages(s->api, true, NULL);
	if (!warm_sets_common(&s->warm_sets, s->packages, s->sessions, s->config->additional_imports, on_packages, s))
		api_tell_packages(s->api, false, NULL);
	warm_sets_start(&s->warm_sets, s->packages, s->sessions, s->config->packages.warm);
	log_preload(s->config->preload);
	s->notice_ns = s->started_ns + WARM_NOTICE_MS * NSEC_PER_MSEC;
	uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	log_info("ended; served for %.0f s", (double)(clock_now_ns() - s->started_ns) / NSEC_PER_SEC);
	return s->exit_code;
}

int serve_run(const struct config *config)
{
	struct config settled = *config;
	struct server s = { .config = &settled, .started_ns = clock_now_ns() };
	log_set_level((enum log_level)config->log_level);
	log_info("glovebox %s, process %d, settings from %s", GLOVEBOX_VERSION, (int)getpid(),
		config->file ? config->file : "flags, variables and defaults");
	warn_unknown_variables();
	capacity_raise_descriptors();
	capacity_settle(&settled);
	/* Large blocks are given back to the system when they are freed; by itself malloc() would soon keep blocks of up to 32 MB. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	signal(SIGPIPE, SIG_IGN);
	/* Tokens are in this memory: no core file, and nobody but root looks at it. */
	prctl(PR_SET_DUMPABLE, 0);
	int r = launcher_start();
	if (r < 0) {
		log_error("the launcher of helper processes does not start: %s%s", strerror(-r),
			r == -ENOSYS || r == -EPERM ? ". Probably the filter of a container refuses clone3(): start the container with --security-opt "
						      "seccomp=deploy/seccomp.json --security-opt systempaths=unconfined --security-opt "
						      "apparmor=unconfined (docs/docker.md)" :
						      "");
		return SERVE_FAILED;
	}
	filter_refuse_rings(); /* a kernel without filters is told of, and refused, when the layers are tried */
	r = prepare_loop(&s);
	if (r < 0) {
		log_error("the event loop: %s", uv_strerror(r));
		return SERVE_FAILED;
	}
	int code = serve(&s);
	api_destroy(s.api);
	warm_sets_finish(&s.warm_sets);
	packages_destroy(s.packages);
	uv_run(&s.loop, UV_RUN_DEFAULT); /* the API's timer closes */
	profiles_destroy(s.profiles);
	mcp_settings_finish(&s.mcp);
	free(s.guest_module);
	uv_loop_close(&s.loop);
	launcher_stop();
	unsigned left = reaper_sweep_all();
	if (left)
		log_warning("ended %u processes that were left", left);
	return code;
}
