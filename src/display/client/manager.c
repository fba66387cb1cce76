/*
 * The window manager: places windows, gives them the keyboard, lets them fill the screen, be hidden
 * and be closed. No frames, no title bars: a picture shows what the program painted. Toolkits wait
 * for some of it (Tk blocks two seconds for an answer that nobody gives), so a display without a
 * manager is a slower one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "display/client/screen.h"

enum {
	CASCADE = 32,
	CASCADE_STEPS = 8,
	STATE_WITHDRAWN = 0,
	STATE_NORMAL = 1,
	STATE_ICONIC = 3,
	PROPERTY_WORDS = 32
};
enum { HINT_USER_POSITION = 1, HINT_PROGRAM_POSITION = 4 };

static struct client *find(struct screen *s, xcb_window_t id)
{
	for (unsigned i = 0; i < s->n_clients; i++)
		if (s->client[i].id == id)
			return &s->client[i];
	return NULL;
}

xcb_window_t manager_active(const struct screen *s)
{
	for (unsigned i = s->n_clients; i-- > 0;)
		if (!s->client[i].iconic)
			return s->client[i].id;
	return 0;
}

/* ---- what others may read of it -------------------------------------------------------- */

static void set_cards(struct screen *s, xcb_window_t w, enum screen_atom name, xcb_atom_t type,
	const void *data, unsigned n)
{
	xcb_change_property(s->x, XCB_PROP_MODE_REPLACE, w, s->atom[name], type, 32, n, data);
}

static void publish(struct screen *s)
{
	xcb_window_t ids[SCREEN_CLIENTS];
	xcb_window_t active = manager_active(s);
	for (unsigned i = 0; i < s->n_clients; i++)
		ids[i] = s->client[i].id;
	set_cards(s, s->root, ATOM_NET_CLIENT_LIST, XCB_ATOM_WINDOW, ids, s->n_clients);
	set_cards(s, s->root, ATOM_NET_CLIENT_LIST_STACKING, XCB_ATOM_WINDOW, ids, s->n_clients);
	set_cards(s, s->root, ATOM_NET_ACTIVE_WINDOW, XCB_ATOM_WINDOW, &active, 1);
}

static void set_wm_state(struct screen *s, xcb_window_t w, uint32_t state)
{
	uint32_t value[2] = { state, XCB_NONE };
	set_cards(s, w, ATOM_WM_STATE, s->atom[ATOM_WM_STATE], value, 2);
}

static void publish_state(struct screen *s, const struct client *c)
{
	xcb_atom_t atoms[4];
	unsigned n = 0;
	if (c->fullscreen)
		atoms[n++] = s->atom[ATOM_NET_WM_STATE_FULLSCREEN];
	if (c->maximized) {
		atoms[n++] = s->atom[ATOM_NET_WM_STATE_MAXIMIZED_VERT];
		atoms[n++] = s->atom[ATOM_NET_WM_STATE_MAXIMIZED_HORZ];
	}
	if (c->iconic)
		atoms[n++] = s->atom[ATOM_NET_WM_STATE_HIDDEN];
	set_cards(s, c->id, ATOM_NET_WM_STATE, XCB_ATOM_ATOM, atoms, n);
}

