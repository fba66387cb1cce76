/*
 * The WebSocket protocol (RFC 6455), server side, around wslay: bytes in, messages out; messages
 * in, bytes out. No I/O.
 *
 * The engine refuses unmasked frames, reserved bits and opcodes, bad close codes, text that is not
 * UTF-8 and messages beyond LIMIT_WS_MESSAGE_BYTES; it answers pings and the close handshake. What
 * it wants sent is appended to the buffer given at its creation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct ws;

enum { WS_ACCEPT_LEN = 28 };
enum {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_GOING_AWAY = 1001,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_UNSUPPORTED = 1003,
	WS_CLOSE_LOST = 1006, /* never sent */
	WS_CLOSE_POLICY = 1008,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_TRY_AGAIN = 1013,
};

/*
 * The answer to a Sec-WebSocket-Key, NUL-terminated. False when the key is not the base64 of 16
 * bytes.
 */
bool ws_accept_token(const char *key, char ret[WS_ACCEPT_LEN + 1]);

/*
 * A whole text message; the text is valid during the call. ws_send() and ws_close() may be called
 * from it.
 */
typedef void (*ws_on_message)(const char *text, size_t len, void *userdata);

/*
 * `out` is where bytes to send go; it must outlive the engine, and whoever owns it empties it. NULL
 * when out of memory.
 */
struct ws *ws_create(struct buffer *out, ws_on_message on_message, void *userdata);
void ws_destroy(struct ws *w);

/* From now on binary messages are taken too; without it they end the connection (1003). */
void ws_take_binary(struct ws *w, ws_on_message on_binary);

/*
 * Takes all bytes. Afterwards `out` may hold an answer, and ws_is_over() may have become true.
 * -ENOMEM, -ENOBUFS.
 */
int ws_feed(struct ws *w, const char *data, size_t len);

/* -EPIPE when closing has begun, -ENOBUFS or -ENOMEM. */
int ws_send(struct ws *w, const char *text, size_t len);
int ws_send_binary(struct ws *w, const void *data, size_t len);
int ws_ping(struct ws *w);
int ws_close(
	/* idempotent; the reason is cut at 123 bytes */
	struct ws *w, unsigned code, const char *reason);

/*
 * Bytes of messages that wait for the end of ws_feed(), inside which nothing is appended to `out`.
 */
size_t ws_queued(const struct ws *w);

/* a close was sent or received: no more messages come or go */
bool ws_is_closing(const struct ws *w);
bool ws_is_over(
	/* both sides have closed, or the client broke the protocol: flush and hang up */
	const struct ws *w);
size_t ws_incoming(const struct ws *w); /* bytes of a message that is not complete */
/* what the client said, or what we said, or WS_CLOSE_LOST */
unsigned ws_close_code(const struct ws *w);
