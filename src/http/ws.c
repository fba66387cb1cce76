#include "http/ws.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/text.h"
#include "http/sha1.h"

enum { CLOSE_REASON_BYTES = 123, KEY_LEN = 24 };

struct ws {
	wslay_event_context_ptr engine;
	struct buffer *out;
	ws_on_message on_message, on_binary; /* on_binary: or NULL */
	void *userdata;
	const char *in; /* what is left of the piece being fed */
	size_t in_len;
	int err;                       /* of an append to out */
	size_t incoming;               /* bytes of a message that is not complete */
	bool in_control;               /* the frame that comes is no part of a message */
	bool feeding, closing, broken; /* broken: the client's bytes are no frames any more */
};

bool ws_accept_token(const char *key, char ret[WS_ACCEPT_LEN + 1])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char joined[KEY_LEN + sizeof(guid)];
	uint8_t digest[SHA1_BYTES];
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0);
	size_t len = strlen(key);

	/* 16 bytes are 22 digits and two padding signs. */
	if (len != KEY_LEN ||
		strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
			KEY_LEN - 2 ||
		key[KEY_LEN - 2] != '=' || key[KEY_LEN - 1] != '=')
		return false;
	memcpy(joined, key, KEY_LEN);
	memcpy(joined + KEY_LEN, guid, sizeof(guid));
	sha1(joined, KEY_LEN + sizeof(guid) - 1, digest);
	if (text_base64(&text, digest, sizeof(digest)) < 0)
		return false;
	assert(text.len == WS_ACCEPT_LEN);
	memcpy(ret, text.data, WS_ACCEPT_LEN);
	ret[WS_ACCEPT_LEN] = '\0';
	return true;
}

