/* Every maximum for what comes from outside, with its name. Reaching one is an error of its own, never a crash. */
#pragma once

enum {
	/* HTTP */
	LIMIT_HEADER_COUNT = 100,
	LIMIT_HEADER_BYTES = 32 * 1024, /* all headers of a request together */
	LIMIT_TARGET_BYTES = 8 * 1024,
	LIMIT_BODY_BYTES = 32 * 1024 * 1024, /* of a JSON request; uploads stream and have their own */
	LIMIT_PIPELINE = 64,                 /* requests waiting on one connection */
	LIMIT_WS_MESSAGE_BYTES = 32 * 1024 * 1024,
	LIMIT_HEADER_SECONDS = 15,   /* to send the head of a request */
	LIMIT_BODY_SECONDS = 120,    /* to send the body */
	LIMIT_IDLE_SECONDS = 120,    /* of a kept-alive connection */
	LIMIT_WRITE_SECONDS = 60,    /* a client that takes nothing for so long is gone */
	/* JSON */
	LIMIT_JSON_DEPTH = 64,
	/* sessions and cells */
	LIMIT_CODE_BYTES = 8 * 1024 * 1024,
	LIMIT_STDIN_BYTES = 8 * 1024 * 1024,
	LIMIT_NAME_BYTES = 128,
	LIMIT_ENV_COUNT = 128,
	LIMIT_ENV_BYTES = 128 * 1024,
	LIMIT_METADATA_BYTES = 16 * 1024,
	LIMIT_PRELOAD_COUNT = 64,
	LIMIT_QUEUED_CELLS = 16,
	LIMIT_PATH_BYTES = 1024,
	LIMIT_TOMBSTONES = 4096, /* ended sessions whose end is remembered */
	/* what a guest may send */
	LIMIT_FRAME_BYTES = 48 * 1024 * 1024,
	LIMIT_DISPLAYS = 256,                    /* of one cell */
	LIMIT_DISPLAY_BYTES = 32 * 1024 * 1024,  /* of one cell, all together */
	LIMIT_BUNDLE_ITEMS = 16,                 /* representations of one value */
	LIMIT_MIME_BYTES = 128,
	LIMIT_FILES = 1000,                      /* changes listed of one cell */
	LIMIT_ERROR_BYTES = 256 * 1024,          /* traceback and message, each */
};
