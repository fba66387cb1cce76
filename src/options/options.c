#include "options/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"

static const char prefix[] = "GLOVEBOX_";

/* ---- lists ------------------------------------------------------------ */

void option_list_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

static size_t list_len(char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

/* Adds a copy of the item; an empty list is one that holds only its end. */
static int list_add(char ***list, const char *item, size_t len)
{
	size_t n = list_len(*list);
	if (item && n >= OPTION_LIST_MAX)
		return -E2BIG;
	char **grown = reallocarray(*list, n + 2, sizeof(char *));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[n] = item ? strndup(item, len) : NULL;
	grown[n + 1] = NULL;
	return item && !grown[n] ? -ENOMEM : 0;
}

static bool is_separator(char c)
{
	return c == ',' || isspace((unsigned char)c);
}

static int list_split(char ***list, const char *value)
{
	int r = list_add(list, NULL, 0);
	if (text_eq(value, "none"))
		return r;
	for (const char *p = value; r == 0 && *p;) {
		const char *start = p;
		while (*p && !is_separator(*p))
			p++;
		if (p > start)
			r = list_add(list, start, (size_t)(p - start));
		while (is_separator(*p))
			p++;
	}
	return r;
}

/* ---- one value -------------------------------------------------------- */

static double row_min(const struct option_row *row)
{
	return row->is_maximum && text_eq(row->fallback, "0") ? 0 : row->min;
}

static double row_max(const struct option_row *row)
{
	if (row->max > 0)
		return row->max;
	return row->type == OPTION_COUNT ? UINT_MAX : row->type == OPTION_SECONDS ? 1e9 : 4e18;
}

/* "30", "0.5", "90s", "5m", "2h", "1d". */
static int parse_seconds(const char *value, double *ret)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	char number[32];
	size_t len = strlen(value);
	double factor = 1;

	if (len == 0 || len >= sizeof(number))
		return -EINVAL;
	memcpy(number, value, len + 1);
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (number[len - 1] == units[i].unit) {
			factor = units[i].seconds;
			number[len - 1] = '\0';
			break;
		}
	}
	int r = text_parse_double(number, 0, 1e12, ret);
	if (r == 0)
		*ret *= factor;
	return r;
}

static void format_amount(const struct option_row *row, double v, char *buf, size_t size)
{
	static const char *const units[] = { "", "k", "M", "G", "T" };
	unsigned unit = 0;
	while (row->type == OPTION_SIZE && v >= 1024 && unit + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		unit++;
	}
	snprintf(buf, size, "%.15g%s", v, units[unit]);
}

static int out_of_range(
	const struct option_row *row, const char *value, const char *origin, struct error *e)
{
	char low[32], high[32];
	format_amount(row, row_min(row), low, sizeof(low));
	format_amount(row, row_max(row), high, sizeof(high));
	const char *what = row->type == OPTION_COUNT || row->type == OPTION_NUMBER ? "a number"
			   : row->type == OPTION_SECONDS                           ? "seconds"
										   : "a size";
	error_set(e, -ERANGE, "%s: %s is out of range", origin, value);
	if (row->type == OPTION_SIZE && row->max <= 0)
		return error_remedy(e, "give a size of at least %s", low);
	return error_remedy(e, "give %s between %s and %s", what, low, high);
}

static int wrong_form(const char *value, const char *what, const char *remedy, const char *origin,
	struct error *e)
{
	error_set(e, -EINVAL, "%s: '%.100s' is not %s", origin, value, what);
	return error_remedy(e, "%s", remedy);
}

static int set_flag(const struct option_row *row, bool *target, const char *value,
	const char *origin, struct error *e)
{
	(void)row;
	if (text_parse_bool(value, target) < 0)
		return wrong_form(value, "yes or no", "write yes or no", origin, e);
	return 0;
}

static int set_text(char **target, const char *value, const char *origin, struct error *e)
{
	char *copy = strdup(value);
	if (!copy)
		return error_set_errno(e, -ENOMEM, "%s", origin);
	free(*target);
	*target = copy;
	return 0;
}

static int set_list(const struct option_row *row, char ***target, const char *value, bool more,
	const char *origin, struct error *e)
{
	if (!more) {
		option_list_free(*target);
		*target = NULL;
	}
	int r = row->type == OPTION_ITEMS ? list_add(target, value, strlen(value))
					  : list_split(target, value);
	if (r == -E2BIG) {
		error_set(e, r, "%s: more than %d items", origin, OPTION_LIST_MAX);
		return error_remedy(e, "shorten the list");
	}
	return r < 0 ? error_set_errno(e, r, "%s", origin) : 0;
}

static int set_count(const struct option_row *row, unsigned *target, const char *value,
	const char *origin, struct error *e)
{
	uint64_t v;
	int r = text_parse_u64(value, (uint64_t)row_min(row), (uint64_t)row_max(row), &v);
	if (r == -ERANGE)
		return out_of_range(row, value, origin, e);
	if (r < 0)
		return wrong_form(value, "a whole number", "give a number such as 4", origin, e);
	*target = (unsigned)v;
	return 0;
}

static int set_seconds(const struct option_row *row, double *target, const char *value,
	const char *origin, struct error *e)
{
	double v;
	if (parse_seconds(value, &v) < 0)
		return wrong_form(value, "a duration",
			"give seconds, such as 30 or 0.5, or 90s, 5m, 2h, 1d", origin, e);
	if (v < row_min(row) || v > row_max(row))
		return out_of_range(row, value, origin, e);
	*target = v;
	return 0;
}

