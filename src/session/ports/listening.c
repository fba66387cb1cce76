/*
 * Which ports servers of a session listen on, as the kernel lists them for the session's network
 * namespace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "sandbox/pool.h"
#include "session/internal.h"
#include "session/ports/port_link.h"

enum { TABLE_BYTES = 256 * 1024, STATE_LISTEN = 0x0a };

/*
 * Addresses that a connection to the loopback reaches: any, and the loopback itself. As the kernel
 * writes them.
 */
static bool is_reached(const char *address)
{
	static const char *const reached[] = { "00000000", "0100007F",
		"00000000000000000000000000000000", "00000000000000000000000001000000",
		"0000000000000000FFFF00000100007F" };
	for (size_t i = 0; i < sizeof(reached) / sizeof(reached[0]); i++)
		if (!strcmp(address, reached[i]))
			return true;
	return false;
}

struct found {
	uint16_t *ports; /* in order */
	size_t n, max;
	uint16_t left_out[JAIL_LISTEN_MAX];
	unsigned n_left_out;
};

static void add(struct found *f, uint16_t port)
{
	size_t i = 0;
	for (unsigned k = 0; k < f->n_left_out; k++)
		if (f->left_out[k] == port)
			return;
	while (i < f->n && f->ports[i] < port)
		i++;
	if (f->n == f->max || (i < f->n && f->ports[i] == port))
		return;
	memmove(f->ports + i + 1, f->ports + i, (f->n - i) * sizeof(*f->ports));
	f->ports[i] = port;
	f->n++;
}

static void read_table(const char *path, struct found *f)
{
	_cleanup_free_ char *text = NULL;
	char address[33];
	unsigned port, state;
	size_t len;

	if (fd_read_file(path, TABLE_BYTES, &text, &len) < 0)
		return;
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x", address, &port,
			    &state) == 3 &&
			state == STATE_LISTEN && port <= UINT16_MAX && is_reached(address))
			add(f, (uint16_t)port);
	}
}

size_t session_ports(const struct session *s, uint16_t *ret, size_t max)
{
	char path[64];
	struct found f = { .ports = ret, .max = max };
	pid_t init = s->sandbox ? sandbox_init_pid(s->sandbox) : 0;
	if (!init || s->params.network.net == JAIL_NET_NONE)
		return 0;
	f.n_left_out = network_loopback_ports(s->params.network.allow, f.left_out);
	static const char *const names[] = { "tcp", "tcp6" };
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)init, names[i]);
		read_table(path, &f);
	}
	return f.n;
}
