#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "dialects/trainers/trainers.h"

enum { SIGNALLED = 128 };

static int put_captured(const struct captured *c, struct buffer *out)
{
	int r = buffer_append(out, c->head, c->head_len);
	if (r == 0 && c->left_out)
		r = buffer_printf(
			out, "\n… %llu bytes left out …\n", (unsigned long long)c->left_out);
	return r < 0 ? r : buffer_append(out, c->tail, c->tail_len);
}

int script_stdout(const struct observation *o, struct buffer *out)
{
	return put_captured(&o->out, out);
}

bool script_timed_out(const struct observation *o)
{
	return o->status == CELL_TIMEOUT;
}

bool script_raised(const struct observation *o)
{
	return o->error && o->status != CELL_TIMEOUT && !text_eq(o->error->type, "SystemExit");
}

int script_stderr(const struct observation *o, struct buffer *out)
{
	int r = put_captured(&o->err, out);
	if (r < 0 || !script_raised(o))
		return r;
	const struct cell_error *e = o->error;
	if (e->traceback_len)
		return buffer_append(out, e->traceback, e->traceback_len);
	r = buffer_printf(out, "%s: ", e->type);
	if (r == 0)
		r = buffer_append(out, e->message, e->message_len);
	return r < 0 ? r : buffer_append_char(out, '\n');
}

int script_return_code(const struct observation *o)
{
	if (o->status == CELL_KILLED && o->exit_code > SIGNALLED)
		return SIGNALLED - o->exit_code;
	return o->status != CELL_OK && !o->exit_code ? 1 : o->exit_code;
}
