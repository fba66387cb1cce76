/*
 * Commands of @e2b/desktop. The SDK starts an X server, XFCE, x11vnc and noVNC in its sandboxes; a
 * session has a screen, a window manager and a live view without them. desktop.sh defines functions
 * in the place of these programs. xdotool and scrot are the real programs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "desktop_source.h"
#include "dialects/e2b/e2b.h"
#include "session/display/display_servers.h"

#define NOVNC "cd /opt/noVNC/utils && ./novnc_proxy "
enum { NOVNC_PORT = 6080, SIDE_MIN = 64, DPI_MIN = 48, DPI_MAX = 384, DAY_SECONDS = 86400 };

/* The number that follows the first `option` in the text, or `otherwise` if there is none. */
static unsigned number_after(const char *text, const char *option, unsigned otherwise)
{
	const char *at = strstr(text, option);
	char digits[8];
	uint64_t n = otherwise;
	if (!at)
		return otherwise;
	at += strlen(option);
	snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at, "0123456789"), at);
	text_parse_u64(digits, 0, UINT32_MAX, &n);
	return (unsigned)n;
}

static bool within(unsigned n, unsigned least, unsigned most)
{
	return n >= least && n <= most;
}

/* Xvfb :0 -ac -screen 0 1024x768x24 -retro -dpi 96 …: the size of the screen that there is. */
static int size_screen(struct session *s, const char *text, struct error *e)
{
	struct display_size size = { .width = DISPLAY_WIDTH,
		.height = DISPLAY_HEIGHT,
		.depth = DISPLAY_DEPTH,
		.dpi = number_after(text, "-dpi ", DISPLAY_DPI) };
	const char *screen = strstr(text, "-screen 0 "), *x = screen ? strchr(screen, 'x') : NULL;

	if (x) {
		size.width = number_after(screen, "-screen 0 ", 0);
		size.height = number_after(x, "x", 0);
	}
	if (!within(size.width, SIDE_MIN, LIMIT_DISPLAY_SIDE) ||
		!within(size.height, SIDE_MIN, LIMIT_DISPLAY_SIDE) ||
		!within(size.dpi, DPI_MIN, DPI_MAX))
		return error_set(e, -EINVAL,
			"a screen has %d to %d pixels on each side and %d to %d dpi", SIDE_MIN,
			LIMIT_DISPLAY_SIDE, DPI_MIN, DPI_MAX);
	return session_display_resize(s, &size, e);
}

static bool is_replaced(const char *text)
{
	static const char *const names[] = { "Xvfb :0 ", "startxfce4", "pgrep -x ", "pkill x11vnc",
		"x11vnc ", "netstat -tuln ", "gtk-launch ", "xdpyinfo", "xrandr" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strncmp(text, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The server of the stream's address; the link it leads to ends with the session. */
static int stream_server(
	struct call *c, const char *text, struct e2b_desktop *d, char **argv, struct error *e)
{
	bool control = !c->api->no_live_control;
	struct live_link wanted = { .owner = c->owner, .control = control };
	snprintf(wanted.session, sizeof(wanted.session), "%.*s", SESSION_ID_LEN, c->id);
	const struct live_link *link = live_links_add(&c->api->live_links, &wanted, DAY_SECONDS);
	if (!link)
		return error_set(e, -EBUSY, "the maximum of %d links to live views already exists",
			LIMIT_LIVE_LINKS);

	snprintf(d->port, sizeof(d->port), "%u", number_after(text, "--listen ", NOVNC_PORT));
	snprintf(d->view, sizeof(d->view), "/v1/sessions/%s/live?key=%s", c->id, link->key);
	const char *const command[] = { "python3", "-I", "-c", desktop_sources[1].text, d->port,
		d->view, control ? "1" : "0", NULL };
	for (size_t i = 0; i < ARRAY_LEN(command); i++)
		argv[i] = (char *)(uintptr_t)command[i];
	return 0;
}

static int add_functions(const char *text, struct e2b_desktop *d, char **argv, struct error *e)
{
	unsigned port = number_after(text, "netstat -tuln | grep \":", 0);
	if (asprintf(&d->script, "DESKTOP_PORT=%u\n%s%s", port, desktop_sources[0].text, text) <
		0) {
		d->script = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	argv[3] = d->script;
	return 0;
}

int e2b_desktop(
	struct call *c, struct session *s, struct e2b_desktop *d, char **argv, struct error *e)
{
	struct session_info i;
	bool shell = argv[0] && argv[1] && text_eq(argv[1], "-l") && argv[2] &&
		     text_eq(argv[2], "-c") && argv[3] && !argv[4];
	session_info(s, &i);
	if (!shell || !i.has_display)
		return 0;
	if (!strncmp(argv[3], NOVNC, strlen(NOVNC)))
		return stream_server(c, argv[3], d, argv, e);
	int r = strncmp(argv[3], "Xvfb :0 ", 8) ? 0 : size_screen(s, argv[3], e);
	return r == 0 && is_replaced(argv[3]) ? add_functions(argv[3], d, argv, e) : r;
}

void e2b_desktop_finish(struct e2b_desktop *d)
{
	free(d->script);
}
