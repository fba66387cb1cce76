/*
 * The API over real connections, with a session table that does as it is told (test_api_double.h).
 * The loop runs in a thread of its own; the clients here speak plain sockets, so that every header
 * is theirs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "api/answers.h"
#include "api/api.h"
#include "api/handlers/docs.h"
#include "api/routes.h"
#include "base/buffer.h"
#include "dialects/dialects.h"
#include "http/http.h"
#include "tap.h"
#include "test_api_double.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* ---- the server ----------------------------------------------------------- */

static uv_loop_t loop;
static uv_async_t stop, drain;
static struct sessions table;
static struct http_server *server;
static struct api *api;
static unsigned port;

static void on_closed(void *userdata)
{
	double_finish(&table);
	api_destroy(api);
	uv_close((uv_handle_t *)&stop, NULL);
	uv_close((uv_handle_t *)&drain, NULL);
}

static void on_stop(uv_async_t *async)
{
	http_server_close(server, on_closed, NULL);
}

static void on_drain(uv_async_t *async)
{
	api_drain(api);
}

static void *serve(void *arg)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	return NULL;
}

static int start(char *base)
{
	static char *tokens[] = { (char *)"token-a", (char *)"token-b", NULL };
	static char *origins[] = { (char *)"https://console.example", NULL };
	struct api_config config = { .loop = &loop,
		.sessions = &table,
		.dialects = dialects,
		.tokens = tokens,
		.metrics_token = "of the operator",
		.origins = origins,
		.max_upload_bytes = 1000000,
		.max_sessions_per_token = 6 };
	struct http_server_config http = {
		.loop = &loop, .listen = "127.0.0.1:0", .handler = api_handler()
	};
	struct error e = { 0 };
	uv_loop_init(&loop);
	double_init(&table, &loop, base);
	uv_async_init(&loop, &stop, on_stop);
	uv_async_init(&loop, &drain, on_drain);
	if (api_create(&config, &e, &api) < 0)
		return -1;
	http.userdata = api;
	if (http_server_create(&http, &e, &server) < 0) {
		printf("# %s\n", e.text);
		return -1;
	}
	api_set_server(api, server);
	port = http_server_port(server);
	return 0;
}

/* ---- a client ------------------------------------------------------------- */

static struct buffer answer = BUFFER_INIT(0);

static int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = 60 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return fd;
}

static void send_request(int fd, const char *method, const char *target, const char *headers,
	const char *body, size_t len)
{
	struct buffer b = BUFFER_INIT(0);
	bool host = !strstr(headers, "Host:"), token = !strstr(headers, "Authorization:");
	buffer_printf(&b, "%s %s HTTP/1.1\r\n%s%s%s", method, target,
		host ? "Host: localhost\r\n" : "", token ? "Authorization: Bearer token-a\r\n" : "",
		headers);
	if (body)
		buffer_printf(&b, "Content-Length: %zu\r\n", len);
	buffer_append_str(&b, "\r\n");
	buffer_append(&b, body ? body : "", body ? len : 0);
	OK(fd_write_full(fd, b.data, b.len) == 0);
	buffer_finish(&b);
}

static void receive(int fd)
{
	char piece[65536];
	ssize_t n;
	answer.len = 0;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		buffer_append(&answer, piece, (size_t)n);
	buffer_cstr(&answer);
	close(fd);
}

/* One request on a connection of its own; the whole answer is in `answer`. Returns the status. */
static int ask_bytes(
	const char *method, const char *target, const char *headers, const char *body, size_t len)
{
	char all[512];
	int fd = dial(), status = 0;
	snprintf(all, sizeof(all), "Connection: close\r\n%s", headers);
	send_request(fd, method, target, all, body, len);
	receive(fd);
	sscanf(answer.data ? answer.data : "", "HTTP/1.1 %d", &status);
	return status;
}

static int ask(const char *method, const char *target, const char *headers, const char *body)
{
	return ask_bytes(method, target, headers, body, body ? strlen(body) : 0);
}

#define JSON "Content-Type: application/json\r\n"

static int post(const char *target, const char *body)
{
	return ask("POST", target, JSON, body);
}

static const char *body(void)
{
	const char *end = strstr(answer.data, "\r\n\r\n");
	return end ? end + 4 : "";
}

static bool has(const char *text)
{
	bool found = answer.data && strstr(answer.data, text);
	if (!found)
		printf("# no \"%s\" in: %.600s\n", text, answer.data ? answer.data : "");
	return found;
}

/* A member of the answer's object as text; "" when it is not one. */
static const char *member(const char *name)
{
	static char text[4096];
	struct error e;
	json_t *tree = NULL;
	text[0] = '\0';
	if (json_read(body(), strlen(body()), &e, &tree) < 0) {
		printf("# %s: %.300s\n", e.text, body());
		return text;
	}
	json_t *v = json_object_get(tree, name);
	if (json_is_string(v))
		snprintf(text, sizeof(text), "%s", json_string_value(v));
	else if (v) {
		char *dump = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
		snprintf(text, sizeof(text), "%s", dump);
		free(dump);
	}
	json_decref(tree);
	return text;
}

