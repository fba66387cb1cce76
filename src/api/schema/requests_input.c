#include "api/schema/requests_input.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "display/client/keys.h"
#include "json/json_read.h"

enum { SCROLL_MAX = 100, SCROLL_CLICKS = 3, PATH_BYTES = 32 };

/* ---- tables --------------------------------------------------------------------------- */

static const char *const action_names[] = { "mouse_move", "left_click", "right_click",
	"middle_click", "double_click", "triple_click", "left_mouse_down", "left_mouse_up",
	"left_click_drag", "scroll", "key", "hold_key", "type", "wait", "screenshot", "zoom",
	"cursor_position", NULL };

enum need { NO, MAY, MUST };

/* In the order of the names. */
static const struct action_kind {
	enum input_kind kind;
	enum input_answer answer;
	unsigned button, count;
	/* text: to be typed; keys: text that names keys */
	enum need coordinate, start, text, keys, duration, region, scroll;
} kinds[] = {
	{ INPUT_MOVE, INPUT_ACTS, 0, 0, .coordinate = MUST },
	{ INPUT_CLICK, INPUT_ACTS, INPUT_LEFT, 1, .coordinate = MAY, .keys = MAY },
	{ INPUT_CLICK, INPUT_ACTS, INPUT_RIGHT, 1, .coordinate = MAY, .keys = MAY },
	{ INPUT_CLICK, INPUT_ACTS, INPUT_MIDDLE, 1, .coordinate = MAY, .keys = MAY },
	{ INPUT_CLICK, INPUT_ACTS, INPUT_LEFT, 2, .coordinate = MAY, .keys = MAY },
	{ INPUT_CLICK, INPUT_ACTS, INPUT_LEFT, 3, .coordinate = MAY, .keys = MAY },
	{ INPUT_DOWN, INPUT_ACTS, INPUT_LEFT, 0, .coordinate = MAY },
	{ INPUT_UP, INPUT_ACTS, INPUT_LEFT, 0, .coordinate = MAY },
	{ INPUT_DRAG, INPUT_ACTS, INPUT_LEFT, 0, .coordinate = MUST, .start = MAY, .keys = MAY },
	{ INPUT_CLICK, INPUT_ACTS, 0, 0, .coordinate = MAY, .keys = MAY, .scroll = MAY },
	{ INPUT_KEYS, INPUT_ACTS, 0, 0, .keys = MUST },
	{ INPUT_KEYS, INPUT_ACTS, 0, 0, .keys = MUST, .duration = MUST },
	{ INPUT_TYPE, INPUT_ACTS, 0, 0, .text = MUST },
	{ INPUT_WAIT, INPUT_ACTS, 0, 0, .duration = MUST },
	{ INPUT_NOTHING, INPUT_SHOWS, 0, 0 },
	{ INPUT_NOTHING, INPUT_SHOWS, 0, 0, .region = MUST },
	{ INPUT_NOTHING, INPUT_TELLS_POINTER, 0, 0 },
};
_Static_assert(ARRAY_LEN(kinds) + 1 == ARRAY_LEN(action_names), "a kind for each name");

static const char *const direction_names[] = { "up", "down", "left", "right", NULL };

struct action_request {
	bool has_action, has_direction;
	unsigned action, direction; /* indices of the names */
	json_t *coordinate, *start, *region;
	struct field_text text;
	uint64_t amount;
	double duration;
};

struct input_request {
	struct action_request one;
	json_t *actions;
	bool has_screenshot, has_settle, settle;
	struct screenshot_request screenshot;
};

