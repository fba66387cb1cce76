/* glovebox batch */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "json/json_read.h"

enum { CHUNK_ITEMS = 500, CHUNK_BYTES = 8 << 20, BAR_CELLS = 24, BAR_EVERY_MS = 100 };

struct options {
	struct client_options client;
	char *output;
	unsigned concurrency;
	bool deduplicate, quiet, help;
};

static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "output", 'o', OPTION_TEXT, offsetof(struct options, output), .value = "FILE",
		.flag_only = true,
		.help = "file for the results, one per line; items whose results it already has are not run again" },
	{ "concurrency", 'j', OPTION_COUNT, offsetof(struct options, concurrency), 0, 4096, "N",
		"0", .flag_only = true,
		.help = "number of programs that run at the same time; 0: the server's --max-runs" },
	{ "deduplicate", 0, OPTION_FLAG, offsetof(struct options, deduplicate), .flag_only = true,
		.help = "run equal items only once (compared within each request of 500 items)" },
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct options, quiet), .flag_only = true,
		.help = "print no progress" },
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "batch",
	.usage = "[options] FILE.jsonl",
	.about =
		"Runs the programs of a file on a server, each in its own session. Each line of the file is an item of\n"
		"POST /v1/batch: {\"code\": \"print(input())\", \"stdin\": \"1\", \"expected_output\": \"1\"}. `-` reads standard input.\n"
		"The results are lines of JSON in the order in which they finish; `index` is the number of the item, from 0.\n"
		"With -o an interrupted batch continues where it stopped. The exit code is 1 if an item could not run.",
	.rows = rows,
	.examples = "  glovebox batch programs.jsonl -o results.jsonl\n"
		    "  glovebox batch -j 8 programs.jsonl | jq .verdict.passed\n",
	.environment = true,
};

struct work {
	const struct options *options;
	struct client *client;
	FILE *in, *out;
	unsigned char *known; /* by index: its result is there already */
	size_t known_n;
	/* the request that runs */
	size_t chunk[CHUNK_ITEMS]; /* indices of its items */
	unsigned chunk_n;
	struct buffer line; /* of the answer, not whole yet */
	bool finished;      /* its last line was there */
	/* so far */
	size_t total; /* items of the file; 0: not known */
	size_t done, skipped, passed, failed, errors;
	uint64_t began_ns, drawn_ns;
	bool bar;
};

/* ---- progress -------------------------------------------------------------------- */

static void draw(struct work *w, bool last)
{
	uint64_t now = clock_now_ns();
	if (w->options->quiet ||
		(!last && (!w->bar || now - w->drawn_ns < BAR_EVERY_MS * 1000000ULL)))
		return;
	w->drawn_ns = now;
	double seconds = (double)(now - w->began_ns) / 1e9;
	size_t total = w->total ? w->total : w->done + w->skipped,
	       filled = total ? (w->done + w->skipped) * BAR_CELLS / total : 0;
	if (w->bar) {
		fputs("\r[", stderr);
		for (size_t i = 0; i < BAR_CELLS; i++)
			fputc(i < filled ? '#' : ' ', stderr);
		fputs("] ", stderr);
	}

	fprintf(stderr, "%zu of %zu done", w->done + w->skipped, total);
	if (w->skipped)
		fprintf(stderr, ", %zu skipped", w->skipped);
	if (w->passed + w->failed)
		fprintf(stderr, ", %zu passed, %zu failed", w->passed, w->failed);
	if (w->errors)
		fprintf(stderr, ", %zu could not run", w->errors);
	fprintf(stderr, ", %.1f/s%s%s", seconds > 0 ? (double)w->done / seconds : 0,
		w->bar ? "\033[K" : "", last ? "\n" : "");
}

/* ---- answers --------------------------------------------------------------------- */

static void count_result(struct work *w, const json_t *result)
{
	const json_t *verdict = json_object_get(result, "verdict");
	w->done++;
	w->errors += json_is_null(json_object_get(result, "observation"));
	if (json_is_object(verdict)) {
		bool passed = json_is_true(json_object_get(verdict, "passed"));
		w->passed += passed;
		w->failed += !passed;
	}
}

/*
 * One line of the answer goes out with the item's number in the file in place of that in the
 * request.
 */
static int take_line(struct work *w, const char *line, size_t len)
{
	_cleanup_json_ json_t *result = NULL;
	if (json_read(line, len, NULL, &result) < 0)
		return -EPROTO;
	if (json_is_true(json_object_get(result, "done"))) {
		w->finished = true;
		return 0;
	}

	size_t index = (size_t)json_integer_value(json_object_get(result, "index"));
	if (index >= w->chunk_n)
		return -EPROTO;
	const char *rest = memchr(line, ',', len);
	if (!rest)
		return -EPROTO;
	count_result(w, result);
	fprintf(w->out, "{\"index\":%zu%.*s\n", w->chunk[index], (int)(len - (size_t)(rest - line)),
		rest);
	draw(w, false);
	return fflush(w->out) == 0 ? 0 : -errno;
}

static int on_data(const char *data, size_t len, void *userdata)
{
	struct work *w = userdata;
	int r = buffer_append(&w->line, data, len);
	const char *eol;
	while (r == 0 && w->line.len && (eol = memchr(w->line.data, '\n', w->line.len))) {
		size_t n = (size_t)(eol - w->line.data);
		r = n ? take_line(w, w->line.data, n) : 0;
		buffer_consume(&w->line, n + 1);
	}
	return r;
}

/* ---- requests ---------------------------------------------------------------------- */