int manager_start(struct screen *s)
{
	static const char name[] = "Glovebox";
	uint32_t mask = XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY;
	_cleanup_free_ xcb_generic_error_t *refused = xcb_request_check(s->x,
		xcb_change_window_attributes_checked(s->x, s->root, XCB_CW_EVENT_MASK, &mask));

	if (refused)
		return -EBUSY; /* the session's code has a manager of its own */
	s->check = xcb_generate_id(s->x);
	xcb_create_window(s->x, XCB_COPY_FROM_PARENT, s->check, s->root, -10, -10, 1, 1, 0,
		XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, 0, NULL);
	xcb_change_property(s->x, XCB_PROP_MODE_REPLACE, s->check, s->atom[ATOM_NET_WM_NAME],
		s->atom[ATOM_UTF8_STRING], 8, sizeof(name) - 1, name);
	set_cards(s, s->check, ATOM_NET_SUPPORTING_WM_CHECK, XCB_ATOM_WINDOW, &s->check, 1);
	set_cards(s, s->root, ATOM_NET_SUPPORTING_WM_CHECK, XCB_ATOM_WINDOW, &s->check, 1);
	xcb_atom_t supported[] = { s->atom[ATOM_NET_WM_NAME], s->atom[ATOM_NET_WM_STATE],
		s->atom[ATOM_NET_WM_STATE_FULLSCREEN], s->atom[ATOM_NET_WM_STATE_MAXIMIZED_VERT],
		s->atom[ATOM_NET_WM_STATE_MAXIMIZED_HORZ], s->atom[ATOM_NET_WM_STATE_HIDDEN],
		s->atom[ATOM_NET_ACTIVE_WINDOW], s->atom[ATOM_NET_CLIENT_LIST],
		s->atom[ATOM_NET_CLIENT_LIST_STACKING], s->atom[ATOM_NET_CLOSE_WINDOW],
		s->atom[ATOM_NET_WORKAREA], s->atom[ATOM_NET_FRAME_EXTENTS],
		s->atom[ATOM_NET_REQUEST_FRAME_EXTENTS], s->atom[ATOM_NET_SUPPORTING_WM_CHECK] };
	set_cards(s, s->root, ATOM_NET_SUPPORTED, XCB_ATOM_ATOM, supported, ARRAY_LEN(supported));
	uint32_t area[4] = { 0, 0, s->width, s->height };
	set_cards(s, s->root, ATOM_NET_WORKAREA, XCB_ATOM_CARDINAL, area, 4);
	/* some window always has the focus: xdotool getwindowfocus fails without one */
	xcb_set_input_focus(s->x, XCB_INPUT_FOCUS_POINTER_ROOT, s->root, XCB_CURRENT_TIME);
	publish(s);
	return 0;
}

/* ---- one window ---------------------------------------------------------------------------- */

static void send_message(struct screen *s, xcb_window_t w, enum screen_atom type, xcb_atom_t word)
{
	xcb_client_message_event_t e = { .response_type = XCB_CLIENT_MESSAGE,
		.format = 32,
		.window = w,
		.type = s->atom[type] };
	e.data.data32[0] = word;
	e.data.data32[1] = XCB_CURRENT_TIME;
	xcb_send_event(s->x, 0, w, 0, (const char *)&e);
}

/* The words of a property; how many there are, at most max. */
static unsigned get_words(
	struct screen *s, xcb_get_property_cookie_t cookie, uint32_t *words, unsigned max)
{
	_cleanup_free_ xcb_get_property_reply_t *p = xcb_get_property_reply(s->x, cookie, NULL);
	if (!p || p->format != 32)
		return 0;
	unsigned n = (unsigned)xcb_get_property_value_length(p) / 4;
	n = n < max ? n : max;
	memcpy(words, xcb_get_property_value(p), n * sizeof(*words));
	return n;
}

static xcb_get_property_cookie_t ask_words(struct screen *s, xcb_window_t w, xcb_atom_t name)
{
	return xcb_get_property(s->x, 0, w, name, XCB_ATOM_ANY, 0, PROPERTY_WORDS);
}

static bool speaks(struct screen *s, xcb_window_t w, enum screen_atom protocol)
{
	uint32_t words[PROPERTY_WORDS];
	unsigned n = get_words(
		s, ask_words(s, w, s->atom[ATOM_WM_PROTOCOLS]), words, PROPERTY_WORDS);
	for (unsigned i = 0; i < n; i++)
		if (words[i] == s->atom[protocol])
			return true;
	return false;
}

static void move_to(struct screen *s, struct client *c, int x, int y, int width, int height)
{
	uint32_t v[5] = { (uint32_t)x, (uint32_t)y, (uint32_t)width, (uint32_t)height, 0 };
	c->x = x;
	c->y = y;
	c->width = width;
	c->height = height;
	xcb_configure_window(s->x, c->id,
		XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y | XCB_CONFIG_WINDOW_WIDTH |
			XCB_CONFIG_WINDOW_HEIGHT | XCB_CONFIG_WINDOW_BORDER_WIDTH,
		v);
}

/* ICCCM wants it told even where nothing changed; Tk and Qt wait for it. */
static void tell_geometry(struct screen *s, const struct client *c)
{
	xcb_configure_notify_event_t e = { .response_type = XCB_CONFIGURE_NOTIFY,
		.event = c->id,
		.window = c->id,
		.x = (int16_t)c->x,
		.y = (int16_t)c->y,
		.width = (uint16_t)c->width,
		.height = (uint16_t)c->height };
	xcb_send_event(s->x, 0, c->id, XCB_EVENT_MASK_STRUCTURE_NOTIFY, (const char *)&e);
}