#define ACTION_ROWS                                                                                                         \
	{ "action", FIELD_CHOICE, FIELD_HAS_FLAG,                                                                           \
		.offset = offsetof(struct action_request, action),                                                          \
		.flag_offset = offsetof(struct action_request, has_action),                                                 \
		.choices = action_names, .example = "\"left_click\"", .help = "The action." },                              \
		{ "coordinate", FIELD_LIST, .offset = offsetof(struct action_request, coordinate),                          \
			.max = 2, .example = "[512, 384]",                                                                  \
			.help = "[x, y] in pixels from the upper left; default: the position of the pointer." },            \
		{ "start_coordinate", FIELD_LIST,                                                                           \
			.offset = offsetof(struct action_request, start), .max = 2,                                         \
			.help = "Start position of left_click_drag." },                                                     \
		{ "text", FIELD_TEXT, .offset = offsetof(struct action_request, text), .min = 1,                            \
			.max = LIMIT_INPUT_TEXT, .example = "\"ctrl+s\"",                                                   \
			.help = "type: any text. key and hold_key: keys pressed together, such as Return or ctrl+shift+t. " \
				"Clicks, drags and scroll: keys held during the action." },                                 \
		{ "scroll_direction", FIELD_CHOICE, FIELD_HAS_FLAG,                                                         \
			.offset = offsetof(struct action_request, direction),                                               \
			.flag_offset = offsetof(struct action_request, has_direction),                                      \
			.choices = direction_names, .default_text = "down",                                                 \
			.help = "Direction of scroll." },                                                                   \
		{ "scroll_amount", FIELD_UINT, .offset = offsetof(struct action_request, amount),                           \
			.min = 1, .max = SCROLL_MAX, .default_text = "3",                                                   \
			.help = "Clicks of the wheel." },                                                                   \
		{ "duration", FIELD_NUMBER, .offset = offsetof(struct action_request, duration),                            \
			.min = 0.001, .max = LIMIT_INPUT_SECONDS,                                                           \
			.help = "Duration of wait and hold_key, in seconds." },                                             \
	{                                                                                                                   \
		"region", FIELD_LIST, .offset = offsetof(struct action_request, region), .max = 4,                          \
				      .example = "[0, 0, 400, 300]",                                                        \
				      .help = "Region of zoom: [x0, y0, x1, y1] in pixels."                                 \
	}

static const struct field action_table[] = { ACTION_ROWS };
static const struct fields action_fields = FIELDS("InputAction", action_table);

static const struct field input_table[] = {
	ACTION_ROWS, /* struct input_request begins with one */
	{ "actions", FIELD_LIST, .offset = offsetof(struct input_request, actions), .min = 1,
		.max = LIMIT_INPUT_ACTIONS,
		.help = "Several actions, performed in order, instead of the fields of one action." },
	{ "screenshot", FIELD_OBJECT, FIELD_HAS_FLAG | FIELD_OR_BOOL,
		.offset = offsetof(struct input_request, screenshot),
		.flag_offset = offsetof(struct input_request, has_screenshot),
		.object = &screenshot_fields, .default_text = "false",
		.help = "Take a screenshot when the screen has settled after the last action; true, or the options of `screenshot` in POST …/execute." },
	{ "settle", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct input_request, settle),
		.flag_offset = offsetof(struct input_request, has_settle), .default_text = "true",
		.help = "Answer when the screen has settled; false: as soon as the last action was performed." },
};
const struct fields input_fields = FIELDS("InputRequest", input_table);

/* ---- one action -------------------------------------------------------------------------- */

struct reading {
	const struct action_request *q;
	const char *path; /* "$" or "$.actions[3]" */
	unsigned width, height;
	struct error *e;
};

__attribute__((format(printf, 4, 5))) static int wrong(
	const struct reading *r, const char *slug, const char *field, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX / 2];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(r->e, -EINVAL, "%s.%s: %s", r->path, field, text);
	error_remedy(r->e, "Correct %s; /docs lists the actions and their fields.", field);
	return error_slug(r->e, slug);
}

static const char *name_of(const struct reading *r)
{
	return action_names[r->q->action];
}

static int check_need(
	const struct reading *r, enum need need, bool there, const char *field, const char *what)
{
	if (need == MUST && !there)
		return wrong(r, "missing_field", field, "%s needs it: %s", name_of(r), what);
	if (need == NO && there)
		return wrong(r, "invalid_field", field, "%s does not take it", name_of(r));
	return 0;
}

