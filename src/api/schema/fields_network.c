/* The one field that is either a word or an object: what of the network a session may reach. */
#include "api/schema/fields_network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "network/network_policy.h"

static int wrong(const char *path, struct error *e, const char *what)
{
	error_set(e, -EINVAL, "%s: %s", path, what);
	error_remedy(e,
		"Give \"none\", \"loopback\", or {\"allow\": [\"pypi.org:443\", \"*.example.org:*\"]}.");
	return error_slug(e, "invalid_field");
}

static int decode_allow(
	const json_t *list, const char *path, struct network_policy *to, struct error *e)
{
	size_t n = json_array_size(list);
	if (!json_is_array(list) || n > LIMIT_NETWORK_RULES)
		return wrong(path, e, "allow must be a list of at most 64 rules");
	_cleanup_free_ char **rules = calloc(n + 1, sizeof(*rules));
	if (!rules)
		return error_set(e, -ENOMEM, "%s: out of memory", path);
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(list, i);
		if (!json_is_string(one) ||
			strlen(json_string_value(one)) != json_string_length(one))
			return wrong(path, e, "allow must be a list of texts");
		rules[i] = (char *)json_string_value(one); /* borrowed */
	}

	int r = network_policy_allow(rules, e, to);
	if (r < 0) {
		error_wrap(e, "%s.allow", path);
		error_slug(e, "invalid_field");
	}

	return r;
}

int fields_decode_network(
	const json_t *v, const char *path, struct network_policy *to, struct error *e)
{
	if (json_is_string(v) && (text_eq(json_string_value(v), "none") ||
					 text_eq(json_string_value(v), "loopback")))
		return network_policy_parse(json_string_value(v), e, to);
	const json_t *allow = json_is_object(v) ? json_object_get(v, "allow") : NULL;
	if (!allow || json_object_size(v) != 1)
		return wrong(
			path, e, "must be \"none\", \"loopback\", or an object with \"allow\"");
	return decode_allow(allow, path, to, e);
}
