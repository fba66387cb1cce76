#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/node_id.h"
#include "base/text.h"
#include "dialects/librechat/librechat.h"

void chat_store_init(struct chat_store *s)
{
	LIST_INIT(&s->shelves);
	s->bytes = 0;
}

/* ---- files ------------------------------------------------------------------------- */

static void free_file(struct chat_file *f)
{
	hold_set(&f->held, 0);
	free(f->name);
	free(f->data);
	free(f);
}

static struct chat_file *make_file(
	const char *session, const char *name, const char *data, size_t len, size_t cost)
{
	struct chat_file *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->name = strdup(name);
	f->data = malloc(len + 1);
	if (!f->name || !f->data || hold_set(&f->held, cost) < 0) {
		free_file(f);
		return NULL;
	}

	memcpy(f->data, data, len);
	f->len = len;
	f->made_ns = clock_now_ns();
	snprintf(f->session, sizeof(f->session), "%s", session);
	node_make_id(f->id, CHAT_ID_LEN);
	return f;
}

/* ---- shelves ----------------------------------------------------------------------- */

static struct chat_shelf *find_shelf(const struct chat_store *s, uint64_t owner)
{
	struct chat_shelf *shelf;
	LIST_FOREACH(shelf, &s->shelves, link)
	if (shelf->owner == owner)
		return shelf;
	return NULL;
}

static struct chat_shelf *make_shelf(struct chat_store *s, uint64_t owner)
{
	struct chat_shelf *shelf = calloc(1, sizeof(*shelf));
	if (!shelf)
		return NULL;
	shelf->owner = owner;
	TAILQ_INIT(&shelf->files);
	LIST_INSERT_HEAD(&s->shelves, shelf, link);
	return shelf;
}

/* The shelf goes with its last file. */
static void drop_oldest(struct chat_store *s, struct chat_shelf *shelf)
{
	struct chat_file *f = TAILQ_FIRST(&shelf->files);
	TAILQ_REMOVE(&shelf->files, f, link);
	s->bytes -= f->held.bytes;
	shelf->bytes -= f->held.bytes;
	free_file(f);
	if (--shelf->n)
		return;
	LIST_REMOVE(shelf, link);
	free(shelf);
}

void chat_store_finish(struct chat_store *s)
{
	struct chat_shelf *shelf;
	while ((shelf = LIST_FIRST(&s->shelves)))
		drop_oldest(s, shelf);
}

static void drop_expired(struct chat_store *s)
{
	uint64_t now = clock_now_ns();
	for (struct chat_shelf *shelf = LIST_FIRST(&s->shelves), *next; shelf; shelf = next) {
		next = LIST_NEXT(shelf, link);
		for (size_t n = shelf->n; n; n--) {
			if (now - TAILQ_FIRST(&shelf->files)->made_ns <=
				LIMIT_CHAT_FILES_SECONDS * NSEC_PER_SEC)
				break;
			drop_oldest(s, shelf);
		}
	}
}

/* The shelf with the most bytes, if they are more than `least`. */
static struct chat_shelf *largest_shelf(const struct chat_store *s, size_t least)
{
	struct chat_shelf *found = NULL, *shelf;
	LIST_FOREACH(shelf, &s->shelves, link)
	if (shelf->bytes > least) {
		least = shelf->bytes;
		found = shelf;
	}
	return found;
}

/*
 * False when others would have to lose files although they keep fewer bytes than this token would.
 */
static bool make_room(struct chat_store *s, uint64_t owner, size_t cost)
{
	struct chat_shelf *own;
	if (cost > LIMIT_CHAT_FILES_BYTES)
		return false;
	drop_expired(s);
	while ((own = find_shelf(s, owner)) && own->n >= LIMIT_CHAT_FILES)
		drop_oldest(s, own);

	while (s->bytes + cost > LIMIT_CHAT_FILES_BYTES) {
		own = find_shelf(s, owner);
		struct chat_shelf *victim = largest_shelf(s, cost + (own ? own->bytes : 0));
		if (!victim && !(victim = own))
			return false;
		drop_oldest(s, victim);
	}
	return true;
}

/* ---- the store ---------------------------------------------------------------------- */

const struct chat_file *chat_store_add(struct chat_store *s, uint64_t owner, const char *session,
	const char *name, const char *data, size_t len)
{
	size_t cost = len + strlen(name) + sizeof(struct chat_file);
	if (!make_room(s, owner, cost))
		return NULL;
	struct chat_file *f = make_file(session, name, data, len, cost);
	struct chat_shelf *shelf = f ? find_shelf(s, owner) : NULL;
	if (f && !shelf && !(shelf = make_shelf(s, owner))) {
		free_file(f);
		return NULL;
	}

	if (!f)
		return NULL;
	TAILQ_INSERT_TAIL(&shelf->files, f, link);
	shelf->n++;
	shelf->bytes += cost;
	s->bytes += cost;
	return f;
}

const struct chat_file *chat_store_next(
	struct chat_store *s, uint64_t owner, const char *session, const struct chat_file *after)
{
	const struct chat_shelf *shelf = find_shelf(s, owner);
	const struct chat_file *f = NULL;
	if (shelf)
		f = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&shelf->files);
	while (f && !text_eq(f->session, session))
		f = TAILQ_NEXT(f, link);
	return f;
}

const struct chat_file *chat_store_find(
	struct chat_store *s, uint64_t owner, const char *session, const char *id)
{
	const struct chat_file *f = NULL;
	while ((f = chat_store_next(s, owner, session, f)))
		if (text_eq(f->id, id))
			return f;
	return NULL;
}
