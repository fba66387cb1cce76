#include "packages/index_hosts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { RULE_BYTES = 300 };

/* pip's own index, whose files are elsewhere. */
static const char *const pypi[] = { "pypi.org:443", "files.pythonhosted.org:443" };

/* "https://user:word@host:8443/simple" → "host:8443". */
static int rule_of(const char *url, char rule[RULE_BYTES], struct error *e)
{
	const char *port = NULL, *at = NULL;
	if (text_starts(url, "https://"))
		port = "443", at = url + 8;
	else if (text_starts(url, "http://"))
		port = "80", at = url + 7;
	size_t n = at ? strcspn(at, "/?#") : 0;
	for (size_t i = n; at && i > 0; i--) /* whoever logs in is not part of the host */
		if (at[i - 1] == '@') {
			at += i;
			n -= i;
			break;
		}
	if (!n || n > RULE_BYTES - 16) {
		error_set(e, -EINVAL, "'%.100s' is not the address of an index", url);
		return error_remedy(
			e, "Write it such as https://host/simple or http://127.0.0.1:8080/simple.");
	}

	const char *bracket = memchr(at, ']', n), *colon = memrchr(at, ':', n);
	bool has_port = colon && (!bracket || colon > bracket);
	snprintf(rule, RULE_BYTES, "%.*s%s%s", (int)n, at, has_port ? "" : ":",
		has_port ? "" : port);
	return 0;
}

static int add_url(json_t *rules, const char *url, struct error *e)
{
	char rule[RULE_BYTES];
	int r = rule_of(url, rule, e);
	if (r == 0)
		json_array_append_new(rules, json_string(rule));
	return r;
}

/* "host" is its https port. */
static void add_host(json_t *rules, const char *host)
{
	char rule[RULE_BYTES];
	const char *bracket = strchr(host, ']'), *colon = strrchr(host, ':');
	bool has_port = colon && (!bracket || colon > bracket);
	snprintf(rule, sizeof(rule), "%.280s%s", host, has_port ? "" : ":443");
	json_array_append_new(rules, json_string(rule));
}

static int add_indexes(json_t *rules, const json_t *settings, struct error *e)
{
	const char *index = json_string_value(json_object_get(settings, "index"));
	const json_t *url;
	size_t i;
	int r = index ? add_url(rules, index, e) : 0;
	if (!index)
		for (i = 0; i < ARRAY_LEN(pypi); i++)
			json_array_append_new(rules, json_string(pypi[i]));
	json_array_foreach(json_object_get(settings, "extra_index"), i, url) if (r == 0)
		r = add_url(rules, json_string_value(url), e);
	return r;
}

int reach_rules(const json_t *settings, struct error *e, json_t **ret)
{
	json_t *rules = json_array();
	const json_t *one;
	size_t i;
	const char *proxy = json_string_value(json_object_get(settings, "proxy"));
	bool offline = json_is_true(json_object_get(settings, "offline"));
	int r = 0;

	if (proxy) /* all goes through it, and it alone is reached */
		r = add_url(rules, proxy, e);
	else if (!offline)
		r = add_indexes(rules, settings, e);
	json_array_foreach(json_object_get(settings, "find_links"), i,
		one) if (r == 0 && !proxy && strstr(json_string_value(one), "://"))
		r = add_url(rules, json_string_value(one), e);
	json_array_foreach(json_object_get(settings, "hosts"), i, one)
		add_host(rules, json_string_value(one));
	if (r < 0) {
		json_decref(rules);
		return r;
	}

	*ret = rules;
	return 0;
}
