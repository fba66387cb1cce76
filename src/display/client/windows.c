/* The list of windows, and whose they are. */
#include <stdlib.h>
#include <string.h>
#include <xcb/res.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "display/client/screen.h"

enum { CHILDREN_MAX = 512, TITLE_WORDS = 48, CLASS_WORDS = 16 };

/* What is asked about one window; answers are collected after all were asked. */
struct questions {
	xcb_get_window_attributes_cookie_t attributes;
	xcb_get_geometry_cookie_t geometry;
	xcb_get_property_cookie_t net_name, name, class_name, pid, transient;
};

static struct questions ask(struct screen *s, xcb_window_t w)
{
	return (struct questions){ .attributes = xcb_get_window_attributes(s->x, w),
		.geometry = xcb_get_geometry(s->x, w),
		.net_name = xcb_get_property(
			s->x, 0, w, s->atom[ATOM_NET_WM_NAME], XCB_ATOM_ANY, 0, TITLE_WORDS),
		.name = xcb_get_property(
			s->x, 0, w, XCB_ATOM_WM_NAME, XCB_ATOM_ANY, 0, TITLE_WORDS),
		.class_name = xcb_get_property(
			s->x, 0, w, XCB_ATOM_WM_CLASS, XCB_ATOM_ANY, 0, CLASS_WORDS),
		.pid = xcb_get_property(
			s->x, 0, w, s->atom[ATOM_NET_WM_PID], XCB_ATOM_CARDINAL, 0, 1),
		.transient = xcb_get_property(
			s->x, 0, w, XCB_ATOM_WM_TRANSIENT_FOR, XCB_ATOM_WINDOW, 0, 1) };
}

/* Text of a property, cut to size; true when there was some. */
static bool take_text(struct screen *s, xcb_get_property_cookie_t cookie, char *text, size_t size)
{
	_cleanup_free_ xcb_get_property_reply_t *p = xcb_get_property_reply(s->x, cookie, NULL);
	int len = p && p->format == 8 ? xcb_get_property_value_length(p) : 0;
	if (len <= 0)
		return false;
	size_t n = (size_t)len < size ? (size_t)len : size - 1;
	memcpy(text, xcb_get_property_value(p), n);
	text[n] = '\0';
	return true;
}

static uint32_t take_word(struct screen *s, xcb_get_property_cookie_t cookie)
{
	_cleanup_free_ xcb_get_property_reply_t *p = xcb_get_property_reply(s->x, cookie, NULL);
	uint32_t word = 0;
	if (p && p->format == 32 && xcb_get_property_value_length(p) >= 4)
		memcpy(&word, xcb_get_property_value(p), 4);
	return word;
}

/* True when it is a window a person would call one. */
static bool take_answers(
	struct screen *s, const struct questions *q, xcb_window_t id, struct window_entry *w)
{
	char ignored[4], names[64] = "";
	*w = (struct window_entry){ .id = id };
	_cleanup_free_ xcb_get_window_attributes_reply_t *a = xcb_get_window_attributes_reply(
		s->x, q->attributes, NULL);
	_cleanup_free_ xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(
		s->x, q->geometry, NULL);
	if (take_text(s, q->net_name, w->title, sizeof(w->title)))
		take_text(s, q->name, ignored, sizeof(ignored));
	else
		take_text(s, q->name, w->title, sizeof(w->title));
	/* WM_CLASS is two strings: the instance and the class. */
	if (take_text(s, q->class_name, names, sizeof(names))) {
		size_t first = strlen(names);
		const char *second = first + 1 < sizeof(names) && names[first + 1]
					     ? names + first + 1
					     : names;
		memcpy(w->class_name, second, strnlen(second, sizeof(w->class_name) - 1));
	}

	w->pid = take_word(s, q->pid);
	w->dialog = take_word(s, q->transient) != 0;
	if (!a || !g || a->_class == XCB_WINDOW_CLASS_INPUT_ONLY ||
		a->map_state != XCB_MAP_STATE_VIEWABLE)
		return false;
	w->x = g->x;
	w->y = g->y;
	w->width = g->width;
	w->height = g->height;
	return g->width > 1 && g->height > 1;
}

/*
 * The process that owns a window, as the X server reports it: toolkits such as Tk do not set
 * _NET_WM_PID.
 */
static uint32_t pid_of(struct screen *s, xcb_window_t id)
{
	xcb_res_client_id_spec_t spec = { id, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID };
	_cleanup_free_ xcb_res_query_client_ids_reply_t *r = xcb_res_query_client_ids_reply(
		s->x, xcb_res_query_client_ids(s->x, 1, &spec), NULL);
	if (!r)
		return 0;
	xcb_res_client_id_value_iterator_t it = xcb_res_query_client_ids_ids_iterator(r);
	if (!it.rem || xcb_res_client_id_value_value_length(it.data) < 1)
		return 0;
	return *xcb_res_client_id_value_value(it.data);
}

unsigned windows_list(struct screen *s, struct window_entry *list, unsigned max)
{
	_cleanup_free_ xcb_query_tree_reply_t *t = xcb_query_tree_reply(
		s->x, xcb_query_tree(s->x, s->root), NULL);
	static struct questions questions[CHILDREN_MAX];
	unsigned n = t ? (unsigned)xcb_query_tree_children_length(t) : 0, found = 0;
	const xcb_window_t *children = t ? xcb_query_tree_children(t) : NULL;

	if (n > CHILDREN_MAX) { /* the upper ones: those that can be seen */
		children += n - CHILDREN_MAX;
		n = CHILDREN_MAX;
	}

	for (unsigned i = 0; i < n; i++)
		questions[i] = ask(s, children[i]);
	xcb_window_t active = manager_active(s);
	for (unsigned i = 0; i < n; i++) {
		struct window_entry w;
		if (!take_answers(s, &questions[i], children[i], &w))
			continue;
		w.focused = w.id == active;
		if (!w.pid && found < max)
			w.pid = pid_of(s, w.id);
		if (found < max)
			list[found] = w;
		found++;
	}

	return found;
}

bool windows_any(struct screen *s)
{
	struct window_entry one;
	if (s->n_clients)
		return manager_active(s) != 0;
	if (!s->windows_known) /* those that no manager may touch */
		s->windows = windows_list(s, &one, 1) > 0;
	s->windows_known = true;
	return s->windows;
}

unsigned windows_pids(struct screen *s, int32_t *pids, unsigned max)
{
	xcb_res_client_id_spec_t all = { 0, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID };
	_cleanup_free_ xcb_res_query_client_ids_reply_t *r = xcb_res_query_client_ids_reply(
		s->x, xcb_res_query_client_ids(s->x, 1, &all), NULL);
	unsigned n = 0;
	if (!r)
		return 0;
	/* What a forked server says of itself is its zygote's number. */
	if (s->server_pid)
		pids[n++] = s->server_pid;
	for (xcb_res_client_id_value_iterator_t it = xcb_res_query_client_ids_ids_iterator(r);
		it.rem; xcb_res_client_id_value_next(&it)) {
		if (xcb_res_client_id_value_value_length(it.data) < 1)
			continue;
		int32_t pid = (int32_t)*xcb_res_client_id_value_value(it.data);
		/* ours was connected from outside of the jail: it has no number here */
		bool known = pid <= 0;
		for (unsigned i = 0; i < n; i++)
			known |= pids[i] == pid;
		if (!known && n < max)
			pids[n++] = pid;
	}

	return n;
}
