#include "api/guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/text.h"

enum { HOST_NAME_MAX_BYTES = 256 };

static int copy_list(char *const *list, char ***ret)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	char **copy = calloc(n + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	for (size_t i = 0; i < n; i++)
		if (!(copy[i] = strdup(list[i])))
			return -ENOMEM;
	return 0;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++) {
		explicit_bzero(list[i], strlen(list[i]));
		free(list[i]);
	}
	free(list);
}

static int check_token(const char *token, struct error *e)
{
	bool sound = *token != '\0';
	for (const char *c = token; *c; c++)
		sound = sound && isgraph((unsigned char)*c);
	if (sound)
		return 0;
	error_set(e, -EINVAL, "a token must be printable ASCII without spaces, and not empty");
	return error_remedy(e, "Make one with: openssl rand -hex 32");
}

int guard_init(struct guard *g, char *const *hosts, char *const *origins, char *const *tokens,
	struct error *e)
{
	*g = (struct guard){ 0 };
	if (copy_list(hosts, &g->hosts) < 0 || copy_list(origins, &g->origins) < 0 ||
		copy_list(tokens, &g->tokens) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; g->tokens[i]; i++) {
		int r = check_token(g->tokens[i], e);
		if (r < 0)
			return r;
	}

	for (size_t i = 0; g->hosts[i]; i++) {
		const char *h = g->hosts[i];
		g->any_host = g->any_host || text_eq(h, "*");
		g->any_literal = g->any_literal || text_eq(h, "0.0.0.0") || text_eq(h, "::") ||
				 text_eq(h, "[::]");
	}

	return 0;
}

void guard_finish(struct guard *g)
{
	free_list(g->hosts);
	free_list(g->origins);
	free_list(g->tokens);
	*g = (struct guard){ 0 };
}

/* ---- Host --------------------------------------------------------------- */

/*
 * What stands behind a name: nothing, or a port. Anything else would make a known name of one that
 * only begins like it.
 */
static bool is_port(const char *text)
{
	return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* The name without its port and without the brackets of an IPv6 literal. */
static int host_name(const char *host, char out[HOST_NAME_MAX_BYTES])
{
	const char *end = strrchr(host, ':');
	if (*host == '[') {
		end = strchr(++host, ']');
		if (!end || !is_port(end + 1))
			return -EINVAL;
	} else if (end && !is_port(end)) {
		return -EINVAL;
	}

	size_t len = end ? (size_t)(end - host) : strlen(host);
	if (!len || len >= HOST_NAME_MAX_BYTES)
		return -EINVAL;
	memcpy(out, host, len);
	out[len] = '\0';
	return 0;
}

static bool is_literal(const char *name, bool *ret_loopback)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (inet_pton(AF_INET, name, &v4) == 1) {
		*ret_loopback = ntohl(v4.s_addr) >> 24 == 127;
		return true;
	}
	*ret_loopback = false;
	if (inet_pton(AF_INET6, name, &v6) != 1)
		return false;
	*ret_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
	return true;
}

static bool host_is_listed(const struct guard *g, const char *name)
{
	char listed[HOST_NAME_MAX_BYTES];
	for (size_t i = 0; g->hosts[i]; i++) {
		/* An IPv6 address may be listed bare, where a colon is no port. */
		if (!strcasecmp(g->hosts[i], name))
			return true;
		if (!host_name(g->hosts[i], listed) && !strcasecmp(listed, name))
			return true;
	}
	return false;
}

int guard_host(const struct guard *g, const char *host, struct error *e)
{
	char name[HOST_NAME_MAX_BYTES];
	bool loopback = false;

	if (g->any_host)
		return 0;
	if (!host_name(host, name)) {
		bool literal = is_literal(name, &loopback);
		if (loopback || (literal && g->any_literal) || !strcasecmp(name, "localhost") ||
			host_is_listed(g, name))
			return 0;
	}

	error_set(e, -EPERM, "this server does not accept the name in the Host header");
	error_remedy(e, "Use 127.0.0.1 or localhost, or start the server with --allow-host NAME.");
	error_slug(e, "host_not_allowed");
	return -EPERM;
}

/* ---- Origin ------------------------------------------------------------- */

static bool origin_is_own(const char *host, const char *origin)
{
	/*
	 * Only http: the daemon itself never speaks TLS, so an https page is somebody else's until
	 * it is configured.
	 */
	return host && !strncasecmp(origin, "http://", 7) && !strcasecmp(origin + 7, host);
}

static bool origin_is_listed(const struct guard *g, const char *origin)
{
	for (size_t i = 0; g->origins[i]; i++)
		if (!strcasecmp(g->origins[i], origin))
			return true;
	return false;
}

int guard_origin(const struct guard *g, const char *host, const char *origin,
	const char *fetch_site, struct error *e, bool *ret_foreign)
{
	bool crosses = fetch_site && strcasecmp(fetch_site, "same-origin") &&
		       strcasecmp(fetch_site, "none");
	bool listed = origin && origin_is_listed(g, origin);
	*ret_foreign = listed;
	if (listed || (!crosses && (!origin || origin_is_own(host, origin))))
		return 0;
	error_set(e, -EPERM, "web pages of other origins may not call this server");
	error_remedy(e, "Call from a program, or start the server with --allow-origin ORIGIN.");
	error_slug(e, "origin_not_allowed");
	return -EPERM;
}

/* ---- token -------------------------------------------------------------- */

static const char *bearer(const char *authorization)
{
	size_t n = authorization ? strcspn(authorization, " ") : 0;
	/* "token" is what Jupyter's clients call it. */
	if (!n || !authorization[n] ||
		!((n == 6 && !strncasecmp(authorization, "Bearer", n)) ||
			(n == 5 && !strncasecmp(authorization, "token", n))))
		return NULL;
	return authorization + n + strspn(authorization + n, " ");
}

int guard_token(
	const struct guard *g, const char *authorization, struct error *e, uint64_t *ret_owner)
{
	const char *token = bearer(authorization);
	uint64_t owner = 0;

	if (!g->tokens[0]) {
		*ret_owner = 0;
		return 0;
	}

	/* All of them are compared, so that time does not tell which one was nearly right. */
	for (size_t i = 0; token && g->tokens[i]; i++)
		if (text_eq_secret(token, strlen(token), g->tokens[i], strlen(g->tokens[i])))
			owner = i + 1;
	if (owner) {
		*ret_owner = owner;
		return 0;
	}

	error_set(e, -EACCES, token ? "the token is not valid" : "a token is needed");
	error_remedy(e, "Send the header: Authorization: Bearer TOKEN");
	error_slug(e, "unauthorized");
	return -EACCES;
}

void guard_client(const struct guard *g, uint64_t owner, char *ret)
{
	static const char purpose[] = "glovebox packages of a client";
	_Static_assert((int)GUARD_CLIENT_LEN == (int)SHA256_HEX, "a client's text is a hash");
	struct sha256 sum;
	size_t n = 0;
	while (g->tokens && g->tokens[n])
		n++;
	sha256_init(&sum);
	sha256_add(&sum, purpose, sizeof(purpose));
	if (owner && owner <= n)
		sha256_add(&sum, g->tokens[owner - 1], strlen(g->tokens[owner - 1]));
	sha256_end(&sum, ret);
}

size_t guard_count(const struct guard *g)
{
	size_t n = 0;
	while (g->tokens && g->tokens[n])
		n++;
	return n;
}