static char id[64], url[256];

static const char *at(const char *rest)
{
	snprintf(url, sizeof(url), "/v1/sessions/%s%s", id, rest);
	return url;
}

static void make_session(const char *params)
{
	OK(post("/v1/sessions", params) == 201);
	snprintf(id, sizeof(id), "%s", member("id"));
}

/* Something the loop does in a while. */
static bool soon(bool (*condition)(void))
{
	for (int i = 0; i < 6000; i++) {
		if (condition())
			return true;
		usleep(5000);
	}
	return false;
}

/* ---- tests ---------------------------------------------------------------- */

static void services(void)
{
	OK(ask("GET", "/health", "Authorization: none\r\n", NULL) == 200);
	OK_STR(body(), "{\"status\":\"healthy\"}\n");
	OK(has("X-Request-Id: ") && has("nosniff"));
	OK(ask("HEAD", "/health", "", NULL) == 200);
	OK_STR(body(), "");
	OK(ask("GET", "/readyz", "Authorization: none\r\n", NULL) == 200);
	OK_STR(member("not_preloaded"), "[\"nosuch: No module named 'nosuch'\"]");
	OK(ask("GET", "/version", "Authorization: none\r\n", NULL) == 200);
	OK_STR(member("version"), GLOVEBOX_VERSION);
	OK(ask("GET", "/docs", "Authorization: none\r\nSec-Fetch-Site: cross-site\r\n", NULL) ==
		200);
	/* one script, from a file: the rules of the page allow none inside it */
	OK(has("Content-Security-Policy: default-src 'none'") && has("script-src 'self';") &&
		has("text/html"));
	const char *script = strstr(body(), "<script");
	OK(script && text_starts(script, "<script src=\"/console/docs.js\" defer></script>") &&
		!strstr(script + 1, "<script"));
	OK(ask("GET", "/openapi.json", "", NULL) == 200);
	OK_STR(member("openapi"), "3.1.0");
	OK(ask("GET", "/metrics", "", NULL) == 200);
	OK(has("glovebox_sessions 0\n") && !strstr(body(), "glovebox_http_requests_total"));
	OK(ask("GET", "/metrics", "Authorization: Bearer of the operator\r\n", NULL) == 200);
	OK(has("glovebox_http_requests_total{method=\"GET\",route=\"/health\",status=\"200\"} 2\n"));
	OK(has("glovebox_cells_total{profile=\"python\",dialect=\"native\",template=\"default\",status=\"ok\"} 0\n") &&
		has("glovebox_process_resident_bytes "));
	OK(has("glovebox_http_connections 1\n") && has("glovebox_http_in_flight 1\n"));
	OK(ask("GET", "/metrics", "Authorization: none\r\n", NULL) == 401);
}

static void doors(void)
{
	OK(ask("GET", "/v1/sessions", "Authorization: Bearer wrong\r\n", NULL) == 401);
	OK(has("WWW-Authenticate: Bearer") && has("application/problem+json"));
	OK_STR(member("code"), "unauthorized");
	OK(ask("GET", "/nowhere", "Authorization: Bearer wrong\r\n", NULL) == 401);
	OK(ask("GET", "/v1/sessions", "Host: evil.example\r\n", NULL) == 421);
	OK_STR(member("code"), "host_not_allowed");
	OK(ask("GET", "/health", "Host: evil.example\r\n", NULL) == 421);
	OK(ask("GET", "/v1/sessions", "Origin: http://evil.example\r\n", NULL) == 403);
	OK_STR(member("code"), "origin_not_allowed");
	OK(ask("GET", "/v1/sessions", "Origin: null\r\n", NULL) == 403);
	OK(ask("GET", "/v1/sessions", "Sec-Fetch-Site: cross-site\r\n", NULL) == 403);
	OK(ask("GET", "/v1/sessions", "Origin: http://localhost\r\n", NULL) == 200 &&
		!strstr(answer.data, "Access-Control"));
	OK(ask("GET", "/v1/sessions", "Origin: https://console.example\r\n", NULL) == 200);
	OK(has("Access-Control-Allow-Origin: https://console.example\r\n"));
	OK(ask("OPTIONS", "/v1/sessions",
		   "Authorization: none\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: "
		   "POST\r\n",
		   NULL) == 403);
	OK(!strstr(answer.data, "Access-Control"));
	OK(ask("OPTIONS", "/v1/sessions",
		   "Authorization: none\r\nOrigin: https://console.example\r\nAccess-Control-Request-Method: "
		   "POST\r\n",
		   NULL) == 204);
	OK(has("Access-Control-Allow-Methods: POST, GET, HEAD, OPTIONS"));
	OK(ask("OPTIONS", "/v1/sessions", "Authorization: none\r\n", NULL) == 204 &&
		has("Allow: POST, GET, HEAD, OPTIONS"));
	OK(!strstr(answer.data, "Access-Control"));
	OK(ask("OPTIONS", "/nowhere", "", NULL) == 404);

	static const char *const types[] = { "", "Content-Type: text/plain\r\n",
		"Content-Type:\r\n", "Content-Type: application/jsonx\r\n",
		"Content-Type: application/x-www-form-urlencoded\r\n" };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		OK(ask("POST", "/v1/sessions", types[i], "{}") == 415);
		OK_STR(member("code"), "unsupported_media_type");
	}
	OK(ask("POST", "/v1/sessions", JSON "Content-Encoding: gzip\r\n", "{}") == 415);
	OK_STR(member("code"), "unsupported_encoding");
}

