/* Output of a guest: counted, logged, capped, and told to the observer of the running cell. */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "session/internal.h"

/* Tells the listener whole characters only; up to three bytes wait for what follows. */
void session_tell_output(struct session *s, enum stream stream, const char *data, size_t len)
{
	struct cell *c = s->queue.running;
	char joined[8];

	if (!c || c->abandoned || !c->observer.on_output || !len)
		return;

	if (c->observer.uncapped || c->observer.streams_all) {
		c->observer.on_output(c->userdata, stream, data, len);
		return;
	}

	size_t carried = s->output.partial_len[stream];
	/* the unfinished character and the bytes that can belong to it, as a piece of their own */
	if (carried) {
		size_t more = len < 4 - carried ? len : 4 - carried;
		memcpy(joined, s->output.partial[stream], carried);
		memcpy(joined + carried, data, more);
		size_t open = utf8_unfinished(joined, carried + more);
		if (open && open == carried + more) {
			memcpy(s->output.partial[stream], joined, open);
			s->output.partial_len[stream] = open;
			return;
		}
		s->output.partial_len[stream] = 0;
		c->observer.on_output(c->userdata, stream, joined, carried + more - open);
		data += more - open;
		len -= more - open;
	}

	size_t open = utf8_unfinished(data, len);
	memcpy(s->output.partial[stream], data + len - open, open);
	s->output.partial_len[stream] = open;
	if (len > open)
		c->observer.on_output(c->userdata, stream, data, len - open);
}

void session_guest_output(struct session *s, enum stream stream, const char *data, size_t len)
{
	uint64_t *total = stream == STREAM_STDOUT ? &s->table->stats.stdout_bytes
						  : &s->table->stats.stderr_bytes;
	*total += len;
	output_log_add(&s->output.log, s->queue.cells, stream, clock_wall_ns(), data, len);
	session_count_output(s, len);
	bool uncapped = s->queue.running && s->queue.running->observer.uncapped;
	size_t in_head = uncapped ? len : output_add(&s->output.stream[stream], data, len);
	if (in_head < len)
		/* output beyond the cap is not urgent: let other sessions use the CPUs */
		guest_rest(sandbox_guest(s->sandbox));
	bool all = s->queue.running && s->queue.running->observer.streams_all;
	session_tell_output(s, stream, data, all ? len : in_head);
	watch_output(s, stream, data, in_head);
}
