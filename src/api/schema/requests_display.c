#include "api/schema/requests_display.h"

#include "api/handlers/live_links.h"
#include "base/limits.h"
#include "base/text.h"
#include "display/protocol.h"

const char *const on_block_names[] = { "auto", "close", "wait", "leave", NULL };

/* In the order of enum shot_format. */
static const char *const format_names[] = { "png", "jpeg", NULL };

static const struct field display_table[] = {
	{ "width", FIELD_UINT, .offset = offsetof(struct display_params, width), .min = 64,
		.max = LIMIT_DISPLAY_SIDE, .default_text = "1024", .example = "1280",
		.help = "Pixels." },
	{ "height", FIELD_UINT, .offset = offsetof(struct display_params, height), .min = 64,
		.max = LIMIT_DISPLAY_SIDE, .default_text = "768", .example = "800",
		.help = "Pixels." },
	{ "depth", FIELD_UINT, .offset = offsetof(struct display_params, depth), .min = 16,
		.max = 24, .default_text = "24", .help = "Bits per pixel: 16 or 24." },
	{ "dpi", FIELD_UINT, .offset = offsetof(struct display_params, dpi), .min = 48, .max = 384,
		.default_text = "96", .help = "Pixels per inch, as reported to programs." },
};
const struct fields display_fields = FIELDS("Display", display_table);

#define REGION(member)                                       \
	offsetof(struct screenshot_request, region.member) - \
		offsetof(struct screenshot_request, region)
static const struct field region_table[] = {
	{ "x", FIELD_UINT, FIELD_REQUIRED, .offset = REGION(x), .max = LIMIT_DISPLAY_SIDE,
		.help = "Left edge, in pixels." },
	{ "y", FIELD_UINT, FIELD_REQUIRED, .offset = REGION(y), .max = LIMIT_DISPLAY_SIDE,
		.help = "Upper edge, in pixels." },
	{ "width", FIELD_UINT, FIELD_REQUIRED, .offset = REGION(width), .min = 1,
		.max = LIMIT_DISPLAY_SIDE },
	{ "height", FIELD_UINT, FIELD_REQUIRED, .offset = REGION(height), .min = 1,
		.max = LIMIT_DISPLAY_SIDE },
};
static const struct fields region_fields = FIELDS("Region", region_table);

#define WAIT(member) \
	offsetof(struct screenshot_request, wait.member) - offsetof(struct screenshot_request, wait)
static const struct field wait_table[] = {
	{ "settle_ms", FIELD_UINT, .offset = WAIT(settle_ms), .min = 1, .max = 60000,
		.default_text = "80",
		.help = "The screen has settled when nothing was painted for this long; programs that wait for events settle sooner." },
	{ "max_ms", FIELD_UINT, .offset = WAIT(max_ms), .min = 1, .max = 600000,
		.default_text = "3000",
		.help = "A screen that still changes this long after the first window is captured as it is, with settled false." },
};
static const struct fields wait_fields = FIELDS("ScreenshotWait", wait_table);

#define SHOT_ROWS(base)                                                                                      \
	{                                                                                                    \
		"window", FIELD_UINT,                                                                        \
		.offset = (base) + offsetof(struct screenshot_request, window), .min = 1,                    \
		.max = 4294967295.0,                                                                         \
		.help = "Only this window (id from GET …/windows), including the parts that others cover." \
	},                                                                                                   \
		{ "active_window", FIELD_BOOL,                                                               \
			.offset = (base) + offsetof(struct screenshot_request, active_window),               \
			.default_text = "false", .help = "Only the window that has the focus." },            \
		{ "scale", FIELD_NUMBER,                                                                     \
			.offset = (base) + offsetof(struct screenshot_request, scale),                       \
			.min = 0.02, .max = 1, .default_text = "1", .example = "0.5",                        \
			.help = "Scale the image by this factor." },                                         \
	{                                                                                                    \
		"quality", FIELD_UINT,                                                                       \
			.offset = (base) + offsetof(struct screenshot_request, quality), .min = 1,           \
			.max = 100, .default_text = "85", .help = "Quality of a JPEG image."                 \
	}

