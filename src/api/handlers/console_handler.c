/*
 * The console: static files, in the program itself. Everything that a session says is shown by
 * script that treats it as text; HTML of a session is shown in a frame of another origin
 * (frame.html), whose rules let it reach nothing.
 */
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers/console_files.h"
#include "base/text.h"

#define COMMON "; base-uri 'none'; form-action 'none'; object-src 'none'"

/* The page: its own files, and data of its own making. */
#define PAGE_RULES                                                                      \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self' data: blob:; media-src blob:; frame-src 'self'; frame-ancestors 'none'" COMMON

/*
 * HTML of a session: `sandbox` gives it an origin of its own, also when its address is opened by
 * itself.
 */
#define FRAME_RULES                                                                             \
	"sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; " \
	"style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'" COMMON

static const struct console_file *find(const char *path)
{
	for (const struct console_file *f = console_files; f->path; f++)
		if (text_eq(f->path, path))
			return f;
	return NULL;
}

static bool takes_gzip(const struct call *c)
{
	const char *accepted = http_header(c->x, "Accept-Encoding");
	return accepted && strstr(accepted, "gzip");
}

static void respond(struct call *c, const struct console_file *f)
{
	bool gzip = takes_gzip(c), frame = text_eq(f->path, "/console/frame.html");
	/* names of scripts and styles carry a hash of their content */
	bool hashed = strstr(f->path, "/index-") != NULL;
	http_allow_caching(c->x);
	http_add_header(
		c->x, "Cache-Control", hashed ? "public, max-age=31536000, immutable" : "no-cache");
	http_add_header(c->x, "Vary", "Accept-Encoding");
	http_add_header(c->x, "Content-Security-Policy", frame ? FRAME_RULES : PAGE_RULES);
	http_add_header(c->x, "Referrer-Policy", "no-referrer");
	http_add_header(c->x, "Cross-Origin-Opener-Policy", "same-origin");
	if (gzip)
		http_add_header(c->x, "Content-Encoding", "gzip");
	call_respond_static(c, 200, f->type, (const char *)(gzip ? f->gzip : f->plain),
		gzip ? f->gzip_len : f->plain_len);
}

void handle_console(struct call *c)
{
	respond(c, find("/index.html"));
}

void handle_console_file(struct call *c)
{
	char path[LIMIT_PATH_BYTES + 16];
	snprintf(path, sizeof(path), "/console/%s", c->path);
	const struct console_file *f = find(path);
	if (f)
		respond(c, f);
	else
		call_problem(c, 404, "not_found", "the console has no such file",
			"Open / in a browser; after an upgrade of the server, load the page again.");
}