static void unmatched(void)
{
	OK(ask("GET", "/v1/session", "", NULL) == 404);
	OK_STR(member("remediation"),
		"Did you mean /v1/sessions? All addresses are in /docs and /openapi.json.");
	OK(ask("GET", "/sessions", "", NULL) == 404 && has("Did you mean /v1/sessions?"));
	OK(ask("POST", "/v1/sessions/s_abc/exec", JSON, "{}") == 404);
	OK(has("Did you mean /v1/sessions/{id}/execute?"));
	OK(ask("GET", "/zzzzzzzzzzzz", "", NULL) == 404 && !strstr(answer.data, "Did you mean"));
	OK(ask("DELETE", "/v1/sessions", "", NULL) == 405 &&
		has("Allow: POST, GET, HEAD, OPTIONS\r\n"));
	OK_STR(member("code"), "method_not_allowed");
	OK(ask("PATCH", "/v1/sessions/s_x/files/a", "", NULL) == 405 &&
		has("Allow: PUT, GET, HEAD, DELETE, OPTIONS\r\n"));
	OK(ask("GET", "/health?x=1", "", NULL) == 400);
	OK_STR(member("code"), "unknown_parameter");
	OK(ask("GET", "/v1/sessions/%00", "", NULL) == 400);
	OK(ask("GET", "/v1/sessions/s_none", "", NULL) == 404);
	OK_STR(member("code"), "session_not_found");
}

static void lives(void)
{
	make_session("{\"name\":\"n1\",\"metadata\":{\"task\":\"42\",\"n\":7}}");
	OK(has("Location: /v1/sessions/s_"));
	OK_STR(member("state"), "idle");
	OK_STR(member("created"), "2023-11-14T22:13:20.123Z");
	OK_STR(member("metadata"), "{\"task\":\"42\",\"n\":7}");
	OK(post("/v1/sessions", "") == 201);
	OK(ask("POST", "/v1/sessions", "", NULL) == 201);
	OK(post("/v1/sessions", "{\"nam\":1}") == 400);
	OK_STR(member("detail"), "$.nam: unknown field; did you mean \"name\"?");
	OK(post("/v1/sessions", "{\n  \"name\": }") == 400);
	OK_STR(member("code"), "malformed_json");
	OK(strstr(member("detail"), "line 2"));

	OK(ask("GET", "/v1/sessions?limit=2", "", NULL) == 200);
	OK_STR(member("next"), "2");
	OK(ask("GET", "/v1/sessions?limit=2&cursor=2", "", NULL) == 200);
	OK_STR(member("next"), "null");
	OK(strlen(member("sessions")) > 10);
	OK(ask("GET", "/v1/sessions?name=n1&metadata.task=42&metadata.n=7", "", NULL) == 200 &&
		has(id));
	OK(ask("GET", "/v1/sessions?metadata.task=43", "", NULL) == 200);
	OK_STR(member("sessions"), "[]");
	OK(ask("GET", "/v1/sessions?state=busy", "", NULL) == 200);
	OK_STR(member("sessions"), "[]");

	/* Another token sees nothing of it, and the same answer as for what never was. */
	static const char other[] = "Authorization: Bearer token-b\r\n";
	OK(ask("GET", "/v1/sessions", other, NULL) == 200);
	OK_STR(member("sessions"), "[]");
	OK(ask("GET", at(""), other, NULL) == 404);
	OK(ask("DELETE", at(""), other, NULL) == 404);
	OK(ask("GET", at("/files"), other, NULL) == 404);
	OK(ask("PUT", at("/files/x"), other, "x") == 404);
	OK(ask("POST", at("/execute"), "Authorization: Bearer token-b\r\n" JSON,
		   "{\"code\":\"print x\"}") == 404);
	OK(ask("GET", at(""), "", NULL) == 200);

	for (int i = 0; i < 3; i++)
		OK(post("/v1/sessions", "{}") == 201);
	OK(post("/v1/sessions", "{}") == 429 && has("Retry-After: "));
	OK_STR(member("code"), "too_many_sessions");
	OK(ask("POST", "/v1/sessions", "Authorization: Bearer token-b\r\n" JSON, "{}") == 201);

	OK(ask("DELETE", at(""), "", NULL) == 204);
	OK(ask("GET", at(""), "", NULL) == 410);
	OK_STR(member("code"), "session_gone");
	OK(ask("DELETE", at(""), "", NULL) == 410);
}

