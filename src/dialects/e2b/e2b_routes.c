/*
 * The addresses of E2B's control plane. Requests to a sandbox are claimed by their header (e2b.c).
 */
#include "api/routes.h"
#include "dialects/e2b/e2b.h"

/* Their SDKs send bodies in chunks, with any type, and the key as X-API-KEY. */
#define FLAGS (ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_API_KEY)

#define ROW(verb, address, function, name, text, code)                              \
	{                                                                           \
		.method = HTTP_METHOD_##verb, .pattern = (address), .flags = FLAGS, \
		.handle = (function), .operation = (name), .summary = "E2B: " text, \
		.problem_form = &e2b_problem_form, .status = (code)                 \
	}

const struct route e2b_routes[] = {
	ROW(POST, "/sandboxes", e2b_create, "e2bCreate1", "create a sandbox", 201),
	ROW(POST, "/v2/sandboxes", e2b_create, "e2bCreate", "create a sandbox", 201),
	ROW(GET, "/sandboxes", e2b_list, "e2bList1", "list sandboxes", 200),
	ROW(GET, "/v2/sandboxes", e2b_list, "e2bList", "list sandboxes", 200),
	ROW(GET, "/sandboxes/{id}", e2b_get, "e2bGet", "look at a sandbox", 200),
	ROW(DELETE, "/sandboxes/{id}", e2b_kill, "e2bKill", "end a sandbox", 204),
	ROW(POST, "/sandboxes/{id}/timeout", e2b_timeout, "e2bTimeout", "set the time it ends",
		204),
	ROW(POST, "/sandboxes/{id}/refreshes", e2b_refresh, "e2bRefresh", "keep a sandbox alive",
		204),
	ROW(POST, "/sandboxes/{id}/connect", e2b_connect_sandbox, "e2bConnect1",
		"connect to a sandbox", 200),
	ROW(POST, "/v2/sandboxes/{id}/connect", e2b_connect_sandbox, "e2bConnect",
		"connect to a sandbox", 200),
	ROW(POST, "/sandboxes/{id}/resume", e2b_connect_sandbox, "e2bResume", "resume a sandbox",
		200),
	ROW(GET, "/sandboxes/{id}/metrics", e2b_metrics, "e2bMetrics", "what a sandbox uses", 200),
	ROW(POST, "/sandboxes/{id}/pause", e2b_pause, "e2bPause", "pause a sandbox", 204),
	ROW(POST, "/sandboxes/{id}/fork", e2b_fork, "e2bFork", "fork a sandbox", 201),
	ROW(POST, "/sandboxes/{id}/snapshots", e2b_snapshot, "e2bSnapshot",
		"make a snapshot of a sandbox", 201),
	ROW(GET, "/snapshots", e2b_list_snapshots, "e2bSnapshots", "list snapshots", 200),
	ROW(DELETE, "/templates/{id}", e2b_delete_template, "e2bDeleteTemplate",
		"delete a snapshot", 204),
	ROW(PUT, "/sandboxes/{id}/network", e2b_update_network, "e2bNetwork",
		"ask for a network (it does not change)", 204),
	ROW(POST, "/v3/templates", e2b_unserved, "e2bTemplate3", "build a template (not served)",
		501),
	ROW(POST, "/templates", e2b_unserved, "e2bTemplate", "build a template (not served)", 501),
	ROW(GET, "/templates", e2b_list_templates, "e2bTemplates", "list templates", 200),
	ROW(GET, "/templates/aliases/{id}", e2b_template_alias, "e2bTemplateAlias",
		"whether there is a template", 200),
	ROW(GET, "/sandboxes/{id}/logs", e2b_logs, "e2bLogs1", "what code in a sandbox printed",
		200),
	ROW(GET, "/v2/sandboxes/{id}/logs", e2b_logs, "e2bLogs", "what code in a sandbox printed",
		200),
	ROW(POST, "/volumes", e2b_unserved, "e2bVolume", "make a volume (not served)", 501),
	ROW(GET, "/volumes", e2b_unserved, "e2bVolumes", "list volumes (not served)", 501),
	ROW(GET, "/volumes/{id}", e2b_unserved, "e2bVolumeGet", "look at a volume (not served)",
		501),
	ROW(DELETE, "/volumes/{id}", e2b_unserved, "e2bVolumeDelete",
		"delete a volume (not served)", 501),
	ROW(POST, "/secrets", e2b_unserved, "e2bSecret", "make a secret (not served)", 501),
	ROW(GET, "/secrets", e2b_unserved, "e2bSecrets", "list secrets (not served)", 501),
	ROW(POST, "/secrets/{id}", e2b_unserved, "e2bSecretSet", "change a secret (not served)",
		501),
	ROW(GET, "/secrets/{id}", e2b_unserved, "e2bSecretGet", "look at a secret (not served)",
		501),
	ROW(DELETE, "/secrets/{id}", e2b_unserved, "e2bSecretDelete",
		"delete a secret (not served)", 501),
	{ 0 },
};

const struct route e2b_stray_route = { .method = HTTP_METHOD_GET,
	.pattern = "/",
	.flags = FLAGS,
	.handle = e2b_unserved,
	.problem_form = &e2b_problem_form,
	.operation = "e2bUnserved",
	.summary = "E2B: an address that is not served" };