static void fill_screen(struct screen *s, struct client *c, bool fullscreen, bool maximized)
{
	bool was = c->fullscreen || c->maximized, is = fullscreen || maximized;
	if (!was && is) {
		c->kept_x = c->x;
		c->kept_y = c->y;
		c->kept_width = c->width;
		c->kept_height = c->height;
	}

	c->fullscreen = fullscreen;
	c->maximized = maximized;
	if (is)
		move_to(s, c, 0, 0, (int)s->width, (int)s->height);
	else if (was)
		move_to(s, c, c->kept_x, c->kept_y, c->kept_width, c->kept_height);
	publish_state(s, c);
}

/* To the top, with the keyboard. Clients are kept in stacking order, so it moves to the end. */
static void focus(struct screen *s, xcb_window_t id)
{
	struct client *c = find(s, id);
	uint32_t above = XCB_STACK_MODE_ABOVE;
	if (!c)
		return;
	struct client kept = *c;
	size_t at = (size_t)(c - s->client);
	memmove(c, c + 1, (s->n_clients - at - 1) * sizeof(*c));
	s->client[s->n_clients - 1] = kept;
	xcb_configure_window(s->x, id, XCB_CONFIG_WINDOW_STACK_MODE, &above);
	xcb_set_input_focus(s->x, XCB_INPUT_FOCUS_POINTER_ROOT, id, XCB_CURRENT_TIME);
	publish(s);
}

static void place(struct screen *s, struct client *c, const struct client *parent)
{
	if (parent) {
		c->x = parent->x + (parent->width - c->width) / 2;
		c->y = parent->y + (parent->height - c->height) / 2;
	} else if (s->n_clients == 0) {
		c->x = ((int)s->width - c->width) / 2;
		c->y = ((int)s->height - c->height) / 2;
	} else {
		s->cascade = (s->cascade + 1) % CASCADE_STEPS;
		c->x = c->y = (int)(s->cascade + 1) * CASCADE;
	}

	if (c->x + c->width > (int)s->width)
		c->x = (int)s->width - c->width;
	if (c->y + c->height > (int)s->height)
		c->y = (int)s->height - c->height;
	c->x = c->x > 0 ? c->x : 0;
	c->y = c->y > 0 ? c->y : 0;
}

static void map_known(struct screen *s, struct client *c)
{
	xcb_window_t id = c->id;
	c->iconic = false;
	set_wm_state(s, id, STATE_NORMAL);
	publish_state(s, c);
	xcb_map_window(s->x, id);
	focus(s, id);
}

static void read_wishes(struct screen *s, struct client *c, xcb_get_property_cookie_t hints,
	xcb_get_property_cookie_t transient, xcb_get_property_cookie_t state, bool at_origin)
{
	uint32_t words[PROPERTY_WORDS] = { 0 }, owner = 0;
	unsigned n = get_words(s, hints, words, PROPERTY_WORDS);
	bool positioned = n && words[0] & (HINT_USER_POSITION | HINT_PROGRAM_POSITION);

	c->dialog = get_words(s, transient, &owner, 1) == 1;
	if (!positioned && at_origin) {
		place(s, c, c->dialog ? find(s, owner) : NULL);
		move_to(s, c, c->x, c->y, c->width, c->height);
	}

	bool fullscreen = false, maximized = false;
	n = get_words(s, state, words, PROPERTY_WORDS);
	for (unsigned i = 0; i < n; i++) {
		fullscreen |= words[i] == s->atom[ATOM_NET_WM_STATE_FULLSCREEN];
		maximized |= words[i] == s->atom[ATOM_NET_WM_STATE_MAXIMIZED_VERT];
	}

	if (fullscreen || maximized)
		fill_screen(s, c, fullscreen, maximized);
}