static int send_chunk(struct work *w, struct buffer *items, struct error *e)
{
	_cleanup_buffer_ struct buffer body = BUFFER_INIT(0);
	if (!w->chunk_n)
		return 0;
	int r = buffer_printf(
		&body, "{\"deduplicate\":%s,", w->options->deduplicate ? "true" : "false");
	if (r == 0 && w->options->concurrency)
		r = buffer_printf(&body, "\"concurrency\":%u,", w->options->concurrency);
	if (r == 0)
		r = buffer_append_str(&body, "\"items\":[");
	if (r == 0)
		r = buffer_append(&body, items->data, items->len);
	if (r == 0)
		r = buffer_append_str(&body, "]}");
	if (r < 0)
		return error_set_errno(e, r, "the request");

	w->finished = false;
	w->line.len = 0;
	r = client_stream(w->client, "POST", "/v1/batch", NULL, &body, on_data, w, e);
	if (r == 0 && !w->finished)
		r = error_set(e, -ECONNRESET,
			"the server closed the connection before the last line of the batch");
	items->len = 0;
	w->chunk_n = 0;
	return r;
}

static bool is_blank(const char *line)
{
	return !line[strspn(line, " \t\r\n")];
}

/* Only a file can be read twice. */
static void count_items(struct work *w)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	if (w->in == stdin)
		return;
	while (getline(&line, &room, w->in) > 0)
		w->total += !is_blank(line);
	rewind(w->in);
}

/* A line that is not JSON would be told with its place in the request, not in the file. */
static int check_line(const char *line, size_t len, size_t number, struct error *e)
{
	_cleanup_json_ json_t *item = NULL;
	int r = json_read(line, len, e, &item);
	if (r < 0)
		error_wrap(e, "line %zu of the file", number);
	else if (!json_is_object(item))
		r = error_set(e, -EINVAL, "line %zu of the file is not a JSON object", number);
	return r < 0 ? error_remedy(e, "write an item per line, such as {\"code\": \"print(1)\"}")
		     : 0;
}

static int read_items(struct work *w, struct error *e)
{
	_cleanup_buffer_ struct buffer items = BUFFER_INIT(0);
	_cleanup_free_ char *line = NULL;
	size_t room = 0, index = 0, number = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &room, w->in)) > 0) {
		number++;
		if (is_blank(line))
			continue;
		size_t at = index++;
		if (at < w->known_n && w->known[at]) {
			w->skipped++;
			continue;
		}
		r = check_line(line, (size_t)n, number, e);
		if (r < 0)
			return r;
		r = w->chunk_n ? buffer_append_char(&items, ',') : 0;
		if (r == 0)
			r = buffer_append(&items, line, (size_t)n);
		if (r < 0)
			return error_set_errno(e, r, "line %zu", at + 1);
		w->chunk[w->chunk_n++] = at;
		if (w->chunk_n == CHUNK_ITEMS || items.len >= CHUNK_BYTES)
			r = send_chunk(w, &items, e);
	}

	return r < 0 ? r : send_chunk(w, &items, e);
}

/* ---- going on ------------------------------------------------------------------------ */

static int note_known(struct work *w, size_t index)
{
	if (index >= w->known_n) {
		size_t n = index * 2 + 64;
		unsigned char *more = realloc(w->known, n);
		if (!more)
			return -ENOMEM;
		memset(more + w->known_n, 0, n - w->known_n);
		w->known = more;
		w->known_n = n;
	}
	w->known[index] = 1;
	return 0;
}

/*
 * Reads the results of an earlier batch from the file: items that ran, and perhaps half a line at
 * the end, which is cut off.
 */
static int read_known(struct work *w, struct error *e)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	ssize_t n;
	long sound = 0;
	int r = 0;

	while (r == 0 && (n = getline(&line, &room, w->out)) > 0 && line[n - 1] == '\n') {
		_cleanup_json_ json_t *result = NULL;
		if (json_read(line, (size_t)n, NULL, &result) == 0 &&
			json_is_object(json_object_get(result, "observation")))
			r = note_known(
				w, (size_t)json_integer_value(json_object_get(result, "index")));
		sound = ftell(w->out);
	}

	if (r < 0 || ftruncate(fileno(w->out), sound) < 0 || fseek(w->out, 0, SEEK_END) < 0)
		return error_set_errno(e, r < 0 ? r : -errno, "%s", w->options->output);
	return 0;
}

static int open_files(struct work *w, const char *path, struct error *e)
{
	const char *output = w->options->output;
	w->in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!w->in)
		return error_set_errno(e, -errno, "%s", path);
	w->out = output ? fopen(output, "a+e") : stdout;
	if (!w->out)
		return error_set_errno(e, -errno, "%s", output);
	if (output)
		rewind(w->out);
	return output ? read_known(w, e) : 0;
}

static int run_batch(const struct options *o, const char *path)
{
	_cleanup_(client_cleanup) struct client *c = NULL;
	struct error e = { 0 };
	struct work w = { .options = o, .began_ns = clock_now_ns(), .bar = isatty(STDERR_FILENO) };
	int r = client_create(&o->client, &e, &c);

	w.client = c;
	if (r == 0)
		r = open_files(&w, path, &e);
	if (r == 0)
		count_items(&w);
	if (r == 0)
		r = read_items(&w, &e);
	if (r == 0 || w.done)
		draw(&w, true);
	if (r < 0)
		cli_show_error(page.verb, &e);
	if (w.in && w.in != stdin)
		fclose(w.in);
	if (w.out && w.out != stdout)
		fclose(w.out);
	free(w.known);
	buffer_finish(&w.line);
	return r < 0 || w.errors ? CLI_FAILED : CLI_OK;
}

int cli_batch(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && argc - first != 1)
		code = cli_usage(page.verb, "which file? Give one, or - for standard input");
	else if (first >= 0)
		code = run_batch(&o, argv[first]);
	options_finish(rows, &o);
	return code;
}
