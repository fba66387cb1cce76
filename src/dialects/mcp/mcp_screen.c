/* Tools about a session's screen: a picture of it, and mouse and keyboard. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/schema/requests_input.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dialects/mcp/mcp.h"
#include "session/display/session_display.h"
#include "json/json_read.h"

enum { ANSWER_SECONDS = 15, JPEG_QUALITY = 80 };

/* Questions to the screen, one after another: the action, then a picture. */
struct look {
	struct input_plan *plan; /* NULL for a picture alone */
	struct shot_options shot;
	uint32_t question;
	bool smaller; /* the PNG was too large: now a JPEG */
	bool tells_pointer;
	double scale;                  /* pixels of the picture for each pixel of the screen */
	unsigned pointer_x, pointer_y; /* in pixels of the picture */
};

static void release_look(struct mcp_request *r)
{
	struct look *l = r->work;
	struct session *s;
	if (session_find(r->home->api->sessions, r->session, NULL, &s) == 0 && l->question)
		session_display_forget(s, l->question);
	sessions_display_forget(r->home->api->sessions, r);
	input_plan_destroy(l->plan);
	free(l);
	r->work = NULL;
}

static void ask(struct mcp_request *r, enum display_ask what, const void *options, size_t len,
	session_display_answer answer)
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

static void put_pointer(struct json_writer *w, const struct look *l)
{
	json_key(w, "coordinate");
	json_open_array(w);
	json_put_uint(w, l->pointer_x);
	json_put_uint(w, l->pointer_y);
	json_close(w);
}

static void answer_picture(
	struct mcp_request *r, const struct display_reply *reply, const struct buffer *base64)
{
	_cleanup_buffer_ struct buffer content = BUFFER_INIT(0), structured = BUFFER_INIT(0);
	static const char none[] = "No window is open on this screen.";
	const struct look *l = r->work;
	struct json_writer w;
	char pointer[64];
	int n = snprintf(pointer, sizeof(pointer), "The pointer is at [%u, %u].", l->pointer_x,
		l->pointer_y);

	json_writer_init(&w, &content);
	json_open_array(&w);
	mcp_put_image(&w, reply->info.format == SHOT_JPEG ? "image/jpeg" : "image/png",
		base64->data, base64->len);
	if (!reply->info.n_windows)
		mcp_put_text(&w, none, sizeof(none) - 1);
	if (l->tells_pointer)
		mcp_put_text(&w, pointer, (size_t)n);
	json_close(&w);

	json_writer_init(&w, &structured);
	json_open_object(&w);
	json_field_cstr(&w, "session_id", r->session);
	json_field_uint(&w, "width", reply->info.width);
	json_field_uint(&w, "height", reply->info.height);
	json_field_cstr(&w, "note", reply->info.n_windows ? NULL : none);
	if (l->tells_pointer)
		put_pointer(&w, l);
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
		mcp_tool_error(r, told ? reply->text : "the display returned an invalid response",
			told ? reply->remedy : "Try again.");
		return;
	}
	text_base64(&base64, reply->data, reply->len);
	if (base64.len > MCP_IMAGES_MAX && !l->smaller) {
		l->smaller = true;
		l->shot.format = SHOT_JPEG;
		l->shot.quality = JPEG_QUALITY;
		l->shot.settle = false;
		ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
		return;
	}
	answer_picture(r, reply, &base64);
}

/* Pixels of the picture for each pixel of a part of the screen. */
static double scale_to_fit(uint64_t width, uint64_t height)
{
	uint64_t side = width > height ? width : height;
	return side > MCP_IMAGE_SIDE ? (double)MCP_IMAGE_SIDE / (double)side : 1;
}

static double scale_of(const struct session_info *info)
{
	return scale_to_fit(info->display.width, info->display.height);
}

static struct look *look_create(struct mcp_request *r, const struct session_info *info)
{
	struct look *l = calloc(1, sizeof(*l));
	if (!l) {
		mcp_tool_error(r, "out of memory", "Try again later.");
		return NULL;
	}
	l->scale = scale_of(info);
	l->shot = (struct shot_options){ .settle = true, .scale = l->scale < 1 ? l->scale : 0 };
	r->work = l;
	r->release = release_look;
	return l;
}

