/* The observation of a cell as the result of a tool: a text that stands alone, pictures, and the same facts as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/answers.h"
#include "dialects/mcp/mcp.h"
#include "base/cleanup.h"
#include "base/text.h"

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

/* At most `max` bytes: the head and the tail, and how many bytes are missing between them. */
static void append_captured(struct buffer *b, const struct captured *c, size_t max)
{
	size_t head = c->head_len, tail = c->tail_len;
	uint64_t missing = c->left_out;

	if (head + tail > max) {
		size_t keep_head = head < max / 2 ? head : max / 2;
		size_t keep_tail = tail < max - keep_head ? tail : max - keep_head;
		if (!tail) { /* all in one piece: split it */
			keep_tail = max - keep_head;
			missing += head - keep_head - keep_tail;
			buffer_append(b, c->head, keep_head);
			buffer_printf(b, "\n… %" PRIu64 " bytes left out …\n", missing);
			buffer_append(b, c->head + head - keep_tail, keep_tail);
			return;
		}
		missing += head + tail - keep_head - keep_tail;
		buffer_append(b, c->head, keep_head);
		buffer_printf(b, "\n… %" PRIu64 " bytes left out …\n", missing);
		buffer_append(b, c->tail + tail - keep_tail, keep_tail);
		return;
	}
	buffer_append(b, c->head, head);
	if (missing)
		buffer_printf(b, "\n… %" PRIu64 " bytes left out …\n", missing);
	buffer_append(b, c->tail, tail);
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

static void append_stream(struct buffer *b, const char *title, const struct captured *c)
{
	if (!c->head_len && !c->tail_len)
		return;
	end_line(b);
	if (title)
		buffer_printf(b, "%s:\n", title);
	append_captured(b, c, MCP_TEXT_MAX);
}

static void append_error(struct buffer *b, const struct cell_error *e)
{
	end_line(b);
	buffer_append(b, e->traceback, e->traceback_len);
	end_line(b);
	if (!memmem(e->traceback, e->traceback_len, e->message, e->message_len)) {
		buffer_printf(b, "%s: ", e->type);
		buffer_append(b, e->message, e->message_len);
		end_line(b);
	}
	if (*e->remedy)
		buffer_printf(b, "%s\n", e->remedy);
}

static const char *const changes[] = { [FILE_CREATED] = "created", [FILE_MODIFIED] = "modified", [FILE_DELETED] = "deleted" };

static void append_files(struct buffer *b, const struct observation *o)
{
	enum { SHOWN = 40 };
	if (!o->n_files)
		return;
	end_line(b);
	buffer_append_str(b, "files:");
	for (unsigned i = 0; i < o->n_files && i < SHOWN; i++)
		buffer_printf(b, "%s %s (%" PRIu64 " B, %s)", i ? "," : "", o->files[i].path, o->files[i].size, changes[o->files[i].change]);
	if (o->n_files > SHOWN || o->files_cut)
		buffer_append_str(b, ", … (list_files names all)");
	buffer_append_char(b, '\n');
}

static void append_state(struct buffer *b, const struct observation *o)
{
	end_line(b);
	if (o->died)
		buffer_printf(b, "The interpreter died before this call: %s.\n", o->died->why);
	if (o->files_lost)
		buffer_append_str(b, "The sandbox was restarted: all variables and files are gone.\n");
	else if (o->state_lost)
		buffer_append_str(b, "The interpreter was restarted: all variables are gone.\n");
	else if (o->rolled_back)
		buffer_printf(b, "The session was rolled back: variables are as after cell %u.\n", o->rolled_back_to);
}

static void write_text(const struct mcp_request *r, const struct observation *o, struct buffer *b)
{
	const struct bundle_item *value = form(o->result, "text/plain");
	const struct cell_error *e = error_of(r, o);

	append_stream(b, NULL, &o->out);
	append_stream(b, "stderr", &o->err);
	if (value) {
		end_line(b);
		buffer_append_str(b, "result: ");
		buffer_append(b, value->data, value->len < MCP_TEXT_MAX ? value->len : MCP_TEXT_MAX);
	}
	if (e)
		append_error(b, e);
	if (is_shell(r) && o->exit_code) {
		end_line(b);
		buffer_printf(b, "exit code: %d\n", o->exit_code);
	}
	append_files(b, o);
	append_state(b, o);
	if (is_cut(&o->out, MCP_TEXT_MAX) || is_cut(&o->err, MCP_TEXT_MAX)) {
		end_line(b);
		buffer_append_str(b, "Output was shortened. Write it to a file in /workspace and page through it with read_file.\n");
	}
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

static void put_note(struct json_writer *w, const char *text)
{
	mcp_put_text(w, text, strlen(text));
}

static void put_picture(struct json_writer *w, const struct bundle_item *item, unsigned *n)
{
	char text[160];
	if (*n >= MCP_RESULT_IMAGES)
		return;
	(*n)++;
	if (item->len > MCP_IMAGE_MAX) {
		snprintf(text, sizeof(text), "A picture of %zu kB was left out. Draw it with a smaller figsize or dpi.", item->len * 3 / 4 / 1000);
		put_note(w, text);
		return;
	}
	mcp_put_image(w, item->mime, item->data, item->len);
}

static void put_screenshot(struct json_writer *w, const struct screenshot *s)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (!s->data) {
		put_note(w, s->text ? s->text : "There is no screenshot.");
		return;
	}
	if (text_base64(&b, s->data, s->len) == 0 && b.len <= MCP_IMAGE_MAX)
		mcp_put_image(w, s->info.format == SHOT_JPEG ? "image/jpeg" : "image/png", b.data, b.len);
	else
		put_note(w, "The screenshot was too large and was left out.");
	if (s->no_window)
		put_note(w, "No window was open when the screenshot was taken.");
}

static void put_pictures(struct json_writer *w, const struct observation *o)
{
	const struct bundle_item *item = picture_of(o->result);
	unsigned n = 0;
	if (item)
		put_picture(w, item, &n);
	for (unsigned i = 0; i < o->n_displays; i++)
		if ((item = picture_of(&o->displays[i])))
			put_picture(w, item, &n);
	if (o->screenshot)
		put_screenshot(w, o->screenshot);
}

/* ---- structuredContent ---------------------------------------------------------------------- */

static void put_captured(struct json_writer *w, const char *key, const struct captured *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	append_captured(&b, c, MCP_FIELD_MAX);
	json_field_text(w, key, b.data ? b.data : "", b.len);
}

static void put_error(struct json_writer *w, const struct cell_error *e)
{
	json_key(w, "error");
	if (!e) {
		json_put_null(w);
		return;
	}
	json_open_object(w);
	json_field_cstr(w, "type", e->type);
	json_field_text(w, "message", e->message, e->message_len);
	json_field_text(w, "traceback", e->traceback, e->traceback_len);
	if (e->line)
		json_field_int(w, "line", e->line);
	else
		json_field_null(w, "line");
	json_field_cstr(w, "remediation", e->remedy);
	json_close(w);
}

static void put_files(struct json_writer *w, const struct observation *o)
{
	json_key(w, "files");
	json_open_array(w);
	for (unsigned i = 0; i < o->n_files; i++) {
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

static void write_structured(const struct mcp_request *r, const struct observation *o, struct buffer *b)
{
	const struct bundle_item *value = form(o->result, "text/plain");
	struct json_writer w;

	json_writer_init(&w, b);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_cstr(&w, "status", status_of(r, o));
	json_field_int(&w, "exit_code", o->exit_code);
	put_captured(&w, "stdout", &o->out);
	put_captured(&w, "stderr", &o->err);
	if (value)
		json_field_text(&w, "result", value->data, value->len < MCP_FIELD_MAX ? value->len : MCP_FIELD_MAX);
	else
		json_field_null(&w, "result");
	put_error(&w, error_of(r, o));
	put_files(&w, o);
	json_field_bool(&w, "state_lost", o->state_lost);
	json_field_bool(&w, "rolled_back", o->rolled_back);
	json_field_bool(&w, "truncated", is_cut(&o->out, MCP_FIELD_MAX) || is_cut(&o->err, MCP_FIELD_MAX));
	json_close(&w);
}

void mcp_run_done(struct mcp_request *r, const struct observation *o)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0), content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	struct json_writer w;

	write_text(r, o, &text);
	json_writer_init(&w, &content);
	json_open_array(&w);
	mcp_put_text(&w, text.data ? text.data : "", text.len);
	put_pictures(&w, o);
	json_close(&w);
	write_structured(r, o, &structured);
	mcp_send_result(r, &content, &structured, failed(r, o));
}
