/* Questions to a screen that wait for their answer. Each is answered once, or forgotten. */
#include "base/clock.h"
#include "session/display/session_display_internal.h"

struct question *display_find_question(struct display *d, uint32_t serial)
{
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (serial && d->question[i].serial == serial)
			return &d->question[i];
	return NULL;
}

void display_answer_question(struct question *q, const struct display_reply *r)
{
	display_answer fn = q->answer;
	void *userdata = q->userdata;
	*q = (struct question){ 0 };
	if (fn)
		fn(userdata, r);
}

void display_fail_question(
	struct question *q, const char *code, const char *text, const char *remedy)
{
	display_answer_question(q, &(struct display_reply){ .type = DISPLAY_SAY_TROUBLE,
					   .code = code,
					   .text = text,
					   .remedy = remedy });
}

void display_fail_questions(
	struct display *d, const char *code, const char *text, const char *remedy)
{
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (d->question[i].serial)
			display_fail_question(&d->question[i], code, text, remedy);
}

bool display_has_questions(const struct display *d)
{
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (d->question[i].serial)
			return true;
	return false;
}

void display_forget(struct display *d, uint32_t serial)
{
	struct question *q = display_find_question(d, serial);
	if (!q)
		return;
	*q = (struct question){ 0 };
	if (d->state != DISPLAY_CLOSED &&
		display_frame(&d->queue, DISPLAY_ASK_CANCEL, serial, NULL, 0) == 0)
		display_flush(d);
}

void display_outlive(struct display *d, uint32_t serial)
{
	struct question *q = display_find_question(d, serial);
	if (q)
		q->outlives = true;
}

void display_forget_all(struct display *d, const void *userdata)
{
	for (unsigned i = 0; i < LIMIT_DISPLAY_ASKS; i++)
		if (d->question[i].serial && d->question[i].userdata == userdata)
			display_forget(d, d->question[i].serial);
}
