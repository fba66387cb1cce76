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
#include "api/api_words.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/capacity.h"
#include "daemon/mount_settings.h"
#include "daemon/serve_internal.h"
#include "http/http.h"
#include "jail/filter_own.h"
#include "packages/packages.h"
#include "profile/profiles.h"
#include "session/session.h"

enum { LARGE_BLOCK_BYTES = 256 * 1024 };
enum { TICK_MS = 10, ANSWER_MS = 2000, END_MS = 10000, WARM_NOTICE_MS = 10000 };

/* ---- messages -------------------------------------------------------- */

static void warn_unknown_variables(void)
{
	size_t position = 0;
	const char *name, *nearest;
	while ((name = options_unknown_variable(
			config_rows, config_other_variables, &position, &nearest))) {
		char variable[OPTION_VARIABLE_MAX];
		if (nearest)
			log_warning("%s: unknown setting, ignored; did you mean %s?", name,
				options_variable(nearest, variable));
		else
			log_warning("%s: unknown setting, ignored", name);
	}
}

static int report(const struct error *e)
{
	char remedy[EDGE_TEXT_MAX];
	if (*e->remedy)
		log_error("%s (%s)", e->text, api_remedy(e->remedy, remedy));
	else
		log_error("%s", e->text);
	return SERVE_FAILED;
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
		printf("The console: http://%s/    All calls: http://%s/docs\n", address, address);
	printf("Press Ctrl-C to stop the server.\n\n");
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
	const char *text = names.len ? buffer_cstr(&names) : " no modules";
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
	uv_close((uv_handle_t *)&s->on_usr1, NULL);
	uv_close((uv_handle_t *)&s->tick, NULL);
	agent_destroy(s->agent);
	s->agent = NULL;
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
	/* nobody is left who could be answered; its handles would keep the loop */
	packages_stop(s->packages);
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
			log_warning("the drain time is over: ending the running cells");
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
			log_error("some sessions did not end in time; exiting anyway");
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
	log_info(
		"%s: draining, %llu running cells get up to %.0f s (a second signal ends them now)",
		reason, (unsigned long long)running, s->config->drain);
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
		log_warning("%s again: exiting now", name);
		reaper_sweep_all();
		_exit(SERVE_FAILED);
	}
}

/* The first signal drains the server without ending it; the next one cancels the drain. */
static void on_drain_signal(uv_signal_t *handle, int number)
{
	struct server *s = handle->data;
	(void)number;
	if (s->phase != SERVING || !s->sessions)
		return;

	if (sessions_draining(s->sessions, NULL))
		sessions_stop_drain(s->sessions);
	else
		sessions_drain(s->sessions, 0);
}

/* Most children are guests and looked after elsewhere; this is about what starts helpers. */
static void on_child(uv_signal_t *handle, int number)
{
	struct server *s = handle->data;
	(void)number;
	int r = s->phase == SERVING && s->http ? launcher_mend() : 0;
	if (r > 0)
		log_warning(
			"a launcher of helper processes ended; the other one has started it again");
	if (r >= 0)
		return;
	log_error(
		"both launchers of helper processes have ended and none can be started (%s): the server could not replace failed helpers, so it exits. Start it again",
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
	uv_signal_init(&s->loop, &s->on_usr1);
	s->tick.data = s->on_term.data = s->on_int.data = s->on_child.data = s->on_usr1.data = s;
	uv_signal_start(&s->on_term, on_signal, SIGTERM);
	uv_signal_start(&s->on_int, on_signal, SIGINT);
	uv_signal_start(&s->on_child, on_child, SIGCHLD);
	uv_signal_start(&s->on_usr1, on_drain_signal, SIGUSR1);
	return reaper_start(&s->reaper, &s->loop);
}

/* The modules that every session may import are there, or never will be. */
static void on_packages(void *userdata, const char *failed, const char *names)
{
	struct server *s = userdata;
	api_tell_packages(s->api, false, failed);
	if (!failed || !s->config->packages.strict || s->phase != SERVING)
		return;
	log_error(
		"Non-installed authorized modules: %s. Please install these modules or remove them from the authorized imports list.",
		names);
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
	if (server_start(s, &e) < 0) {
		report(&e);
		take_down(s);
		return SERVE_FAILED;
	}

	log_info("listening on %s", http_server_address(s->http));
	api_tell_packages(s->api, true, NULL);
	if (!warm_sets_common(&s->warm_sets, s->packages, s->sessions,
		    s->config->additional_imports, on_packages, s))
		api_tell_packages(s->api, false, NULL);
	warm_sets_start(&s->warm_sets, s->packages, s->sessions, s->config->packages.warm);
	log_preload(s->config->preload);
	s->notice_ns = s->started_ns + WARM_NOTICE_MS * NSEC_PER_MSEC;
	uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	log_info("ended; served for %.0f s",
		(double)(clock_now_ns() - s->started_ns) / NSEC_PER_SEC);
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
	/*
	 * Large blocks are given back to the system when they are freed; by itself malloc() would
	 * soon keep blocks of up to 32 MB.
	 */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	signal(SIGPIPE, SIG_IGN);
	/* Tokens are in this memory: no core file, and nobody but root looks at it. */
	prctl(PR_SET_DUMPABLE, 0);
	int r = launcher_start();
	if (r < 0) {
		log_error("the launcher of helper processes does not start: %s%s", strerror(-r),
			r == -ENOSYS || r == -EPERM
				? ". Probably the filter of a container refuses clone3(): start the container with --security-opt "
				  "seccomp=deploy/seccomp.json --security-opt systempaths=unconfined --security-opt "
				  "apparmor=unconfined (docs/docker.md)"
				: "");
		return SERVE_FAILED;
	}

	/* a kernel without filters is told of, and refused, when the layers are tried */
	filter_refuse_rings();
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
	free(s.shown);
	mount_settings_free(s.mounts);
	uv_loop_close(&s.loop);
	launcher_stop();
	unsigned left = reaper_sweep_all();
	if (left)
		log_warning("ended %u remaining processes", left);
	return code;
}
