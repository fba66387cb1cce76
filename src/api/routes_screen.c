/* The addresses of screens: screenshots, input, live views, recordings. */
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests.h"
#include "api/schema/requests_input.h"
#include "api/schema/shapes.h"

#define JSON "application/json"

const struct route screen_routes[] = {
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/screenshot",
		.handle = handle_screenshot,
		.operation = "getScreenshot",
		.summary = "Take a screenshot",
		.description =
			"The current screen of the session, also while a cell runs. With `Accept: "
			"application/json` as an object with the windows and the picture in base64.",
		.query = &screenshot_query_fields,
		.status = 200,
		.content_type = "image/png",
		.example = "curl -s $URL/v1/sessions/$ID/screenshot -o screen.png",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/windows",
		.flags = ROUTE_SHARED,
		.handle = handle_windows,
		.operation = "listWindows",
		.summary = "List the windows",
		.description = "The visible windows of the session's screen, from bottom to top.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_window_list,
		.example = "curl -s $URL/v1/sessions/$ID/windows",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/input",
		.flags = ROUTE_LIVE_KEY,
		.handle = handle_input,
		.operation = "input",
		.summary = "Use mouse and keyboard",
		.description =
			"One action, or a list of `actions`; also while a cell runs. The answer is sent when the "
			"screen has settled, with a screenshot if `screenshot` is set. Actions: "
			"mouse_move, left_click, right_click, middle_click, double_click, triple_click, "
			"left_mouse_down, left_mouse_up, left_click_drag, scroll, key, hold_key, type, "
			"wait, screenshot, zoom, cursor_position.",
		.request = &input_fields,
		.query = &key_query_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_input,
		.example =
			"curl -s $URL/v1/sessions/$ID/input -H 'Content-Type: application/json' -d "
			"'{\"action\":\"left_click\",\"coordinate\":[512,384]}'",
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/live",
		.handle = handle_live_link,
		.operation = "makeLiveLink",
		.summary = "Make a link to the live view",
		.description =
			"Returns an address that opens this session's live view without a token, until "
			"it expires. Viewers can watch; with `control` they can also use mouse and keyboard.",
		.request = &live_link_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_live_link,
		.example =
			"curl -s $URL/v1/sessions/$ID/live -H 'Content-Type: application/json' -d "
			"'{\"control\":true}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/live",
		.flags = ROUTE_LIVE_KEY,
		.handle = handle_live,
		.operation = "live",
		.summary = "Watch the screen",
		.description =
			"A page for a browser that shows the session's screen live; with "
			"`?control=1` the page sends mouse and keyboard input to the session.",
		.query = &live_query_fields,
		.status = 200,
		.content_type = "text/html; charset=utf-8",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/live/ws",
		.flags = ROUTE_WEBSOCKET | ROUTE_LIVE_KEY,
		.handle = handle_live_socket,
		.operation = "liveSocket",
		.summary = "Watch the screen over a WebSocket",
		.description =
			"Each message of the client requests a frame. The frame is sent when the screen changes, as "
			"a binary message: six 16-bit little-endian numbers (x, y, width, height of "
			"the changed part; width and height of the screen), then a PNG of the part. The first frame "
			"is the whole screen.",
		.query = &key_query_fields,
		.status = 101,
	},
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/sessions/{id}/recording",
		.handle = handle_recording,
		.operation = "record",
		.summary = "Record the screen",
		.description =
			"Starts or stops a recording. Frames are taken only when the screen changes, and are assigned to the cells "
			"that ran. The recording stops when it reaches one of its limits. `record` of POST …/execute does the "
			"same for one cell.",
		.request = &recording_fields,
		.status = 200,
		.content_type = JSON,
		.shape = &shape_recording,
		.example =
			"curl -s $URL/v1/sessions/$ID/recording -H 'Content-Type: application/json' -d "
			"'{\"action\":\"start\",\"fps\":20}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/recording",
		.flags = ROUTE_SHARED,
		.handle = handle_recording_list,
		.operation = "listRecordings",
		.summary = "List recordings",
		.description =
			"Recordings are listed oldest first. A session keeps 8 recordings; starting another one deletes the oldest.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_recording_list,
		.example = "curl -s $URL/v1/sessions/$ID/recording",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/sessions/{id}/recording/{path}",
		.flags = ROUTE_SHARED,
		.handle = handle_recording_get,
		.operation = "getRecording",
		.summary = "Fetch a recording",
		.description =
			"By id, in the format chosen at the start of the recording, or in another format: recordings are stored as `apng`; "
			"ffmpeg converts them to `webm`, `mp4` and `gif` in the session's jail.",
		.query = &film_query_fields,
		.status = 200,
		.content_type = "image/apng",
		.example = "curl -s \"$URL/v1/sessions/$ID/recording/1?format=webm\" -o film.webm",
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/sessions/{id}/recording/{path}",
		.handle = handle_recording_delete,
		.operation = "deleteRecording",
		.summary = "Delete a recording",
		.status = 204,
		.example = "curl -s -X DELETE $URL/v1/sessions/$ID/recording/1",
	},
	{ .pattern = NULL },
};
