/* The addresses of the Jupyter dialect, as rows for the one table in routes.c. */
#pragma once

#include "api/routes.h"

void handle_jupyter_api(struct call *c);
void handle_jupyter_specs(struct call *c);
void handle_jupyter_spec(struct call *c);
void handle_jupyter_list(struct call *c);
void handle_jupyter_start(struct call *c);
void handle_jupyter_get(struct call *c);
void handle_jupyter_delete(struct call *c);
void handle_jupyter_interrupt(struct call *c);
void handle_jupyter_restart(struct call *c);
void handle_jupyter_channels(struct call *c);

#define JUPYTER_FLAGS (ROUTE_ANY_QUERY | ROUTE_ANY_TYPE | ROUTE_QUERY_TOKEN)
#define JUPYTER_ROUTE(verb, path, more, handler, id, title, text, status, type, example)                              \
	{ HTTP_METHOD_##verb, path, JUPYTER_FLAGS | (more), handler, NULL, id, title, text, NULL, NULL, status, type, NULL, \
		example }

/* clang-format off */
#define JUPYTER_ROUTES                                                                                                \
	JUPYTER_ROUTE(GET, "/api", ROUTE_PUBLIC, handle_jupyter_api, "jupyterApi", "Jupyter: version", NULL, 200,      \
		"application/json", "curl -s $URL/api"),                                                               \
	JUPYTER_ROUTE(GET, "/api/kernelspecs", 0, handle_jupyter_specs, "jupyterKernelspecs", "Jupyter: kernel specs", \
		NULL, 200, "application/json", "curl -s $URL/api/kernelspecs"),                                        \
	JUPYTER_ROUTE(GET, "/api/kernelspecs/{id}", 0, handle_jupyter_spec, "jupyterKernelspec",                       \
		"Jupyter: a kernel spec", NULL, 200, "application/json", NULL),                                        \
	JUPYTER_ROUTE(GET, "/api/kernels", 0, handle_jupyter_list, "jupyterKernels", "Jupyter: list kernels", NULL, 200, \
		"application/json", "curl -s $URL/api/kernels"),                                                       \
	JUPYTER_ROUTE(POST, "/api/kernels", 0, handle_jupyter_start, "jupyterStartKernel", "Jupyter: start a kernel",  \
		"{name?, env?}. A kernel is a session.", 201, "application/json", "curl -s -X POST $URL/api/kernels"), \
	JUPYTER_ROUTE(GET, "/api/kernels/{id}", 0, handle_jupyter_get, "jupyterKernel", "Jupyter: look at a kernel",   \
		NULL, 200, "application/json", NULL),                                                                  \
	JUPYTER_ROUTE(DELETE, "/api/kernels/{id}", 0, handle_jupyter_delete, "jupyterDeleteKernel",                    \
		"Jupyter: end a kernel", NULL, 204, NULL, NULL),                                                       \
	JUPYTER_ROUTE(POST, "/api/kernels/{id}/interrupt", 0, handle_jupyter_interrupt, "jupyterInterrupt",            \
		"Jupyter: interrupt a kernel", NULL, 204, NULL, NULL),                                                 \
	JUPYTER_ROUTE(POST, "/api/kernels/{id}/restart", 0, handle_jupyter_restart, "jupyterRestart",                  \
		"Jupyter: restart a kernel", NULL, 200, "application/json", NULL),                                     \
	JUPYTER_ROUTE(GET, "/api/kernels/{id}/channels", ROUTE_WEBSOCKET, handle_jupyter_channels, "jupyterChannels",  \
		"Jupyter: a kernel's channels", "Jupyter's messages over a WebSocket, as JSON or as "                  \
		"v1.kernel.websocket.jupyter.org.", 101, NULL, NULL)
/* clang-format on */
