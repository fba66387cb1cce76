/*
 * Packages before a request goes on: what it asks for is resolved, installed if need be, and told
 * to a client that listens to events.
 */
#pragma once

#include "api/schema/requests.h"

struct api;
struct call;
struct json_writer;
struct packages;
struct packages_answer;
struct session_package;

/* Does the request name packages or modules that must be looked after? */
bool provision_params_needed(const struct api *a, const struct session_params *p);
bool provision_needed(const struct call *c, const struct session_params *p);

/*
 * Takes the request over (it is empty after) and calls `then` once its session.packages and
 * session.packages_report are filled in: at once, or in a later turn. `begun`: the answer is an
 * event stream that has begun. When it fails, or the client leaves, `then` is not called: all is
 * answered and released here. c->work is the provision's until then.
 */
void provision(struct call *c, struct run_request *run,
	void (*then)(struct call *c, struct run_request *run, bool begun));

/*
 * Answers an error that came after: as a problem, or as the last event of a stream that has begun.
 */
void provision_answer_error(struct call *c, const struct error *e, bool begun);

/* Puts what came of the question into a session's parameters. -ENOMEM. */
int provision_take(struct api *api, const struct packages_answer *a, struct session_params *params);

/*
 * A set of the store for a session, held for as long as that has it; NULL without memory, or when
 * the set is gone.
 */
struct session_package *provision_package(
	struct packages *packages, const char *set, const char *path);

/* Ends what `then` got, with what a session did not take over. */
void provision_finish(struct run_request *run);
