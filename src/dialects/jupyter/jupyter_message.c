#include "dialects/jupyter/jupyter_message.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

const char jupyter_protocol_v1[] = "v1.kernel.websocket.jupyter.org";

static const char protocol_version[] = "5.3";

/* The parts of a binary message, in their order; buffers may follow. */
enum part { PART_CHANNEL, PART_HEADER, PART_PARENT, PART_METADATA, PART_CONTENT, PART_COUNT };
enum { OFFSET_BYTES = 8, OFFSETS_MAX = 64 };

/* ---- writing ------------------------------------------------------------------ */

static void put_header(struct json_writer *w, const struct jupyter_message *m)
{
	json_open_object(w);
	json_field_cstr(w, "msg_id", m->id);
	json_field_cstr(w, "msg_type", m->type);
	json_field_cstr(w, "username", "glovebox");
	json_field_cstr(w, "session", m->session);
	json_field_cstr(w, "date", m->date);
	json_field_cstr(w, "version", protocol_version);
	json_close(w);
}

int jupyter_write_text(struct buffer *out, const struct jupyter_message *m)
{
	const char *parent = m->parent ? m->parent : "{}";
	struct json_writer w;

	json_writer_init(&w, out);
	json_open_object(&w);
	json_key(&w, "header");
	put_header(&w, m);
	json_field_cstr(&w, "msg_id", m->id);
	json_field_cstr(&w, "msg_type", m->type);
	json_field_raw(&w, "parent_header", parent, strlen(parent));
	json_field_raw(&w, "metadata", "{}", 2);
	json_field_raw(&w, "content", m->content, m->content_len);
	json_field_raw(&w, "buffers", "[]", 2);
	json_field_cstr(&w, "channel", m->channel);
	json_close(&w);
	return json_writer_end(&w);
}

static int put_offset(struct buffer *out, uint64_t n)
{
	uint64_t le = htole64(n);
	return buffer_append(out, &le, sizeof(le));
}

int jupyter_write_binary(struct buffer *out, const struct jupyter_message *m)
{
	_cleanup_buffer_ struct buffer header = BUFFER_INIT(0);
	const char *parent = m->parent ? m->parent : "{}";
	struct json_writer w;

	json_writer_init(&w, &header);
	put_header(&w, m);
	int r = json_writer_end(&w);
	const struct {
		const char *data;
		size_t len;
	} parts[PART_COUNT] = { { m->channel, strlen(m->channel) }, { header.data, header.len },
		{ parent, strlen(parent) }, { "{}", 2 }, { m->content, m->content_len } };
	/* How many offsets, where each part starts, and where the last one ends. */
	uint64_t at = OFFSET_BYTES * (1 + PART_COUNT + 1);
	if (r >= 0)
		r = put_offset(out, PART_COUNT + 1);
	for (size_t i = 0; r >= 0 && i < PART_COUNT; at += parts[i++].len)
		r = put_offset(out, at);
	if (r >= 0)
		r = put_offset(out, at);
	for (size_t i = 0; r >= 0 && i < PART_COUNT; i++)
		r = buffer_append(out, parts[i].data, parts[i].len);
	return r;
}

/* ---- reading -------------------------------------------------------------------- */

void jupyter_request_finish(struct jupyter_request *r)
{
	json_decref(r->header);
	json_decref(r->content);
	*r = (struct jupyter_request){ 0 };
}

static int check(struct jupyter_request *r, struct error *e)
{
	r->type = json_string_value(json_object_get(r->header, "msg_type"));
	if (r->type && json_is_string(json_object_get(r->header, "msg_id")) &&
		json_is_object(r->content))
		return 0;
	jupyter_request_finish(r);
	return error_set(
		e, -EINVAL, "a message needs a header with msg_id and msg_type, and content");
}

static void take_channel(struct jupyter_request *r, const char *name, size_t len)
{
	if (!name || !*name || len >= sizeof(r->channel))
		snprintf(r->channel, sizeof(r->channel), "shell");
	else
		snprintf(r->channel, sizeof(r->channel), "%.*s", (int)len, name);
}

int jupyter_read_text(const char *text, size_t len, struct error *e, struct jupyter_request *ret)
{
	_cleanup_json_ json_t *tree = NULL;
	*ret = (struct jupyter_request){ 0 };
	int r = json_read(text, len, e, &tree);
	if (r < 0)
		return r;
	json_t *channel = json_object_get(tree, "channel");
	take_channel(ret, json_string_value(channel), json_string_length(channel));
	ret->header = json_incref(json_object_get(tree, "header"));
	ret->content = json_incref(json_object_get(tree, "content"));
	return check(ret, e);
}

/* Part i of a binary message whose offsets are in order and inside it. */
static int read_offsets(
	const char *data, size_t len, uint64_t offsets[OFFSETS_MAX], struct error *e)
{
	uint64_t n = 0;
	if (len >= OFFSET_BYTES)
		memcpy(&n, data, sizeof(n));
	n = le64toh(n);
	if (n < PART_COUNT + 1 || n > OFFSETS_MAX || len < OFFSET_BYTES * (1 + n))
		return error_set(e, -EINVAL, "the offsets of the binary message are invalid");
	uint64_t before = OFFSET_BYTES * (1 + n);
	for (size_t i = 0; i < n; i++) {
		memcpy(&offsets[i], data + OFFSET_BYTES * (1 + i), sizeof(offsets[i]));
		offsets[i] = le64toh(offsets[i]);
		if (offsets[i] < before || offsets[i] > len)
			return error_set(
				e, -EINVAL, "the offsets of the binary message are invalid");
		before = offsets[i];
	}

	return 0;
}

int jupyter_read_binary(const char *data, size_t len, struct error *e, struct jupyter_request *ret)
{
	uint64_t offsets[OFFSETS_MAX];
	*ret = (struct jupyter_request){ 0 };
	int r = read_offsets(data, len, offsets, e);
	if (r < 0)
		return r;
	take_channel(
		ret, data + offsets[PART_CHANNEL], offsets[PART_HEADER] - offsets[PART_CHANNEL]);
	r = json_read(data + offsets[PART_HEADER], offsets[PART_PARENT] - offsets[PART_HEADER], e,
		&ret->header);
	if (r >= 0)
		r = json_read(data + offsets[PART_CONTENT],
			offsets[PART_COUNT] - offsets[PART_CONTENT], e, &ret->content);
	if (r < 0) {
		jupyter_request_finish(ret);
		return r;
	}

	return check(ret, e);
}
