/*
 * Nested jails: the jail of a fork is made inside the jail of the session it was forked from.
 *
 * Each nested jail is made by a separate process, which answers the daemon and exits. Code in the
 * outer jail can see one short-lived process of ours (the "opener") and the new init, and where
 * Landlock does not prevent this, it can signal them. So neither the jailer nor any other process
 * waits for them without a limit: code that stops them loses its own fork and delays no other
 * session.
 */
#pragma once

struct jail_request;

/*
 * Starts the maker. It sends one struct jail_answer on JAILER_SOCKET_FD within NESTED_LIMIT_S, or
 * dies. `outer` is the outer init's pidfd and stays the caller's. 0 or a negative errno, when there
 * will be no answer.
 */
int nested_start(const struct jail_request *q, int outer);

enum {
	NESTED_WAIT_S = 5,  /* for the opener and the init */
	NESTED_LIMIT_S = 8, /* for all of it; then the kernel ends the maker */
};
