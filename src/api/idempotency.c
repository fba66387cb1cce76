#include "api/idempotency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "base/text.h"

struct kept {
	char *data;
	size_t len;
	int note;
};

/* How many requests of one owner are kept. It goes with the last one. */
struct share {
	LIST_ENTRY(share) link;
	uint64_t owner;
	unsigned n;
};

struct idempotent {
	struct idempotency *home;
	struct share *share;
	uint64_t used_ns, digest;
	char key[LIMIT_NAME_BYTES + 1];
	size_t n;
	struct kept *parts;
	struct hold held;
	bool busy;
	TAILQ_ENTRY(idempotent) link;
};

struct idempotency {
	TAILQ_HEAD(, idempotent) list; /* the least recently used one first */
	LIST_HEAD(, share) shares;
	unsigned n;
};

int idempotency_create(struct idempotency **ret)
{
	struct idempotency *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;

	TAILQ_INIT(&t->list);
	LIST_INIT(&t->shares);
	*ret = t;
	return 0;
}

void idempotent_forget(struct idempotent *r)
{
	if (!r)
		return;

	TAILQ_REMOVE(&r->home->list, r, link);
	r->home->n--;
	if (!--r->share->n) {
		LIST_REMOVE(r->share, link);
		free(r->share);
	}
	for (size_t i = 0; i < r->n; i++)
		free(r->parts[i].data);
	free(r->parts);
	hold_set(&r->held, 0);
	free(r);
}

void idempotency_destroy(struct idempotency *t)
{
	struct idempotent *r;
	if (!t)
		return;

	while ((r = TAILQ_FIRST(&t->list)))
		idempotent_forget(r);
	free(t);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 1099511628211ULL;
	return h ^ h >> 32;
}

/*
 * FNV-1a over words of eight bytes: it only has to notice that a client uses a key for two requests
 * by mistake. Bodies may be large: four sums side by side take a quarter of the time of one.
 */
static uint64_t digest_of(uint64_t h, const char *data, size_t len)
{
	enum { LANES = 4 };
	uint64_t lane[LANES] = { h, h + 1, h + 2, h + 3 }, word;
	size_t i = 0;
	for (; len - i >= LANES * sizeof(word); i += LANES * sizeof(word))
		for (unsigned k = 0; k < LANES; k++) {
			memcpy(&word, data + i + k * sizeof(word), sizeof(word));
			lane[k] = mix(lane[k], word);
		}

	for (; i < len; i += sizeof(word)) {
		word = 0;
		memcpy(&word, data + i, len - i < sizeof(word) ? len - i : sizeof(word));
		lane[0] = mix(lane[0], word);
	}
	for (unsigned k = 1; k < LANES; k++)
		lane[0] = mix(lane[0], lane[k]);
	return lane[0] ^ len;
}

/* Forgets the owner's least recently used finished request. False: there is none. */
static bool evict_one(struct idempotency *t, const struct share *s)
{
	struct idempotent *r;
	TAILQ_FOREACH (r, &t->list, link)
		if (!r->busy && r->share == s) {
			idempotent_forget(r);
			return true;
		}
	return false;
}

static const struct share *largest_share(const struct idempotency *t)
{
	const struct share *s, *found = LIST_FIRST(&t->shares);
	LIST_FOREACH(s, &t->shares, link)
	if (s->n > found->n)
		found = s;
	return found;
}

/* The owner with the most keys loses one: an owner that uses many takes nothing from the others. */
static void drop_old(struct idempotency *t)
{
	uint64_t now = clock_now_ns();
	struct idempotent *r;

	while ((r = TAILQ_FIRST(&t->list)) && !r->busy &&
		now - r->used_ns > LIMIT_IDEMPOTENT_SECONDS * NSEC_PER_SEC)
		idempotent_forget(r);
	while (t->n >= LIMIT_IDEMPOTENT_REQUESTS && evict_one(t, largest_share(t)))
		;
}

static struct idempotent *find(struct idempotency *t, uint64_t owner, const char *key)
{
	struct idempotent *r;
	TAILQ_FOREACH (r, &t->list, link)
		if (r->share->owner == owner && text_eq(r->key, key))
			return r;
	return NULL;
}

static int refuse_known(const struct idempotent *r, struct error *e)
{
	if (r->busy) {
		error_set(e, -EBUSY, "a request with this Idempotency-Key is running");
		error_remedy(e, "Wait until it is done, then send the request again.");
		return error_slug(e, "idempotency_busy");
	}

	error_set(e, -EEXIST, "this Idempotency-Key was already used for a different request");
	error_remedy(e, "Use a new key for a new request.");
	return error_slug(e, "idempotency_conflict");
}

static struct share *share_of(struct idempotency *t, uint64_t owner)
{
	struct share *s;
	LIST_FOREACH(s, &t->shares, link)
	if (s->owner == owner)
		return s;

	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->owner = owner;
	LIST_INSERT_HEAD(&t->shares, s, link);
	return s;
}

