/*
 * What an observation points to, kept beyond the end of its cell: for whoever encodes it while it
 * is sent.
 */
#include <stdlib.h>

#include "session/internal.h"

struct observation_kept {
	struct outcome outcome;
	struct output output[2];
	struct buffer pictures[CAPTURE_PICTURES], film;
};

/* Blocks of memory change their owner and do not move: pointers into them stay valid. */
struct observation_kept *observation_keep(const struct observation *o)
{
	struct cell *c = o->source;
	struct session *s = c->session;
	struct observation_kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;

	k->outcome = s->outcome;
	outcome_init(&s->outcome);
	for (int i = 0; i < 2; i++) {
		k->output[i] = s->output.stream[i];
		output_init(&s->output.stream[i], k->output[i].cap);
	}

	if (c->capture)
		cell_picture_take_pictures(c->capture, k->pictures);
	if (c->recording.film)
		film_cell_take(c->recording.film, &k->film);
	return k;
}

void observation_release(struct observation_kept *k)
{
	if (!k)
		return;

	outcome_finish(&k->outcome);
	for (int i = 0; i < 2; i++)
		output_finish(&k->output[i]);
	for (int i = 0; i < CAPTURE_PICTURES; i++)
		buffer_finish(&k->pictures[i]);
	buffer_finish(&k->film);
	free(k);
}
