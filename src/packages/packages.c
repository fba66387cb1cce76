#include "packages/packages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "packages/packages_internal.h"

enum { WAITING_MAX = 4096 }; /* listeners of one process */

/* ---- answers --------------------------------------------------------------------------- */

/* The report as it is answered: the record's, with what this answer adds. */
static char *full_report(const json_t *record, bool cached)
{
	_cleanup_json_ json_t *all = json_object();
	const json_t *set = json_object_get(record, "set");
	json_object_set_new(all, "set", set ? json_copy((json_t *)set) : json_null());
	json_object_set_new(all, "cached", json_boolean(cached));
	json_object_set(all, "seconds", json_object_get(record, "seconds"));
	json_object_update(all, json_object_get(record, "report"));
	return json_dumps(all, JSON_COMPACT);
}

/* What the index did not have, or could not say, is asked again after a while. */
static bool too_old(const json_t *record)
{
	uint64_t until = (uint64_t)json_integer_value(json_object_get(record, "until"));
	return until && clock_wall_ns() / NSEC_PER_SEC >= until;
}

static int look_up(
	struct packages *p, const char *key, json_t **ret_record, struct packages_hold **ret_hold)
{
	_cleanup_free_ char *json = NULL;
	_cleanup_json_ json_t *record = NULL;
	size_t len;

	if (store_request_read(p->store, key, &json, &len) < 0 ||
		json_read(json, len, NULL, &record) < 0 || !json_is_object(record) ||
		too_old(record))
		return -ENOENT;
	const char *set = json_string_value(json_object_get(record, "set"));
	struct packages_hold *hold = set ? packages_hold(p, set) : NULL;
	if (set && !hold)
		return -ENOENT;
	*ret_record = TAKE_PTR(record);
	*ret_hold = hold;
	return 0;
}

/* What everybody gets comes first: it was not built, or the operator had it built. */
int packages_look_up(struct packages *p, const struct request_keys *keys, json_t **ret_record,
	struct packages_hold **ret_hold)
{
	int r = look_up(p, keys->shared, ret_record, ret_hold);
	return r == -ENOENT && *keys->own ? look_up(p, keys->own, ret_record, ret_hold) : r;
}

void packages_tell(const struct packages_listener *listener, void *userdata, const json_t *record,
	struct packages_hold *hold, bool cached)
{
	char path[64];
	_cleanup_free_ char *report = full_report(record, cached);
	const json_t *list = json_object_get(record, "modules");
	_cleanup_free_ char **modules = calloc(json_array_size(list) + 1, sizeof(*modules));

	for (size_t i = 0; modules && i < json_array_size(list); i++)
		modules[i] = (char *)json_string_value(json_array_get(list, i));
	struct packages_answer a = { .report = report,
		.modules = modules,
		.cached = cached,
		.replaces = json_is_true(json_object_get(record, "replaces")) };
	if (hold) {
		snprintf(path, sizeof(path), "/packages/%s", hold->id);
		a.set = hold->id;
		a.path = path;
		hold->uses++;
		const unsigned after = hold->packages->settings->template_after;
		a.template = modules && (hold->template || (after && hold->uses > after));
	}

	listener->on_done(userdata, &a);
}

/* ---- asking ------------------------------------------------------------------------- */

static int check_mode(const struct packages *p, bool off, struct error *e)
{
	if (p->settings->mode == PACKAGES_OFF && off) {
		error_set(e, -EPERM, "this server gives no packages");
		error_remedy(e, "Use the installed packages, or {start:packages install}.");
		return error_slug(e, "package_refused");
	}
	if (p->settings->mode == PACKAGES_STORE && !off) {
		error_set(e, -EPERM,
			"these packages are not in the server's store, and it installs none on request");
		error_remedy(e, "Its operator can add them: glovebox packages add NAME…");
		return error_slug(e, "package_refused");
	}
	return 0;
}

