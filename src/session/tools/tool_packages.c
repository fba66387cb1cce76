/* Packages that the code of a cell asks for (%pip install): a call that the daemon answers. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "session/internal.h"
#include "session/tools/pending_calls.h"

void sessions_on_packages(struct sessions *t,
	void (*ask)(void *, const char *, uint64_t, const char *, size_t), void *userdata)
{
	t->packages.ask = ask;
	t->packages.ask_userdata = userdata;
}

/* Its clock stands still meanwhile, as for a tool; an installation has a time limit of its own. */
void tools_wait_for_packages(struct session *s, uint64_t number)
{
	struct tools *t = s->tools;
	if (number && !t->packages_number)
		t->n_pending++;
	else if (!number && t->packages_number)
		t->n_pending--;
	t->packages_number = number;
	session_tools_waiting(s, t->n_pending > 0);
}

void tools_ask_packages(struct session *s, const struct asked *asked)
{
	struct sessions *table = s->table;
	if (!table->packages.ask) {
		tools_send_failure(s, asked->number, "ToolUnavailable",
			"packages cannot be installed while code runs; request them when the session is created");
	} else if (s->tools->packages_number ||
		   s->tools->calls_of_cell >= LIMIT_TOOL_CALLS_PER_CELL) {
		tools_send_failure(s, asked->number, "ToolBudgetError",
			"another installation of packages is running; wait for it first");
	} else {
		s->tools->calls_of_cell++;
		tools_wait_for_packages(s, asked->number);
		table->packages.ask(table->packages.ask_userdata, s->id, asked->number,
			asked->arguments, asked->len);
	}
}

void session_answer_packages(struct session *s, uint64_t number, struct session_package *p,
	char *report, const char *why)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	if (!s->tools || s->tools->packages_number != number) { /* its cell is over */
		session_package_free(p);
		free(report);
		return;
	}

	if (why) {
		tools_send_failure(s, number, "ToolError", why);
	} else {
		buffer_printf(&b, "{\"path\":%s%s%s,\"report\":%s}", p ? "\"" : "",
			p ? p->path : "null", p ? "\"" : "", report ? report : "{}");
		tools_send_result(
			s, number, WIRE_JSON, b.data ? b.data : "null", b.data ? b.len : 4, NULL);
		if (p) {
			p->next = s->params.packages;
			s->params.packages = p;
			p = NULL;
		}
		free(s->params.packages_report);
		s->params.packages_report = report;
		s->setup.packages_changed = true;
		report = NULL;
	}

	session_package_free(p);
	free(report);
	tools_wait_for_packages(s, 0);
}