static int add(struct idempotency *t, uint64_t owner, size_t n, struct idempotent **ret)
{
	struct idempotent *r = calloc(1, sizeof(*r));
	if (!r || !(r->parts = calloc(n ? n : 1, sizeof(*r->parts))) ||
		!(r->share = share_of(t, owner))) {
		if (r)
			free(r->parts);
		free(r);
		return -ENOMEM;
	}

	if (hold_set(&r->held, n * sizeof(*r->parts)) < 0) {
		free(r->parts);
		free(r);
		return -ENOMEM;
	}

	r->share->n++;
	r->home = t;
	r->n = n;
	TAILQ_INSERT_TAIL(&t->list, r, link);
	t->n++;
	*ret = r;
	return 0;
}

static int check_key(const char *key, struct error *e)
{
	if (*key && strlen(key) <= LIMIT_NAME_BYTES)
		return 0;

	error_set(e, -EINVAL, "Idempotency-Key must have 1 to %d characters", LIMIT_NAME_BYTES);
	return error_slug(e, "invalid_field");
}

int idempotent_take(const struct call *c, const char *body, size_t len, size_t n, struct error *e,
	struct idempotent **ret)
{
	struct idempotency *t = c->api->idempotency;
	const char *key = http_header(c->x, "Idempotency-Key"), *path = http_path(c->x);
	uint64_t digest = digest_of(14695981039346656037ULL, path, strlen(path) + 1);

	if (!key)
		return 0;
	if (check_key(key, e) < 0)
		return -EINVAL;

	drop_old(t);
	digest = digest_of(digest, body, len);
	struct idempotent *r = find(t, c->owner, key);
	if (r && (r->busy || r->digest != digest || r->n != n))
		return refuse_known(r, e);

	if (!r) {
		if (add(t, c->owner, n, &r) < 0)
			return error_set(e, -ENOMEM, "out of memory");
		r->digest = digest;
		snprintf(r->key, sizeof(r->key), "%s", key);
	}
	r->busy = true;
	*ret = r;
	return 0;
}

/* Nothing came of it: a batch whose client left before its first item was done. */
static bool is_empty(const struct idempotent *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->parts[i].data || r->parts[i].note)
			return false;
	return true;
}

void idempotent_release(struct idempotent *r)
{
	if (!r)
		return;

	if (is_empty(r)) {
		idempotent_forget(r);
		return;
	}

	r->busy = false;
	r->used_ns = clock_now_ns();
	TAILQ_REMOVE(&r->home->list, r, link);
	TAILQ_INSERT_TAIL(&r->home->list, r, link);
}

bool idempotent_keep(struct idempotent *r, size_t index, const char *data, size_t len, int note)
{
	size_t bytes = r->held.bytes + len;
	if (bytes > LIMIT_IDEMPOTENT_BYTES || r->parts[index].data)
		return false;

	while (hold_is_short() && evict_one(r->home, r->share))
		;
	if (hold_is_short() || hold_set(&r->held, bytes) < 0)
		return false;

	char *copy = malloc(len + 1);
	if (!copy)
		return false;
	memcpy(copy, data, len);
	r->parts[index] = (struct kept){ copy, len, note };
	return true;
}

const char *idempotent_get(const struct idempotent *r, size_t index, size_t *ret_len, int *ret_note)
{
	*ret_note = r->parts[index].note;
	*ret_len = r->parts[index].len;
	return r->parts[index].data;
}

/* ---- calls with one answer --------------------------------------------------------------- */

enum { ANSWER_LOST = -1 }; /* the request succeeded, and its answer is not kept */

bool call_answer_again(struct call *c)
{
	struct error e = { 0 };
	struct idempotent *r = NULL;
	size_t len;
	int status;
	const char *body = http_body(c->x, &len);

	if (idempotent_take(c, body, len, 1, &e, &r) < 0) {
		call_error(c, &e);
		return true;
	}
	if (!r)
		return false;

	const char *kept = idempotent_get(r, 0, &len, &status);
	if (!kept && status != ANSWER_LOST) {
		c->idempotent = r;
		return false;
	}

	idempotent_release(r);
	if (kept) {
		http_add_header(c->x, "Idempotent-Replayed", "true");
		call_respond_static(c, status, "application/json", kept, len);
	} else {
		call_problem(c, 409, "idempotency_not_kept",
			"the request with this Idempotency-Key succeeded, but its answer was not kept: it was streamed, or too large",
			"Look for its effect (GET /v1/sessions), or send the request with a new key.");
	}
	return true;
}

void call_keep_answer(struct call *c, int status, const char *data, size_t len)
{
	struct idempotent *r = c->idempotent;
	if (!r)
		return;

	c->idempotent = NULL;
	if (status < 200 || status > 299) {
		idempotent_forget(r);
		return;
	}
	if (!data || !idempotent_keep(r, 0, data, len, status))
		r->parts[0].note = ANSWER_LOST;
	idempotent_release(r);
}