static void cells(void)
{
	make_session("{}");
	OK(post(at("/execute"), "{\"code\":\"print hé\"}") == 200);
	OK_STR(member("stdout"), "hé\n");
	OK_STR(member("status"), "ok");
	OK_STR(member("cell"), "1");
	OK_STR(member("session"), id);
	OK_STR(member("result"), "{\"text/plain\":\"hé\",\"application/json\":{\"a\":[1]}}");
	OK_STR(member("files"), "[{\"path\":\"made.txt\",\"size\":5,\"change\":\"created\"}]");
	OK_STR(member("screenshot"), "null");
	OK_STR(member("final_answer"), "null");
	OK_STR(member("is_final_answer"), "false");
	OK_STR(member("truncated"),
		"{\"stdout\":0,\"stderr\":0,\"displays\":0,\"files\":false,\"server_memory\":false}");
	OK(has("\"usage\":{\"wall_ms\":1.235,\"cpu_ms\":0,\"peak_memory_bytes\":0}"));
	OK(post(at("/execute"), "{\"code\":\"bad\"}") == 200);
	OK_STR(member("stdout"), "head\n… 12345 bytes left out …\ntail");
	OK_STR(member("stderr"), "\xef\xbf\xbd");
	OK_STR(member("result"),
		"{\"application/json\":\"{oops\",\"text/plain\":\"\xef\xbf\xbd<\"}");
	OK_STR(member("state_lost"), "true");
	OK(strstr(member("error"), "\"message\":\"n\\u0000o\""));
	OK(strstr(member("error"), "\"line\":null,\"code\":null"));
	OK_STR(member("truncated"),
		"{\"stdout\":12345,\"stderr\":0,\"displays\":2,\"files\":true,\"server_memory\":false}");
	OK(post(at("/execute"), "{\"code\":\"now\"}") == 200);
	OK_STR(member("status"), "ok");
	OK(post(at("/execute"), "{\"code\":\"\",\"timeout_s\":\"x\"}") == 400);
	OK_STR(member("detail"),
		"$.timeout_s: must be a number between 0.1 and 3600, not a string");
	OK(ask("POST", at("/execute"), "", NULL) == 400);
	OK_STR(member("code"), "missing_field");
	OK(ask("POST", at("/execute"), JSON "X-Request-Id: my-request\r\n",
		   "{\"code\":\"print x\"}") == 200);
	OK_STR(member("id"), "my-request");
	OK(post(at("/execute"), "{\"code\":\"big 40\"}") == 200);
	OK(answer.len > 40000000);
	OK(post(at("/interrupt"), "{}") == 200);
	OK_STR(member("interrupted"), "false");
	OK(post(at("/interrupt"), "{\"x\":1}") == 400);
	OK(ask("POST", at("/reset"), "", NULL) == 200);
	OK_STR(member("id"), id);
}

static bool one_interrupted(void)
{
	return table.stats.cells[0].count[CELL_INTERRUPTED] == 1;
}

/* A cell that waits is not yet one to interrupt. */
static bool interrupted(void)
{
	return post(at("/interrupt"), "{}") == 200 && !strcmp(member("interrupted"), "true");
}

static bool is_busy(void)
{
	ask("GET", at(""), "", NULL);
	return !strcmp(member("state"), "busy");
}

static bool three_wait(void)
{
	ask("GET", at(""), "", NULL);
	return !strcmp(member("queued"), "3");
}

static void leaving(void)
{
	OK(table.stats.cells[0].count[CELL_INTERRUPTED] == 0);
	int fd = dial();
	send_request(fd, "POST", at("/execute"), JSON, "{\"code\":\"hang\"}", 15);
	OK(soon(is_busy));
	close(fd);
	OK(soon(one_interrupted));

	/* Interrupted from another connection. */
	fd = dial();
	send_request(fd, "POST", at("/execute"), JSON "Connection: close\r\n",
		"{\"code\":\"hang\"}", 15);
	OK(soon(interrupted));
	receive(fd);
	OK_STR(member("status"), "interrupted");

	/* One runs, four wait, the next is one too many. */
	int waiting[4];
	for (int i = 0; i < 4; i++) {
		waiting[i] = dial();
		send_request(waiting[i], "POST", at("/execute"), JSON "Connection: close\r\n",
			"{\"code\":\"hang\"}", 15);
	}
	OK(soon(three_wait));
	OK(post(at("/execute"), "{\"code\":\"hang\"}") == 429 && has("Retry-After: 1\r\n"));
	OK_STR(member("code"), "queue_full");
	OK(ask("DELETE", at(""), "", NULL) == 204);
	for (int i = 0; i < 4; i++) {
		receive(waiting[i]);
		OK_STR(member("status"), "killed");
	}
}

#define SSE JSON "Accept: text/event-stream\r\n"

