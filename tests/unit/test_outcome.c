#include <errno.h>
#include <stdlib.h>

#include "session/outcome.h"
#include "tap.h"

static struct buffer b;
static size_t start;

static int take(struct outcome *o, enum wire_type type, void (*fill)(void))
{
	struct wire_reader r;
	struct wire_frame f;
	const struct bundle *display;
	char *at;
	size_t room;
	b.len = 0;
	wire_begin(&b, type, 1, &start);
	fill();
	wire_end(&b, start);
	wire_reader_init(&r, 1 << 20);
	wire_reader_room(&r, b.len, &at, &room);
	memcpy(at, b.data, b.len);
	wire_reader_filled(&r, b.len);
	int v = wire_reader_next(&r, &f) == 1 ? outcome_take(o, &f, &display) : -EIO;
	wire_reader_finish(&r);
	return v;
}

static void put(enum wire_tag tag, const char *text)
{
	wire_put(&b, tag, text, strlen(text));
}

static void good_bundle(void)
{
	put(WIRE_MIME, "text/plain");
	put(WIRE_TEXT, "42");
	put(WIRE_MIME, "application/json");
	put(WIRE_JSON, "42");
}

static void text_without_mime(void)
{
	put(WIRE_TEXT, "42");
}

static void two_texts_for_one_mime(void)
{
	put(WIRE_MIME, "text/plain");
	put(WIRE_TEXT, "1");
	put(WIRE_TEXT, "2");
}

static void bad_mime(void)
{
	put(WIRE_MIME, "text\"/pl\nain");
	put(WIRE_TEXT, "42");
}

static void many_forms(void)
{
	for (int i = 0; i < 100; i++)
		good_bundle();
}

static void good_error(void)
{
	put(WIRE_ERROR_TYPE, "ValueError");
	put(WIRE_TEXT, "bad");
	put(WIRE_TRACEBACK, "Traceback…");
	wire_put_u64(&b, WIRE_LINE, 7);
}

static void error_without_traceback(void)
{
	put(WIRE_ERROR_TYPE, "ValueError");
	put(WIRE_TEXT, "bad");
}

static void good_file(void)
{
	wire_put(&b, WIRE_FILE, "\1\5\0\0\0\0\0\0\0a/b", 12);
}

static void file_without_path(void)
{
	wire_put(&b, WIRE_FILE, "\1\5\0\0\0\0\0\0\0", 9);
}

static void file_with_bad_change(void)
{
	wire_put(&b, WIRE_FILE, "\7\5\0\0\0\0\0\0\0a", 10);
}

static void good_done(void)
{
	wire_put_u64(&b, WIRE_OUTCOME, WIRE_OUTCOME_EXIT);
	wire_put_u64(&b, WIRE_EXIT_CODE, 3);
	wire_put_u64(&b, WIRE_CPU_NS, 2000000);
}

static void done_with_text(void)
{
	put(WIRE_EXIT_CODE, "3");
}

static void nothing(void)
{
}

static void accepted(void)
{
	struct outcome o;
	outcome_init(&o);
	OK(take(&o, WIRE_RESULT, good_bundle) == 0 && o.has_result && o.result.n == 2);
	OK_STR(o.result.item[0].mime, "text/plain");
	OK(!o.result.item[0].is_json && o.result.item[1].is_json);
	OK(take(&o, WIRE_ERROR, good_error) == 0 && o.has_error && o.error.line == 7);
	OK_STR(o.error.type, "ValueError");
	OK(take(&o, WIRE_FILES, good_file) == 0 && o.n_files == 1 && o.files[0].size == 5);
	OK_STR(o.files[0].path, "a/b");
	OK(take(&o, WIRE_DONE, good_done) == 0 && o.done && o.exit_code == 3 && o.cpu_ms == 2);
	outcome_finish(&o);
	OK(!o.has_result && !o.n_files);
}

