/* Options from the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "options/options.h"

struct flag {
	const struct option_row *row;
	const char *value; /* behind '=' or the letter, or NULL */
	bool negated;
	char origin[OPTION_VARIABLE_MAX];
};

static int unknown_flag(const struct option_row *rows, const char *word, struct error *e)
{
	const char *nearest = option_nearest(rows, word + strspn(word, "-"));
	error_set(e, -EINVAL, "unknown option %.60s", word);
	if (nearest)
		return error_remedy(e, "did you mean --%s? --help lists all", nearest);
	return error_remedy(e, "--help lists all options");
}

static int read_long(
	const struct option_row *rows, const char *word, struct flag *ret, struct error *e)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = option_find(rows, name, len);
	bool negated = false;

	if (!row && text_starts(name, "no-")) {
		row = option_find(rows, name + 3, len - 3);
		negated = row && row->type == OPTION_FLAG && !equals;
		if (!negated)
			row = NULL;
	}

	if (!row)
		return unknown_flag(rows, word, e);
	*ret = (struct flag){ .row = row, .value = equals ? equals + 1 : NULL, .negated = negated };
	snprintf(ret->origin, sizeof(ret->origin), "--%s", row->name);
	return 0;
}

static int read_short(
	const struct option_row *rows, const char *word, struct flag *ret, struct error *e)
{
	for (const struct option_row *row = rows; row->name; row++) {
		if (row->letter != word[1])
			continue;
		if (word[2] && row->type == OPTION_FLAG)
			break; /* letters are not joined */
		*ret = (struct flag){ .row = row, .value = word[2] ? word + 2 : NULL };
		snprintf(ret->origin, sizeof(ret->origin), "-%c", row->letter);
		return 0;
	}
	return unknown_flag(rows, word, e);
}

static int apply_flag(const struct option_row *rows, void *target, struct flag *flag,
	const char *next, bool *seen, struct error *e)
{
	bool *before = &seen[flag->row - rows];
	int used = 1;

	if (flag->row->type == OPTION_FLAG && !flag->value) {
		flag->value = flag->negated ? "no" : "yes";
	} else if (!flag->value) {
		if (!next) {
			error_set(e, -EINVAL, "%s needs a value (%s)", flag->origin,
				flag->row->value);
			return error_remedy(e, "--help says what it takes");
		}
		flag->value = next;
		used = 2;
	}

	int r = option_set(flag->row, target, flag->value, *before, flag->origin, e);
	*before = true;
	return r < 0 ? r : used;
}

static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1];
}

int options_parse_flags(const struct option_row *rows, void *target, int argc, char **argv,
	bool intermixed, struct error *e)
{
	_cleanup_free_ char **words = calloc((size_t)argc + 1, sizeof(char *));
	bool seen[OPTION_ROWS_MAX] = { false };
	int n_words = 0, i = 1;
	bool ended = false;

	if (!words)
		return error_set_errno(e, -ENOMEM, "reading the options");
	while (i < argc) {
		struct flag flag;
		if (ended || !is_flag(argv[i])) {
			if (!intermixed)
				break;
			words[n_words++] = argv[i++];
			continue;
		}
		if (text_eq(argv[i], "--")) {
			ended = true;
			i++;
			continue;
		}
		int r = argv[i][1] == '-' ? read_long(rows, argv[i], &flag, e)
					  : read_short(rows, argv[i], &flag, e);
		if (r == 0)
			r = apply_flag(
				rows, target, &flag, i + 1 < argc ? argv[i + 1] : NULL, seen, e);
		if (r < 0)
			return r;
		i += r;
		ended = ended || flag.row->ends;
		if (ended && !intermixed)
			break;
	}

	if (!intermixed)
		return i;
	for (int w = 0; w < n_words; w++)
		argv[argc - n_words + w] = words[w];
	return argc - n_words;
}
