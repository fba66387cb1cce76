/*
 * The session layer on a loop of its own, with real jails and guests. Run as `test_session MODULE`,
 * where MODULE is glovebox-guest.so.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "jail/jailer.h"
#include "local/reaper.h"
#include "session/session.h"
#include "tap.h"

#define SHORT_S \
	1.5 /* the time of a cell that never ends, and what it has to give way: long enough for others on a busy machine */

static uv_loop_t loop;
static struct sessions *table;
static struct reaper reaper;

/* The last observation, copied flat. */
static struct {
	int done;
	enum cell_status status;
	int exit_code;
	unsigned cell, displays, files;
	bool state_lost, rolled_back, files_rolled_back;
	char out[4096], err[4096], result[512], error_type[128], message[512], traceback[8192];
	int line;
} got;

static void on_done(void *userdata, const struct observation *o)
{
	(void)userdata;
	memset(&got, 0, sizeof(got));
	got.done = 1;
	got.status = o->status;
	got.exit_code = o->exit_code;
	got.cell = o->cell;
	got.displays = o->n_displays;
	got.files = o->n_files;
	got.state_lost = o->state_lost;
	got.rolled_back = o->rolled_back;
	got.files_rolled_back = o->files_rolled_back;
	snprintf(got.out, sizeof(got.out), "%.*s%.*s", (int)o->out.head_len, o->out.head,
		(int)o->out.tail_len, o->out.tail);
	snprintf(got.err, sizeof(got.err), "%.*s", (int)o->err.head_len, o->err.head);
	for (unsigned i = 0; o->result && i < o->result->n; i++)
		if (!strcmp(o->result->item[i].mime, "text/plain"))
			snprintf(got.result, sizeof(got.result), "%s", o->result->item[i].data);
	if (o->error) {
		snprintf(got.error_type, sizeof(got.error_type), "%s", o->error->type);
		snprintf(got.message, sizeof(got.message), "%s", o->error->message);
		snprintf(got.traceback, sizeof(got.traceback), "%s", o->error->traceback);
		got.line = o->error->line;
	}
}

static const struct cell_observer observer = { .on_done = on_done };

static void run_loop(int *until)
{
	while (!*until && uv_run(&loop, UV_RUN_ONCE))
		;
}

static bool transactions;

static void run(struct session *s, const char *code)
{
	struct cell_request q = {
		.code = code, .code_len = strlen(code), .no_transaction = !transactions
	};
	struct cell *c;
	struct error e = { 0 };
	got.done = 0;
	if (session_execute(s, NULL, &q, &observer, NULL, &e, &c) < 0)
		printf("# %s\n", e.text);
	else
		run_loop(&got.done);
}

static struct session *make(double timeout_s)
{
	struct session_params p = { .limits = { .timeout_s = timeout_s } };
	struct error e = { 0 };
	struct session *s = NULL;
	OK(session_create(table, &p, &e, &s) == 0);
	if (!s)
		printf("# %s\n", e.text);
	return s;
}

static void cells(void)
{
	struct session *s = make(0);
	run(s, "x = 40 + 2");
	OK(got.status == CELL_OK && got.cell == 1 && !got.result[0]);
	run(s, "print('hello'); x");
	OK(got.status == CELL_OK);
	OK_STR(got.out, "hello\n");
	OK_STR(got.result, "42");
	run(s, "1 +");
	OK(got.status == CELL_ERROR && got.line == 1);
	OK_STR(got.error_type, "SyntaxError");
	run(s, "def f():\n    return 1/0\nf()");
	OK(got.status == CELL_ERROR && got.exit_code == 1 && got.line == 2);
	OK(strstr(got.traceback, "File \"<cell 4>\", line 2, in f\n    return 1/0\n") != NULL);
	OK(strstr(got.traceback, "glovebox") == NULL);
	run(s, "import sys, os, subprocess\nprint('a'); subprocess.run(['echo', 'b']); os.system('echo c'); os.write(1, b'd\\n'); print('e')");
	OK_STR(got.out, "a\nb\nc\nd\ne\n");
	run(s, "print('o'); print('e', file=sys.stderr); sys.exit(3)");
	OK(got.exit_code == 3 && got.status == CELL_ERROR && !got.state_lost);
	OK_STR(got.out, "o\n");
	OK_STR(got.err, "e\n");
	run(s, "open('f.txt', 'w').write('x'); os.getcwd(), os.getuid(), __name__");
	OK_STR(got.result, "('/workspace', 1000, '__main__')");
	OK(got.files == 1);
	run(s, "import asyncio\nawait asyncio.sleep(0)\n7;");
	OK(got.status == CELL_OK && !got.result[0]);
	run(s, "input('name? ')");
	OK_STR(got.error_type, "EOFError");
	OK(strstr(got.message, "no keyboard") != NULL);
	session_end(s, "test");
}

