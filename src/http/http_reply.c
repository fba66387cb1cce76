#include "http/http_reply.h"

#include <errno.h>
#include <string.h>

/* ---- the head ---------------------------------------------------------------------- */

static int keep(struct http_reply *p, const char *text, size_t len)
{
	if (buffer_append(&p->bytes, text, len) == 0)
		return 0;
	p->no_memory = p->bytes.len + len <= p->bytes.max;
	return HPE_USER;
}

static int end_text(struct http_reply *p)
{
	return keep(p, "", 1);
}

static int on_text(llhttp_t *engine, const char *at, size_t len)
{
	struct http_reply *p = engine->data;
	if (p->head_done)
		return 0; /* trailers are dropped */
	/* a NUL would end the text early for us and not for the client */
	return memchr(at, '\0', len) ? HPE_USER : keep(p, at, len);
}

static int on_field_complete(llhttp_t *engine)
{
	struct http_reply *p = engine->data;
	if (p->head_done)
		return 0;
	if (p->n_headers == LIMIT_PORT_HEADERS || p->bytes.len == p->name_at || end_text(p))
		return HPE_USER;
	p->header[p->n_headers].name = p->name_at;
	p->header[p->n_headers].value = (uint32_t)p->bytes.len;
	return 0;
}

static int on_value_complete(llhttp_t *engine)
{
	struct http_reply *p = engine->data;
	if (p->head_done)
		return 0;
	if (end_text(p))
		return HPE_USER;
	p->n_headers++;
	p->name_at = (uint32_t)p->bytes.len;
	return 0;
}

static void reset_head(struct http_reply *p)
{
	p->bytes.len = 0;
	p->n_headers = 0;
	p->name_at = 0;
}

static int on_headers_complete(llhttp_t *engine)
{
	struct http_reply *p = engine->data;
	int status = engine->status_code;
	bool interim = status >= 100 && status < 200 && status != 101;
	if (status < 100 || status > 599)
		return HPE_USER;
	if (interim) {
		reset_head(p);
		return 1; /* it has no body, whatever it says */
	}

	p->head_done = true;
	p->status = status;
	p->upgraded = status == 101;
	p->content_length = engine->flags & F_CONTENT_LENGTH ? (int64_t)engine->content_length : -1;
	p->cancelled = !p->handler->on_head(p, p->userdata);
	/* the body may take hours */
	reset_head(p);
	buffer_finish(&p->bytes);
	if (p->cancelled)
		return HPE_USER;
	if (p->upgraded)
		return 2; /* no body, and what follows is not HTTP */
	return p->to_head ? 1 : 0;
}

/* ---- the body ------------------------------------------------------------------------ */

static int on_body(llhttp_t *engine, const char *at, size_t len)
{
	struct http_reply *p = engine->data;
	p->cancelled = !p->handler->on_body(p, at, len, p->userdata);
	return p->cancelled ? HPE_USER : 0;
}

static int on_message_complete(llhttp_t *engine)
{
	struct http_reply *p = engine->data;
	if (!p->head_done || p->upgraded)
		return 0;
	p->done = true;
	p->cancelled = !p->handler->on_end(p, p->userdata);
	return HPE_PAUSED; /* nothing may follow: every connection carries one answer */
}

static const llhttp_settings_t callbacks = {
	.on_header_field = on_text,
	.on_header_field_complete = on_field_complete,
	.on_header_value = on_text,
	.on_header_value_complete = on_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/* ---- feeding --------------------------------------------------------------------------- */

void http_reply_init(struct http_reply *p, bool to_head, const struct http_reply_handler *handler,
	void *userdata)
{
	*p = (struct http_reply){
		.handler = handler, .userdata = userdata, .to_head = to_head, .content_length = -1
	};
	buffer_init(&p->bytes, LIMIT_PORT_HEAD_BYTES);
	buffer_count(&p->bytes);
	llhttp_init(&p->engine, HTTP_RESPONSE, &callbacks);
	p->engine.data = p;
}

void http_reply_finish(struct http_reply *p)
{
	buffer_finish(&p->bytes);
}

int http_reply_feed(struct http_reply *p, const char *data, size_t len)
{
	if (p->upgraded)
		return p->handler->on_body(p, data, len, p->userdata) ? 0 : -ECANCELED;
	if (p->done)
		return 0;
	llhttp_errno_t r = llhttp_execute(&p->engine, data, len);
	if (p->cancelled)
		return -ECANCELED;
	if (p->upgraded && r == HPE_PAUSED_UPGRADE) {
		const char *rest = llhttp_get_error_pos(&p->engine);
		size_t used = rest ? (size_t)(rest - data) : len;
		if (used >= len)
			return 0;
		return p->handler->on_body(p, rest, len - used, p->userdata) ? 0 : -ECANCELED;
	}

	if (r == HPE_OK || p->done)
		return 0;
	if (p->no_memory)
		return -ENOMEM;
	return !p->head_done && (p->n_headers == LIMIT_PORT_HEADERS ||
					p->bytes.len + len > LIMIT_PORT_HEAD_BYTES)
		       ? -E2BIG
		       : -EPROTO;
}

int http_reply_eof(struct http_reply *p)
{
	if (p->done || p->upgraded)
		return 0;
	if (!p->head_done || llhttp_finish(&p->engine) != HPE_OK)
		return p->done ? 0 : p->cancelled ? -ECANCELED : -EPROTO;
	return p->done ? 0 : -EPROTO;
}

bool http_reply_header(
	const struct http_reply *p, unsigned i, const char **ret_name, const char **ret_value)
{
	if (i >= p->n_headers)
		return false;
	*ret_name = p->bytes.data + p->header[i].name;
	*ret_value = p->bytes.data + p->header[i].value;
	return true;
}
