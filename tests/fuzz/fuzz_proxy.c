/*
 * What a session says to the proxy: any bytes, in pieces of any size. And rules, as a client of the
 * API writes them.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "network/proxy_protocol.h"
#include "network/rules.h"

static void check_target(const struct network_target *t)
{
	char text[NETWORK_RULE_MAX];
	struct network_rule r;
	assert(t->port && strlen(t->name) <= NETWORK_NAME_MAX);
	/* It can be written, and what was written is the same target. */
	assert(network_rule_parse(network_target_format(t, text), NULL, &r) == 0 &&
		network_rule_is_exact(&r));
	assert(r.first == t->port && (r.host == NETWORK_ADDRESS) == t->is_address &&
		!strcmp(r.name, t->name));
}

static void talk(const uint8_t *data, size_t size, size_t step)
{
	struct proxy_protocol d;
	struct buffer reply = BUFFER_INIT(0);
	enum proxy_protocol_event event = DIALOGUE_MORE;
	proxy_protocol_init(&d);
	for (size_t at = 0; at < size && event == DIALOGUE_MORE; at += step)
		event = proxy_protocol_feed(
			&d, data + at, size - at < step ? size - at : step, &reply);
	if (event == DIALOGUE_ASK) {
		check_target(&d.target);
		proxy_protocol_answer(&d, NETWORK_NOT_ALLOWED, "no", &reply);
		assert(reply.len);
	}
	proxy_protocol_finish(&d);
	buffer_finish(&reply);
}

static void parse_rule(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), shown[NETWORK_RULE_MAX];
	struct network_rule r, again;
	if (text && network_rule_parse(text, NULL, &r) == 0) {
		assert(network_rule_parse(network_rule_format(&r, shown), NULL, &again) == 0);
		assert(network_rule_covers(&r, &again) == network_rule_covers(&r, &r) &&
			!memcmp(&r, &again, sizeof(r)));
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 'r')
		parse_rule(data + 1, size - 1);
	else
		talk(data + 1, size - 1, data[0] ? data[0] : size);
	return 0;
}