static void deaths(void)
{
	struct session *s = make(0);
	run(s, "y = 1\nopen('kept', 'w').close()\nprint('before'); import os; os._exit(3)");
	OK(got.status == CELL_KILLED && got.exit_code == 3 && got.state_lost);
	OK_STR(got.out, "before\n");
	run(s, "import os; os.path.exists('kept'), 'y' in globals()");
	OK_STR(got.result, "(True, False)");
	run(s, "print('seg'); import ctypes; ctypes.string_at(0)");
	OK(got.status == CELL_KILLED && got.exit_code == 139 && got.state_lost);
	OK_STR(got.out, "seg\n");
	run(s, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)");
	OK(got.exit_code == 137 && got.state_lost);
	run(s, "1");
	OK(got.status == CELL_OK);
	session_end(s, "test");
}

static void transaction(const char *end, enum cell_status status, int exit_code)
{
	struct session *s = make(SHORT_S);
	run(s, "y = 1\nopen('kept', 'w').write('as it was')");
	OK(got.status == CELL_OK && !got.rolled_back);
	char code[256];
	snprintf(code, sizeof(code),
		"y = 2; open('kept', 'w').write('changed'); open('new', 'w').close()\n%s", end);
	run(s, code);
	OK(got.status == status && got.exit_code == exit_code && !got.state_lost &&
		got.rolled_back && got.files_rolled_back);
	run(s, "import os; y, open('kept').read(), os.listdir()");
	OK_STR(got.result, "(1, 'as it was', ['kept'])");
	session_end(s, "test");
}

/* The same ends as above, and nothing is lost. */
static void transactions_go_back(void)
{
	transactions = true;
	transaction("import os; os._exit(3)", CELL_KILLED, 3);
	transaction("import ctypes; ctypes.string_at(0)", CELL_KILLED, 139);
	transaction("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
		CELL_TIMEOUT, 124);
	struct session *s = make(0);
	run(s, "open('f', 'w').close(); import os; os._exit(1)");
	OK(got.status == CELL_KILLED && got.rolled_back && got.files_rolled_back);
	run(s, "import os; os.listdir()");
	OK_STR(got.result, "[]");
	session_end(s, "test");
	transactions = false;
}

static void limits(void)
{
	struct session *s = make(SHORT_S);
	run(s, "z = 5\nwhile True: pass");
	OK(got.status == CELL_TIMEOUT && !got.state_lost && got.exit_code == 124);
	run(s, "z");
	OK_STR(got.result, "5");
	run(s, "import time; time.sleep(1e6)");
	OK(got.status == CELL_TIMEOUT && !got.state_lost);
	run(s, "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass");
	OK(got.status == CELL_TIMEOUT && got.state_lost);
	run(s, "sum(range(10**11))");
	OK(got.status == CELL_TIMEOUT && got.state_lost);
	run(s, "print('x' * 3_000_000)");
	OK(got.status == CELL_OK);
	run(s, "bytearray(10**11)");
	OK(got.status == CELL_OUT_OF_MEMORY && !got.state_lost);
	session_end(s, "test");
}

static void on_end(void *done)
{
	*(int *)done = 1;
}

static void ends(void)
{
	struct error e = { 0 };
	struct session *s = make(0), *found;
	struct session_info info;
	session_info(s, &info);
	char id[64];
	snprintf(id, sizeof(id), "%s", info.id);
	OK(session_find(table, id, &e, &found) == 0 && found == s);
	session_end(s, "it was deleted");
	OK(session_find(table, id, &e, &found) == -EIDRM && strstr(e.text, "it was deleted"));
	OK(session_find(table, "nonsense", &e, &found) == -ENOENT);
	int done = 0;
	sessions_destroy(table, 0, on_end, &done);
	run_loop(&done);
	OK(done && !uv_loop_alive(&loop));
	reaper_stop(&reaper);
	uv_run(&loop, UV_RUN_DEFAULT);
	OK(uv_loop_close(&loop) == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "jailer"))
		return jailer_main();
	struct sessions_config c;
	struct error e = { 0 };
	static char *none[] = { NULL };
	char dir[] = "/tmp/glovebox-test-XXXXXX";
	log_set_level(LOG_ERROR);
	uv_loop_init(&loop);
	/*
	 * As every program with sessions: snapshots whose guest died before it told of them have no
	 * other owner, and their jail does not end before they do.
	 */
	OK(reaper_start(&reaper, &loop) == 0);
	sessions_config_init(&c);
	c.loop = &loop;
	c.guest_module = argv[1];
	c.state_dir = mkdtemp(dir);
	c.preload = none;
	c.ready_guests = 1;
	c.grace_s = SHORT_S;
	OK(sessions_create(&c, &e, &table) == 0);
	if (!table) {
		printf("# %s\n", e.text);
		return tap_done();
	}
	cells();
	deaths();
	transactions_go_back();
	limits();
	ends();
	rmdir(dir);
	return tap_done();
}
