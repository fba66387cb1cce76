/* What dialects borrow from Python: its JSON, pydantic's errors, coding_env's rewards. */
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "dialects/common/pydantic.h"
#include "dialects/common/python_json.h"
#include "dialects/jupyter/jupyter_message.h"
#include "dialects/openenv/openenv_reward.h"
#include "tap.h"

/* "message position line column", or "" when Python would read the text. */
static const char *error_of(const char *text)
{
	static char out[128];
	struct python_json_error e;
	out[0] = '\0';
	if (python_json_error(text, strlen(text), &e))
		snprintf(out, sizeof(out), "%s %zu %zu %zu", e.message, e.position, e.line,
			e.column);
	return out;
}

static void test_json_errors(void)
{
	OK_STR(error_of("{}"), "");
	OK_STR(error_of(" [1, -2.5e+3, \"a\\u00e9\", null, NaN, {\"a\": {}}] "), "");
	OK_STR(error_of(""), "Expecting value 0 1 1");
	OK_STR(error_of("{bad"), "Expecting property name enclosed in double quotes 1 1 2");
	OK_STR(error_of("{\"a\" 1}"), "Expecting ':' delimiter 5 1 6");
	OK_STR(error_of("{\"a\": }"), "Expecting value 6 1 7");
	OK_STR(error_of("{\"a\":1 \"b\"}"), "Expecting ',' delimiter 7 1 8");
	OK_STR(error_of("{\"a\":1,}"), "Expecting property name enclosed in double quotes 7 1 8");
	OK_STR(error_of("[1,\n]"), "Expecting value 4 2 1");
	OK_STR(error_of("\"abc"), "Unterminated string starting at 0 1 1");
	OK_STR(error_of("\"a\nb\""), "Invalid control character at 2 1 3");
	OK_STR(error_of("\"é\\x\""), "Invalid \\escape 2 1 3");
	OK_STR(error_of("\"\\u12g4\""), "Invalid \\uXXXX escape 2 1 3");
	OK_STR(error_of("{} x"), "Extra data 3 1 4");
	OK_STR(error_of("1.x"), "Extra data 1 1 2");
	OK_STR(error_of("-"), "Expecting value 0 1 1");
	char deep[300];
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	OK_STR(error_of(deep), ""); /* ours to refuse */
}

static const char *dumped(const char *json)
{
	static char out[256];
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	OK(python_json_dumps(&b, json, strlen(json)) >= 0);
	snprintf(out, sizeof(out), "%.*s", (int)b.len, b.data);
	return out;
}

static void test_json_spelling(void)
{
	OK_STR(dumped("[1,2,{\"a\":0.1}]"), "[1, 2, {\"a\": 0.1}]");
	OK_STR(dumped("\"a,b:c \\\" d\""), "\"a,b:c \\\" d\"");
	OK_STR(dumped("\"é€😀\""), "\"\\u00e9\\u20ac\\ud83d\\ude00\"");
	OK_STR(dumped("\"\\\\\",1"), "\"\\\\\", 1");
}

static const char *errors_of(struct pydantic *p)
{
	static char out[2048];
	char *text = pydantic_text(p);
	snprintf(out, sizeof(out), "%s", text);
	free(text);
	json_decref(p->errors);
	p->errors = json_array();
	return out;
}

static void test_pydantic(void)
{
	static const char *const known[] = { "text", NULL };
	struct pydantic p;
	unsigned long long seed = 0;
	double seconds = 0;
	json_t *o = json_pack("{s:i,s:s,s:f,s:i,s:s,s:b,s:n}", "text", 5, "word", "äöü", "half",
		0.5, "minus", -1, "digits", "12", "yes", 1, "nothing");
	pydantic_init(&p, "body", false);
	pydantic_missing(&p, "code", NULL);
	OK_STR(errors_of(&p), "[{\"type\":\"missing\",\"loc\":[\"body\",\"code\"],\"msg\":\"Field "
			      "required\",\"input\":null}]");
	p.root = NULL;
	OK(!pydantic_string(&p, o, "text", false, 0));
	OK_STR(errors_of(&p),
		"[{\"type\":\"string_type\",\"loc\":[\"text\"],\"msg\":\"Input should be a "
		"valid string\",\"input\":5}]");
	OK(pydantic_string(&p, o, "word", false, 3) && !pydantic_count(&p));
	OK(!pydantic_string(&p, o, "word", false, 2));
	OK_STR(errors_of(&p),
		"[{\"type\":\"string_too_long\",\"loc\":[\"word\"],\"msg\":\"String should "
		"have at most 2 characters\","
		"\"input\":\"äöü\",\"ctx\":{\"max_length\":2}}]");
	OK(!pydantic_seed(&p, o, "minus", &seed) && pydantic_count(&p) == 1);
	OK(!pydantic_seed(&p, o, "half", &seed) && pydantic_count(&p) == 2);
	OK(!pydantic_seed(&p, o, "word", &seed) && pydantic_count(&p) == 3);
	OK(pydantic_seed(&p, o, "digits", &seed) && seed == 12 && pydantic_count(&p) == 3);
	OK(!pydantic_seed(&p, o, "nothing", &seed) && !pydantic_seed(&p, o, "absent", &seed) &&
		pydantic_count(&p) == 3);
	errors_of(&p);
	OK(pydantic_positive(&p, o, "half", &seconds) && seconds == 0.5);
	OK(pydantic_positive(&p, o, "digits", &seconds) && seconds == 12);
	OK(!pydantic_positive(&p, o, "minus", &seconds) &&
		!pydantic_positive(&p, o, "word", &seconds));
	OK(pydantic_count(&p) == 2);
	OK(!pydantic_dict(&p, o, "text", false) && !pydantic_dict(&p, o, "absent", true) &&
		pydantic_count(&p) == 4);
	OK(pydantic_bool(&p, o, "yes") && !pydantic_bool(&p, o, "text") && pydantic_count(&p) == 5);
	errors_of(&p);
	pydantic_forbid_extra(&p, o, known);
	OK(pydantic_count(&p) == 6);
	p.urls = true;
	errors_of(&p);
	pydantic_missing(&p, "x", o);
	OK(strstr(errors_of(&p), "\"url\":\"https://errors.pydantic.dev/"));
	pydantic_finish(&p);
	json_decref(o);
}

