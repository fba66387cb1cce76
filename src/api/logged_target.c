#include "api/logged_target.h"

#include <stdbool.h>
#include <string.h>

#include "api/ports/port_proxy.h"
#include "base/text.h"

#define ELLIPSIS "…"

enum { SHOWN_MOST = LIMIT_LOGGED_TARGET_BYTES - sizeof(ELLIPSIS) };

struct shown {
	char *buf;
	size_t n;
	bool cut;
};

static void put(struct shown *s, const char *text, size_t len)
{
	size_t left = SHOWN_MOST - s->n;
	s->cut = s->cut || len > left;
	len = len < left ? len : left;
	memcpy(s->buf + s->n, text, len);
	s->n += len;
}

/* The name is compared as the API reads it: "%74oken" is "token". */
static bool is_secret(const char *name, size_t len)
{
	static const char *const names[] = { "token", "key", PORT_KEY_PARAMETER };
	char decoded[32];
	if (http_percent_decode(name, len, true, decoded, sizeof(decoded)) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (text_eq(decoded, names[i]))
			return true;
	return false;
}

const char *logged_target(const char *target, char buf[LIMIT_LOGGED_TARGET_BYTES])
{
	struct shown s = { .buf = buf };
	size_t path = strcspn(target, "?");
	const char *at = target + path + (target[path] == '?');

	put(&s, target, (size_t)(at - target));
	while (*at && !s.cut) {
		size_t len = strcspn(at, "&"), name = strcspn(at, "=&");
		bool hidden = name < len && is_secret(at, name);
		put(&s, at, hidden ? name + 1 : len);
		if (hidden)
			put(&s, ELLIPSIS, sizeof(ELLIPSIS) - 1);
		at += len;
		put(&s, at, *at == '&');
		at += *at == '&';
	}

	if (s.cut) {
		memcpy(buf + s.n, ELLIPSIS, sizeof(ELLIPSIS) - 1);
		s.n += sizeof(ELLIPSIS) - 1;
	}
	buf[s.n] = '\0';
	return buf;
}
