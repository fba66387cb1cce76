/*
 * A load client: N kept-alive connections to 127.0.0.1, each of which sends the next request when
 * the last answer has come. It sends either one request again and again ("run"), or episodes: a
 * session, ten cells, its end ("episode"). Prints one line: "DONE FAILED SECONDS P50_MS P99_MS".
 * One thread and epoll, so that the client itself takes little of the CPU that it measures.
 *
 *     bench-load PORT CLIENTS TOTAL run|episode CODE EXPECTED
 *
 * CODE is put into a JSON string as it is. An answer that is no success, or that does not contain
 * EXPECTED, counts as failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { CLIENTS_MAX = 1024, TOTAL_MAX = 10000000, ANSWER_MAX = 65536, CELLS = 10, WAIT_MS = 60000 };

struct client {
	int fd;
	char session[64];
	unsigned step; /* of an episode: 0 creates, 1 to CELLS execute, then the end */
	uint64_t began_ns;
	size_t len;
	char answer[ANSWER_MAX + 1];
};

struct load {
	int epoll;
	unsigned port;
	bool episodes;
	const char *code, *expected;
	size_t total, begun, done, failed;
	uint64_t *times_ns; /* of those that are done */
};

static void give_up(const char *step)
{
	fprintf(stderr, "%s: %s\n", step, strerror(errno));
	exit(1);
}

static void send_request(struct client *c, const char *method, const char *path, const char *body)
{
	char text[8192];
	int n = snprintf(text, sizeof(text),
		"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		method, path, strlen(body), body);
	if (n < 0 || n >= (int)sizeof(text) || write(c->fd, text, (size_t)n) != n)
		give_up("sending a request");
}

static void send_next(const struct load *l, struct client *c)
{
	char path[128], body[4096];
	snprintf(body, sizeof(body), "{\"code\":\"%s\"}", l->code);
	c->len = 0;
	if (!l->episodes) {
		send_request(c, "POST", "/v1/run", body);
	} else if (c->step == 0) {
		send_request(c, "POST", "/v1/sessions", "{}");
	} else if (c->step <= CELLS) {
		snprintf(path, sizeof(path), "/v1/sessions/%s/execute", c->session);
		send_request(c, "POST", path, body);
	} else {
		snprintf(path, sizeof(path), "/v1/sessions/%s", c->session);
		send_request(c, "DELETE", path, "");
	}
}

/* False when no more are wanted. */
static bool begin(struct load *l, struct client *c)
{
	if (l->begun == l->total)
		return false;
	l->begun++;
	c->step = 0;
	c->began_ns = clock_now_ns();
	send_next(l, c);
	return true;
}

/*
 * The body of the answer when all of it has come, else NULL. Every answer to these requests has a
 * length, or no body.
 */
static char *whole_answer(struct client *c)
{
	c->answer[c->len] = '\0';
	char *end = strstr(c->answer, "\r\n\r\n");
	if (!end)
		return NULL;
	const char *field = strcasestr(c->answer, "\r\ncontent-length:");
	size_t length = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
	char *body = end + 4;
	return (size_t)(c->answer + c->len - body) >= length ? body : NULL;
}

static bool take_session(struct client *c, const char *body)
{
	const char *id = strstr(body, "\"id\":\"");
	return id && sscanf(id + 6, "%63[^\"]", c->session) == 1;
}

static bool is_success(const struct load *l, struct client *c, const char *body)
{
	if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0)
		return false;
	if (!l->episodes || (c->step > 0 && c->step <= CELLS))
		return strstr(body, l->expected) != NULL;
	return c->step > CELLS || take_session(c, body);
}

/* An answer has come: the next request. False when this client is done. */
static bool go_on(struct load *l, struct client *c, const char *body)
{
	bool good = is_success(l, c, body);
	if (good && l->episodes && c->step <= CELLS) {
		c->step++;
		send_next(l, c);
		return true;
	}

	if (good)
		l->times_ns[l->done++] = clock_now_ns() - c->began_ns;
	else if (l->failed++ == 0)
		fprintf(stderr, "%.600s\n", c->answer);
	return begin(l, c);
}

static bool receive(struct load *l, struct client *c)
{
	ssize_t n = read(c->fd, c->answer + c->len, ANSWER_MAX - c->len);
	if (n <= 0)
		give_up("reading an answer");
	c->len += (size_t)n;
	char *body = whole_answer(c);
	return !body || go_on(l, c, body);
}

static void open_client(struct load *l, struct client *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)l->port) };
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
	int one = 1;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
		give_up("connecting");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void run(struct load *l, struct client *clients, unsigned n)
{
	struct epoll_event ready[64];
	unsigned active = 0;
	for (unsigned i = 0; i < n; i++) {
		open_client(l, &clients[i]);
		active += begin(l, &clients[i]);
	}

	while (active) {
		int got = epoll_wait(l->epoll, ready, 64, WAIT_MS);
		if (got == 0)
			errno = ETIMEDOUT;
		if (got <= 0)
			give_up("waiting for an answer");
		for (int i = 0; i < got; i++)
			active -= !receive(l, ready[i].data.ptr);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static double percentile_ms(const struct load *l, unsigned percent)
{
	return l->done ? (double)l->times_ns[(l->done - 1) * percent / 100] / 1e6 : 0;
}

int main(int argc, char **argv)
{
	struct load l = { .epoll = epoll_create1(EPOLL_CLOEXEC) };
	if (argc != 7) {
		fprintf(stderr, "usage: bench-load PORT CLIENTS TOTAL run|episode CODE EXPECTED\n");
		return 2;
	}

	unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
	l.port = (unsigned)strtoul(argv[1], NULL, 10);
	l.total = strtoul(argv[3], NULL, 10);
	l.episodes = !strcmp(argv[4], "episode");
	l.code = argv[5];
	l.expected = argv[6];
	if (n < 1 || n > CLIENTS_MAX || l.total < 1 || l.total > TOTAL_MAX) {
		fprintf(stderr, "CLIENTS is at most %d, TOTAL at most %d\n", CLIENTS_MAX,
			TOTAL_MAX);
		return 2;
	}

	struct client *clients = calloc(n, sizeof(*clients));
	l.times_ns = calloc(l.total, sizeof(*l.times_ns));
	if (!clients || !l.times_ns)
		give_up("memory");

	uint64_t start = clock_now_ns();
	run(&l, clients, n);
	double seconds = (double)(clock_now_ns() - start) / 1e9;
	qsort(l.times_ns, l.done, sizeof(*l.times_ns), compare);
	printf("%zu %zu %.3f %.3f %.3f\n", l.done, l.failed, seconds, percentile_ms(&l, 50),
		percentile_ms(&l, 99));
	free(l.times_ns);
	free(clients);
	return l.failed > 0;
}