static int tenths(const char *code, bool syntax_error)
{
	return (int)lround(openenv_reward(code, strlen(code), syntax_error) * 10);
}

static void test_rewards(void)
{
	char text[160];
	OK(tenths("x = 1", false) == 1);
	OK(tenths("x = ", true) == -1);
	OK(tenths("import os", false) == -9);
	OK(tenths("import \t\n os.path", false) == -9);
	OK(tenths("importos", false) == 1 && tenths("from os import path", false) == 1);
	OK(tenths("import subprocess", false) == -9 && tenths("myopen(1)", false) == -9);
	OK(tenths("eval (1)", false) == 1 && tenths("eval(1)", false) == -9 &&
		tenths("# exec(", false) == -9);
	OK(tenths("__import__", false) == -9);
	OK(tenths("import os(", true) == -11);
	memset(text, 'x', sizeof(text));
	memcpy(text, " \n", 2);
	text[102] = '\0'; /* 100 characters and white space around */
	OK(tenths(text, false) == 1);
	memcpy(text + 102, "\n\t \xc2\xa0", 6);
	OK(tenths(text, false) == 1);
	memcpy(text + 102, "y", 2);
	OK(tenths(text, false) == 0);
	for (int i = 0; i < 50; i++)
		memcpy(text + 2 + 2 * i, "é", 3);
	OK(tenths(text, false) == 1);
	OK(!openenv_violation("x", 1) && openenv_violation("open(", 5));
}

static void test_jupyter_framing(void)
{
	static const char sent[] =
		"{\"header\":{\"msg_id\":\"m\",\"msg_type\":\"t\"},\"content\":{\"a\":1},"
		"\"channel\":\"control\"}";
	struct jupyter_message m = { .channel = "shell",
		.type = "t",
		.id = "i",
		.session = "s",
		.date = "d",
		.content = "{\"a\":1}",
		.content_len = 7 };
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), binary = BUFFER_INIT(0);
	struct jupyter_request r;
	OK(jupyter_read_text(sent, strlen(sent), NULL, &r) == 0);
	OK_STR(r.channel, "control");
	OK_STR(r.type, "t");
	jupyter_request_finish(&r);
	/* A message without a channel, or with an empty one, belongs to the shell. */
	static const char empty[] =
		"{\"header\":{\"msg_id\":\"m\",\"msg_type\":\"t\"},\"content\":{},\"channel\":\"\"}";
	OK(jupyter_read_text(empty, strlen(empty), NULL, &r) == 0);
	OK_STR(r.channel, "shell");
	jupyter_request_finish(&r);
	OK(jupyter_write_text(&text, &m) == 0 && jupyter_write_binary(&binary, &m) == 0);
	/* What we write can be read back, in both framings. */
	OK(jupyter_read_text(text.data, text.len, NULL, &r) == 0);
	OK(json_integer_value(json_object_get(r.content, "a")) == 1);
	OK_STR(r.channel, "shell");
	jupyter_request_finish(&r);
	OK(jupyter_read_binary(binary.data, binary.len, NULL, &r) == 0);
	OK(json_integer_value(json_object_get(r.content, "a")) == 1);
	OK_STR(r.channel, "shell");
	OK_STR(json_string_value(json_object_get(r.header, "session")), "s");
	jupyter_request_finish(&r);
	/* No piece of it passes for the whole, and no offset leads outside. */
	int passed = 0;
	for (size_t n = 0; n < binary.len; n++)
		passed += jupyter_read_binary(binary.data, n, NULL, &r) == 0;
	OK(!passed);
	for (size_t i = 0; i < 56; i++) {
		char saved = binary.data[i];
		for (int bit = 0; bit < 8; bit++) {
			binary.data[i] = (char)(saved ^ 1 << bit);
			if (jupyter_read_binary(binary.data, binary.len, NULL, &r) == 0)
				jupyter_request_finish(&r);
		}
		binary.data[i] = saved;
	}
	OK(jupyter_read_text("{}", 2, NULL, &r) < 0 && jupyter_read_text("[", 1, NULL, &r) < 0);
	OK(jupyter_read_text("{\"header\":{\"msg_type\":\"t\"},\"content\":{}}", 40, NULL, &r) < 0);
}

int main(void)
{
	test_jupyter_framing();
	test_json_errors();
	test_json_spelling();
	test_pydantic();
	test_rewards();
	return tap_done();
}
