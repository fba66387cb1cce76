#include "api/login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "api/call.h"
#include "base/limits.h"
#include "base/text.h"

static const char token_cookie[] = "glovebox_login", secret_cookie[] = "_xsrf",
		  rules[] = "Path=/; HttpOnly; SameSite=Strict";

enum { SECRET_BYTES = 16 };

/* In hexadecimal digits, which need no quotes in a cookie. */
static void set_cookie(struct call *c, const char *name, const uint8_t *value, size_t len)
{
	char text[2 * LIMIT_TOKEN_BYTES + 96];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s=", name);
	for (size_t i = 0; i < len && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", value[i]);
	if (n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, "; %s", rules);
	http_add_header(c->x, "Set-Cookie", text);
	explicit_bzero(text, sizeof(text));
}

int login_set_secret(struct call *c)
{
	uint8_t random[SECRET_BYTES];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	set_cookie(c, secret_cookie, random, sizeof(random));
	return 0;
}

void login_set_token(struct call *c, const char *token)
{
	set_cookie(c, token_cookie, (const uint8_t *)token, strlen(token));
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static bool decode(const char *hex, char *out, size_t size)
{
	size_t n = strlen(hex) / 2;
	if (strlen(hex) % 2 || n >= size)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
		if (high < 0 || low < 0 || !(high | low))
			return false;
		out[i] = (char)(high << 4 | low);
	}
	out[n] = '\0';
	return true;
}

bool login_token(const struct call *c, char *out, size_t size)
{
	const char *repeated = http_header(c->x, "X-XSRFToken");
	char secret[2 * SECRET_BYTES + 1], hex[2 * LIMIT_TOKEN_BYTES + 1];
	if (!repeated || !http_cookie(c->x, secret_cookie, secret, sizeof(secret)) ||
		strlen(secret) != 2 * SECRET_BYTES || !text_eq(repeated, secret) ||
		!http_cookie(c->x, token_cookie, hex, sizeof(hex)))
		return false;
	bool good = decode(hex, out, size);
	explicit_bzero(hex, sizeof(hex));
	return good;
}

static bool is_named(const char *cookie, size_t len, const char *name)
{
	size_t n = strlen(name);
	return len > n && cookie[n] == '=' && !strncmp(cookie, name, n);
}

bool login_owns_cookie(const char *cookie, size_t len)
{
	size_t name = sizeof(secret_cookie), n = 0;
	while (len && (cookie[len - 1] == ' ' || cookie[len - 1] == '\t'))
		len--;
	if (is_named(cookie, len, token_cookie))
		return true;
	if (!is_named(cookie, len, secret_cookie))
		return false;
	while (name + n < len && digit(cookie[name + n]) >= 0)
		n++;
	return n == 2 * SECRET_BYTES && name + n == len;
}