static void streams(void)
{
	make_session("{}");
	OK(ask("POST", at("/execute"), SSE, "{\"code\":\"split\"}") == 200);
	OK(has("text/event-stream") && has("event: started") && has("\"cell\":1,\"session\":\"s_"));
	OK(has("{\"type\":\"stdout\",\"cell\":1,\"text\":\"é\"}"));
	OK(has("{\"type\":\"stdout\",\"cell\":1,\"text\":\"€\"}"));
	/* What is left half at the end comes as what it is: broken. */
	OK(has("{\"type\":\"stdout\",\"cell\":1,\"text\":\"\xef\xbf\xbd\"}"));
	OK(has("event: done") && has("\"status\":\"ok\""));
	OK(ask("POST", at("/execute"), SSE, "{\"code\":\"now\"}") == 200 && has("event: done"));
	OK(ask("POST", at("/execute"), SSE, "{}") == 400 && has("application/problem+json"));
	/* More than any queue of the server holds: all of it arrives at the pace of the reader. */
	OK(ask("POST", at("/execute"), SSE, "{\"code\":\"big 30\"}") == 200 &&
		answer.len > 60000000);
	OK(has("event: display") && !strcmp(answer.data + answer.len - 7, "\r\n0\r\n\r\n"));
	/* A reader that stops: its cell is done, nothing is left of it when it goes. */
	int fd = dial();
	send_request(fd, "POST", at("/execute"), SSE, "{\"code\":\"big 30\"}", 17);
	usleep(100000);
	close(fd);
	OK(ask("GET", "/health", "", NULL) == 200);
}

static bool none_live(void)
{
	return table.stats.live == 1;
}

static bool two_live(void)
{
	return table.stats.live == 2;
}

static void runs(void)
{
	OK(ask("DELETE", at(""), "", NULL) == 204);
	make_session("{}");
	while (table.stats.live > 1)
		session_end(TAILQ_FIRST(&table.list), "tidying");
	OK(ask("POST", "/v1/run", JSON, "{\"code\":\"print x\",\"files\":{\"d/a.txt\":\"hi\"}}") ==
		200);
	OK_STR(member("stdout"), "x\n");
	OK(soon(none_live));
	OK(ask("POST", "/v1/run", SSE,
		   "{\"code\":\"print x\",\"name\":\"slow\",\"files\":{\"a\":\"\"}}") == 200 &&
		has("event: done"));
	OK(soon(none_live));
	OK(post("/v1/run", "{\"code\":\"print x\",\"detach\":true}") == 400);
	OK(post("/v1/run", "{\"code\":\"print x\",\"files\":{\"a\":\"\",\"a/b\":\"\"}}") == 409);
	OK_STR(member("code"), "not_a_directory");
	OK(soon(none_live));
	/* The client leaves: before the session has files, and while its code runs. */
	static const char slow[] =
		"{\"code\":\"print x\",\"name\":\"slow\",\"files\":{\"a\":\"\"}}";
	int fd = dial();
	send_request(fd, "POST", "/v1/run", JSON, slow, strlen(slow));
	OK(soon(two_live));
	close(fd);
	OK(soon(none_live));
	fd = dial();
	send_request(fd, "POST", "/v1/run", JSON, "{\"code\":\"hang\"}", 15);
	OK(soon(two_live));
	close(fd);
	OK(soon(none_live));
}

static bool no_upload(void)
{
	return ask("GET", at("/files"), "", NULL) == 200 && !strstr(body(), "half") &&
	       !strstr(body(), "glovebox-upload");
}

static void files(void)
{
	OK(ask("PUT", at("/files/dir/a.html"), "", "<b>") == 201);
	OK_STR(member("path"), "dir/a.html");
	OK_STR(member("size"), "3");
	OK_STR(member("change"), "created");
	OK(ask("PUT", at("/files/dir/a.html"), "Content-Type: text/plain\r\n", "<i>x") == 200);
	OK_STR(member("change"), "modified");
	OK(ask("GET", at("/files/dir/a.html"), "", NULL) == 200);
	OK_STR(body(), "<i>x");
	OK(has("Content-Type: application/octet-stream\r\n") &&
		has("Content-Disposition: attachment; filename=\"a.html\"\r\n"));
	OK(ask("HEAD", at("/files/dir/a.html"), "", NULL) == 200 && has("Content-Length: 4\r\n"));
	OK_STR(body(), "");
	OK(ask("GET", at("/files"), "", NULL) == 200);
	OK(has("{\"path\":\"dir\",\"type\":\"directory\"") && !strstr(body(), "a.html"));
	OK(ask("GET", at("/files?recursive=true&limit=1"), "", NULL) == 200);
	OK_STR(member("truncated"), "true");
	OK(ask("GET", at("/files?path=dir"), "", NULL) == 200 && has("\"dir/a.html\""));
	OK(ask("GET", at("/files?path=../.."), "", NULL) == 400);
	static const char *const out[] = { "../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd",
		"%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "%2fetc%2fpasswd",
		"x/../../../etc/passwd", "..%252f..%252fetc%252fpasswd", "....//....//etc/passwd",
		"dir/%00", "%ff" };
	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		char rest[128];
		snprintf(rest, sizeof(rest), "/files/%s", out[i]);
		int status = ask("GET", at(rest), "", NULL);
		OK((status == 400 || status == 404) && !strstr(answer.data, "root:"));
	}
	OK(ask("GET", at("/files/none"), "", NULL) == 404);
	OK_STR(member("code"), "file_not_found");
	OK(ask("GET", at("/files/dir"), "", NULL) == 409);
	OK(ask("DELETE", at("/files/dir"), "", NULL) == 409);
	OK_STR(member("code"), "directory_not_empty");
	OK(ask("DELETE", at("/files/dir/a.html"), "", NULL) == 204);
	OK(ask("DELETE", at("/files/dir/a.html"), "", NULL) == 404);
	OK(ask("PUT", at("/files/x?y=1"), "", "x") == 400);
	OK(ask("PUT", at("/files/q%22%0d%0aX:%20y"), "", "x") == 201);
	OK(ask("GET", at("/files/q%22%0d%0aX:%20y"), "", NULL) == 200 &&
		has("filename=\"q___X: y\"\r\n"));
}

