/*
 * The login of a Jupyter server, for clients that are given a password (Open WebUI): the password
 * is a token of this server.
 */
#include <string.h>

#include "api/call.h"
#include "api/login.h"
#include "base/limits.h"
#include "dialects/jupyter/jupyter_routes.h"

void handle_jupyter_login_page(struct call *c)
{
	static const char text[] =
		"Post _xsrf and password here; the password is a token of this server.\n";
	if (login_set_secret(c) < 0) {
		call_problem(c, 503, "no_memory", "the machine gave no random bytes",
			"Try again later.");
		return;
	}
	call_respond_static(c, 200, "text/plain; charset=utf-8", text, sizeof(text) - 1);
}

void handle_jupyter_login(struct call *c)
{
	char form[4 * LIMIT_TOKEN_BYTES], bearer[LIMIT_TOKEN_BYTES + 8] = "Bearer ";
	struct error e = { 0 };
	size_t len;
	const char *body = http_body(c->x, &len);
	bool fits = len < sizeof(form) && !memchr(body, '\0', len);

	if (fits) {
		memcpy(form, body, len);
		form[len] = '\0';
	}
	int r = fits ? http_form_value(form, "password", bearer + 7, sizeof(bearer) - 7) : 0;
	if (r != 1) {
		call_problem(c, 400, "invalid_form",
			"the form has no password that could be a token",
			"Send the field password as application/x-www-form-urlencoded.");
	} else if (guard_token(&c->api->guard, bearer, &e, &c->owner) < 0) {
		call_error(c, &e);
	} else {
		login_set_token(c, bearer + 7);
		call_respond_as(c, 204, NULL, NULL);
	}
	explicit_bzero(form, sizeof(form));
	explicit_bzero(bearer, sizeof(bearer));
}
