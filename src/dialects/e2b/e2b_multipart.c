#include "dialects/e2b/e2b_multipart.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dialects/e2b/e2b.h"

enum { HEAD_MAX = 16 * 1024 };

/* ---- what a part is called ------------------------------------------------------------------- */

/* The value of filename="…" in the head of a part, percent-encoded quotes and line ends decoded. */
static int file_name(const char *head, size_t len, char *ret, size_t size)
{
	static const char key[] = "filename=\"";
	const char *at = memmem(head, len, key, sizeof(key) - 1);

	if (!at)
		return 0;
	at += sizeof(key) - 1;
	const char *end = memchr(at, '"', len - (size_t)(at - head));
	if (!end)
		return -EINVAL;
	int r = http_percent_decode(at, (size_t)(end - at), false, ret, size);
	if (r == -EINVAL && (size_t)(end - at) < size) { /* a plain percent sign */
		memcpy(ret, at, (size_t)(end - at));
		ret[end - at] = '\0';
		r = 0;
	}

	return r < 0 ? r : 1;
}

static int boundary_of(const char *type, char ret[MULTIPART_BOUNDARY_MAX])
{
	const char *at = type ? strstr(type, "boundary=") : NULL;
	if (!at)
		return -EINVAL;
	at += strlen("boundary=");
	bool quoted = *at == '"';
	at += quoted;
	size_t n = strcspn(at, quoted ? "\"" : "; ");
	if (!n || n >= MULTIPART_BOUNDARY_MAX)
		return -EINVAL;
	memcpy(ret, at, n);
	ret[n] = '\0';
	return 0;
}

int multipart_init(
	struct multipart *m, const char *type, const struct multipart_events *events, void *owner)
{
	char boundary[MULTIPART_BOUNDARY_MAX];
	if (boundary_of(type, boundary) < 0)
		return -EINVAL;

	*m = (struct multipart){ .events = events, .owner = owner, .pending = BUFFER_COUNTED(0) };
	m->mark_len = (size_t)snprintf(
		m->mark, sizeof(m->mark), "\r\n--%s", boundary); /* it fits */
	return 0;
}

void multipart_finish(struct multipart *m)
{
	buffer_finish(&m->pending);
}

/* ---- steps: 1 when there may be more to do, 0 when more bytes are needed ------------ */

static int first_mark(struct multipart *m)
{
	size_t n = m->mark_len - 2;
	if (m->pending.len < n)
		return 0;
	if (memcmp(m->pending.data, m->mark + 2, n))
		return -EINVAL;

	buffer_consume(&m->pending, n);
	m->state = MULTIPART_MARK;
	return 1;
}

static int behind_mark(struct multipart *m)
{
	if (m->pending.len < 2)
		return 0;
	m->state = memcmp(m->pending.data, "--", 2) ? MULTIPART_HEAD : MULTIPART_DONE;
	return 1;
}

static int head(struct multipart *m)
{
	char name[E2B_PATH_BYTES] = "";
	const char *text = m->pending.data;
	const char *end = memmem(text, m->pending.len, "\r\n\r\n", 4);
	if (!end)
		return m->pending.len > HEAD_MAX ? -EINVAL : 0;

	size_t len = (size_t)(end - text);
	m->wanted = memmem(text, len, "name=\"file\"", 11) != NULL;
	if (m->wanted && file_name(text, len, name, sizeof(name)) < 0)
		return -EINVAL;

	int r = m->wanted ? m->events->on_part(m->owner, name) : 0;
	buffer_consume(&m->pending, len + 4);
	m->state = MULTIPART_BODY;
	return r < 0 ? r : 1;
}

static int body(struct multipart *m)
{
	struct buffer *b = &m->pending;
	const char *end = b->len ? memmem(b->data, b->len, m->mark, m->mark_len) : NULL;
	/* the beginning of a mark may be the end of what has come */
	size_t n = end                    ? (size_t)(end - b->data)
		   : b->len < m->mark_len ? 0
					  : b->len - m->mark_len + 1;
	int r = m->wanted && n ? m->events->on_data(m->owner, b->data, n) : 0;
	if (r == 0 && end && m->wanted)
		r = m->events->on_end(m->owner);
	if (r < 0)
		return r;

	buffer_consume(b, end ? n + m->mark_len : n);
	if (end)
		m->state = MULTIPART_MARK;
	return end != NULL;
}

int multipart_add(struct multipart *m, const char *data, size_t len)
{
	static int (*const steps[])(struct multipart * m) = { [MULTIPART_START] = first_mark,
		[MULTIPART_MARK] = behind_mark,
		[MULTIPART_HEAD] = head,
		[MULTIPART_BODY] = body };
	if (m->state == MULTIPART_DONE)
		return 0;
	if (buffer_append(&m->pending, data, len) < 0)
		return -ENOMEM;

	int r = 1;
	while (r > 0 && m->state != MULTIPART_DONE)
		r = steps[m->state](m);
	return r < 0 ? r : 0;
}

bool multipart_is_whole(const struct multipart *m)
{
	return m->state == MULTIPART_DONE;
}
