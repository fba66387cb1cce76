#include "network/proxy_resolver.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network/rules.h"

enum { STACK_BYTES = 1 << 20 }; /* the system's modules for names are not written for less */

struct job {
	TAILQ_ENTRY(job) link;
	uint32_t group;
	bool running;
	char name[NETWORK_NAME_MAX + 1];
	struct resolver_answer answer;
};
TAILQ_HEAD(jobs, job);

struct resolver {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct jobs asked, done; /* asked: waiting and running ones */
	int event;
};

/* The first that waits, of a group that has not its share already. */
static struct job *choose(struct resolver *r)
{
	struct job *j, *other;
	TAILQ_FOREACH (j, &r->asked, link) {
		unsigned running = 0;
		if (j->running)
			continue;
		TAILQ_FOREACH (other, &r->asked, link)
			running += other->running && other->group == j->group;
		if (running < RESOLVER_SHARE)
			return j;
	}
	return NULL;
}

static void take_address(struct resolver_answer *a, const struct addrinfo *i)
{
	if (a->n == RESOLVER_ADDRESSES)
		return;
	if (i->ai_family == AF_INET)
		a->address[a->n++] = network_address_v4(ntohl(
			((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr.s_addr));
	else if (i->ai_family == AF_INET6)
		a->address[a->n++] =
			((const struct sockaddr_in6 *)(const void *)i->ai_addr)->sin6_addr;
}

static void resolve(struct job *j)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	j->answer.err = getaddrinfo(j->name, NULL, &hints, &list);
	for (struct addrinfo *i = list; !j->answer.err && i; i = i->ai_next)
		take_address(&j->answer, i);
	if (list)
		freeaddrinfo(list);
}

static void *work(void *arg)
{
	struct resolver *r = arg;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct job *j = choose(r);
		if (!j) {
			pthread_cond_wait(&r->work, &r->lock);
			continue;
		}
		j->running = true;
		pthread_mutex_unlock(&r->lock);
		resolve(j);
		pthread_mutex_lock(&r->lock);
		TAILQ_REMOVE(&r->asked, j, link);
		TAILQ_INSERT_TAIL(&r->done, j, link);
		pthread_cond_broadcast(&r->work); /* its group has room again */
		eventfd_write(r->event, 1);
	}

	return NULL;
}

int resolver_create(struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	pthread_attr_t small;
	if (!r || (r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		free(r);
		return -ENOMEM;
	}

	TAILQ_INIT(&r->asked);
	TAILQ_INIT(&r->done);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	int err = 0;
	for (int i = 0; i < RESOLVER_THREADS && !err; i++) {
		pthread_t t;
		err = pthread_create(&t, &small, work, r);
		if (!err)
			pthread_detach(t);
	}

	pthread_attr_destroy(&small);
	if (err)
		return -err; /* the process ends; its threads with it */
	*ret = r;
	return 0;
}

int resolver_fd(const struct resolver *r)
{
	return r->event;
}

int resolver_ask(struct resolver *r, uint64_t tag, uint32_t group, const char *name)
{
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->answer.tag = tag;
	j->group = group;
	snprintf(j->name, sizeof(j->name), "%s", name);
	pthread_mutex_lock(&r->lock);
	TAILQ_INSERT_TAIL(&r->asked, j, link);
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int resolver_next(struct resolver *r, struct resolver_answer *ret)
{
	eventfd_t unused;
	pthread_mutex_lock(&r->lock);
	struct job *j = TAILQ_FIRST(&r->done);
	if (j)
		TAILQ_REMOVE(&r->done, j, link);
	else
		eventfd_read(r->event, &unused);
	pthread_mutex_unlock(&r->lock);
	if (!j)
		return 0;
	*ret = j->answer;
	free(j);
	return 1;
}
