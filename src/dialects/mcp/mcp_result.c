/*
 * The observation of a cell as the result of a tool: a text that stands alone, pictures, and the
 * same facts as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/answers.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "dialects/mcp/mcp_gallery.h"

enum { SHORTEST = 512 }; /* bytes that are left of a text in any case */

static bool is_shell(const struct mcp_request *r)
{
	return text_eq(r->tool->name, "run_shell");
}

static const struct bundle_item *form(const struct bundle *b, const char *mime)
{
	for (unsigned i = 0; b && i < b->n; i++)
		if (text_eq(b->item[i].mime, mime))
			return &b->item[i];
	return NULL;
}

/* The exit code of a shell command is no Python error. */
static const struct cell_error *error_of(const struct mcp_request *r, const struct observation *o)
{
	bool exited = is_shell(r) && o->error && text_eq(o->error->type, "SystemExit");
	return exited ? NULL : o->error;
}

static bool failed(const struct mcp_request *r, const struct observation *o)
{
	if (is_shell(r))
		return o->exit_code != 0 || error_of(r, o);
	return o->status != CELL_OK && o->status != CELL_RUNNING;
}

/* ---- text ------------------------------------------------------------------------------- */

/* The most bytes up to `max` that end (begin) with a whole character. */
static size_t whole_head(const char *s, size_t len, size_t max)
{
	size_t n = len < max ? len : max;
	while (n && n < len && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static size_t whole_tail(const char *s, size_t len, size_t max)
{
	size_t n = len < max ? len : max;
	while (n && n < len && ((unsigned char)s[len - n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* At most `max` bytes: the head and the tail, and how many bytes are missing between them. */
static void append_captured(struct buffer *b, const struct captured *c, size_t max)
{
	size_t head = c->head_len, tail = c->tail_len, all = head + tail;
	const char *end = c->tail;

	if (all > max) {
		if (!tail) { /* all in one piece: split it */
			end = c->head;
			tail = head;
		}
		size_t keep = whole_head(c->head, head, max / 2);
		size_t rest = whole_tail(end, tail, max - keep);
		end += tail - rest;
		head = keep;
		tail = rest;
	}
	buffer_append(b, c->head, head);
	if (c->left_out || all > head + tail)
		buffer_printf(
			b, "\n… %" PRIu64 " bytes left out …\n", c->left_out + all - head - tail);
	buffer_append(b, end, tail);
}

static void append_cut(struct buffer *b, const char *data, size_t len, size_t max)
{
	append_captured(b, &(struct captured){ .head = data, .head_len = len }, max);
}

static bool is_cut(const struct captured *c, size_t max)
{
	return c->left_out || c->head_len + c->tail_len > max;
}

static void end_line(struct buffer *b)
{
	if (b->len && b->data[b->len - 1] != '\n')
		buffer_append_char(b, '\n');
}

static void append_stream(struct buffer *b, const char *title, const struct captured *c, size_t max)
{
	if (!c->head_len && !c->tail_len)
		return;
	end_line(b);
	if (title)
		buffer_printf(b, "%s:\n", title);
	append_captured(b, c, max);
}

/* Does the traceback end with the error already? */
static bool says_error(const struct cell_error *e)
{
	return memmem(e->traceback, e->traceback_len, e->type, strlen(e->type)) &&
	       (text_eq(e->type, "SyntaxError") || text_eq(e->type, "IndentationError") ||
		       memmem(e->traceback, e->traceback_len, e->message, e->message_len));
}

/* For a command, the traceback is omitted: it would show the code that starts the command. */
static void append_error(
	const struct mcp_request *r, struct buffer *b, const struct cell_error *e, size_t max)
{
	const char *remedy = mcp_remedy(r, e->code, e->type, e->message, e->remedy);
	end_line(b);
	if (!is_shell(r))
		append_cut(b, e->traceback, e->traceback_len, max);
	end_line(b);
	if (is_shell(r) || !says_error(e)) {
		buffer_printf(b, "%s: ", e->type);
		append_cut(b, e->message, e->message_len, max);
		end_line(b);
	}
	if (*remedy)
		buffer_printf(b, "%s\n", remedy);
}

static const char *const changes[] = {
	[FILE_CREATED] = "created", [FILE_MODIFIED] = "modified", [FILE_DELETED] = "deleted"
};

static void append_files(struct buffer *b, const struct observation *o)
{
	enum { SHOWN = 40, SHOWN_BYTES = 8000 };
	unsigned i = 0;
	if (!o->n_files)
		return;
	end_line(b);
	buffer_append_str(b, "files:");
	for (size_t start = b->len; i < o->n_files && i < SHOWN && b->len - start < SHOWN_BYTES;
		i++)
		buffer_printf(b, "%s %s (%" PRIu64 " B, %s)", i ? "," : "", o->files[i].path,
			o->files[i].size, changes[o->files[i].change]);
	if (i < o->n_files || o->files_cut)
		buffer_append_str(b, ", … (list_files names all)");
	buffer_append_char(b, '\n');
}

static void append_state(struct buffer *b, const struct observation *o)
{
	end_line(b);
	if (o->died)
		buffer_printf(b, "The interpreter died before this call: %s.\n", o->died->why);
	if (o->files_lost)
		buffer_append_str(
			b, "The sandbox was restarted: all variables and files are gone.\n");
	else if (o->state_lost)
		buffer_append_str(b, "The interpreter was restarted: all variables are gone.\n");
	else if (o->rolled_back)
		buffer_printf(b, "The session was rolled back: variables are as after cell %u.\n",
			o->rolled_back_to);
}

static bool has_pictures(const struct observation *o)
{
	return o->n_displays || o->screenshot || o->result;
}

/* Is anything of the observation longer than `max`? */
static bool is_shortened(const struct mcp_request *r, const struct observation *o, size_t max)
{
	const struct bundle_item *value = form(o->result, "text/plain");
	const struct cell_error *e = error_of(r, o);
	return is_cut(&o->out, max) || is_cut(&o->err, max) || (value && value->len > max) ||
	       (o->answer && o->answer->len > max) ||
	       (e && (e->message_len > max || (!is_shell(r) && e->traceback_len > max)));
}

/* The output and the value, each at most `max` bytes. */
static void append_outcome(
	const struct mcp_request *r, const struct observation *o, struct buffer *b, size_t max)
{
	const struct bundle_item *value = form(o->result, "text/plain");
	const struct cell_error *e = error_of(r, o);

	append_stream(b, NULL, &o->out, max);
	append_stream(b, "stderr", &o->err, max);
	if (value) {
		end_line(b);
		buffer_append_str(b, "result: ");
		append_cut(b, value->data, value->len, max);
	}
	if (o->answer) {
		end_line(b);
		buffer_append_str(b, "final answer: ");
		append_cut(b, o->answer->data, o->answer->len, max);
	}
	if (e)
		append_error(r, b, e, max);
}

static void write_text(
	const struct mcp_request *r, const struct observation *o, struct buffer *b, size_t max)
{
	append_outcome(r, o, b, max);
	if (is_shell(r) && o->exit_code) {
		end_line(b);
		buffer_printf(b, "exit code: %d\n", o->exit_code);
	}

	append_files(b, o);
	append_state(b, o);
	if (is_shortened(r, o, max)) {
		end_line(b);
		buffer_append_str(b,
			"Output was shortened. Write it to a file in /workspace and page through it with read_file.\n");
	}

	if (o->status == CELL_RUNNING) {
		end_line(b);
		buffer_append_str(b,
			"The code waits in the main loop of its windows, which stay open. Look at them with screenshot, use them with "
			"computer, and run more code in this session: it runs inside that loop.\n");
	}

	if (!b->len && !has_pictures(o))
		buffer_append_str(b, "(no output)\n");
	if (!r->client || !r->client->python_tool) {
		end_line(b);
		buffer_printf(b, "session_id: %s", r->session);
	}
}

/* ---- pictures ------------------------------------------------------------------------------ */

/* Models take these types; SVG and HTML stay text. */
static const struct bundle_item *picture_of(const struct bundle *b)
{
	static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const struct bundle_item *item = form(b, types[i]);
		if (item)
			return item;
	}
	return NULL;
}

static void add_screenshot(struct mcp_gallery *g, const struct screenshot *s)
{
	if (s->data)
		mcp_gallery_add(g, s->data, s->len);
	else
		mcp_gallery_note(g, s->text ? s->text : "There is no screenshot.");
	if (s->data && s->no_window)
		mcp_gallery_note(g, "No window was open when the screenshot was taken.");
}

static void add_pictures(struct mcp_gallery *g, const struct observation *o)
{
	const struct bundle_item *item = picture_of(o->result);
	if (item)
		mcp_gallery_add_base64(g, item->data, item->len);
	for (unsigned i = 0; i < o->n_displays; i++)
		if ((item = picture_of(&o->displays[i])))
			mcp_gallery_add_base64(g, item->data, item->len);
	if (o->screenshot)
		add_screenshot(g, o->screenshot);
}

/* ---- structuredContent ---------------------------------------------------------------------- */

static void put_captured(
	struct json_writer *w, const char *key, const struct captured *c, size_t max)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	append_captured(&b, c, max);
	json_field_text(w, key, b.data ? b.data : "", b.len);
}

static void put_cut(
	struct json_writer *w, const char *key, const char *data, size_t len, size_t max)
{
	put_captured(w, key, &(struct captured){ .head = data, .head_len = len }, max);
}

static void put_error(
	const struct mcp_request *r, struct json_writer *w, const struct cell_error *e, size_t max)
{
	json_key(w, "error");
	if (!e) {
		json_put_null(w);
		return;
	}

	json_open_object(w);
	json_field_cstr(w, "type", e->type);
	put_cut(w, "message", e->message, e->message_len, max);
	put_cut(w, "traceback", e->traceback, is_shell(r) ? 0 : e->traceback_len, max);
	if (e->line)
		json_field_int(w, "line", e->line);
	else
		json_field_null(w, "line");
	json_field_cstr(w, "remediation", mcp_remedy(r, e->code, e->type, e->message, e->remedy));
	json_close(w);
}

static void put_files(struct json_writer *w, const struct observation *o, size_t max)
{
	enum { FILE_SHARE = 100 }; /* bytes for which a file counts */
	json_key(w, "files");
	json_open_array(w);
	for (unsigned i = 0; i < o->n_files && i < max / FILE_SHARE; i++) {
		json_open_object(w);
		json_field_text(w, "path", o->files[i].path, strlen(o->files[i].path));
		json_field_uint(w, "size", o->files[i].size);
		json_field_cstr(w, "change", changes[o->files[i].change]);
		json_close(w);
	}
	json_close(w);
}

static const char *status_of(const struct mcp_request *r, const struct observation *o)
{
	if (is_shell(r) && o->error && !error_of(r, o))
		return o->exit_code ? "error" : "ok";
	return cell_status_name(o->status);
}

static void write_structured(
	const struct mcp_request *r, const struct observation *o, struct buffer *b, size_t max)
{
	const struct bundle_item *value = form(o->result, "text/plain");
	struct json_writer w;

	json_writer_init(&w, b);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_cstr(&w, "status", status_of(r, o));
	json_field_int(&w, "exit_code", o->exit_code);
	put_captured(&w, "stdout", &o->out, max);
	put_captured(&w, "stderr", &o->err, max);
	if (value)
		put_cut(&w, "result", value->data, value->len, max);
	else
		json_field_null(&w, "result");
	if (o->answer)
		put_cut(&w, "final_answer", o->answer->data, o->answer->len, max);
	put_error(r, &w, error_of(r, o), max);
	put_files(&w, o, max);
	json_field_bool(&w, "state_lost", o->state_lost);
	json_field_bool(&w, "rolled_back", o->rolled_back);
	json_field_bool(&w, "truncated", is_shortened(r, o, max));
	json_close(&w);
}

/* ---- both, below their maximum ------------------------------------------------------ */

/*
 * Control characters become six bytes each in JSON: what is too long as JSON is written again,
 * shorter.
 */
static void fit_text(const struct mcp_request *r, const struct observation *o, struct buffer *b)
{
	for (size_t max = MCP_TEXT_MAX; max >= SHORTEST; max /= 2) {
		b->len = 0;
		write_text(r, o, b, max);
		if (mcp_json_fit(b->data, b->len, MCP_TEXT_JSON) == b->len)
			return;
	}
}

static void fit_structured(
	const struct mcp_request *r, const struct observation *o, struct buffer *b)
{
	for (size_t max = MCP_FIELD_MAX; max >= SHORTEST; max /= 2) {
		b->len = 0;
		write_structured(r, o, b, max);
		if (b->len <= MCP_STRUCTURED_JSON)
			return;
	}
}

void mcp_run_done(struct mcp_request *r, const struct observation *o)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct mcp_gallery *g = mcp_gallery_create();

	fit_text(r, o, &text);
	fit_structured(r, o, &structured);
	if (g)
		add_pictures(g, o);
	mcp_gallery_send(r, g, &text, &structured, failed(r, o));
}
