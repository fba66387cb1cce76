/*
 * glovebox doctor: looks, tries, and says what each finding means and what to do about it. Changes
 * nothing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/cli_words.h"
#include "cli/doctor.h"
#include "json/json_write.h"

enum { FINDINGS_MAX = 64 };

struct options {
	bool json, quick, help;
};

static const struct option_row rows[] = {
	{ "quick", 'q', OPTION_FLAG, offsetof(struct options, quick), .flag_only = true,
		.help = "skip the last check, which starts a session" },
	CLI_JSON(struct options),
	CLI_HELP(struct options),
	{ NULL },
};

static const struct cli_page page = {
	.verb = "doctor",
	.usage = "[options]",
	.about =
		"Checks whether this machine can run Glovebox. Each check is ok, warn (Glovebox runs, with a restriction) or\n"
		"fail (Glovebox does not run). The exit code is 1 when a check failed.",
	.rows = rows,
	.examples = "  glovebox doctor\n"
		    "  glovebox doctor --json | jq '.checks[] | select(.status != \"ok\")'\n",
};

static const char *const status_names[] = { "ok", "warn", "fail" };

struct doctor {
	struct finding finding[FINDINGS_MAX];
	size_t n;
};

void doctor_note(struct doctor *d, enum finding_status status, const char *name, const char *remedy,
	const char *fmt, ...)
{
	va_list ap;
	if (d->n == FINDINGS_MAX)
		return;
	struct finding *f = &d->finding[d->n++];
	f->status = status;
	snprintf(f->name, sizeof(f->name), "%s", name);
	edge_expand(&cli_words, remedy ? remedy : "", f->remedy, sizeof(f->remedy));
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

static bool any_failed(const struct doctor *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->finding[i].status == FINDING_FAIL)
			return true;
	return false;
}

static void print_text(const struct doctor *d, size_t from)
{
	for (size_t i = from; i < d->n; i++) {
		const struct finding *f = &d->finding[i];
		printf("%-5s %-14s %s\n", status_names[f->status], f->name, f->text);
		if (*f->remedy)
			printf("%20s → %s\n", "", f->remedy);
	}
	fflush(stdout);
}

static int print_json(const struct doctor *d)
{
	_cleanup_buffer_ struct buffer out = BUFFER_INIT(1 << 20);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_open_object(&w);
	json_field_bool(&w, "ok", !any_failed(d));
	json_key(&w, "checks");
	json_open_array(&w);
	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];
		json_open_object(&w);
		json_field_cstr(&w, "name", f->name);
		json_field_cstr(&w, "status", status_names[f->status]);
		json_field_cstr(&w, "text", f->text);
		json_field_cstr(&w, "remedy", *f->remedy ? f->remedy : NULL);
		json_close(&w);
	}

	json_close(&w);
	json_close(&w);
	int r = json_writer_end(&w);
	if (r == 0)
		r = buffer_append_char(&out, '\n');
	return r < 0 ? r : fd_write_waiting(STDOUT_FILENO, out.data, out.len);
}

static int examine(const struct options *o)
{
	static struct doctor d;
	d.n = 0;
	for (const struct doctor_check *check = doctor_checks; check->run; check++) {
		size_t before = d.n;
		if (check->slow && o->quick)
			continue;
		check->run(&d);
		if (!o->json)
			print_text(&d, before);
	}

	if (o->json && print_json(&d) < 0)
		return CLI_FAILED;
	if (!o->json)
		printf("%s\n",
			any_failed(&d)
				? "Glovebox cannot run here yet: see the lines that say fail."
				: "Glovebox can run here.");
	return any_failed(&d) ? CLI_FAILED : CLI_OK;
}

int cli_doctor(int argc, char **argv)
{
	struct options o = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, false, &code);
	if (first < 0)
		return code;
	if (first < argc)
		return cli_usage(page.verb, "unexpected argument '%.60s'", argv[first]);
	return examine(&o);
}
