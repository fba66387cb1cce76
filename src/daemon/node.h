/* This server as a node of a fleet. */
#pragma once

#include "daemon/config.h"

/*
 * Sets the letters of the node's ids (base/node_id.h) from config.node; nothing without it. The
 * number of the incarnation is kept in the state directory. Where that cannot be written, the
 * incarnation is random. -EINVAL for a wrong name.
 */
int node_start(const struct config *config, struct error *e);
