/*
 * Requests about displays: the structs into which they are decoded, and rows for the tables of
 * requests.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/schema/fields.h"
#include "session/session.h"

struct screenshot_request {
	uint64_t window;
	bool active_window, has_region, end, has_render_timeout;
	struct {
		uint64_t x, y, width, height;
	} region;
	double scale;
	enum shot_format format;
	uint64_t quality;
	struct {
		uint64_t settle_ms, max_ms;
	} wait;
	double render_timeout;
};

/* GET …/screenshot: the same as words of a query. */
struct screenshot_query {
	struct screenshot_request shot;
	char *format;
	bool settle;
};

/* POST …/recording */
enum recording_action { RECORDING_START, RECORDING_STOP };

struct recording_request {
	enum recording_action action;
	uint64_t id;
	struct recording_params params;
};

/* GET …/recording/{id} */
struct film_query {
	char *format;
};

/* GET …/live */
struct live_query {
	uint64_t control;
	char *key; /* looked at before */
};

/* POST …/live */
struct live_link_request {
	bool control;
	double ttl_s; /* 0: an hour */
};

/* POST …/share */
struct share_request {
	double ttl_s; /* 0: an hour */
};

extern const struct fields share_fields;            /* struct share_request */
extern const struct fields film_query_fields;       /* struct film_query */
extern const struct fields key_query_fields;        /* struct live_query: its key alone */
extern const struct fields live_link_fields;        /* struct live_link_request */
extern const struct fields live_query_fields;       /* struct live_query */
extern const struct fields recording_fields;        /* struct recording_request */
extern const struct fields record_fields;           /* struct recording_params */
extern const struct fields display_fields;          /* struct display_params */
extern const struct fields screenshot_fields;       /* struct screenshot_request */
extern const struct fields screenshot_query_fields; /* struct screenshot_query */

extern const char *const on_block_names[]; /* in the order of enum on_block, NULL at the end */

/* What the screen is asked for. */
void screenshot_options(const struct screenshot_request *q, struct shot_options *ret);
uint32_t render_ms_of(double seconds); /* of a request that names it */

#define DISPLAY_ROW(base)                                                                                                      \
	{                                                                                                                      \
		"display", FIELD_OBJECT, FIELD_HAS_FLAG | FIELD_OR_BOOL,                                                       \
			.offset = (base) + offsetof(struct session_params, display),                                           \
			.flag_offset = (base) + offsetof(struct session_params, has_display),                                  \
			.object = &display_fields, .default_text = "false", .example = "true",                                 \
			.help = "A screen of its own for windows: true, or its size. It starts when something connects to it." \
	}

#define SCREENSHOT_ROWS(base)                                                                                                   \
	{                                                                                                                       \
		"capture_screenshot", FIELD_BOOL,                                                                               \
		.offset = (base) + offsetof(struct execute_request, capture_screenshot),                                        \
		.default_text = "false",                                                                                        \
		.help = "A picture of the session's screen while the code runs, when its windows have settled."                 \
	},                                                                                                                      \
		{ "screenshot", FIELD_OBJECT, FIELD_HAS_FLAG | FIELD_OR_BOOL,                                                   \
			.offset = (base) + offsetof(struct execute_request, screenshot),                                        \
			.flag_offset = (base) + offsetof(struct execute_request, has_screenshot),                               \
			.object = &screenshot_fields, .default_text = "false",                                                  \
			.example = "{\"format\":\"jpeg\",\"scale\":0.5}",                                                       \
			.help = "The same, with options." },                                                                    \
		{ "render_timeout", FIELD_NUMBER, FIELD_HAS_FLAG,                                                               \
			.offset = (base) + offsetof(struct execute_request, render_timeout),                                    \
			.flag_offset = (base) +                                                                                 \
				       offsetof(struct execute_request, has_render_timeout),                                    \
			.max = LIMIT_RENDER_SECONDS, .default_text = "0.5", .example = "2",                                     \
			.help = "With a screenshot: seconds that the windows may take to be painted after the code has ended, " \
				"while its process is kept alive." },                                                           \
	{                                                                                                                       \
		"on_block", FIELD_CHOICE,                                                                                       \
			.offset = (base) + offsetof(struct execute_request, on_block),                                          \
			.choices = on_block_names, .default_text = "auto",                                                      \
			.help = "What happens to code that waits in a main loop after its window has settled: "                 \
				"close asks its windows to close, so that the loop returns and the cell "                       \
				"ends; wait lets it wait; leave ends the cell with status running, and later "                  \
				"cells run inside its loop; auto closes when a screenshot was asked for."                       \
	}

#define RECORD_ROW(base)                                                                                             \
	{                                                                                                            \
		"record", FIELD_OBJECT, FIELD_HAS_FLAG | FIELD_OR_BOOL,                                              \
			.offset = (base) + offsetof(struct execute_request, recording),                              \
			.flag_offset = (base) + offsetof(struct execute_request, record),                            \
			.object = &record_fields, .default_text = "false", .example = "true",                        \
			.help = "A recording of the screen while the code runs: `recording` in the answer names it." \
	}
