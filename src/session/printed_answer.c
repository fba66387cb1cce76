/*
 * Final answers that code prints, for prompts that ask models for a text: `final_answer: …`
 * anywhere, `Answer: …` at the beginning.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "session/internal.h"

static const char marker[] = "final_answer:", beginning[] = "Answer:";

/* The end of the last marker in the text, or NULL. */
static const char *after_last_marker(const char *text, size_t len)
{
	size_t n = sizeof(marker) - 1;
	for (size_t at = len; at-- > 0;)
		if (len - at >= n && !strncasecmp(text + at, marker, n))
			return text + at + n;
	return NULL;
}

/* The rest of the line, without blanks around it, as the answer of the outcome. */
static void take_line(struct outcome *o, const char *from, const char *end)
{
	const char *eol = memchr(from, '\n', (size_t)(end - from));
	if (eol)
		end = eol;
	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	while (end > from && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	char *copy = strndup(from, (size_t)(end - from));
	if (!copy)
		return;

	o->answer = (struct final_answer){ .data = copy, .len = strlen(copy) };
	o->has_answer = true;
}

void session_take_printed_answer(struct session *s)
{
	struct captured out;
	output_view(&s->output.stream[STREAM_STDOUT], &out);
	const char *found = after_last_marker(out.tail, out.tail_len),
		   *end = out.tail + out.tail_len;
	if (!found) {
		found = after_last_marker(out.head, out.head_len);
		end = out.head + out.head_len;
	}

	if (!found && out.head_len >= sizeof(beginning) - 1 &&
		!memcmp(out.head, beginning, sizeof(beginning) - 1))
		found = out.head + sizeof(beginning) - 1;
	if (found)
		take_line(&s->outcome, found, end);
}
