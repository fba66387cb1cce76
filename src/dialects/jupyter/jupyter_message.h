/*
 * Jupyter messages on a WebSocket, in both framings: JSON text, and the binary one that is named
 * v1.kernel.websocket.jupyter.org. No I/O.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct buffer;
struct error;

extern const char jupyter_protocol_v1[];

struct jupyter_message {
	const char *channel; /* "shell", "iopub", "control", "stdin" */
	const char *type, *id, *session;
	const char *date;    /* RFC 3339 */
	const char *parent;  /* JSON text of the header it answers; NULL: none */
	const char *content; /* JSON text */
	size_t content_len;
};

/* Append the whole message. -ENOMEM. */
int jupyter_write_text(struct buffer *out, const struct jupyter_message *m);
int jupyter_write_binary(struct buffer *out, const struct jupyter_message *m);

/* What a client sent. Both give new references or fail with -EINVAL and words for the close. */
struct jupyter_request {
	json_t *header, *content;
	char channel[16];
	const char *type; /* points into the header; never NULL */
};
int jupyter_read_text(const char *text, size_t len, struct error *e, struct jupyter_request *ret);
int jupyter_read_binary(const char *data, size_t len, struct error *e, struct jupyter_request *ret);
void jupyter_request_finish(struct jupyter_request *r);