static void on_map_request(struct screen *s, xcb_window_t id)
{
	struct client *known = find(s, id), fresh = { .id = id };
	if (known) {
		map_known(s, known);
		return;
	}

	xcb_get_geometry_cookie_t geometry = xcb_get_geometry(s->x, id);
	xcb_get_property_cookie_t hints = ask_words(s, id, XCB_ATOM_WM_NORMAL_HINTS);
	xcb_get_property_cookie_t transient = ask_words(s, id, XCB_ATOM_WM_TRANSIENT_FOR);
	xcb_get_property_cookie_t state = ask_words(s, id, s->atom[ATOM_NET_WM_STATE]);
	_cleanup_free_ xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(s->x, geometry, NULL);
	/* the window is gone, or the limit of managed windows is reached: show it unmanaged */
	if (!g || s->n_clients == SCREEN_CLIENTS) {
		xcb_discard_reply(s->x, hints.sequence);
		xcb_discard_reply(s->x, transient.sequence);
		xcb_discard_reply(s->x, state.sequence);
		xcb_map_window(s->x, id);
		return;
	}

	fresh.x = g->x;
	fresh.y = g->y;
	fresh.width = g->width;
	fresh.height = g->height;
	read_wishes(s, &fresh, hints, transient, state, g->x == 0 && g->y == 0);
	s->client[s->n_clients++] = fresh;
	set_wm_state(s, id, STATE_NORMAL);
	xcb_map_window(s->x, id);
	focus(s, id);
	tell_geometry(s, &fresh);
	if (speaks(s, id, ATOM_WM_TAKE_FOCUS))
		send_message(s, id, ATOM_WM_PROTOCOLS, s->atom[ATOM_WM_TAKE_FOCUS]);
}

/* Adopts windows that a client opened before the window manager was ready. */
void manager_adopt(struct screen *s)
{
	_cleanup_free_ xcb_query_tree_reply_t *t = xcb_query_tree_reply(
		s->x, xcb_query_tree(s->x, s->root), NULL);

	for (int i = 0; t && i < xcb_query_tree_children_length(t) && i < SCREEN_CLIENTS; i++) {
		xcb_window_t id = xcb_query_tree_children(t)[i];
		_cleanup_free_ xcb_get_window_attributes_reply_t *a =
			xcb_get_window_attributes_reply(
				s->x, xcb_get_window_attributes(s->x, id), NULL);
		if (!a || a->map_state != XCB_MAP_STATE_VIEWABLE ||
			a->_class == XCB_WINDOW_CLASS_INPUT_ONLY)
			continue;
		if (!a->override_redirect)
			on_map_request(s, id);
		activity_mapped(&s->activity, clock_now_ns());
	}

	xcb_flush(s->x);
}

