/* Translates the settings into the parameters of the session table. */
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/paths.h"
#include "daemon/config.h"
#include "session/session.h"

static struct session_limits default_limits(const struct config *c)
{
	return (struct session_limits){
		.timeout_s = c->timeout,
		.output_bytes = c->output,
		.memory_bytes = c->memory,
		.processes = c->processes,
		.cpus = c->cpus,
		.cpu_s = c->cpu_time,
		.session_cpu_s = c->session_cpu_time,
		.disk_bytes = c->disk,
		.inodes = c->inodes,
		.file_bytes = c->file_size,
		.open_files = c->open_files,
		.total_output_bytes = c->total_output,
		.log_bytes = c->log,
	};
}

/* The maximum is the memory of the machine, but never less than the default of a session. */
static uint64_t most_memory(const struct config *c)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t all = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
	return c->max_memory ? c->max_memory : all > c->memory ? all : c->memory;
}

static struct session_limits most_limits(const struct config *c)
{
	return (struct session_limits){
		.timeout_s = c->max_timeout,
		.output_bytes = c->max_output,
		.memory_bytes = most_memory(c),
		.processes = c->max_processes,
		.cpus = c->max_cpus,
		.cpu_s = c->max_cpu_time,
		.session_cpu_s = c->max_session_cpu_time,
		.disk_bytes = c->max_disk,
		.inodes = c->max_inodes,
		.file_bytes = c->max_file_size,
		.open_files = c->max_open_files,
		.total_output_bytes = c->max_total_output,
		.log_bytes = c->max_log,
	};
}

/*
 * Where there are tokens, clients are not necessarily those whom this machine's own neighbourhood
 * trusts: what is not public must then be named by who runs the server.
 */
static int network(const struct config *c, struct error *e, struct sessions_config *ret)
{
	static char *open_to_all[] = { (char *)"any", NULL },
		    *public_only[] = { (char *)"loopback", (char *)"*:*", NULL };
	char *const *list = c->network ? c->network : c->token ? public_only : open_to_all;
	int r = network_most_parse(list, e, &ret->max_network);
	if (r == 0)
		r = network_policy_parse(
			c->default_network ? c->default_network : "none", e, &ret->default_network);
	return r;
}

int config_sessions(const struct config *c, struct error *e, struct sessions_config *ret)
{
	char *module = NULL;
	int r = paths_guest(e, &module);

	if (r < 0)
		return r;
	sessions_config_init(ret);
	ret->guest_module = module;
	ret->warm_display = c->displays == DISPLAYS_READY;
	ret->plain_displays = c->displays == DISPLAYS_PLAIN;
	ret->quick_start = c->quick_start;
	ret->low_idle_latency = c->low_idle_latency;
	ret->state_dir = c->state_dir;
	ret->preload = c->preload;
	ret->learn = c->heap_placement;
	ret->rootfs = c->rootfs;
	ret->max_volumes = c->max_volumes;
	ret->max_volume_bytes = c->max_volume_bytes;
	ret->owner_keys = c->token; /* in the order in which the API numbers their owners */
	ret->ready_guests = c->ready;
	ret->renew_s = c->renew;
	ret->max_sessions = c->max_sessions;
	ret->max_queued_cells = c->queue;
	ret->grace_s = c->grace;
	ret->no_transactions = !c->transactions;
	ret->keep_files_bytes = c->keep_files;
	ret->max_checkpoints = c->max_checkpoints;
	ret->checkpoint_bytes = c->checkpoint_memory;
	ret->default_ttl_s = c->ttl;
	ret->default_idle_timeout_s = c->idle_timeout;
	ret->max_paused_s = c->max_paused;
	ret->default_profile = c->profile;
	ret->default_imports = c->additional_imports;
	ret->defaults = default_limits(c);
	ret->maxima = most_limits(c);
	ret->default_exec = (enum jail_exec)c->exec;
	ret->max_exec = (enum jail_exec)c->max_exec;
	r = network(c, e, ret);
	if (r < 0) {
		free(module);
		ret->guest_module = NULL;
	}

	return r;
}