static int set_number(const struct option_row *row, double *target, const char *value,
	const char *origin, struct error *e)
{
	int r = text_parse_double(value, row_min(row), row_max(row), target);
	if (r == -ERANGE)
		return out_of_range(row, value, origin, e);
	return r < 0 ? wrong_form(value, "a number", "give a number such as 0.5", origin, e) : 0;
}

static int set_size(const struct option_row *row, uint64_t *target, const char *value,
	const char *origin, struct error *e)
{
	uint64_t v;
	if (text_parse_size(value, &v) < 0)
		return wrong_form(
			value, "a size", "give bytes, or a size such as 64k, 512M, 2G", origin, e);
	if ((double)v < row_min(row) || (double)v > row_max(row))
		return out_of_range(row, value, origin, e);
	*target = v;
	return 0;
}

static int set_choice(const struct option_row *row, int *target, const char *value,
	const char *origin, struct error *e)
{
	char words[128] = "";
	size_t used = 0;
	for (int i = 0; row->choices[i]; i++) {
		if (text_eq(row->choices[i], value)) {
			*target = i;
			return 0;
		}
		if (used < sizeof(words))
			used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
				i ? ", " : "", row->choices[i]);
	}
	error_set(e, -EINVAL, "%s: there is no '%.100s'", origin, value);
	return error_remedy(e, "choose one of %s", words);
}

int option_set(const struct option_row *row, void *target, const char *value, bool more,
	const char *origin, struct error *e)
{
	void *slot = (char *)target + row->offset;
	switch (row->type) {
	case OPTION_FLAG:
		return set_flag(row, slot, value, origin, e);
	case OPTION_TEXT:
		return set_text(slot, value, origin, e);
	case OPTION_LIST:
	case OPTION_ITEMS:
		return set_list(row, slot, value, more, origin, e);
	case OPTION_COUNT:
		return set_count(row, slot, value, origin, e);
	case OPTION_SECONDS:
		return set_seconds(row, slot, value, origin, e);
	case OPTION_SIZE:
		return set_size(row, slot, value, origin, e);
	case OPTION_CHOICE:
		return set_choice(row, slot, value, origin, e);
	case OPTION_NUMBER:
		return set_number(row, slot, value, origin, e);
	}

	return error_set(e, -EINVAL, "%s: unknown type of option", origin);
}

/* Two rows with one name or letter: the second could never be reached. */
static bool is_taken(const struct option_row *rows, const struct option_row *row)
{
	for (; rows < row; rows++)
		if (text_eq(rows->name, row->name) || (row->letter && rows->letter == row->letter))
			return true;
	return false;
}

void options_init(const struct option_row *rows, void *target)
{
	for (const struct option_row *row = rows; row->name; row++) {
		assert(row - rows < OPTION_ROWS_MAX && !is_taken(rows, row));
		if (!row->fallback)
			continue;
		int r = option_set(row, target, row->fallback, false, row->name, NULL);
		assert(r == 0);
		(void)r;
	}
}

void options_finish(const struct option_row *rows, void *target)
{
	for (const struct option_row *row = rows; row->name; row++) {
		void *slot = (char *)target + row->offset;
		if (row->type == OPTION_TEXT) {
			free(*(char **)slot);
			*(char **)slot = NULL;
		} else if (row->type == OPTION_LIST || row->type == OPTION_ITEMS) {
			option_list_free(*(char ***)slot);
			*(char ***)slot = NULL;
		}
	}
}

/* ---- names ------------------------------------------------------------ */

static char fold(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

const struct option_row *option_find(const struct option_row *rows, const char *name, size_t len)
{
	for (const struct option_row *row = rows; row->name; row++) {
		size_t i = 0;
		while (i < len && row->name[i] && fold(row->name[i]) == fold(name[i]))
			i++;
		if (i == len && !row->name[i])
			return row;
	}
	return NULL;
}

const char *option_nearest(const struct option_row *rows, const char *name)
{
	const char *names[OPTION_ROWS_MAX + 1];
	size_t n = 0;
	for (const struct option_row *row = rows; row->name && n < OPTION_ROWS_MAX; row++)
		names[n++] = row->name;
	names[n] = NULL;
	return nearest_word(name, names);
}

char *options_variable(const char *name, char buf[OPTION_VARIABLE_MAX])
{
	size_t used = (size_t)snprintf(buf, OPTION_VARIABLE_MAX, "%s", prefix);
	for (; *name && used + 1 < OPTION_VARIABLE_MAX; name++)
		buf[used++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
	buf[used] = '\0';
	return buf;
}

/* ---- the environment -------------------------------------------------- */

int options_parse_environment(const struct option_row *rows, void *target, struct error *e)
{
	char variable[OPTION_VARIABLE_MAX];
	for (const struct option_row *row = rows; row->name; row++) {
		if (row->flag_only)
			continue;
		const char *value = getenv(options_variable(row->name, variable));
		if (!value || !*value)
			continue; /* NAME= is how many tools say "not set" */
		int r = option_set(row, target, value, false, variable, e);
		if (r < 0)
			return r;
	}
	return 0;
}

const char *options_unknown_variable(const struct option_row *rows, const char *const *others,
	size_t *position, const char **ret_nearest)
{
	static char name[OPTION_VARIABLE_MAX];
	for (const char *entry; (entry = environ[*position]); (*position)++) {
		const char *equals = strchr(entry, '=');
		if (!text_starts(entry, prefix) || !equals)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - entry), entry);
		const char *word = name + sizeof(prefix) - 1;
		const struct option_row *row = option_find(rows, word, strlen(word));
		bool known = row && !row->flag_only;
		for (const char *const *other = others; *other && !known; other++)
			known = text_eq(*other, name);
		if (known)
			continue;
		*ret_nearest = option_nearest(rows, word);
		(*position)++;
		return name;
	}

	return NULL;
}
