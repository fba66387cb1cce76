/* Sessions that clients name in words of their own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/text.h"
#include "dialects/trainers/trainers.h"

struct named {
	uint64_t owner;
	char *name;
	char session[SESSION_ID_LEN + 1];
	LIST_ENTRY(named) link;
};

struct named_sessions {
	struct api *api;
	LIST_HEAD(, named) list;
};

int named_sessions_create(struct api *a, struct named_sessions **ret)
{
	struct named_sessions *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->api = a;
	LIST_INIT(&n->list);
	*ret = n;
	return 0;
}

static void forget(struct named *one)
{
	LIST_REMOVE(one, link);
	free(one->name);
	free(one);
}

void named_sessions_destroy(struct named_sessions *n)
{
	struct named *one;
	while (n && (one = LIST_FIRST(&n->list)))
		forget(one);
	free(n);
}

/* Finds it, and drops on the way those whose sessions have ended. */
static struct session *find(
	struct named_sessions *n, uint64_t owner, const char *name, struct named **ret)
{
	struct session *found = NULL;
	for (struct named *one = LIST_FIRST(&n->list), *next; one; one = next) {
		struct session *s;
		next = LIST_NEXT(one, link);
		if (session_find(n->api->sessions, one->session, NULL, &s) < 0)
			forget(one);
		else if (one->owner == owner && text_eq(one->name, name)) {
			found = s;
			*ret = one;
		}
	}
	return found;
}

static int create(struct named_sessions *n, uint64_t owner, const char *name, struct error *e,
	struct session **ret)
{
	struct session_params params = { .owner = owner, .dialect = "nemo" };
	struct session_info info;
	int r = api_check_open(n->api, e);

	if (!r)
		r = api_check_quota(n->api, owner, e);
	struct named *one = r < 0 ? NULL : calloc(1, sizeof(*one));
	if (!r && (!one || !(one->name = strdup(name)) ||
			  !(params.name = strndup(name, LIMIT_NAME_BYTES))))
		r = error_set(e, -ENOMEM, "out of memory");
	if (!r)
		r = session_create(n->api->sessions, &params, e, ret);
	if (r < 0) {
		fields_finish(&session_fields, &params);
		free(one ? one->name : NULL);
		free(one);
		return r;
	}

	session_info(*ret, &info);
	one->owner = owner;
	snprintf(one->session, sizeof(one->session), "%s", info.id);
	LIST_INSERT_HEAD(&n->list, one, link);
	return 0;
}

int named_session_get(struct named_sessions *n, uint64_t owner, const char *name, struct error *e,
	struct session **ret, bool *ret_new)
{
	struct named *one = NULL;
	struct session *s = find(n, owner, name, &one);
	*ret_new = !s;
	if (!s)
		return create(n, owner, name, e, ret);
	*ret = s;
	return 0;
}

int named_session_end(struct named_sessions *n, uint64_t owner, const char *name)
{
	struct named *one = NULL;
	struct session *s = find(n, owner, name, &one);
	if (!s)
		return -ENOENT;
	session_end(s, "its client deleted it");
	forget(one);
	return 0;
}
