#include "cli/mcp_bridge.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/mcp_forward.h"
#include "json/json_read.h"

enum {
	THREADS_MAX = 64,    /* requests under way */
	WAITING_MAX = 16384, /* further ones; beyond it they are refused */
	LINE_MAX_BYTES = 64 * 1024 * 1024,
	READ_BYTES = 65536,
	END_MS = 1000, /* after the end of stdin, for answers under way */
};

TAILQ_HEAD(message_list, mcp_message);

static struct bridge {
	const struct mcp_bridge_config *config;
	pthread_mutex_t lock;   /* of all below */
	pthread_cond_t arrived; /* a message waits */
	struct message_list waiting, running;
	unsigned n_waiting, threads, idle;
} bridge = { .lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER };

static volatile sig_atomic_t ended;

/* ---- workers -------------------------------------------------------------------------------- */

static struct mcp_message *next_message(void)
{
	pthread_mutex_lock(&bridge.lock);
	while (TAILQ_EMPTY(&bridge.waiting)) {
		bridge.idle++;
		pthread_cond_wait(&bridge.arrived, &bridge.lock);
		bridge.idle--;
	}
	struct mcp_message *m = TAILQ_FIRST(&bridge.waiting);
	TAILQ_REMOVE(&bridge.waiting, m, link);
	TAILQ_INSERT_TAIL(&bridge.running, m, link);
	bridge.n_waiting--;
	mcp_message_start(m);
	pthread_mutex_unlock(&bridge.lock);
	return m;
}

static void *worker_main(void *unused)
{
	(void)unused;
	for (;;) {
		struct mcp_message *m = next_message();
		if (!m->cancelled)
			mcp_forward(bridge.config, m);
		pthread_mutex_lock(&bridge.lock);
		TAILQ_REMOVE(&bridge.running, m, link);
		pthread_mutex_unlock(&bridge.lock);
		mcp_message_destroy(m);
	}
	return NULL;
}

/*
 * Passes a request to a worker without waiting, because the next message on stdin may cancel this
 * request.
 */
static void start_message(struct mcp_message *m)
{
	bool start, full;
	pthread_mutex_lock(&bridge.lock);
	full = bridge.n_waiting >= WAITING_MAX;
	start = !full && bridge.idle <= bridge.n_waiting && bridge.threads < THREADS_MAX;
	if (!full) {
		TAILQ_INSERT_TAIL(&bridge.waiting, m, link);
		bridge.n_waiting++;
		bridge.threads += start;
		pthread_cond_signal(&bridge.arrived);
	}
	pthread_mutex_unlock(&bridge.lock);

	if (full) {
		mcp_write_error(
			json_object_get(m->tree, "id"), -32603, "too many requests at once");
		mcp_message_destroy(m);
	}
	if (start && mcp_thread_start(worker_main, NULL) < 0) {
		pthread_mutex_lock(&bridge.lock);
		bridge.threads--;
		pthread_mutex_unlock(&bridge.lock);
	}
}

static bool cancel_in(struct message_list *list, const json_t *id)
{
	struct mcp_message *m;
	TAILQ_FOREACH (m, list, link) {
		if (!m->cancelled && json_equal(json_object_get(m->tree, "id"), id)) {
			mcp_message_cancel(m);
			return true;
		}
	}
	return false;
}

/* Closing the connection of a request cancels it on the server, in both eras. */
static void cancel(const json_t *notification)
{
	const json_t *id = json_object_get(json_object_get(notification, "params"), "requestId");
	if (!id)
		return;
	pthread_mutex_lock(&bridge.lock);
	if (!cancel_in(&bridge.running, id))
		cancel_in(&bridge.waiting, id);
	pthread_mutex_unlock(&bridge.lock);
}

/* ---- stdin -------------------------------------------------------------------------- */

static void take_line(char *line, size_t len)
{
	struct error e = { 0 };
	json_t *tree = NULL;
	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	if (!len)
		return;
	if (json_read(line, len, &e, &tree) < 0) {
		mcp_write_error(NULL, -32700, e.text);
		return;
	}

	const char *method = json_string_value(json_object_get(tree, "method"));
	if (text_eq(method, "notifications/cancelled")) {
		cancel(tree);
		json_decref(tree);
		return;
	}
	struct mcp_message *m = mcp_message_create(tree, line, len);
	if (m)
		start_message(m);
	else
		mcp_write_error(NULL, -32603, "out of memory");
}

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* Without SA_RESTART, so that a signal ends the read of stdin. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Lines of the buffer; `skipping`: the rest of a line that was too long comes first. */
static void take_lines(struct buffer *b, size_t looked, bool *skipping)
{
	char *end;
	while ((end = memchr(b->data + looked, '\n', b->len - looked))) {
		size_t len = (size_t)(end - b->data) + 1;
		if (*skipping)
			mcp_write_error(NULL, -32600, "a line is longer than 64 MB");
		else
			take_line(b->data, len);
		*skipping = false;
		buffer_consume(b, len);
		looked = 0;
	}
}

/* Until the host closes stdin, or a signal comes. */
static void read_lines(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(LINE_MAX_BYTES + 2 * READ_BYTES);
	bool skipping = false;

	while (!ended) {
		if (b.len > LINE_MAX_BYTES) {
			skipping = true;
			b.len = 0;
		}
		if (buffer_reserve(&b, READ_BYTES) < 0)
			return;
		ssize_t n = read(STDIN_FILENO, b.data + b.len, READ_BYTES);
		if (n <= 0)
			return;
		size_t looked = b.len;
		b.len += (size_t)n;
		take_lines(&b, looked, &skipping);
	}
}

/* Requests that came before the end of stdin get a moment for their answers. */
static void finish_requests(void)
{
	uint64_t until = clock_now_ns() + (uint64_t)END_MS * 1000000;
	for (bool busy = true; busy && !ended && clock_now_ns() < until;) {
		pthread_mutex_lock(&bridge.lock);
		busy = !TAILQ_EMPTY(&bridge.waiting) || !TAILQ_EMPTY(&bridge.running);
		pthread_mutex_unlock(&bridge.lock);
		if (busy)
			usleep(2000);
	}
}

int mcp_bridge_run(const struct mcp_bridge_config *config, struct error *e)
{
	bridge.config = config;
	TAILQ_INIT(&bridge.waiting);
	TAILQ_INIT(&bridge.running);
	catch_signals();
	int r = mcp_lease_start(config, e);
	if (r == 0) {
		read_lines();
		finish_requests();
	}
	mcp_lease_end();
	mcp_forward_end();
	return r;
}
