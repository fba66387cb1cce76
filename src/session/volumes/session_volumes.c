#include "session/volumes/session_volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "jail/mounts.h"
#include "session/internal.h"

#define READ_ONLY ":ro"

struct wish {
	char name[JAIL_MOUNT_NAME], at[JAIL_MOUNT_PATH];
	bool writable;
};

static int parse(const char *asked, struct wish *ret, struct error *e)
{
	size_t len = strcspn(asked, "=");
	const char *at = asked[len] ? asked + len + 1 : "";
	size_t at_len = strlen(at), mark = strlen(READ_ONLY);

	ret->writable = at_len < mark || strcmp(at + at_len - mark, READ_ONLY) != 0;
	at_len -= ret->writable ? 0 : mark;
	if (at_len < sizeof(ret->at) && len < sizeof(ret->name)) {
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)len, asked);
		snprintf(ret->at, sizeof(ret->at), "%.*s", (int)at_len, at);
		if (mounts_is_volume_place(ret->at))
			return 0;
	}

	error_set(e, -EINVAL, "volumes: '%.64s' cannot be at '%.64s'", asked, at);
	error_remedy(e,
		"use a name below /mnt, such as \"/mnt/data\", or \"/mnt/data:ro\" to read only");
	return error_slug(e, "invalid_field");
}

static int check_places(const struct session *s, const struct wish *wish, struct error *e)
{
	const struct session_volumes *have = &s->volumes;
	bool writes = false, twice = have->n == JAIL_MOUNTS_MAX;

	for (unsigned i = 0; i < have->n; i++) {
		writes = writes || have->volume[i].writable;
		twice = twice || text_eq(have->volume[i].at, wish->at);
	}
	for (char *const *m = s->params.mounts; m && *m; m++)
		twice = twice || text_eq(strchr(*m, '=') + 1, wish->at);
	if (!twice && !(writes && wish->writable))
		return 0;
	error_set(e, -EINVAL,
		twice ? "volumes: two directories cannot be at '%.64s'"
		      : "volumes: a session can write to one volume only, and this is the second one, at '%.64s'",
		wish->at);
	error_remedy(
		e, twice ? "choose another name below /mnt" : "read the others: \"/mnt/data:ro\"");
	return error_slug(e, "invalid_field");
}

static int take_one(struct session *s, const char *asked, bool is_fork, struct error *e)
{
	struct session_volumes *have = &s->volumes;
	struct wish wish;
	struct volume *v;
	int r = parse(asked, &wish, e);
	if (r == 0)
		r = check_places(s, &wish, e);
	if (r == 0)
		r = volumes_find(s->table->volumes, s->params.owner, wish.name, e, &v);
	if (r == 0)
		r = volume_take(v, wish.writable ? s : NULL, is_fork, e);
	if (r < 0)
		return r;

	have->volume[have->n].volume = v;
	have->volume[have->n].writable = wish.writable;
	snprintf(have->volume[have->n].at, sizeof(have->volume[have->n].at), "%s", wish.at);
	have->n++;
	return 0;
}

int session_volumes_take(struct session *s, bool is_fork, struct error *e)
{
	int r = 0;
	for (char *const *asked = s->params.volumes; r == 0 && asked && *asked; asked++)
		r = take_one(s, *asked, is_fork, e);
	if (r < 0)
		session_volumes_give_back(s);
	return r;
}

void session_volumes_give_back(struct session *s)
{
	struct session_volumes *have = &s->volumes;
	while (have->n) {
		have->n--;
		volume_give_back(
			have->volume[have->n].volume, have->volume[have->n].writable ? s : NULL);
	}
}

uint32_t session_volumes_fill(const struct session *s, struct jail_mounts *m)
{
	uint32_t host_id = 0;
	for (unsigned i = 0; i < s->volumes.n && m->n < ARRAY_LEN(m->mount); i++) {
		struct jail_mount *one = &m->mount[m->n++];
		const struct volume *v = s->volumes.volume[i].volume;
		bool writable = s->volumes.volume[i].writable;
		snprintf(one->name, sizeof(one->name), "%s", volume_id(v));
		snprintf(one->at, sizeof(one->at), "%s", s->volumes.volume[i].at);
		one->kind = writable ? JAIL_MOUNT_VOLUME : JAIL_MOUNT_VOLUME_READ_ONLY;
		host_id = writable ? volume_host_id(v) : host_id;
	}
	return host_id;
}

char **session_volumes_copy(char *const *asked)
{
	char **copy = asked ? session_words_copy((const char *const *)asked) : NULL;
	for (char **one = copy; one && *one; one++) {
		size_t len = strlen(*one), mark = strlen(READ_ONLY);
		if (len >= mark && !strcmp(*one + len - mark, READ_ONLY))
			continue;
		char *longer = realloc(*one, len + mark + 1);
		if (!longer) {
			session_words_free(copy);
			return NULL;
		}
		*one = longer;
		memcpy(longer + len, READ_ONLY, mark + 1);
	}
	return copy;
}

static bool has(const struct session *s, const struct volume *v)
{
	for (unsigned i = 0; i < s->volumes.n; i++)
		if (s->volumes.volume[i].volume == v)
			return true;
	return false;
}

static struct session *find_one_with(struct sessions *t, const struct volume *v)
{
	struct session *s;
	TAILQ_FOREACH (s, &t->list, link)
		if (has(s, v))
			return s;
	return NULL;
}

/* Code that goes on after it was stopped ends the session: nothing else bounds what it writes. */
void session_volume_full(void *userdata, void *writer, const struct volume *v, bool again)
{
	struct session *s = writer;
	struct volume_info info;
	char why[128];

	volume_info(v, &info);
	if (s && !again && s->queue.running) {
		session_stop_cell(s, STOP_VOLUME);
		return;
	}

	snprintf(why, sizeof(why), "it exceeded the quota of the volume %s (%llu bytes)", info.name,
		(unsigned long long)info.quota_bytes);
	if (s)
		session_end(s, why);
	else /* nobody tells which one of the forks wrote */
		while ((s = find_one_with(userdata, v)))
			session_end(s, why);
}
