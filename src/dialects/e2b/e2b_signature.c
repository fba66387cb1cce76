/*
 * Signed links to a file: the address names neither the sandbox nor a token. The signature is the
 * hash of path, operation, user and the sandbox's access token, so the sandbox is the one whose
 * token gives that hash. An attempt costs two short hashes for each live session, whatever the
 * length of the path: the path is hashed once.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"

#define PREFIX "v1_"

enum { SIGNATURE_BYTES = 64, USER_BYTES = 64, EXPIRATION_BYTES = 24 };

struct signed_link {
	char path[E2B_PATH_BYTES], user[USER_BYTES], expiration[EXPIRATION_BYTES],
		signature[SIGNATURE_BYTES];
	const char *operation;
};

bool e2b_is_signed(const struct http_exchange *x)
{
	char signature[SIGNATURE_BYTES];
	enum http_method method = http_method(x);
	return (method == HTTP_METHOD_GET || method == HTTP_METHOD_POST) &&
	       text_eq(http_path(x), "/files") &&
	       http_query_param(x, "signature", signature, sizeof(signature)) != 0;
}

/* False when a part is too long or wrongly encoded. */
static bool read_link(const struct call *c, struct signed_link *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->operation = http_method(c->x) == HTTP_METHOD_GET ? "read" : "write";
	return http_query_param(c->x, "path", ret->path, sizeof(ret->path)) >= 0 &&
	       http_query_param(c->x, "username", ret->user, sizeof(ret->user)) >= 0 &&
	       http_query_param(c->x, "signature_expiration", ret->expiration,
		       sizeof(ret->expiration)) >= 0 &&
	       http_query_param(c->x, "signature", ret->signature, sizeof(ret->signature)) == 1;
}

static bool is_over(const struct signed_link *l)
{
	uint64_t until;
	if (!l->expiration[0])
		return false;
	return text_parse_u64(l->expiration, 0, UINT64_MAX, &until) < 0 ||
	       until < clock_wall_ns() / 1000000000;
}

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void add(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text));
}

/* The hash of what stands before the token, which is the same for every sandbox. */
static void begin_hash(const struct signed_link *l, struct sha256 *ret)
{
	const char *parts[] = { l->path, l->operation, l->user };
	sha256_init(ret);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		add(ret, parts[i]);
		add(ret, ":");
	}
}

/* As E2B's SDKs make it: base64 without its padding. */
static int expected(const struct signed_link *l, const struct sha256 *begun, const char *token,
	struct buffer *out)
{
	struct sha256 s = *begun;
	char hex[SHA256_HEX + 1];
	unsigned char bytes[SHA256_BYTES];

	add(&s, token);
	add(&s, l->expiration[0] ? ":" : "");
	add(&s, l->expiration);
	sha256_end(&s, hex);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		bytes[i] = (unsigned char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	int r = buffer_append_str(out, PREFIX);
	if (r == 0)
		r = text_base64(out, bytes, sizeof(bytes));
	while (r == 0 && out->len && out->data[out->len - 1] == '=')
		out->len--;
	return r;
}

static bool fits(
	struct call *c, const struct signed_link *l, const struct sha256 *begun, const char *id)
{
	_cleanup_buffer_ struct buffer want = BUFFER_INIT(0);
	char token[SHA256_HEX + 1];
	e2b_token(e2b_of(c), "envd", id, token);
	return expected(l, begun, token, &want) == 0 &&
	       text_eq_secret(l->signature, strlen(l->signature), want.data, want.len);
}

struct session *e2b_signed_session(struct call *c)
{
	struct signed_link l;
	struct session *found = NULL;

	if (!read_link(c, &l) || is_over(&l))
		return NULL;
	struct sha256 begun;
	begin_hash(&l, &begun);
	for (struct session *s = sessions_next(c->api->sessions, NULL); s;
		s = sessions_next(c->api->sessions, s)) {
		struct session_info i;
		session_info(s, &i);
		if (fits(c, &l, &begun, i.id))
			found = s; /* looks at the others too, so that the time tells nothing */
	}

	return found;
}