static void bounded(void)
{
	struct outcome o;
	int good = 1;
	outcome_init(&o);
	OK(take(&o, WIRE_DISPLAY, many_forms) == 0 && o.displays[0].n == LIMIT_BUNDLE_ITEMS);
	for (int i = 0; i < LIMIT_DISPLAYS + 10; i++)
		good &= take(&o, WIRE_DISPLAY, good_bundle) == 0;
	OK(good && o.n_displays == LIMIT_DISPLAYS && o.displays_left_out == 11);
	for (int i = 0; i < LIMIT_FILES + 10; i++)
		good &= take(&o, WIRE_FILES, good_file) == 0;
	OK(good && o.n_files == LIMIT_FILES && o.files_cut);
	outcome_finish(&o);
}

static char long_text[HOLD_FREE_BYTES + 1];

static void long_bundle(void)
{
	put(WIRE_MIME, "text/plain");
	wire_put(&b, WIRE_TEXT, long_text, sizeof(long_text));
}

static void long_error(void)
{
	put(WIRE_ERROR_TYPE, "ValueError");
	wire_put(&b, WIRE_TEXT, long_text, sizeof(long_text));
	put(WIRE_TRACEBACK, "");
}

static void long_answer(void)
{
	wire_put(&b, WIRE_TEXT, long_text, sizeof(long_text));
}

/*
 * What all guests together make the daemon hold is bounded: when others took it all, what is small
 * passes and what is long is left out.
 */
static void others_took_it(void)
{
	enum { MANY = 400 };
	static struct hold others[MANY];
	struct outcome o;
	outcome_init(&o);
	OK(take(&o, WIRE_RESULT, long_bundle) == 0 && o.has_result &&
		o.held.bytes == sizeof(long_text));
	OK(take(&o, WIRE_ERROR, long_error) == 0 && take(&o, WIRE_ERROR, long_error) == 0 &&
		o.held.bytes == 2 * sizeof(long_text));
	OK(take(&o, WIRE_ANSWER, long_answer) == 0 && take(&o, WIRE_ANSWER, long_answer) == 0 &&
		o.held.bytes < 4 * sizeof(long_text));
	outcome_finish(&o);
	OK(hold_total() == 0);
	for (int i = 0; i < MANY; i++)
		for (size_t want = LIMIT_HELD_BYTES / 4; want && hold_set(&others[i], want) < 0;
			want -= want / 16 + 1)
			;
	OK(take(&o, WIRE_DISPLAY, good_bundle) == 0 && o.n_displays == 1 && !o.displays_left_out);
	OK(take(&o, WIRE_DISPLAY, long_bundle) == 0 && o.n_displays == 1 &&
		o.displays_left_out == 1);
	OK(take(&o, WIRE_RESULT, long_bundle) == 0 && !o.has_result && o.displays_left_out == 2);
	OK(take(&o, WIRE_ANSWER, long_answer) == 0 && !o.has_answer && o.displays_left_out == 3);
	OK(take(&o, WIRE_ERROR, long_error) == 0 && o.has_error &&
		o.error.message_len < sizeof(long_text) && o.error.message_len > 1000);
	outcome_finish(&o);
	for (int i = 0; i < MANY; i++)
		hold_set(&others[i], 0);
	OK(hold_total() == 0);
}

static void refused(void)
{
	struct outcome o;
	outcome_init(&o);
	OK(take(&o, WIRE_RESULT, text_without_mime) == -EPROTO);
	OK(take(&o, WIRE_RESULT, two_texts_for_one_mime) == -EPROTO);
	OK(take(&o, WIRE_DISPLAY, bad_mime) == -EPROTO);
	OK(take(&o, WIRE_ERROR, error_without_traceback) == -EPROTO && !o.has_error);
	OK(take(&o, WIRE_FILES, file_without_path) == -EPROTO);
	OK(take(&o, WIRE_FILES, file_with_bad_change) == -EPROTO);
	OK(take(&o, WIRE_DONE, done_with_text) == -EPROTO && !o.done);
	OK(take(&o, WIRE_EXECUTE, nothing) == -EPROTO);
	OK(take(&o, WIRE_RESULT, good_bundle) == 0 &&
		take(&o, WIRE_RESULT, good_bundle) == -EPROTO);
	outcome_finish(&o);
}

int main(void)
{
	accepted();
	bounded();
	refused();
	others_took_it();
	buffer_finish(&b);
	return tap_done();
}