static int check_needs(const struct reading *r, const struct action_kind *k)
{
	const struct action_request *q = r->q;
	enum need text = k->text > k->keys ? k->text : k->keys;
	int e = check_need(r, k->coordinate, q->coordinate, "coordinate", "[x, y] in pixels");

	e = e < 0 ? e : check_need(r, k->start, q->start, "start_coordinate", "[x, y] in pixels");
	e = e < 0 ? e
		  : check_need(r, text, q->text.data, "text",
			    k->text ? "what to type"
				    : "the name of a key, such as Return or ctrl+s");
	e = e < 0 ? e : check_need(r, k->duration, q->duration > 0, "duration", "seconds");
	e = e < 0 ? e : check_need(r, k->region, q->region, "region", "[x0, y0, x1, y1] in pixels");
	e = e < 0 ? e
		  : check_need(r, k->scroll, q->has_direction, "scroll_direction",
			    "up, down, left or right");
	return e < 0 ? e : check_need(r, k->scroll, q->amount, "scroll_amount", "a number");
}

/* n numbers of a list, x and y in turns, each at most the screen's size (minus 1 for points). */
static int take_numbers(const struct reading *r, const char *field, const json_t *list, size_t n,
	unsigned beyond, int32_t *ret)
{
	char place[48];
	if (json_array_size(list) != n)
		return wrong(r, "invalid_field", field, "must be a list of %zu numbers, not of %zu",
			n, json_array_size(list));
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		unsigned most = (i % 2 ? r->height : r->width) - 1 + beyond;
		snprintf(place, sizeof(place), "%s[%zu]", field, i);
		if (!json_is_number(v))
			return wrong(r, "invalid_field", place, "must be a number of pixels");
		double d = json_number_value(v);
		if (!(d >= 0 && d <= most))
			return wrong(r, "invalid_field", place,
				"must be between 0 and %u: the screen has %ux%u pixels", most,
				r->width, r->height);
		ret[i] = (int32_t)d;
	}

	return 0;
}

static int take_keys(const struct reading *r, struct input_action *a)
{
	const char *bad = "";
	size_t len = 0;
	int n = keys_parse(r->q->text.data, a->keys, LIMIT_INPUT_KEYS, &bad, &len);
	if (n == -E2BIG)
		return wrong(r, "invalid_field", "text", "at most %d keys are pressed together",
			LIMIT_INPUT_KEYS);
	if (n < 0)
		return wrong(r, "invalid_field", "text",
			"there is no key of the name \"%.*s\"; names are those of X, such as Return, Escape, Page_Down, F5, ctrl+s",
			len > 40 ? 40 : (int)len, bad);
	a->n_keys = (uint32_t)n;
	return 0;
}

static void take_wheel(const struct action_request *q, struct input_action *a)
{
	static const unsigned buttons[] = { INPUT_WHEEL_UP, INPUT_WHEEL_DOWN, INPUT_WHEEL_LEFT,
		INPUT_WHEEL_RIGHT };
	a->button = q->has_direction ? buttons[q->direction] : INPUT_WHEEL_DOWN;
	a->count = q->amount ? (uint32_t)q->amount : SCROLL_CLICKS;
}

static int take_action(const struct reading *r, const struct action_kind *k, struct input_action *a)
{
	const struct action_request *q = r->q;
	int32_t point[2];
	int e = 0;

	*a = (struct input_action){ .kind = k->kind,
		.button = k->button,
		.count = k->count,
		.ms = (uint32_t)lround(q->duration * 1e3) };
	if (q->coordinate) {
		e = take_numbers(r, "coordinate", q->coordinate, 2, 0, point);
		a->has_point = e == 0;
		a->x = point[0];
		a->y = point[1];
	}

	if (e == 0 && q->start) {
		e = take_numbers(r, "start_coordinate", q->start, 2, 0, point);
		a->has_start = e == 0;
		a->start_x = point[0];
		a->start_y = point[1];
	}

	if (e == 0 && k->scroll)
		take_wheel(q, a);
	if (e == 0 && k->text) {
		a->text_len = (uint32_t)q->text.len;
		memcpy(a->text, q->text.data, q->text.len);
	} else if (e == 0 && q->text.data) {
		e = take_keys(r, a);
	}

	return e;
}

