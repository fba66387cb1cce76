/*
 * Requests with the header Idempotency-Key: one effect, however often the same request is sent.
 *
 * The table keeps what was answered, by owner and key, for LIMIT_IDEMPOTENT_SECONDS and as long as
 * there is memory for it. A request that failed, or whose client left before the answer, had no
 * effect and is forgotten: the next one with its key is new.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct error;
struct idempotency; /* the table */
struct idempotent;  /* one request */

int idempotency_create(struct idempotency **ret);
/* Requests that run have ended before, with their connections. */
void idempotency_destroy(struct idempotency *t);

/*
 * The request of the call's key, with `n` parts of an answer: new, or found when the same request
 * came before. 0 and *ret unchanged without the header. -EINVAL for a wrong key, -EBUSY (slug
 * "idempotency_busy") while the other request runs, -EEXIST (slug "idempotency_conflict") when the
 * key belongs to another request, -ENOMEM. End with idempotent_release() or idempotent_forget(),
 * which accept NULL.
 */
int idempotent_take(const struct call *c, const char *body, size_t len, size_t n, struct error *e,
	struct idempotent **ret);
void idempotent_release(struct idempotent *r);
void idempotent_forget(struct idempotent *r);

/* Keeps a copy of a part and a number with it; false when there is no room. */
bool idempotent_keep(struct idempotent *r, size_t index, const char *data, size_t len, int note);
/* NULL: not kept. */
const char *idempotent_get(
	const struct idempotent *r, size_t index, size_t *ret_len, int *ret_note);

/*
 * For calls with one answer (ROUTE_IDEMPOTENT): true when the call was answered from the table, or
 * refused.
 */
bool call_answer_again(struct call *c);
/* Keeps the answer that the call is about to get; NULL: it was streamed. Nothing without a key. */
void call_keep_answer(struct call *c, int status, const char *data, size_t len);
