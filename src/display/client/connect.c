/* The connection to the X server: set-up, extensions, atoms, shared memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xcb/damage.h>
#include <xcb/res.h>
#include <xcb/shm.h>
#include <xcb/xfixes.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "display/client/screen.h"

static const char *const names[ATOM_COUNT] = {
	[ATOM_WM_PROTOCOLS] = "WM_PROTOCOLS",
	[ATOM_WM_DELETE_WINDOW] = "WM_DELETE_WINDOW",
	[ATOM_WM_TAKE_FOCUS] = "WM_TAKE_FOCUS",
	[ATOM_WM_STATE] = "WM_STATE",
	[ATOM_WM_CHANGE_STATE] = "WM_CHANGE_STATE",
	[ATOM_NET_SUPPORTED] = "_NET_SUPPORTED",
	[ATOM_NET_SUPPORTING_WM_CHECK] = "_NET_SUPPORTING_WM_CHECK",
	[ATOM_NET_WM_NAME] = "_NET_WM_NAME",
	[ATOM_NET_WM_PID] = "_NET_WM_PID",
	[ATOM_NET_WM_STATE] = "_NET_WM_STATE",
	[ATOM_NET_WM_STATE_FULLSCREEN] = "_NET_WM_STATE_FULLSCREEN",
	[ATOM_NET_WM_STATE_MAXIMIZED_VERT] = "_NET_WM_STATE_MAXIMIZED_VERT",
	[ATOM_NET_WM_STATE_MAXIMIZED_HORZ] = "_NET_WM_STATE_MAXIMIZED_HORZ",
	[ATOM_NET_WM_STATE_HIDDEN] = "_NET_WM_STATE_HIDDEN",
	[ATOM_NET_CLIENT_LIST] = "_NET_CLIENT_LIST",
	[ATOM_NET_CLIENT_LIST_STACKING] = "_NET_CLIENT_LIST_STACKING",
	[ATOM_NET_ACTIVE_WINDOW] = "_NET_ACTIVE_WINDOW",
	[ATOM_NET_CLOSE_WINDOW] = "_NET_CLOSE_WINDOW",
	[ATOM_NET_WORKAREA] = "_NET_WORKAREA",
	[ATOM_NET_FRAME_EXTENTS] = "_NET_FRAME_EXTENTS",
	[ATOM_NET_REQUEST_FRAME_EXTENTS] = "_NET_REQUEST_FRAME_EXTENTS",
	[ATOM_UTF8_STRING] = "UTF8_STRING",
	[ATOM_GLOVEBOX_POKE] = "_GLOVEBOX_POKE",
};

/* All asked at once, then all collected: one round trip. */
static int intern_atoms(struct screen *s)
{
	xcb_intern_atom_cookie_t cookies[ATOM_COUNT];
	for (int i = 0; i < ATOM_COUNT; i++)
		cookies[i] = xcb_intern_atom(s->x, 0, (uint16_t)strlen(names[i]), names[i]);
	int r = 0;
	for (int i = 0; i < ATOM_COUNT; i++) {
		_cleanup_free_ xcb_intern_atom_reply_t *a = xcb_intern_atom_reply(
			s->x, cookies[i], NULL);
		if (a)
			s->atom[i] = a->atom;
		else
			r = -EPROTO;
	}
	return r;
}

static bool has(struct screen *s, xcb_extension_t *extension, uint8_t *ret_first_event)
{
	const xcb_query_extension_reply_t *q = xcb_get_extension_data(s->x, extension);
	if (q && ret_first_event)
		*ret_first_event = q->first_event;
	return q && q->present;
}

/* Extensions want to be asked for their version before they serve. */
static int start_extensions(struct screen *s)
{
	xcb_prefetch_extension_data(s->x, &xcb_damage_id);
	xcb_prefetch_extension_data(s->x, &xcb_composite_id);
	xcb_prefetch_extension_data(s->x, &xcb_xfixes_id);
	xcb_prefetch_extension_data(s->x, &xcb_shm_id);
	xcb_prefetch_extension_data(s->x, &xcb_res_id);
	if (!has(s, &xcb_damage_id, &s->damage_event) || !has(s, &xcb_composite_id, NULL) ||
		!has(s, &xcb_xfixes_id, NULL) || !has(s, &xcb_res_id, NULL))
		return -EPROTO;
	xcb_damage_query_version_cookie_t damage = xcb_damage_query_version(s->x, 1, 1);
	xcb_composite_query_version_cookie_t composite = xcb_composite_query_version(s->x, 0, 4);
	xcb_xfixes_query_version_cookie_t fixes = xcb_xfixes_query_version(s->x, 5, 0);
	xcb_res_query_version_cookie_t res = xcb_res_query_version(s->x, 1, 2);
	free(xcb_damage_query_version_reply(s->x, damage, NULL));
	free(xcb_composite_query_version_reply(s->x, composite, NULL));
	free(xcb_xfixes_query_version_reply(s->x, fixes, NULL));
	free(xcb_res_query_version_reply(s->x, res, NULL));
	/*
	 * From the start: a window's own pixels exist only from the moment on that it is
	 * redirected.
	 */
	xcb_composite_redirect_subwindows(s->x, s->root, XCB_COMPOSITE_REDIRECT_AUTOMATIC);
	s->damage = xcb_generate_id(s->x);
	xcb_damage_create(s->x, s->damage, s->root, XCB_DAMAGE_REPORT_LEVEL_NON_EMPTY);
	return 0;
}

static int take_first_screen(struct screen *s)
{
	xcb_screen_iterator_t it = xcb_setup_roots_iterator(xcb_get_setup(s->x));
	if (!it.rem || !it.data)
		return -EPROTO;
	s->root = it.data->root;
	s->visual = it.data->root_visual;
	s->width = it.data->width_in_pixels;
	s->height = it.data->height_in_pixels;
	s->depth = it.data->root_depth;
	if (!s->width || !s->height || s->width > LIMIT_DISPLAY_SIDE ||
		s->height > LIMIT_DISPLAY_SIDE)
		return -EPROTO;
	return 0;
}

int screen_connect(struct screen *s, int server, const uint8_t cookie[XSOCKET_COOKIE])
{
	static char name[] = "MIT-MAGIC-COOKIE-1";
	char secret[XSOCKET_COOKIE];

	xcb_auth_info_t auth = { .namelen = (int)strlen(name),
		.name = name,
		.datalen = XSOCKET_COOKIE,
		.data = secret };
	memcpy(secret, cookie, sizeof(secret));
	s->x = xcb_connect_to_fd(server, &auth);
	if (!s->x || xcb_connection_has_error(s->x))
		return -ECONNREFUSED;
	int r = take_first_screen(s);
	if (r == 0)
		r = intern_atoms(s);
	if (r == 0)
		r = start_extensions(s);
	xcb_flush(s->x);
	return r;
}