static ssize_t engine_recv(
	wslay_event_context_ptr engine, uint8_t *buf, size_t len, int flags, void *data)
{
	struct ws *w = data;
	size_t n = len < w->in_len ? len : w->in_len;
	if (!n) {
		wslay_event_set_error(engine, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(buf, w->in, n);
	w->in += n;
	w->in_len -= n;
	return (ssize_t)n;
}

static ssize_t engine_send(
	wslay_event_context_ptr engine, const uint8_t *buf, size_t len, int flags, void *data)
{
	struct ws *w = data;
	w->err = buffer_append(w->out, buf, len);
	if (w->err < 0) {
		wslay_event_set_error(engine, WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
	return (ssize_t)len;
}

static void engine_frame(wslay_event_context_ptr engine,
	const struct wslay_event_on_frame_recv_start_arg *f, void *data)
{
	struct ws *w = data;
	(void)engine;
	w->in_control = wslay_is_ctrl_frame(f->opcode);
}

static void engine_chunk(wslay_event_context_ptr engine,
	const struct wslay_event_on_frame_recv_chunk_arg *f, void *data)
{
	struct ws *w = data;
	(void)engine;
	if (!w->in_control)
		w->incoming += f->data_length;
}

static void engine_message(
	wslay_event_context_ptr engine, const struct wslay_event_on_msg_recv_arg *m, void *data)
{
	struct ws *w = data;
	if (!wslay_is_ctrl_frame(m->opcode))
		w->incoming = 0;
	if (m->opcode == WSLAY_BINARY_FRAME && w->on_binary && !ws_is_closing(w))
		w->on_binary((const char *)m->msg, m->msg_length, w->userdata);
	else if (m->opcode == WSLAY_BINARY_FRAME)
		ws_close(w, WS_CLOSE_UNSUPPORTED, "only text messages are supported");
	else if (m->opcode == WSLAY_TEXT_FRAME && !ws_is_closing(w))
		w->on_message((const char *)m->msg, m->msg_length, w->userdata);
}

struct ws *ws_create(struct buffer *out, ws_on_message on_message, void *userdata)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = engine_recv,
		.send_callback = engine_send,
		.on_frame_recv_start_callback = engine_frame,
		.on_frame_recv_chunk_callback = engine_chunk,
		.on_msg_recv_callback = engine_message,
	};
	struct ws *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->out = out;
	w->on_message = on_message;
	w->userdata = userdata;
	if (wslay_event_context_server_init(&w->engine, &callbacks, w) < 0) {
		free(w);
		return NULL;
	}

	wslay_event_config_set_max_recv_msg_length(w->engine, LIMIT_WS_MESSAGE_BYTES);
	return w;
}

void ws_take_binary(struct ws *w, ws_on_message on_binary)
{
	w->on_binary = on_binary;
}

void ws_destroy(struct ws *w)
{
	if (!w)
		return;
	wslay_event_context_free(w->engine);
	free(w);
}

/* Turns queued frames into bytes; later when we are inside ws_feed(), which does it at its end. */
static int flush(struct ws *w)
{
	if (w->feeding)
		return 0;
	if (wslay_event_send(w->engine) < 0)
		return w->err ? w->err : -ENOMEM;
	return 0;
}

/* wslay answers bytes that are no frame with a close that gives no reason; give one. */
static int name_breach(struct ws *w)
{
	static const char bare[] = { '\x88', 0 };
	const char code[] = { '\x88', 2, (char)(WS_CLOSE_PROTOCOL >> 8),
		(char)(WS_CLOSE_PROTOCOL & 0xff) };
	if (w->out->len < sizeof(bare) ||
		memcmp(w->out->data + w->out->len - sizeof(bare), bare, sizeof(bare)))
		return 0;
	w->out->len -= sizeof(bare);
	return buffer_append(w->out, code, sizeof(code));
}

int ws_feed(struct ws *w, const char *data, size_t len)
{
	if (w->broken)
		return 0;
	w->in = data;
	w->in_len = len;
	w->feeding = true;
	int r = wslay_event_recv(w->engine);
	w->feeding = false;
	w->in = NULL;
	w->in_len = 0;
	if (r == WSLAY_ERR_NOMEM)
		return -ENOMEM;
	w->broken = r < 0 || (!wslay_event_get_read_enabled(w->engine) &&
				     !wslay_event_get_close_received(w->engine));
	r = flush(w);
	if (r == 0 && w->broken)
		r = name_breach(w);
	return r;
}

static int queue(struct ws *w, uint8_t opcode, const void *data, size_t len)
{
	struct wslay_event_msg m = { .opcode = opcode, .msg = data, .msg_length = len };
	if (ws_is_closing(w))
		return -EPIPE;
	int r = wslay_event_queue_msg(w->engine, &m);
	if (r < 0)
		return r == WSLAY_ERR_NO_MORE_MSG ? -EPIPE : -ENOMEM;
	return flush(w);
}

int ws_send(struct ws *w, const char *text, size_t len)
{
	return queue(w, WSLAY_TEXT_FRAME, text, len);
}

int ws_send_binary(struct ws *w, const void *data, size_t len)
{
	return queue(w, WSLAY_BINARY_FRAME, data, len);
}

int ws_ping(struct ws *w)
{
	return queue(w, WSLAY_PING, "", 0);
}

int ws_close(struct ws *w, unsigned code, const char *reason)
{
	size_t len = reason ? strlen(reason) : 0;
	if (ws_is_closing(w))
		return 0;
	w->closing = true;
	if (len > CLOSE_REASON_BYTES)
		len = CLOSE_REASON_BYTES;
	/* A close overtakes messages in the engine's queue, which would never be sent then. */
	if (wslay_event_send(w->engine) < 0)
		return w->err ? w->err : -ENOMEM;
	int r = wslay_event_queue_close(w->engine, (uint16_t)code, (const uint8_t *)reason, len);
	if (r < 0)
		return r == WSLAY_ERR_NO_MORE_MSG ? 0 : -ENOMEM;
	return flush(w);
}

size_t ws_incoming(const struct ws *w)
{
	return w->incoming;
}

size_t ws_queued(const struct ws *w)
{
	return wslay_event_get_queued_msg_length(w->engine);
}

bool ws_is_closing(const struct ws *w)
{
	return w->closing || wslay_event_get_close_received(w->engine) ||
	       wslay_event_get_close_sent(w->engine) || !wslay_event_get_read_enabled(w->engine) ||
	       !wslay_event_get_write_enabled(w->engine);
}

bool ws_is_over(const struct ws *w)
{
	/*
	 * Reading is disabled after a close came and after a breach; both have been answered with a
	 * close by then.
	 */
	return (w->broken || !wslay_event_get_read_enabled(w->engine)) &&
	       !wslay_event_want_write(w->engine);
}

unsigned ws_close_code(const struct ws *w)
{
	unsigned sent = wslay_event_get_status_code_sent(w->engine);
	if (wslay_event_get_close_received(w->engine))
		return wslay_event_get_status_code_received(w->engine);
	return w->broken && sent == WSLAY_CODE_NO_STATUS_RCVD ? WS_CLOSE_PROTOCOL : sent;
}