static void forget(struct screen *s, xcb_window_t id)
{
	struct client *c = find(s, id);
	if (!c)
		return;
	size_t at = (size_t)(c - s->client);
	memmove(c, c + 1, (s->n_clients - at - 1) * sizeof(*c));
	s->n_clients--;
	xcb_window_t next = manager_active(s);
	xcb_set_input_focus(
		s->x, XCB_INPUT_FOCUS_POINTER_ROOT, next ? next : s->root, XCB_CURRENT_TIME);
	publish(s);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_configure_request(struct screen *s, const xcb_configure_request_event_t *e)
{
	struct client *c = find(s, e->window);
	uint32_t v[7];
	unsigned n = 0;

	if (c && (c->fullscreen || c->maximized)) {
		tell_geometry(s, c);
		return;
	}

	const uint32_t values[7] = { (uint32_t)e->x, (uint32_t)e->y, e->width, e->height,
		e->border_width, e->sibling, e->stack_mode };
	for (unsigned i = 0; i < 7; i++)
		if (e->value_mask & 1U << i)
			v[n++] = values[i];
	xcb_configure_window(s->x, e->window, e->value_mask, v);
	if (!c)
		return;
	c->x = e->value_mask & XCB_CONFIG_WINDOW_X ? e->x : c->x;
	c->y = e->value_mask & XCB_CONFIG_WINDOW_Y ? e->y : c->y;
	c->width = e->value_mask & XCB_CONFIG_WINDOW_WIDTH ? e->width : c->width;
	c->height = e->value_mask & XCB_CONFIG_WINDOW_HEIGHT ? e->height : c->height;
	tell_geometry(s, c);
}

static void on_state_message(struct screen *s, struct client *c, const uint32_t *d)
{
	bool fullscreen = c->fullscreen, maximized = c->maximized, done_max = false;
	/* 0 remove, 1 add, 2 toggle; both halves of "maximized" come together */
	for (int i = 1; i < 3; i++) {
		bool is_max = d[i] == s->atom[ATOM_NET_WM_STATE_MAXIMIZED_VERT] ||
			      d[i] == s->atom[ATOM_NET_WM_STATE_MAXIMIZED_HORZ];
		if (d[i] == s->atom[ATOM_NET_WM_STATE_FULLSCREEN])
			fullscreen = d[0] == 2 ? !fullscreen : d[0] == 1;
		else if (is_max && !done_max)
			maximized = d[0] == 2 ? !maximized : d[0] == 1;
		done_max |= is_max;
	}
	fill_screen(s, c, fullscreen, maximized);
	tell_geometry(s, c);
}

static void close_window(struct screen *s, xcb_window_t id)
{
	if (speaks(s, id, ATOM_WM_DELETE_WINDOW))
		send_message(s, id, ATOM_WM_PROTOCOLS, s->atom[ATOM_WM_DELETE_WINDOW]);
}

static void on_client_message(struct screen *s, const xcb_client_message_event_t *e)
{
	struct client *c = find(s, e->window);
	const uint32_t *d = e->data.data32;

	if (e->type == s->atom[ATOM_NET_REQUEST_FRAME_EXTENTS]) {
		uint32_t none[4] = { 0 };
		set_cards(s, e->window, ATOM_NET_FRAME_EXTENTS, XCB_ATOM_CARDINAL, none, 4);
	} else if (!c || e->format != 32) {
		return;
	} else if (e->type == s->atom[ATOM_NET_WM_STATE]) {
		on_state_message(s, c, d);
	} else if (e->type == s->atom[ATOM_NET_ACTIVE_WINDOW]) {
		map_known(s, c);
	} else if (e->type == s->atom[ATOM_NET_CLOSE_WINDOW]) {
		close_window(s, c->id);
	} else if (e->type == s->atom[ATOM_WM_CHANGE_STATE] && d[0] == STATE_ICONIC) {
		c->iconic = true;
		set_wm_state(s, c->id, STATE_ICONIC);
		publish_state(s, c);
		xcb_unmap_window(s->x, c->id);
		publish(s);
	}
}

static void on_unmap(struct screen *s, const xcb_unmap_notify_event_t *e)
{
	struct client *c = find(s, e->window);
	if (!c || c->iconic || e->event != s->root)
		return;
	set_wm_state(s, e->window, STATE_WITHDRAWN);
	forget(s, e->window);
}

void manager_event(struct screen *s, const xcb_generic_event_t *event)
{
	/* most of what comes here is about a window that comes, goes or grows */
	s->windows_known = false;
	switch (event->response_type & 0x7f) {
	case XCB_MAP_REQUEST:
		on_map_request(s, ((const xcb_map_request_event_t *)event)->window);
		break;
	case XCB_CONFIGURE_REQUEST:
		on_configure_request(s, (const xcb_configure_request_event_t *)event);
		break;
	case XCB_MAP_NOTIFY:
		activity_mapped(&s->activity, clock_now_ns());
		break;
	case XCB_UNMAP_NOTIFY:
		on_unmap(s, (const xcb_unmap_notify_event_t *)event);
		break;
	case XCB_DESTROY_NOTIFY:
		forget(s, ((const xcb_destroy_notify_event_t *)event)->window);
		break;
	case XCB_CLIENT_MESSAGE:
		on_client_message(s, (const xcb_client_message_event_t *)event);
		break;
	default:
		break;
	}
}

/* ---- all of them -------------------------------------------------------------------- */

/* From the top: a dialog holds its parent up until it is gone. */
unsigned manager_close_all(struct screen *s)
{
	unsigned n = s->n_clients;
	for (unsigned i = n; i-- > 0;)
		close_window(s, s->client[i].id);
	xcb_flush(s->x);
	return n;
}

/*
 * A message nobody knows wakes most loops; SDL gives its caller only what it knows, such as a pixel
 * to paint again.
 */
unsigned manager_send_noop_all(struct screen *s)
{
	for (unsigned i = 0; i < s->n_clients; i++) {
		xcb_expose_event_t e = { .response_type = XCB_EXPOSE,
			.window = s->client[i].id,
			.width = 1,
			.height = 1 };
		send_message(s, s->client[i].id, ATOM_GLOVEBOX_POKE, 0);
		xcb_send_event(s->x, 0, s->client[i].id, 0, (const char *)&e);
	}
	xcb_flush(s->x);
	return s->n_clients;
}

void manager_raise_under_pointer(struct screen *s)
{
	_cleanup_free_ xcb_query_pointer_reply_t *p = xcb_query_pointer_reply(
		s->x, xcb_query_pointer(s->x, s->root), NULL);
	if (p && p->child && p->child != manager_active(s) && find(s, p->child))
		focus(s, p->child);
}
