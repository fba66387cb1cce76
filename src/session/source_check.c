/*
 * Is a source complete? A question to the interpreter between cells, which wait for its answer; so
 * it ends whatever becomes of the interpreter.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "session/internal.h"

enum { CHECK_LIMIT_S = 5 };

int session_check(struct session *s, const char *code, size_t len,
	void (*answer)(void *, const char *), void *userdata, struct error *e)
{
	struct buffer b = BUFFER_INIT(0);
	size_t start;

	if (!session_has_guest(s) || s->queue.running || s->check.answer)
		return error_set(e, -EBUSY, "the session is busy");

	if (!s->setup.sent)
		session_send_setup(s);

	int r = wire_begin(&b, WIRE_CHECK, ++s->check.serial, &start);
	if (r == 0)
		r = wire_put(&b, WIRE_CODE, code, len);
	if (r == 0) {
		wire_end(&b, start);
		s->check.answer = answer;
		s->check.userdata = userdata;
		s->check.asked_ns = clock_now_ns();
		guest_send(sandbox_guest(s->sandbox), &b);
	}

	buffer_finish(&b);
	return r < 0 ? error_set_errno(e, r, "asking the guest") : 0;
}

static void end_check(struct session *s, const char *verdict)
{
	void (*answer)(void *, const char *) = s->check.answer;
	if (!answer)
		return;
	s->check.answer = NULL;
	answer(s->check.userdata, verdict);
	session_start_next(s);
}

bool source_check_frame(struct session *s, const struct wire_frame *f)
{
	struct wire_field field;
	char verdict[16] = "invalid";

	if (f->type != WIRE_CHECKED || !f->serial || f->serial > s->check.serial)
		return false;
	if (f->serial != s->check.serial)
		return true; /* too late */

	for (size_t at = 0; wire_field_next(f, &at, &field) == 1;)
		if (field.tag == WIRE_TEXT)
			snprintf(verdict, sizeof(verdict), "%.*s",
				(int)(field.len < 15 ? field.len : 15), field.data);
	end_check(s, verdict);
	return true;
}

void source_check_drop(struct session *s)
{
	end_check(s, "unknown");
}

void source_check_expire(struct session *s)
{
	if (s->check.answer && clock_now_ns() - s->check.asked_ns > CHECK_LIMIT_S * NSEC_PER_SEC)
		end_check(s, "unknown");
}