static bool check_display(struct mcp_request *r, const struct session_info *info)
{
	if (!info->has_display)
		mcp_tool_error(r, "this session has no screen",
			"Leave session_id out of run_python to start a session with a screen.");
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
		mcp_tool_error(r, told ? reply->text : "the display returned an invalid response",
			told ? reply->remedy : "Try again.");
		return;
	}
	l->pointer_x = (unsigned)(INPUT_POINTER_X(reply->count) * l->scale);
	l->pointer_y = (unsigned)(INPUT_POINTER_Y(reply->count) * l->scale);
	ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
}

/* Coordinates come in pixels of the picture. */
static void scale_coordinate(json_t *action, const char *key, double scale)
{
	json_t *pair = json_object_get(action, key), *value;
	size_t i;
	json_array_foreach(
		pair, i, value) if (json_is_number(value) && fabs(json_number_value(value)) < 1e6)
		json_array_set_new(
			pair, i, json_integer((json_int_t)(json_number_value(value) / scale)));
}

/*
 * Arguments that the native request has beside them (a list of actions, for instance) are not this
 * tool's.
 */
static int check_names(const json_t *arguments, struct error *e)
{
	static const char *const known[] = { "session_id", "action", "coordinate",
		"start_coordinate", "text", "scroll_direction", "scroll_amount", "duration",
		"region" };

	for (void *at = json_object_iter((json_t *)arguments); at;
		at = json_object_iter_next((json_t *)arguments, at)) {
		size_t i = 0;
		while (i < ARRAY_LEN(known) && !text_eq(json_object_iter_key(at), known[i]))
			i++;
		if (i < ARRAY_LEN(known))
			continue;
		error_set(e, -EINVAL, "$.%.64s: unknown argument", json_object_iter_key(at));
		return error_remedy(e,
			"Known arguments: session_id, action, coordinate, start_coordinate, text, scroll_direction, scroll_amount, "
			"duration, region.");
	}

	return 0;
}

/* The arguments as the native API's input request. */
static int read_plan(struct mcp_request *r, const struct session_info *info,
	struct input_plan **ret, struct error *e)
{
	_cleanup_json_ json_t *action = json_deep_copy(json_object_get(r->params, "arguments"));
	_cleanup_free_ char *text = NULL;
	json_object_del(action, "session_id");
	scale_coordinate(action, "coordinate", scale_of(info));
	scale_coordinate(action, "start_coordinate", scale_of(info));
	scale_coordinate(action, "region", scale_of(info));
	text = action ? json_dumps(action, JSON_COMPACT) : NULL;
	if (!text)
		return error_set(e, -ENOMEM, "out of memory");
	return input_plan_create(text, strlen(text), (unsigned)info->display.width,
		(unsigned)info->display.height, e, ret);
}

/* The part of the screen that the action zoom names. */
static void zoom(struct look *l, const struct shot_options *part)
{
	double scale = scale_to_fit(part->width, part->height);
	l->shot.has_region = true;
	l->shot.x = part->x;
	l->shot.y = part->y;
	l->shot.width = part->width;
	l->shot.height = part->height;
	l->shot.scale = scale < 1 ? scale : 0;
}

void mcp_call_computer(struct mcp_request *r, struct session *s)
{
	struct error e = { 0 };
	struct session_info info;
	struct input_plan *plan = NULL;

	session_info(s, &info);
	if (!check_display(r, &info))
		return;
	if (check_names(json_object_get(r->params, "arguments"), &e) < 0 ||
		read_plan(r, &info, &plan, &e) < 0) {
		const char *remedy = mcp_remedy(r, e.slug, NULL, e.text, e.remedy);
		mcp_tool_error(r, e.text,
			*remedy ? remedy : "Correct the argument and call the tool again.");
		return;
	}

	struct look *l = look_create(r, &info);
	if (!l) {
		input_plan_destroy(plan);
		return;
	}

	l->plan = plan;
	const struct input_step *step = &plan->step[0];
	l->tells_pointer = step->answer == INPUT_TELLS_POINTER;
	if (step->answer == INPUT_SHOWS && step->shot.has_region)
		zoom(l, &step->shot);
	if (step->answer == INPUT_SHOWS)
		ask(r, DISPLAY_ASK_SHOT, &l->shot, sizeof(l->shot), on_picture);
	else
		ask(r, DISPLAY_ASK_INPUT, step->action, input_action_bytes(step->action), on_acted);
}