static void large_files(void)
{
	size_t n = 1000000;
	char *big = malloc(n + 1);
	for (size_t i = 0; i < n + 1; i++)
		big[i] = (char)(i * 7 % 251);
	OK(ask_bytes("PUT", at("/files/big"), "", big, n) == 201);
	OK(ask("GET", at("/files/big"), "", NULL) == 200);
	OK(answer.len > n && !memcmp(answer.data + answer.len - n, big, n));
	OK(ask_bytes("PUT", at("/files/big"), "", big, n + 1) == 413);
	OK_STR(member("code"), "file_too_large");
	/* A body that ends early leaves nothing behind. */
	int fd = dial();
	send_request(fd, "PUT", at("/files/half"), "Content-Length: 1000\r\n", NULL, 0);
	OK(fd_write_full(fd, big, 500) == 0);
	usleep(50000);
	close(fd);
	OK(soon(no_upload));
	free(big);
	/* A session that is still starting holds the upload back until its files are there. */
	make_session("{\"name\":\"slow\"}");
	OK(ask("PUT", at("/files/a"), "", "abc") == 201);
	OK(ask("GET", at("/files/a"), "", NULL) == 200);
	OK_STR(body(), "abc");
	OK(ask("DELETE", at(""), "", NULL) == 204);
	make_session("{\"name\":\"slow\"}");
	OK(ask("GET", at("/files"), "", NULL) == 200);
	OK_STR(member("files"), "[]");
}

static void logs(void)
{
	OK(ask("GET", at("/logs"), "", NULL) == 200);
	OK(has("\"text\":\"one \"") && has("\"text\":\"é two\"") && has("\"stream\":\"stderr\""));
	OK_STR(member("next"), "4");
	OK_STR(member("end"), "true");
	OK_STR(member("dropped_bytes"), "77");
	OK(ask("GET", at("/logs?limit=1&stream=stderr"), "", NULL) == 200);
	OK_STR(member("next"), "2");
	OK_STR(member("end"), "false");
	OK(ask("GET", at("/logs?cell=2"), "", NULL) == 200 && has("\"text\":\"\xef\xbf\xbd\""));
	OK(ask("GET", at("/logs"), "Accept: text/plain\r\n", NULL) == 200 &&
		has("X-Next-After: 4\r\n"));
	OK_STR(body(), "one \xc3"
		       "err\xa9 two\xff");
	OK(ask("GET", at("/logs?after=99"), "", NULL) == 400);
	OK_STR(member("code"), "invalid_parameter");
	OK(ask("GET", at("/logs?stream=both"), "", NULL) == 400);
}

/* ---- WebSocket ------------------------------------------------------------ */

static int ws_open(const char *headers, int *ret_status)
{
	char head[2048];
	size_t n = 0;
	int fd = dial();
	char all[512];
	snprintf(all, sizeof(all),
		"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
		"Sec-WebSocket-Version: 13\r\n%s",
		headers);
	send_request(fd, "GET", at("/ws"), all, NULL, 0);
	while (n < sizeof(head) - 1 && read(fd, head + n, 1) == 1) {
		head[++n] = '\0';
		if (n >= 4 && !memcmp(head + n - 4, "\r\n\r\n", 4))
			break;
	}
	*ret_status = 0;
	sscanf(head, "HTTP/1.1 %d", ret_status);
	return fd;
}

static void ws_send(int fd, const char *text)
{
	/* Masked with zeros: as good a mask as any. */
	size_t len = strlen(text);
	unsigned char head[8] = { 0x81, (unsigned char)(0x80 | len), 0, 0, 0, 0 };
	OK(len < 126 && fd_write_full(fd, head, 6) == 0 && fd_write_full(fd, text, len) == 0);
}

