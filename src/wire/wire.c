#include "wire/wire.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

static void put_u32(char *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static uint32_t get_u32(const char *at)
{
	uint32_t v;
	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

int wire_begin(struct buffer *b, enum wire_type type, uint32_t serial, size_t *ret_start)
{
	char head[WIRE_HEADER] = { 0 };
	size_t start = b->len;
	head[4] = (char)type;
	put_u32(head + 8, serial);
	int r = buffer_append(b, head, sizeof(head));
	if (r == 0)
		*ret_start = start;
	return r;
}

int wire_put(struct buffer *b, enum wire_tag tag, const void *data, size_t len)
{
	if (len > UINT32_MAX)
		return -ENOBUFS;
	int r = buffer_reserve(b, WIRE_FIELD_HEADER + len);
	if (r < 0)
		return r;
	char *at = b->data + b->len;
	at[0] = (char)tag;
	put_u32(at + 1, (uint32_t)len);
	if (len)
		memcpy(at + WIRE_FIELD_HEADER, data, len);
	b->len += WIRE_FIELD_HEADER + len;
	return 0;
}

int wire_put_u64(struct buffer *b, enum wire_tag tag, uint64_t value)
{
	value = htole64(value);
	return wire_put(b, tag, &value, sizeof(value));
}

void wire_end(struct buffer *b, size_t start)
{
	assert(b->len >= start + WIRE_HEADER);
	put_u32(b->data + start, (uint32_t)(b->len - start - WIRE_HEADER));
}

size_t wire_retype(struct buffer *b, size_t start, enum wire_type type)
{
	assert(b->len >= start + WIRE_HEADER);
	b->data[start + 4] = (char)type;
	return wire_frame_bytes(b, start);
}

size_t wire_frame_bytes(const struct buffer *b, size_t start)
{
	assert(b->len >= start + WIRE_HEADER);
	return WIRE_HEADER + get_u32(b->data + start);
}

uint32_t wire_frame_serial(const struct buffer *b, size_t start)
{
	assert(b->len >= start + WIRE_HEADER);
	return get_u32(b->data + start + 8);
}

void wire_reader_init(struct wire_reader *r, size_t frame_max)
{
	*r = (struct wire_reader){ .frame_max = frame_max };
}

void wire_reader_finish(struct wire_reader *r)
{
	buffer_finish(&r->in);
	r->done = 0;
}

int wire_reader_room(struct wire_reader *r, size_t want, char **ret_at, size_t *ret_room)
{
	if (r->done) { /* frames that were returned earlier are no longer used */
		buffer_consume(&r->in, r->done);
		r->done = 0;
	}
	int e = buffer_reserve(&r->in, want);
	if (e < 0)
		return e;
	*ret_at = r->in.data + r->in.len;
	*ret_room = r->in.cap - r->in.len;
	return 0;
}

void wire_reader_filled(struct wire_reader *r, size_t n)
{
	assert(n <= r->in.cap - r->in.len);
	r->in.len += n;
}

size_t wire_reader_pending(const struct wire_reader *r)
{
	return r->in.len - r->done;
}

void wire_reader_trim(struct wire_reader *r, size_t keep)
{
	if (!wire_reader_pending(r) && r->in.cap > keep)
		wire_reader_finish(r);
}

int wire_reader_next(struct wire_reader *r, struct wire_frame *ret)
{
	size_t have = r->in.len - r->done;
	const char *at = r->in.data + r->done;

	if (have < WIRE_HEADER)
		return 0;
	size_t len = get_u32(at);
	if (len > r->frame_max || at[5] || at[6] || at[7])
		return -EPROTO;
	if (have - WIRE_HEADER < len)
		return 0;
	*ret = (struct wire_frame){ .type = (uint8_t)at[4],
		.serial = get_u32(at + 8),
		.fields = at + WIRE_HEADER,
		.len = len };
	r->done += WIRE_HEADER + len;
	return 1;
}

int wire_field_next(const struct wire_frame *f, size_t *at, struct wire_field *ret)
{
	size_t left = f->len - *at;
	if (!left)
		return 0;
	if (left < WIRE_FIELD_HEADER)
		return -EPROTO;
	const char *p = f->fields + *at;
	size_t len = get_u32(p + 1);
	if (len > left - WIRE_FIELD_HEADER)
		return -EPROTO;
	*ret = (struct wire_field){
		.tag = (uint8_t)p[0], .data = p + WIRE_FIELD_HEADER, .len = len
	};
	*at += WIRE_FIELD_HEADER + len;
	return 1;
}

int wire_field_u64(const struct wire_field *f, uint64_t *ret)
{
	uint64_t v;
	if (f->len != sizeof(v))
		return -EPROTO;
	memcpy(&v, f->data, sizeof(v));
	*ret = le64toh(v);
	return 0;
}
