/* Starting the parts of the server, in order. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/custom_profiles.h"
#include "daemon/mount_settings.h"
#include "daemon/node.h"
#include "daemon/serve_internal.h"
#include "dialects/dialects.h"
#include "http/http.h"
#include "http/http_address.h"
#include "jail/filter_own.h"
#include "packages/packages.h"
#include "profile/profiles.h"
#include "session/session.h"

static int start_sessions(struct server *s, struct error *e)
{
	struct sessions_config sc;
	int r = packages_create(
		&s->loop, &s->config->packages, s->config->state_dir, e, &s->packages);

	if (r == 0)
		r = mount_settings_names(s->config->mount, e, &s->mounts);
	if (r == 0)
		r = config_sessions(s->config, e, &sc);
	if (r < 0)
		return r;
	if (warm_sets_authorise(&s->warm_sets, s->config->additional_imports, &sc.default_imports) <
		0)
		return error_set_errno(e, -ENOMEM, "additional-imports");
	sc.loop = &s->loop;
	sc.shown = s->shown = mount_settings_shown(s->config->mount, packages_shown(s->packages));
	sc.mounts = s->mounts;
	if (!s->shown)
		return error_set(e, -ENOMEM, "out of memory");
	sc.template_bytes = s->config->packages.template_bytes;
	s->guest_module = sc.guest_module;
	r = profiles_load(s->config->file, e, &s->profiles);
	if (r == 0)
		r = own_profiles_check(s->profiles, s->config, e);
	if (r == 0)
		r = mcp_settings_load(s->config, s->profiles, e, &s->mcp);
	if (r < 0)
		return r;
	sc.profiles = s->profiles;
	r = sessions_create(&sc, e, &s->sessions);
	if (r == 0 && sc.defaults.cpus > 0 && *sessions_not_enforced(s->sessions))
		log_warning("the setting cpus (%g) is not enforced without control groups",
			sc.defaults.cpus);
	return r;
}

/*
 * The host names by which clients may call this server: the host that it listens on, and the
 * configured names.
 */
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

/*
 * Sessions one token may have: what was configured, else with several of them an equal part each,
 * so that none can starve the others.
 */
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
		.metrics_token = c->metrics_token,
		.hosts = hosts,
		.origins = c->allow_origin,
		.max_upload_bytes = c->max_upload,
		.layers = s->layers,
		.max_sessions_per_token = share_of_a_token(c),
		.max_runs = c->max_runs,
		.log_requests = c->access_log,
		.no_live_control = !c->live_control,
		.jupyter_timeout_s = c->jupyter_timeout < c->max_timeout ? c->jupyter_timeout
									 : c->max_timeout,
		.dialects = dialects,
		.mcp = s->mcp.configs,
		.n_mcp = s->mcp.n,
		.openenv = { .profile = own_profiles_openenv(c),
			.rewards = c->openenv_rewards,
			.lease_s = c->openenv_lease },
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
		error_remedy(e,
			"another program uses this address: end that program, or choose another address with --listen (make run LISTEN=127.0.0.1:8001)");
	if (r == 0)
		api_set_server(s->api, s->http);
	return r;
}

/* Per cent of the sessions that may still be made. */
static int room(void *userdata)
{
	const struct server *s = userdata;
	return s->phase == SERVING ? api_room(s->api, NULL) : -ESHUTDOWN;
}

static int start_agent(struct server *s, struct error *e)
{
	if (!s->config->agent_listen)
		return 0;
	return agent_create(&(struct agent_config){ .loop = &s->loop,
				    .listen = s->config->agent_listen,
				    .room = room,
				    .userdata = s },
		e, &s->agent);
}

/*
 * Once everything is open that needs more than the filter allows; helpers that start later come
 * from the launcher.
 */
static int enter_filter(struct error *e)
{
	int r = filter_enter_own(FILTER_DAEMON);
	if (r < 0) {
		error_set_errno(e, r, "loading the daemon's own system call filter");
		return error_remedy(e,
			"use a kernel with CONFIG_SECCOMP_FILTER; `glovebox doctor` shows details");
	}
	return 0;
}

/*
 * Every layer of the wall is tried before anybody can ask for a session: without one there is no
 * server, unless it was waived by name.
 */
static int check_layers(struct server *s, struct error *e)
{
	layers_test(s->layers);
	int r = layers_waive(s->layers, s->config->waive, e);
	if (r == 0)
		r = layers_check(s->layers, e);
	for (int i = 0; r == 0 && i < LAYER_COUNT; i++)
		if (!s->layers[i].there)
			log_warning(
				"without the layer %s%s (%s): %s. `glovebox doctor` says how to get it",
				layer_name((enum layer)i),
				s->layers[i].waived ? ", as it was waived" : "",
				s->layers[i].why.text, layer_consequence((enum layer)i));
	return r;
}

int server_start(struct server *s, struct error *e)
{
	int r = check_layers(s, e);
	if (r == 0)
		r = node_start(s->config, e);
	if (r == 0)
		r = start_sessions(s, e);
	if (r == 0)
		r = start_api(s, e);
	if (r == 0)
		r = start_http(s, e);
	if (r == 0)
		r = start_agent(s, e);
	return r < 0 ? r : enter_filter(e);
}
