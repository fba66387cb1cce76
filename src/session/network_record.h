/*
 * The last connection attempts of a session, allowed and refused, for people who inspect the
 * session. Kept from the first attempt on; most sessions have no network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

struct proxy_event;
struct session;

enum { NETWORK_TEXT_MAX = 160 };

struct network_attempt {
	uint64_t number; /* from 1 */
	uint64_t wall_ns, sent, received;
	uint32_t verdict, seconds;
	bool open; /* allowed, and not ended */
	char target[NETWORK_TEXT_MAX], detail[NETWORK_TEXT_MAX];
};

struct network_record {
	uint64_t total;
	struct network_attempt attempt[LIMIT_NETWORK_ATTEMPTS]; /* number n at (n - 1) % max */
};

/* Adds what the proxy tells. *record is made when it is NULL; without memory nothing is kept. */
void network_record_add(struct network_record **record, const struct proxy_event *e);

/* Attempt `number` (from 1), or NULL when there is none or it is not kept any more. */
const struct network_attempt *network_record_get(const struct network_record *r, uint64_t number);

/* The record of a session, or NULL: it never tried anything. */
const struct network_record *session_network_record(const struct session *s);
