/* The JSON of answers: sessions, observations, and the events that lead to them (DESIGN §7). */
#pragma once

#include <stddef.h>

#include "session/session.h"

struct json_writer;

void answer_put_session(struct json_writer *w, const struct session *s);
void answer_put_observation(struct json_writer *w, const struct observation *o);

/* One value in its forms: an object of media types. JSON from a guest that is not sound is given as text. */
void answer_put_bundle(struct json_writer *w, const struct bundle *b);

/* Captured output as one string: head, the count of what is missing, tail. */
void answer_put_captured(struct json_writer *w, const struct captured *c);
