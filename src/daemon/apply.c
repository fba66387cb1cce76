/* From settings to the session table's own parameters. */
#include "base/limits.h"
#include "daemon/config.h"
#include "daemon/places.h"
#include "session/session.h"

static struct session_limits default_limits(const struct config *c)
{
	return (struct session_limits){
		.timeout_s = c->timeout,
		.output_bytes = c->output,
		.memory_bytes = c->memory,
		.processes = c->processes,
		.disk_bytes = c->disk,
		.log_bytes = c->log,
	};
}

static struct session_limits most_limits(const struct config *c)
{
	return (struct session_limits){
		.timeout_s = c->max_timeout,
		.output_bytes = c->max_output,
		.memory_bytes = c->max_memory,
		.processes = c->max_processes,
		.disk_bytes = c->max_disk,
		.log_bytes = c->max_log,
	};
}

int config_sessions(const struct config *c, struct error *e, struct sessions_config *ret)
{
	char *module = NULL;
	int r = places_guest(e, &module);
	if (r < 0)
		return r;
	sessions_config_init(ret);
	ret->guest_module = module;
	ret->state_dir = c->state_dir;
	ret->preload = c->preload;
	ret->ready_guests = c->ready;
	ret->max_sessions = c->max_sessions;
	ret->max_queued_cells = c->queue;
	ret->grace_s = c->grace;
	ret->default_ttl_s = c->ttl;
	ret->default_idle_timeout_s = c->idle_timeout;
	ret->defaults = default_limits(c);
	ret->maxima = most_limits(c);
	return 0;
}
