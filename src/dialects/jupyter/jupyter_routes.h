/* The addresses of the Jupyter dialect. */
#pragma once

#include "api/routes.h"

void handle_jupyter_api(struct call *c);
void handle_jupyter_login_page(struct call *c); /* GET /login */
void handle_jupyter_login(struct call *c);      /* POST /login */
void handle_jupyter_specs(struct call *c);
void handle_jupyter_spec(struct call *c);
void handle_jupyter_list(struct call *c);
void handle_jupyter_start(struct call *c);
void handle_jupyter_get(struct call *c);
void handle_jupyter_delete(struct call *c);
void handle_jupyter_interrupt(struct call *c);
void handle_jupyter_restart(struct call *c);
void handle_jupyter_channels(struct call *c);

extern const struct route jupyter_routes[]; /* the last row has no pattern */