static const struct field screenshot_table[] = {
	SHOT_ROWS(0),
	{ "region", FIELD_OBJECT, FIELD_HAS_FLAG,
		.offset = offsetof(struct screenshot_request, region),
		.flag_offset = offsetof(struct screenshot_request, has_region),
		.object = &region_fields,
		.example = "{\"x\":0,\"y\":0,\"width\":400,\"height\":300}",
		.help = "Only this part of the screen." },
	{ "format", FIELD_CHOICE, .offset = offsetof(struct screenshot_request, format),
		.choices = format_names, .default_text = "png",
		.help = "Format of the image file." },
	{ "wait", FIELD_OBJECT, .offset = offsetof(struct screenshot_request, wait),
		.object = &wait_fields, .help = "How long to wait for the screen to settle." },
	{ "render_timeout", FIELD_NUMBER, FIELD_HAS_FLAG,
		.offset = offsetof(struct screenshot_request, render_timeout),
		.flag_offset = offsetof(struct screenshot_request, has_render_timeout),
		.max = LIMIT_RENDER_SECONDS, .default_text = "0.5",
		.help = "The same as the field render_timeout of the request." },
	{ "end", FIELD_BOOL, .offset = offsetof(struct screenshot_request, end),
		.default_text = "false",
		.help = "Take another screenshot when the cell has ended, also after an error: screenshot.end." },
};
const struct fields screenshot_fields = FIELDS("Screenshot", screenshot_table);

#define QUERY offsetof(struct screenshot_query, shot)
static const struct field screenshot_query_table[] = {
	SHOT_ROWS(QUERY),
	{ "format", FIELD_WORD, .offset = offsetof(struct screenshot_query, format), .max = 8,
		.choices = format_names, .default_text = "png",
		.help = "Format of the image file." },
	{ "x", FIELD_UINT, FIELD_HAS_FLAG,
		.offset = QUERY + offsetof(struct screenshot_request, region.x),
		.flag_offset = QUERY + offsetof(struct screenshot_request, has_region),
		.max = LIMIT_DISPLAY_SIDE,
		.help = "Left edge, to capture only a part of the screen." },
	{ "y", FIELD_UINT, FIELD_HAS_FLAG,
		.offset = QUERY + offsetof(struct screenshot_request, region.y),
		.flag_offset = QUERY + offsetof(struct screenshot_request, has_region),
		.max = LIMIT_DISPLAY_SIDE, .help = "Upper edge of the part." },
	{ "width", FIELD_UINT, FIELD_HAS_FLAG,
		.offset = QUERY + offsetof(struct screenshot_request, region.width),
		.flag_offset = QUERY + offsetof(struct screenshot_request, has_region), .min = 1,
		.max = LIMIT_DISPLAY_SIDE, .help = "Width of the part." },
	{ "height", FIELD_UINT, FIELD_HAS_FLAG,
		.offset = QUERY + offsetof(struct screenshot_request, region.height),
		.flag_offset = QUERY + offsetof(struct screenshot_request, has_region), .min = 1,
		.max = LIMIT_DISPLAY_SIDE, .help = "Height of the part." },
	{ "settle", FIELD_BOOL, .offset = offsetof(struct screenshot_query, settle),
		.default_text = "false",
		.help = "Wait until the screen has settled. Between cells, toolkits paint their windows first." },
	{ "settle_ms", FIELD_UINT,
		.offset = QUERY + offsetof(struct screenshot_request, wait.settle_ms), .min = 1,
		.max = 60000, .default_text = "80", .help = "As in screenshot.wait." },
	{ "max_ms", FIELD_UINT, .offset = QUERY + offsetof(struct screenshot_request, wait.max_ms),
		.min = 1, .max = 600000, .default_text = "3000", .help = "As in screenshot.wait." },
};
const struct fields screenshot_query_fields = FIELDS("ScreenshotQuery", screenshot_query_table);

#define RECORD_ROWS(base)                                                                                     \
	{                                                                                                     \
		"fps", FIELD_UINT, .offset = (base) + offsetof(struct recording_params, fps),                 \
		.min = 1, .max = 60, .default_text = "10",                                                    \
		.help = "Maximum number of frames per second; frames are taken only when the screen changes." \
	},                                                                                                    \
		{ "format", FIELD_CHOICE,                                                                     \
			.offset = (base) + offsetof(struct recording_params, format),                         \
			.choices = film_names, .default_text = "apng", .example = "\"webm\"",                 \
			.help = "Default format of the fetched file: apng; webm, mp4 and gif need ffmpeg." }, \
	{                                                                                                     \
		"max_seconds", FIELD_NUMBER,                                                                  \
			.offset = (base) + offsetof(struct recording_params, max_seconds),                    \
			.min = 0.1, .max = LIMIT_RECORDING_SECONDS, .default_text = "600",                    \
			.help = "The recording stops after this many seconds."                                \
	}

