/*
 * Questions about the variables of a session, which its interpreter answers between cells: the list
 * of variables, completion, inspection. One at a time; each question gets an answer even if the
 * interpreter dies.
 */
#pragma once

#include "session/session.h"
#include "wire/wire.h"

/* json: the answer, valid during the call, untrusted; NULL: the interpreter gave none. */
typedef void (*introspect_done)(void *userdata, const char *json, size_t len);

/*
 * `request` is JSON text. -EBUSY (slug "session_busy") while a cell runs or another question is
 * open. `done` is called once, in another turn of the loop, unless it is forgotten before.
 */
int session_introspect(struct session *s, const char *request, size_t len, introspect_done done,
	void *userdata, struct error *e);
void session_introspect_forget(struct session *s, void *userdata);

/* ---- private to src/session ---- */

struct introspection {
	uint32_t serial;
	introspect_done done; /* NULL: no question is open */
	void *userdata;
	uint64_t asked_ns;
};

bool introspect_frame(struct session *s, const struct wire_frame *f); /* false: not one of these */
void introspect_drop(struct session *s);                              /* the interpreter is gone */
void introspect_expire(struct session *s); /* the same, when it takes too long */
