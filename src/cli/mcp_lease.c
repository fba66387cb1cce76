/*
 * The lease of `glovebox mcp`: the server ends the sessions made here when this connection closes,
 * however this process ends.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/mcp_bridge.h"
#include "cli/mcp_forward.h"
#include "http/http_client.h"

enum { RETRY_MS = 500, WAIT_MS = 1000, STACK_BYTES = 256 * 1024 };

static struct {
	const struct mcp_bridge_config *config;
	int end_fd;             /* an eventfd that ends the call */
	pthread_mutex_t lock;   /* of all below */
	pthread_cond_t changed; /* there is a first answer */
	char id[MCP_LEASE_ID];  /* Mcp-Session-Id; "" without one */
	bool tried, failed, ended;
	struct error error;
} lease = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* The first event's data is the id. */
static int on_lease(const char *data, size_t len, void *userdata)
{
	struct buffer *seen = userdata;
	const char *at;
	if (seen->len < 4096)
		buffer_append(seen, data, len);
	const char *text = buffer_cstr(seen);
	pthread_mutex_lock(&lease.lock);
	if (text && !*lease.id && (at = strstr(text, "data: ")) && strchr(at, '\n')) {
		snprintf(lease.id, sizeof(lease.id), "%.*s", (int)strcspn(at + 6, "\r\n"), at + 6);
		lease.tried = true;
		pthread_cond_broadcast(&lease.changed);
	}
	pthread_mutex_unlock(&lease.lock);
	return 0;
}

/* Holds one lease until it breaks. */
static void hold_lease(struct http_client *client, struct error *e)
{
	_cleanup_buffer_ struct buffer seen = BUFFER_INIT(0);
	_cleanup_http_response_ struct http_client_response answer = { 0 };
	struct http_client_request q = {
		.silence_ms = 60000, /* the server sends a sign of life every 15 s */
		.method = "GET",
		.target = "/mcp/lease",
		.accept = "text/event-stream",
		.cancel_fd = lease.end_fd,
		.on_data = on_lease,
		.userdata = &seen
	};
	int r = http_client_call(client, &q, e, &answer);
	if (r == 0 && answer.status == 401) {
		error_set(e, -EACCES, "the server needs a token");
		error_remedy(e, "give --token TOKEN, or set GLOVEBOX_TOKEN");
	} else if (r == 0 && answer.status >= 400) {
		error_set(e, -EACCES, "the server refused: HTTP status %d", answer.status);
	}

	pthread_mutex_lock(&lease.lock);
	lease.failed = !*lease.id;
	*lease.id = '\0';
	lease.tried = true;
	lease.error = *e;
	pthread_cond_broadcast(&lease.changed);
	pthread_mutex_unlock(&lease.lock);
}

/* A server that restarts is found again; its sessions are gone, and requests say so. */
static void *lease_main(void *unused)
{
	struct http_client *client = NULL;
	struct error e = { 0 };

	(void)unused;
	if (http_client_create(lease.config->address, &e, &client) < 0) {
		pthread_mutex_lock(&lease.lock);
		lease.tried = lease.failed = true;
		lease.error = e;
		pthread_cond_broadcast(&lease.changed);
		pthread_mutex_unlock(&lease.lock);
		return NULL;
	}

	http_client_set_token(client, lease.config->token);
	while (!lease.ended) {
		e = (struct error){ 0 };
		hold_lease(client, &e);
		usleep(RETRY_MS * 1000);
	}

	http_client_destroy(client);
	return NULL;
}

int mcp_thread_start(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int r = pthread_create(&thread, &attributes, run, argument);
	pthread_attr_destroy(&attributes);
	return -r;
}

int mcp_lease_start(const struct mcp_bridge_config *config, struct error *e)
{
	lease.config = config;
	lease.end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = lease.end_fd < 0 ? -errno : mcp_thread_start(lease_main, NULL);
	if (r < 0)
		return error_set_errno(e, r, "starting a thread");

	pthread_mutex_lock(&lease.lock);
	while (!lease.tried)
		pthread_cond_wait(&lease.changed, &lease.lock);
	r = lease.failed ? -ECONNREFUSED : 0;
	if (r < 0)
		*e = lease.error;
	pthread_mutex_unlock(&lease.lock);
	return r;
}

void mcp_lease_id(char ret[MCP_LEASE_ID])
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_MS / 1000;
	pthread_mutex_lock(&lease.lock);
	/* a session without a lease would outlive a host that is killed */
	while (!*lease.id && !lease.failed && !lease.ended &&
		pthread_cond_timedwait(&lease.changed, &lease.lock, &until) == 0)
		;
	memcpy(ret, lease.id, MCP_LEASE_ID);
	pthread_mutex_unlock(&lease.lock);
}

void mcp_lease_end(void)
{
	uint64_t one = 1;
	pthread_mutex_lock(&lease.lock);
	lease.ended = true;
	pthread_mutex_unlock(&lease.lock);
	if (write(lease.end_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}
