/* Words of remedies that each edge fills in from its own table. */
#include "base/edge_words.h"
#include "tap.h"

static const struct edge_word http[] = {
	{ "memory_bytes", "limits.memory_bytes" },
	{ "start", "start the server with --%" },
	{ "list", "GET /v1/things lists them" },
	{ NULL, NULL },
};
static const struct edge_word own[] = { { "memory_bytes", "--memory" }, { NULL, NULL } };
static const struct edge api = { .words = http }, cli = { .words = own, .otherwise = &api };

static const char *expand(const struct edge *edge, const char *text)
{
	static char buf[EDGE_TEXT_MAX];
	return edge_expand(edge, text, buf, sizeof(buf));
}

static void words(void)
{
	OK_STR(expand(&api, ""), "");
	OK_STR(expand(&api, "nothing to replace"), "nothing to replace");
	OK_STR(expand(&api, "allow more with {memory_bytes}."),
		"allow more with limits.memory_bytes.");
	OK_STR(expand(&cli, "allow more with {memory_bytes}."), "allow more with --memory.");
	OK_STR(expand(&cli, "{list}"), "GET /v1/things lists them");
	OK_STR(expand(&api, "{start:max-cpus 4}, or wait"),
		"start the server with --max-cpus 4, or wait");
	OK_STR(expand(&api, "{list}{list}"), "GET /v1/things lists themGET /v1/things lists them");
}

/* Other braces are text: JSON in a remedy, or words that code wrote. */
static void others(void)
{
	OK_STR(expand(&api, "{\"width\": 1280}"), "{\"width\": 1280}");
	OK_STR(expand(&api, "{unknown} {unknown:x}"), "{unknown} {unknown:x}");
	OK_STR(expand(&api, "{list"), "{list");
	OK_STR(expand(&api, "{start:never closed"), "{start:never closed");
	OK_STR(expand(&api, "{}"), "{}");
	OK_STR(expand(&api, "{{list}}"), "{GET /v1/things lists them}");
}

static void cut(void)
{
	char small[8];
	OK_STR(edge_expand(&api, "0123456789", small, sizeof(small)), "0123456");
	OK_STR(edge_expand(&api, "01{list}", small, sizeof(small)), "01GET /");
	OK_STR(edge_expand(&api, "x", small, 1), "");
}

int main(void)
{
	words();
	others();
	cut();
	return tap_done();
}
