#include "session/cells/introspect.h"

#include <errno.h>

#include "base/clock.h"
#include "session/internal.h"

enum { LIMIT_S = 5 };

static int busy(struct error *e, const char *text)
{
	error_set(e, -EBUSY, "%s", text);
	error_remedy(e, "Ask again when the session is idle.");
	return error_slug(e, "session_busy");
}

int session_introspect(struct session *s, const char *request, size_t len, introspect_done done,
	void *userdata, struct error *e)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;

	if (s->phase != PHASE_IDLE || s->queue.n_background || s->check.answer)
		return busy(e, "the session is busy: its interpreter answers between cells");
	if (s->introspection.done)
		return busy(e, "another request about the variables is still running");

	if (!s->setup.sent)
		session_send_setup(s);

	int r = wire_begin(&b, WIRE_INTROSPECT, ++s->introspection.serial, &start);
	if (r == 0)
		r = wire_put(&b, WIRE_JSON, request, len);
	if (r == 0) {
		wire_end(&b, start);
		s->introspection.done = done;
		s->introspection.userdata = userdata;
		s->introspection.asked_ns = clock_now_ns();
		guest_send(sandbox_guest(s->sandbox), &b);
	}

	buffer_finish(&b);
	return r < 0 ? error_set_errno(e, r, "asking the interpreter") : 0;
}

static void end_question(struct session *s, const char *json, size_t len)
{
	introspect_done done = s->introspection.done;
	s->introspection.done = NULL;
	if (done)
		done(s->introspection.userdata, json, len);
}

void session_introspect_forget(struct session *s, void *userdata)
{
	if (s->introspection.userdata == userdata)
		s->introspection.done = NULL;
}

bool introspect_frame(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	if (f->type != WIRE_INTROSPECTED || !f->serial || f->serial > s->introspection.serial)
		return false;
	if (f->serial != s->introspection.serial)
		return true; /* too late */

	for (size_t at = 0; wire_field_next(f, &at, &field) == 1;)
		if (field.tag == WIRE_JSON && field.len <= LIMIT_INTROSPECT_BYTES) {
			end_question(s, field.data, field.len);
			return true;
		}
	end_question(s, NULL, 0);
	return true;
}

void introspect_drop(struct session *s)
{
	end_question(s, NULL, 0);
}

void introspect_expire(struct session *s)
{
	if (s->introspection.done &&
		clock_now_ns() - s->introspection.asked_ns > LIMIT_S * NSEC_PER_SEC)
		end_question(s, NULL, 0);
}
