#include "dialects/mcp/mcp_gallery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/common/picture_job.h"

enum { ITEMS_MAX = MCP_RESULT_IMAGES + 4 };

struct item {
	const char *mime;    /* NULL: a sentence */
	struct buffer bytes; /* of the file, or of the sentence */
	uint32_t width, height;
};

struct mcp_gallery {
	struct item items[ITEMS_MAX];
	unsigned n, pictures, left_out;
	/* while pictures are made small */
	struct picture_job *job;
	unsigned at; /* the item that the job is about */
	struct buffer text, structured;
	bool is_error;
};

struct mcp_gallery *mcp_gallery_create(void)
{
	return calloc(1, sizeof(struct mcp_gallery));
}

void mcp_gallery_destroy(struct mcp_gallery *g)
{
	if (!g)
		return;
	picture_job_cancel(g->job);
	for (unsigned i = 0; i < g->n; i++)
		buffer_finish(&g->items[i].bytes);
	buffer_finish(&g->text);
	buffer_finish(&g->structured);
	free(g);
}

void mcp_gallery_note(struct mcp_gallery *g, const char *text)
{
	if (g && g->n < ITEMS_MAX && buffer_append_str(&g->items[g->n].bytes, text) == 0)
		g->n++;
}

void mcp_gallery_add(struct mcp_gallery *g, const char *data, size_t len)
{
	if (!g)
		return;
	struct item *i = g->n < ITEMS_MAX ? &g->items[g->n] : NULL;
	const char *mime = i ? picture_size((const uint8_t *)data, len, &i->width, &i->height)
			     : NULL;
	if (!mime || g->pictures >= MCP_RESULT_IMAGES || buffer_append(&i->bytes, data, len) < 0) {
		g->left_out++;
		return;
	}
	i->mime = mime;
	g->pictures++;
	g->n++;
}

void mcp_gallery_add_base64(struct mcp_gallery *g, const char *base64, size_t len)
{
	_cleanup_buffer_ struct buffer bytes = BUFFER_INIT(0);
	if (text_base64_decode(&bytes, base64, len) == 0)
		mcp_gallery_add(g, bytes.data ? bytes.data : "", bytes.len);
}

/* ---- making pictures small ---------------------------------------------------------- */

/* Bytes that one picture may have, so that all of them fit in base64. */
static uint32_t share(const struct mcp_gallery *g)
{
	return MCP_IMAGES_MAX / 4 * 3 / (g->pictures ? g->pictures : 1);
}

static bool is_small(const struct mcp_gallery *g, const struct item *i)
{
	return i->width <= MCP_IMAGE_SIDE && i->height <= MCP_IMAGE_SIDE &&
	       i->bytes.len <= share(g);
}

/* The picture becomes a sentence that says what to do. */
static void leave_out(struct item *i)
{
	char text[160];
	snprintf(text, sizeof(text),
		"A picture of %u x %u pixels and %zu kB was left out: it could not be made smaller. "
		"Save it smaller, as PNG or JPEG.",
		i->width, i->height, i->bytes.len / 1000);
	i->mime = NULL;
	buffer_consume(&i->bytes, i->bytes.len);
	buffer_append_str(&i->bytes, text);
}

static void fit_next(struct mcp_request *r);

static void on_fitted(void *userdata, const char *mime, const char *data, size_t len)
{
	struct mcp_request *r = userdata;
	struct mcp_gallery *g = r->work;
	struct item *i = &g->items[g->at];

	g->job = NULL;
	if (!mime) {
		leave_out(i);
	} else {
		i->mime = mime;
		buffer_consume(&i->bytes, i->bytes.len);
		buffer_append(&i->bytes, data, len);
	}
	g->at++;
	fit_next(r);
}

static void put_items(struct json_writer *w, const struct mcp_gallery *g)
{
	char text[80];
	for (unsigned k = 0; k < g->n; k++) {
		_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
		const struct item *i = &g->items[k];
		if (!i->mime)
			mcp_put_text(w, i->bytes.data, i->bytes.len);
		else if (text_base64(&b, i->bytes.data, i->bytes.len) == 0)
			mcp_put_image(w, i->mime, b.data, b.len);
	}

	if (g->left_out) {
		int n = snprintf(
			text, sizeof(text), "%u more pictures were left out.", g->left_out);
		mcp_put_text(w, text, (size_t)n);
	}
}

static void send_all(struct mcp_request *r, struct mcp_gallery *g)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;
	bool is_error = g->is_error;

	json_writer_init(&w, &content);
	json_open_array(&w);
	if (g->text.len)
		mcp_put_text(&w, g->text.data, g->text.len);
	put_items(&w, g);
	json_close(&w);
	structured = g->structured;
	g->structured = (struct buffer){ 0 };
	mcp_gallery_destroy(g);
	mcp_send_result(r, &content, &structured, is_error);
}

static void release(struct mcp_request *r)
{
	mcp_gallery_destroy(r->work);
	r->work = NULL;
}

/* Starts the job for the next picture that is too large; without one the result is sent. */
static void fit_next(struct mcp_request *r)
{
	struct mcp_gallery *g = r->work;
	for (; g->at < g->n; g->at++) {
		struct item *i = &g->items[g->at];
		if (!i->mime || is_small(g, i))
			continue;
		if (picture_job_start(r->home->tick.loop, &i->bytes, MCP_IMAGE_SIDE, share(g),
			    on_fitted, r, &g->job) == 0)
			return;
		leave_out(i);
	}
	r->work = NULL;
	r->release = NULL;
	send_all(r, g);
}

void mcp_gallery_send(struct mcp_request *r, struct mcp_gallery *g, struct buffer *text,
	struct buffer *structured, bool is_error)
{
	if (!g) {
		mcp_tool_error(r, "the server is out of memory", "Try again later.");
		return;
	}

	if (text) {
		g->text = *text;
		*text = (struct buffer){ 0 };
	}

	g->structured = *structured;
	*structured = (struct buffer){ 0 };
	g->is_error = is_error;
	r->work = g;
	r->release = release;
	fit_next(r);
}
