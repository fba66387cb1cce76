/*
 * A login as Jupyter's servers have it, for clients that know a password but no token: the password
 * is a token, and a cookie stands for it from then on.
 *
 * Cookies go with every request of a browser, also with those of a page that a guest wrote. So the
 * cookie counts only together with a second one, `_xsrf`, that the header X-XSRFToken repeats. No
 * page can read either: a login serves programs, not pages.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct call;

/* Adds the header that gives the client a new `_xsrf`. -EIO without random bytes. */
int login_set_secret(struct call *c);

/* Adds the header that makes the client a user of this token. */
void login_set_token(struct call *c, const char *token);

/* The token of the request's cookie. False: it has none, or the header does not repeat `_xsrf`. */
bool login_token(const struct call *c, char *out, size_t size);

/*
 * Whether "name=value", of len bytes, is a cookie of ours. Other servers name a cookie `_xsrf` too
 * (Tornado's, Jupyter's among them): it is ours if its value has the form of ours.
 */
bool login_owns_cookie(const char *cookie, size_t len);
