#include "http/sse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int append_line(struct buffer *out, const char *field, const char *s, size_t len)
{
	int r = buffer_append_str(out, field);
	if (r < 0)
		return r;
	r = buffer_append(out, s, len);
	return r < 0 ? r : buffer_append_char(out, '\n');
}

/* event and id are one line each by nature. */
static int append_name(struct buffer *out, const char *field, const char *s)
{
	size_t start = out->len;
	int r = s ? append_line(out, field, s, strlen(s)) : 0;
	if (r < 0 || !s)
		return r;
	for (size_t i = start; i + 1 < out->len; i++)
		if (out->data[i] == '\n' || out->data[i] == '\r')
			out->data[i] = ' ';
	return 0;
}

static size_t line_length(const char *s, size_t len)
{
	const char *lf = memchr(s, '\n', len);
	size_t n = lf ? (size_t)(lf - s) : len;
	const char *cr = memchr(s, '\r', n);
	return cr ? (size_t)(cr - s) : n;
}

static int append_data(struct buffer *out, const char *data, size_t len)
{
	for (;;) {
		size_t n = line_length(data, len);
		int r = append_line(out, "data: ", data, n);
		if (r < 0 || n == len)
			return r;
		size_t brk = n + 1 < len && data[n] == '\r' && data[n + 1] == '\n' ? 2 : 1;
		data += n + brk;
		len -= n + brk;
	}
}

int sse_write(struct buffer *out, const char *event, const char *id, const char *data, size_t len)
{
	size_t start = out->len;
	int r = append_name(out, "event: ", event);
	if (r == 0)
		r = append_name(out, "id: ", id);
	if (r == 0)
		r = append_data(out, data, len);
	if (r == 0)
		r = buffer_append_char(out, '\n');
	if (r < 0)
		out->len = start; /* half an event would be glued to the next one */
	return r;
}

void sse_reader_init(struct sse_reader *r, size_t max_event_bytes,
	int (*on_event)(
		const char *event, const char *id, const char *data, size_t len, void *userdata),
	void *userdata)
{
	*r = (struct sse_reader){ .on_event = on_event, .userdata = userdata };
	buffer_init(&r->line, max_event_bytes);
	buffer_init(&r->data, max_event_bytes);
}

void sse_reader_finish(struct sse_reader *r)
{
	buffer_finish(&r->line);
	buffer_finish(&r->data);
}

/* A blank line: what was collected is an event, if it has data. */
static int dispatch(struct sse_reader *r)
{
	int result = 0;
	if (r->has_data) {
		/* Every data line ended with a line break; the last one is not part of the data. */
		result = r->on_event(r->event[0] ? r->event : "message", r->id, r->data.data,
			r->data.len - 1, r->userdata);
	}
	r->event[0] = '\0';
	r->data.len = 0;
	r->has_data = false;
	return result;
}

static int take_field(
	struct sse_reader *r, const char *name, size_t name_len, const char *value, size_t len)
{
	if (name_len == 4 && !memcmp(name, "data", 4)) {
		r->has_data = true;
		int e = buffer_append(&r->data, value, len);
		return e < 0 ? e : buffer_append_char(&r->data, '\n');
	}
	if (name_len == 5 && !memcmp(name, "event", 5))
		snprintf(r->event, sizeof(r->event), "%.*s",
			(int)(len < sizeof(r->event) ? len : sizeof(r->event)), value);
	else if (name_len == 2 && !memcmp(name, "id", 2) && !memchr(value, '\0', len))
		snprintf(r->id, sizeof(r->id), "%.*s",
			(int)(len < sizeof(r->id) ? len : sizeof(r->id)), value);
	return 0;
}

static int end_line(struct sse_reader *r)
{
	const char *line = r->line.data;
	size_t len = r->line.len;
	r->line.len = 0;
	if (!len)
		return dispatch(r);
	const char *colon = memchr(line, ':', len);
	if (colon == line)
		return 0; /* a comment: a heartbeat */
	size_t name_len = colon ? (size_t)(colon - line) : len;
	const char *value = colon ? colon + 1 : line + len;
	if (colon && value < line + len && *value == ' ')
		value++;
	return take_field(r, line, name_len, value, (size_t)(line + len - value));
}

int sse_feed(struct sse_reader *r, const char *data, size_t len)
{
	while (len) {
		if (r->after_cr &&
			*data == '\n') { /* the second half of a CRLF that ended the line already */
			r->after_cr = false;
			data++;
			len--;
			continue;
		}
		r->after_cr = false;
		size_t n = line_length(data, len);
		int e = buffer_append(&r->line, data, n);
		if (e < 0 || n == len)
			return e;
		r->after_cr = data[n] == '\r';
		data += n + 1;
		len -= n + 1;
		e = end_line(r);
		if (e)
			return e;
	}

	return 0;
}