static const struct field record_table[] = { RECORD_ROWS(0) };
const struct fields record_fields = FIELDS("Record", record_table);

static const char *const recording_actions[] = { "start", "stop", NULL };

static const struct field recording_table[] = {
	{ "action", FIELD_CHOICE, FIELD_REQUIRED,
		.offset = offsetof(struct recording_request, action), .choices = recording_actions,
		.example = "\"start\"", .help = "Start or stop a recording." },
	{ "id", FIELD_UINT, .offset = offsetof(struct recording_request, id), .min = 1,
		.max = 4294967295.0, .default_text = "the newest",
		.help = "Id of the recording to stop." },
	RECORD_ROWS(offsetof(struct recording_request, params)),
};
const struct fields recording_fields = FIELDS("RecordingRequest", recording_table);

static const struct field film_query_table[] = {
	{ "format", FIELD_WORD, .offset = offsetof(struct film_query, format), .max = 8,
		.choices = film_names, .default_text = "the recording's own", .example = "\"webm\"",
		.help = "apng, webm, mp4 or gif." },
};
const struct fields film_query_fields = FIELDS("FilmQuery", film_query_table);

static const struct field live_query_table[] = {
	{ "control", FIELD_UINT, .offset = offsetof(struct live_query, control), .max = 1,
		.default_text = "0",
		.help = "1: the page sends mouse and keyboard input to POST …/input." },
	{ "key", FIELD_WORD, .offset = offsetof(struct live_query, key), .max = LIVE_KEY_LEN,
		.help = "The key of a link created by POST …/live." },
};
const struct fields live_query_fields = FIELDS("LiveQuery", live_query_table);

static const struct field key_query_table[] = {
	{ "key", FIELD_WORD, .offset = offsetof(struct live_query, key), .max = LIVE_KEY_LEN,
		.help = "The key of a link created by POST …/live." },
};
const struct fields key_query_fields = FIELDS("LiveKeyQuery", key_query_table);

static const struct field live_link_table[] = {
	{ "control", FIELD_BOOL, .offset = offsetof(struct live_link_request, control),
		.default_text = "false",
		.help = "Everyone who has the link may use mouse and keyboard." },
	{ "ttl_s", FIELD_NUMBER, .offset = offsetof(struct live_link_request, ttl_s), .min = 1,
		.max = 86400 * 30.0, .default_text = "3600",
		.help = "Seconds until the link expires." },
};
const struct fields live_link_fields = FIELDS("LiveLinkRequest", live_link_table);

static const struct field share_table[] = {
	{ "ttl_s", FIELD_NUMBER, .offset = offsetof(struct share_request, ttl_s), .min = 1,
		.max = 86400 * 30.0, .default_text = "3600",
		.help = "Seconds until the link expires." },
};
const struct fields share_fields = FIELDS("ShareRequest", share_table);

uint32_t render_ms_of(double seconds)
{
	return seconds >= 0.001 ? (uint32_t)(seconds * 1000) : 1; /* 0 is the default */
}

void screenshot_options(const struct screenshot_request *q, struct shot_options *ret)
{
	*ret = (struct shot_options){ .window = (uint32_t)q->window,
		.active = q->active_window,
		.has_region = q->has_region,
		.x = (int32_t)q->region.x,
		.y = (int32_t)q->region.y,
		.width = q->region.width ? (uint32_t)q->region.width : LIMIT_DISPLAY_SIDE,
		.height = q->region.height ? (uint32_t)q->region.height : LIMIT_DISPLAY_SIDE,
		.scale = q->scale,
		.format = q->format,
		.quality = (uint32_t)q->quality,
		.settle_ms = (uint32_t)q->wait.settle_ms,
		.max_ms = (uint32_t)q->wait.max_ms,
		.render_ms = q->has_render_timeout ? render_ms_of(q->render_timeout) : 0 };
}