static int take_zoom(const struct reading *r, struct shot_options *o)
{
	int32_t box[4];
	int e = take_numbers(r, "region", r->q->region, 4, 1, box);
	if (e == 0 && (box[2] <= box[0] || box[3] <= box[1]))
		e = wrong(r, "invalid_field", "region",
			"must be [x0, y0, x1, y1] with x1 beyond x0 and y1 beyond y0");
	if (e < 0)
		return e;
	o->has_region = true;
	o->x = box[0];
	o->y = box[1];
	o->width = (uint32_t)(box[2] - box[0]);
	o->height = (uint32_t)(box[3] - box[1]);
	return 0;
}

static int read_step(const struct reading *r, struct input_step *ret)
{
	if (!r->q->has_action)
		return wrong(r, "missing_field", "action", "is required; `actions` takes several");
	const struct action_kind *k = &kinds[r->q->action];
	int e = check_needs(r, k);
	if (e < 0)
		return e;
	*ret = (struct input_step){ .name = name_of(r), .answer = k->answer };
	if (k->answer == INPUT_SHOWS) {
		ret->shot = (struct shot_options){ .settle = true };
		return k->region ? take_zoom(r, &ret->shot) : 0;
	}

	ret->action = malloc(sizeof(*ret->action));
	if (!ret->action)
		return error_set(r->e, -ENOMEM, "out of memory");
	e = take_action(r, k, ret->action);
	if (e < 0) {
		free(ret->action);
		ret->action = NULL;
	}

	return e;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* One of a list: what is wrong with it is said with its place. */
static int read_listed(struct reading *r, const json_t *v, size_t i, struct input_step *ret)
{
	char path[PATH_BYTES], text[ERROR_TEXT_MAX];
	struct action_request q = { 0 };

	snprintf(path, sizeof(path), "$.actions[%zu]", i);
	if (!json_is_object(v)) {
		error_set(r->e, -EINVAL, "%s: must be an object with `action`", path);
		return error_slug(r->e, "invalid_field");
	}

	int e = fields_decode(&action_fields, v, &q, r->e);
	if (e < 0 && r->e && r->e->text[0] == '$') {
		snprintf(text, sizeof(text), "%s%s", path, r->e->text + 1);
		snprintf(r->e->text, sizeof(r->e->text), "%s", text);
	}

	r->q = &q;
	r->path = path;
	if (e == 0)
		e = read_step(r, ret);
	fields_finish(&action_fields, &q);
	return e;
}

static int read_all(const struct input_request *q, struct reading *r, struct input_plan *p)
{
	size_t i;
	json_t *v;

	if (!q->actions) {
		r->q = &q->one;
		r->path = "$";
		int e = read_step(r, &p->step[0]);
		p->n = e == 0;
		return e;
	}

	if (q->one.has_action) {
		error_set(r->e, -EINVAL, "$.action: either one action or `actions`, not both");
		error_remedy(r->e, "Put the action into the list.");
		return error_slug(r->e, "invalid_field");
	}

	if (!json_array_size(q->actions)) {
		error_set(r->e, -EINVAL, "$.actions: must have at least one action");
		return error_slug(r->e, "invalid_field");
	}

	json_array_foreach(q->actions, i, v)
	{
		int e = read_listed(r, v, i, &p->step[p->n]);
		if (e < 0)
			return e;
		p->n++;
	}

	return 0;
}

int input_plan_create(const char *text, size_t len, unsigned width, unsigned height,
	struct error *e, struct input_plan **ret)
{
	struct input_request q = { 0 };
	struct input_plan *p = calloc(1, sizeof(*p));
	struct reading reading = { .width = width, .height = height, .e = e };

	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	int r = fields_decode_text(&input_fields, text, len, &q, e);
	if (r == 0)
		r = read_all(&q, &reading, p);
	screenshot_options(&q.screenshot, &p->shot);
	p->shot.settle = p->settle = !q.has_settle || q.settle;
	p->screenshot = q.has_screenshot;
	fields_finish(&input_fields, &q);
	if (r < 0) {
		input_plan_destroy(p);
		return r;
	}

	*ret = p;
	return 0;
}

void input_plan_destroy(struct input_plan *p)
{
	for (unsigned i = 0; p && i < p->n; i++)
		free(p->step[i].action);
	free(p);
}
