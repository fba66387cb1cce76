/* The addresses of the OpenEnv dialect. */
#pragma once

#include "api/routes.h"

void handle_openenv_reset(struct call *c);
void handle_openenv_step(struct call *c);
void handle_openenv_state(struct call *c);
void handle_openenv_close(struct call *c);
void handle_openenv_metadata(struct call *c);
void handle_openenv_schema(struct call *c);
void handle_openenv_environments(struct call *c);
void handle_openenv_mcp(struct call *c);
void handle_openenv_socket(struct call *c);
void handle_openenv_mcp_socket(struct call *c);
void handle_openenv_web_page(struct call *c);
void handle_openenv_web_address(struct call *c);
void handle_openenv_web_socket(struct call *c);

extern const struct route openenv_routes[]; /* the last row has no pattern */