/* The next text message; NULL when the connection closed. */
static const char *ws_receive(int fd)
{
	unsigned char head[8];
	if (fd_read_full(fd, head, 2) < 0)
		return NULL;
	uint64_t len = head[1] & 127;
	if (len == 126 && !fd_read_full(fd, head, 2))
		len = (uint64_t)head[0] << 8 | head[1];
	else if (len == 127 && !fd_read_full(fd, head, 8))
		for (size_t i = len = 0; i < 8; i++)
			len = len << 8 | head[i];
	answer.len = 0;
	buffer_reserve(&answer, len + 1);
	if (fd_read_full(fd, answer.data, len) < 0)
		return NULL;
	answer.len = len;
	return buffer_cstr(&answer);
}

static bool three_interrupted(void)
{
	return table.stats.cells[0].count[CELL_INTERRUPTED] == 3;
}

static void sockets(void)
{
	int status;
	OK(ask("DELETE", at(""), "", NULL) == 204);
	int fd = ws_open("", &status);
	OK(status == 404);
	close(fd);
	make_session("{}");
	fd = ws_open("Authorization: Bearer token-b\r\n", &status);
	OK(status == 404);
	close(fd);
	fd = ws_open("Origin: http://evil.example\r\n", &status);
	OK(status == 403);
	close(fd);
	OK(ask("GET", at("/ws"), "", NULL) == 426);
	OK_STR(member("code"), "upgrade_required");

	fd = ws_open("", &status);
	OK(status == 101);
	int second = ws_open("", &status);
	OK(status == 101);
	ws_send(fd, "{\"id\":\"a\",\"type\":\"ping\"}");
	OK_STR(ws_receive(fd), "{\"id\":\"a\",\"type\":\"pong\"}");
	ws_send(fd, "{\"id\":7,\"type\":\"execute\",\"code\":\"print x\"}");
	OK(strstr(ws_receive(fd), "{\"id\":7,\"type\":\"started\",\"cell\":1,\"session\":\"s_"));
	OK_STR(ws_receive(fd), "{\"id\":7,\"type\":\"stdout\",\"cell\":1,\"text\":\"x\\n\"}");
	OK(strstr(ws_receive(fd),
		"{\"id\":7,\"type\":\"done\",\"cell\":1,\"observation\":{\"id\":\"7\","));
	ws_send(fd, "{\"id\":\"n\",\"type\":\"execute\",\"code\":\"now\"}");
	OK(strstr(ws_receive(fd), "started"));
	OK(strstr(ws_receive(fd), "\"id\":\"n\",\"type\":\"done\""));
	ws_send(fd, "{\"id\":1,\"type\":\"execute\",\"cod\":\"\"}");
	OK(strstr(ws_receive(fd), "{\"id\":1,\"type\":\"error\",\"title\":\"Bad "
				  "Request\",\"status\":400,\"code\":\"unknown_field\""));
	ws_send(fd, "{oops");
	OK(strstr(ws_receive(fd), "{\"id\":null,\"type\":\"error\"") && has("malformed_json"));
	ws_send(fd, "{\"id\":2,\"type\":\"fly\"}");
	OK(strstr(ws_receive(fd), "must be one of \\\"execute\\\""));

	/* A cell of one socket, interrupted through the other. */
	ws_send(fd, "{\"id\":\"h\",\"type\":\"execute\",\"code\":\"hang\"}");
	OK(strstr(ws_receive(fd), "started"));
	ws_send(second, "{\"id\":\"i\",\"type\":\"interrupt\"}");
	OK_STR(ws_receive(second), "{\"id\":\"i\",\"type\":\"interrupted\",\"interrupted\":true}");
	OK(strstr(ws_receive(fd), "\"status\":\"interrupted\""));

	/* A closed socket interrupts its cells, but for those that detach. */
	table.stats.cells[0].count[CELL_INTERRUPTED] = 2;
	ws_send(fd, "{\"id\":\"h\",\"type\":\"execute\",\"code\":\"hang\"}");
	OK(strstr(ws_receive(fd), "started"));
	close(fd);
	OK(soon(three_interrupted));

	/* Much, at the reader's pace. */
	ws_send(second, "{\"id\":\"b\",\"type\":\"execute\",\"code\":\"big 30\"}");
	usleep(200000);
	size_t total = 0;
	for (const char *text; (text = ws_receive(second)) && !strstr(text, "\"type\":\"done\"");)
		total += answer.len;
	OK(total > 30000000 && answer.len > 30000000);
	close(second);
}

static bool no_tools(void)
{
	return !double_tools.definitions;
}