int packages_ask(struct packages *p, const struct packages_request *q,
	const struct packages_listener *listener, void *userdata, struct error *e,
	struct packages_wait **ret)
{
	_cleanup_buffer_ struct buffer request = BUFFER_INIT(REQUEST_BYTES_MAX);
	_cleanup_json_ json_t *record = NULL;
	struct packages_hold *hold = NULL;
	struct request_keys keys;
	int r = check_mode(p, true, e);

	if (r == 0)
		r = packages_request_write(p->settings, p->state_dir, q, e, &request, &keys);
	if (r < 0)
		return r;
	p->stats.asked++;
	*ret = NULL;
	if (!q->refresh && packages_look_up(p, &keys, &record, &hold) == 0) {
		p->stats.hits++;
		packages_tell(listener, userdata, record, hold, true);
		packages_release(hold);
		return 0;
	}

	if ((r = check_mode(p, false, e)) < 0)
		return r;
	if (p->destroying) {
		error_set(e, -ESHUTDOWN, "the server is about to end");
		return error_slug(e, "draining");
	}

	bool alone = *keys.own && (p->settings->build || q->build);
	struct job *j = job_find(p, &keys, alone);
	struct packages_wait *w = p->n_waits < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w || (!j && !(j = job_new(p, &keys, alone, &request)))) {
		free(w);
		return error_set(e, -ENOMEM, "too many requests are waiting for packages");
	}

	*w = (struct packages_wait){ .job = j, .listener = listener, .userdata = userdata };
	TAILQ_INSERT_TAIL(&j->waits, w, link);
	p->n_waits++;
	p->asking = w;
	job_joined(j);
	jobs_start(p);
	*ret = p->asking;
	p->asking = NULL;
	return 0;
}

void packages_forget(struct packages_wait *w)
{
	if (!w)
		return;
	struct job *j = w->job;
	TAILQ_REMOVE(&j->waits, w, link);
	j->packages->n_waits--;
	free(w);
	job_left(j);
}

/* ---- life ------------------------------------------------------------------------------------ */

int packages_create(uv_loop_t *loop, const struct packages_settings *settings,
	const char *state_dir, struct error *e, struct packages **ret)
{
	struct packages *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->loop = loop;
	p->settings = settings;
	TAILQ_INIT(&p->jobs);
	TAILQ_INIT(&p->holds);
	int r = store_open(state_dir, e, &p->store);
	if (r == 0 && (!(p->state_dir = strdup(state_dir)) ||
			      asprintf(&p->shown, "%s\tpackages", store_tree(p->store)) < 0))
		r = error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		packages_destroy(p);
		return r;
	}

	*ret = p;
	return 0;
}

void packages_stop(struct packages *p)
{
	if (!p)
		return;
	p->destroying = true;
	struct job *j = TAILQ_FIRST(&p->jobs);
	while (j) {
		bool under_way = !j->finished;
		if (under_way)
			/* whoever is told may give up other requests: the list is looked through
			 * again */
			job_stop(j);
		j = under_way ? TAILQ_FIRST(&p->jobs) : TAILQ_NEXT(j, link);
	}
}

void packages_destroy(struct packages *p)
{
	if (!p)
		return;
	p->destroying = true;
	for (struct job *j; (j = TAILQ_FIRST(&p->jobs));) {
		TAILQ_REMOVE(&p->jobs, j, link);
		for (struct packages_wait *w; (w = TAILQ_FIRST(&j->waits));)
			packages_forget(w);
		j->packages = NULL;
		if (j->finished)
			continue; /* its handles are being closed */
		if (j->pidfd >= 0)
			process_kill_wait(j->pidfd);
		job_close(j);
	}

	while (!TAILQ_EMPTY(&p->holds))
		hold_drop(TAILQ_FIRST(&p->holds));
	store_close(p->store);
	free(p->state_dir);
	free(p->shown);
	free(p);
}

bool packages_enabled(const struct packages *p)
{
	return p->settings->mode != PACKAGES_OFF;
}

const char *packages_shown(const struct packages *p)
{
	return p->shown;
}

const struct packages_stats *packages_stats(const struct packages *p)
{
	return &p->stats;
}
