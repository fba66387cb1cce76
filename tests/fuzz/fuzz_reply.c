/*
 * The parser of other servers' answers: however the bytes are cut into reads, the same events come
 * out, and no header that passes can end a line. The first byte of the input chooses the size of
 * the reads.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "http/http_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	uint64_t hash;
	int heads, ends;
};

static void mix(struct outcome *o, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++)
		o->hash = (o->hash ^ p[i]) * 1099511628211ULL;
}

static bool on_head(struct http_reply *p, void *userdata)
{
	struct outcome *o = userdata;
	const char *name, *value;
	assert(p->status >= 100 && p->status <= 599 && !o->heads++);
	for (unsigned i = 0; http_reply_header(p, i, &name, &value); i++) {
		assert(*name && !strpbrk(name, "\r\n: "));
		mix(o, name, strlen(name));
		mix(o, value, strlen(value));
	}
	return true;
}

static bool on_body(struct http_reply *p, const char *data, size_t len, void *userdata)
{
	struct outcome *o = userdata;
	(void)p;
	assert(o->heads && !o->ends);
	mix(o, data, len);
	return true;
}

static bool on_end(struct http_reply *p, void *userdata)
{
	struct outcome *o = userdata;
	(void)p;
	assert(o->heads && !o->ends++);
	return true;
}

static struct outcome parse(const uint8_t *data, size_t size, size_t step)
{
	static const struct http_reply_handler handler = { on_head, on_body, on_end };
	struct outcome o = { 0 };
	struct http_reply p;
	int r = 0;
	http_reply_init(&p, false, &handler, &o);
	for (size_t at = 0; r == 0 && at < size && !o.ends; at += step)
		r = http_reply_feed(
			&p, (const char *)data + at, size - at < step ? size - at : step);
	if (r == 0)
		http_reply_eof(&p);
	http_reply_finish(&p);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct outcome whole = parse(data + 1, size - 1, size),
		       cut = parse(data + 1, size - 1, data[0] % 64U + 1);
	assert(whole.heads == cut.heads && whole.ends == cut.ends);
	assert(!whole.ends || whole.hash == cut.hash);
	return 0;
}