static void tools(void)
{
	static const char put[] = "{\"tools\":[{\"name\":\"t\"}]}";
	int status;
	make_session("{}");
	OK(ask("PUT", at("/tools"), JSON, "{}") == 400);
	OK(ask("PUT", at("/tools"), JSON, "{\"tools\":[]}") == 400);
	OK_STR(member("code"), "invalid_tool");
	OK(ask("PUT", at("/tools"), JSON, put) == 200 &&
		has("{\"tools\":[{\"name\":\"t\",\"calls\":5,"));
	OK(ask("GET", at("/tools"), "", NULL) == 200 && has("\"definition\":{\"name\":\"t\"}"));
	OK(ask("GET", at("/tools/calls?wait_s=61"), "", NULL) == 400);
	OK(ask("GET", at("/tools/calls"), "", NULL) == 200);
	OK_STR(body(),
		"{\"calls\":[{\"call\":1,\"tool\":\"t\",\"cell\":2,\"arguments\":{\"a\":1}}]}\n");
	OK(ask("GET", at("/tools/calls?wait_s=0.05"), "", NULL) == 200);
	OK_STR(body(), "{\"calls\":[]}\n");
	OK(ask("POST", at("/tools/calls/7"), JSON, "{\"value\":1}") == 404);
	OK(ask("POST", at("/tools/calls/x"), JSON, "{\"value\":1}") == 404);
	OK_STR(member("code"), "call_not_found");
	OK(ask("POST", at("/tools/calls/1"), JSON, "{\"value\":[1,null]}") == 204);
	OK_STR(double_tools.answer, "[1,null]");
	OK(ask("POST", at("/tools/calls/1"), JSON, "{}") == 404);
	OK(ask("PUT", at("/tools"), JSON, put) == 200);
	OK(ask("POST", at("/tools/calls/1"), JSON,
		   "{\"error\":{\"type\":\"KeyError\",\"message\":\"k\"}}") == 204);
	OK_STR(double_tools.answer, "KeyError: k");

	int fd = ws_open("", &status);
	ws_send(fd, "{\"id\":\"t\",\"type\":\"tools\",\"tools\":[{\"name\":\"t\"}]}");
	OK(strstr(ws_receive(fd), "{\"id\":\"t\",\"type\":\"tools\",\"tools\":[{\"name\":\"t\""));
	OK(ask("POST", at("/tools/calls/1"), JSON, "{}") == 404); /* it is the socket's */
	ws_send(fd, "{\"id\":2,\"type\":\"tool_result\",\"call\":1}");
	ws_send(fd, "{\"id\":3,\"type\":\"tool_result\",\"call\":1}");
	OK(strstr(ws_receive(fd), "{\"id\":3,\"type\":\"error\"") && has("call_not_found"));
	OK_STR(double_tools.answer, "null");
	close(fd);
	OK(soon(no_tools));
}

static bool is_draining(void)
{
	return ask("GET", "/readyz", "", NULL) == 503;
}

static void draining(void)
{
	uv_async_send(&drain);
	OK(soon(is_draining));
	OK(ask("GET", "/health", "", NULL) == 200);
	OK(ask("GET", "/readyz", "", NULL) == 503);
	OK_STR(member("code"), "draining");
	OK(post("/v1/sessions", "{}") == 503 && has("Retry-After: "));
	OK(post("/v1/run", "{\"code\":\"\"}") == 503);
	OK(post(at("/execute"), "{\"code\":\"print x\"}") == 503);
	OK(ask("GET", at(""), "", NULL) == 200);
}

/* ---- without a server ----------------------------------------------------- */

static void tables(void)
{
	struct buffer b = BUFFER_INIT(0);
	struct error e = { 0 };
	json_t *tree = NULL;
	struct route_table t;
	OK(routes_init(&t, dialects) == 0);
	OK(openapi_write(&t, &b) == 0 && json_read(b.data, b.len, &e, &tree) == 0);
	OK_STR(e.text, "");
	json_t *paths = json_object_get(tree, "paths");
	size_t operations = 0;
	const char *path;
	json_t *item;
	json_object_foreach(paths, path, item) operations += json_object_size(item);
	OK(operations == t.n);
	/* Every reference leads somewhere. */
	json_t *schemas = json_object_get(json_object_get(tree, "components"), "schemas");
	size_t refs = 0, good = 0;
	for (const char *p = b.data;
		(p = memmem(p, (size_t)(b.data + b.len - p), "#/components/schemas/", 21));
		refs++) {
		char name[64] = { 0 };
		p += 21;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, "\""), p);
		good += json_object_get(schemas, name) != NULL;
	}
	OK(refs > 30 && good == refs);
	json_decref(tree);
	b.len = 0;
	OK(docs_write(&t, &b) == 0 && buffer_cstr(&b) &&
		strstr(b.data, "/v1/sessions/{id}/execute"));
	buffer_finish(&b);
	routes_finish(&t);
}

int main(void)
{
	char base[] = "/tmp/glovebox-api-XXXXXX";
	pthread_t thread;
	signal(SIGPIPE, SIG_IGN);
	tables();
	if (!mkdtemp(base) || start(base) < 0)
		return 1;
	pthread_create(&thread, NULL, serve, NULL);
	services();
	doors();
	unmatched();
	lives();
	cells();
	leaving();
	streams();
	runs();
	files();
	large_files();
	logs();
	sockets();
	tools();
	draining();
	uv_async_send(&stop);
	pthread_join(thread, NULL);
	OK(uv_loop_close(&loop) == 0);
	buffer_finish(&answer);
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/rm", "rm", "-rf", base, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return tap_done();
}
