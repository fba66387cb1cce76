/*
 * Tells routers how much room this server has, in the words of HAProxy's agent checks: whoever
 * connects is sent one line, "ready 37%" (the share of sessions that may still be made, at least
 * one per cent) or "drain" (no new sessions now), and the connection is closed. Nothing is read
 * from it and nothing is kept for it. HAProxy knows no other way to hear a weight, and its agent
 * checks are no HTTP, so they cannot come to the address of the API.
 */
#pragma once

#include <uv.h>

#include "base/error.h"

struct agent;

struct agent_config {
	uv_loop_t *loop;
	const char *listen;          /* as http_address_parse() reads it */
	int (*room)(void *userdata); /* 0 to 100 per cent, or negative: no new sessions */
	void *userdata;
};

/* -EINVAL for a wrong address, else what binding it answers. */
int agent_create(const struct agent_config *config, struct error *e, struct agent **ret);

/* Closes it; the memory is freed by the loop. NULL is fine. */
void agent_destroy(struct agent *a);
