#include "api/outbox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/limits.h"

struct outbox_message {
	STAILQ_ENTRY(outbox_message) next;
	char *data;
	size_t len;
};

void outbox_init(
	struct outbox *o, int (*send)(void *target, const char *data, size_t len), void *target)
{
	*o = (struct outbox){ .send = send, .target = target };
	STAILQ_INIT(&o->messages);
}

static void drop_first(struct outbox *o)
{
	struct outbox_message *m = STAILQ_FIRST(&o->messages);
	STAILQ_REMOVE_HEAD(&o->messages, next);
	o->bytes -= m->len;
	hold_set(&o->held, o->bytes);
	free(m->data);
	free(m);
}

void outbox_finish(struct outbox *o)
{
	while (!STAILQ_EMPTY(&o->messages))
		drop_first(o);
	o->dead = true;
}

/* Hands bytes to the target and notes what it says. */
static int pass_on(struct outbox *o, const char *data, size_t len)
{
	int r = o->send(o->target, data, len);
	if (r < 0)
		o->dead = true;
	else
		o->full = r > 0;
	return r < 0 ? -EPIPE : 0;
}

static int keep(struct outbox *o, struct buffer *message)
{
	if (message->len > LIMIT_OUTBOX_BYTES - o->bytes)
		return -ENOBUFS;
	struct outbox_message *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->data = buffer_take(message, &m->len); /* first: the buffer may be counted itself */
	int r = hold_set(&o->held, o->bytes + m->len);
	if (r < 0) {
		free(m->data);
		free(m);
		return r;
	}

	o->bytes += m->len;
	STAILQ_INSERT_TAIL(&o->messages, m, next);
	return 0;
}

int outbox_send(struct outbox *o, struct buffer *message)
{
	int r;
	if (o->dead)
		r = -EPIPE;
	else if (o->full || !STAILQ_EMPTY(&o->messages))
		r = keep(o, message);
	else
		r = pass_on(o, message->data, message->len);
	buffer_finish(message);
	return r;
}

void outbox_drained(struct outbox *o)
{
	o->full = false;
	while (!o->full && !o->dead && !STAILQ_EMPTY(&o->messages)) {
		struct outbox_message *m = STAILQ_FIRST(&o->messages);
		pass_on(o, m->data, m->len);
		drop_first(o);
	}
}

bool outbox_empty(const struct outbox *o)
{
	return STAILQ_EMPTY(&o->messages);
}
