/* Tools about a session's screen: a picture of it, and mouse and keyboard. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "dialects/mcp/mcp.h"
#include "api/schema/requests_input.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "json/json_read.h"
#include "session/display/session_display.h"

enum { ANSWER_SECONDS = 15, JPEG_QUALITY = 80 };

/* Questions to the screen, one after another: the action, then a picture. */
struct look {
	struct input_plan *plan; /* NULL for a picture alone */
	struct shot_options shot;
	uint32_t question;
	bool smaller; /* the PNG was too large: now a JPEG */
};

static void release_look(struct mcp_request *r)
{
	struct look *l = r->work;
	struct session *s;
	if (session_find(r->home->api->sessions, r->session, NULL, &s) == 0 && l->question)
		session_display_forget(s, l->question);
	input_plan_destroy(l->plan);
	free(l);
	r->work = NULL;
}

static void ask(struct mcp_request *r, enum display_ask what, const void *options, size_t len, session_display_answer answer)
{
	struct look *l = r->work;
	struct error e = { 0 };
	struct session *s;
	int64_t q = api_session(r->home->api, r->session, r->owner, &e, &s);
	if (q == 0)
		q = session_display_ask(s, what, options, len, ANSWER_SECONDS, answer, r, &e);
	if (q < 0)
		mcp_tool_error_of(r, &e);
	else
		l->question = (uint32_t)q;
}

/* ---- the picture -------------------------------------------------------------------------- */

static void answer_picture(struct mcp_request *r, const struct display_reply *reply, const struct buffer *base64)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	static const char none[] = "No window is open on this screen.";
	struct json_writer w;

	json_writer_init(&w, &content);
	json_open_array(&w);
	mcp_put_image(&w, reply->info.format == SHOT_JPEG ? "image/jpeg" : "image/png", base64->data, base64->len);
	if (!reply->info.n_windows)
		mcp_put_text(&w, none, sizeof(none) - 1);
	json_close(&w);

	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_uint(&w, "width", reply->info.width);
	json_field_uint(&w, "height", reply->info.height);
	json_field_cstr(&w, "note", reply->info.n_windows ? NULL : none);
	json_field_null(&w, "error");
	json_close(&w);
	mcp_send_result(r, &content, &structured, false);
}

static void on_picture(void *userdata, const struct display_reply *reply)
{
	struct mcp_request *r = userdata;
	struct look *l = r->work;
	_cleanup_buffer_ struct buffer base64 = BUFFER_INIT(0);

	l->question = 0;
	if (reply->type != DISPLAY_SAY_PICTURE || !reply->data) {
		bool told = reply->type == DISPLAY_SAY_TROUBLE;
		mcp_tool_error(r, told ? reply->text : "the display returned an invalid response", told ? reply->remedy : "Try again.");
		return;
	}
	text_base64(&base64, reply->data, reply->len);
	if (base64.len > MCP_IMAGE_MAX && !l->smaller) {
		l->smaller = true;
		l->shot.format = SHOT_JPEG;
		l->shot.quality = JPEG_QUALITY;
		l->shot.settle = false;
		ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
		return;
	}
	answer_picture(r, reply, &base64);
}

/* Pixels of the picture for each pixel of the screen. */
static double scale_of(const struct session_info *info)
{
	uint64_t side = info->display.width > info->display.height ? info->display.width : info->display.height;
	return side > MCP_IMAGE_SIDE ? (double)MCP_IMAGE_SIDE / (double)side : 1;
}

static struct look *look_create(struct mcp_request *r, const struct session_info *info)
{
	struct look *l = calloc(1, sizeof(*l));
	if (!l) {
		mcp_tool_error(r, "the server is out of memory", "Try again later.");
		return NULL;
	}
	double scale = scale_of(info);
	l->shot = (struct shot_options){ .settle = true, .scale = scale < 1 ? scale : 0 };
	r->work = l;
	r->release = release_look;
	return l;
}

static bool check_display(struct mcp_request *r, const struct session_info *info)
{
	if (!info->has_display)
		mcp_tool_error(r, "this session has no screen", "Leave session_id out of run_python to start a session with a screen.");
	return info->has_display;
}

void mcp_call_screenshot(struct mcp_request *r, struct session *s)
{
	struct session_info info;
	session_info(s, &info);
	if (!check_display(r, &info))
		return;
	struct look *l = look_create(r, &info);
	if (!l)
		return;
	l->shot.window = (uint32_t)r->arguments->window;
	ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
}

/* ---- mouse and keyboard --------------------------------------------------------------------- */

static void on_acted(void *userdata, const struct display_reply *reply)
{
	struct mcp_request *r = userdata;
	struct look *l = r->work;
	l->question = 0;
	if (reply->type != DISPLAY_SAY_DONE) {
		bool told = reply->type == DISPLAY_SAY_TROUBLE;
		mcp_tool_error(r, told ? reply->text : "the display returned an invalid response", told ? reply->remedy : "Try again.");
		return;
	}
	ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
}

/* Coordinates come in pixels of the picture. */
static void scale_coordinate(json_t *action, const char *key, double scale)
{
	json_t *pair = json_object_get(action, key), *value;
	size_t i;
	json_array_foreach (pair, i, value)
		if (json_is_number(value) && fabs(json_number_value(value)) < 1e6)
			json_array_set_new(pair, i, json_integer((json_int_t)(json_number_value(value) / scale)));
}

/* The arguments as the native API's input request. */
static int read_plan(struct mcp_request *r, const struct session_info *info, struct input_plan **ret, struct error *e)
{
	_cleanup_json_ json_t *action = json_deep_copy(json_object_get(r->params, "arguments"));
	_cleanup_free_ char *text = NULL;
	json_object_del(action, "session_id");
	scale_coordinate(action, "coordinate", scale_of(info));
	scale_coordinate(action, "start_coordinate", scale_of(info));
	text = action ? json_dumps(action, JSON_COMPACT) : NULL;
	if (!text)
		return error_set(e, -ENOMEM, "the server is out of memory");
	return input_plan_create(text, strlen(text), (unsigned)info->display.width, (unsigned)info->display.height, e, ret);
}

void mcp_call_computer(struct mcp_request *r, struct session *s)
{
	struct error e = { 0 };
	struct session_info info;
	struct input_plan *plan = NULL;

	session_info(s, &info);
	if (!check_display(r, &info))
		return;
	if (read_plan(r, &info, &plan, &e) < 0) {
		mcp_tool_error(r, e.text, e.remedy);
		return;
	}
	struct look *l = look_create(r, &info);
	if (!l) {
		input_plan_destroy(plan);
		return;
	}
	l->plan = plan;
	const struct input_step *step = &plan->step[0];
	if (step->answer == INPUT_SHOWS)
		ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
	else
		ask(r, DISPLAY_ASK_INPUT, step->action, input_action_bytes(step->action), on_acted);
}
