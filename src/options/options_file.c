/*
 * INI files: `key = value` lines, [sections] that group them for the reader, comments behind # or ;
 * at a line's start.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"
#include "options/options.h"

enum { GROUPS_MAX = 16, ORIGIN_MAX = 256 };

struct ini {
	const struct option_row *rows;
	void *target;
	const char *name;
	unsigned line;
	uint64_t seen;
};

static char *trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t len = strlen(s);
	while (len && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* Quotes keep spaces at the ends; a value that begins with one must end with it. */
static char *unquote(char *value)
{
	size_t len = strlen(value);
	if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
		value[len - 1] = '\0';
		return value + 1;
	}
	return value;
}

static int refuse(const struct ini *ini, const char *what, const char *word, const char *nearest,
	struct error *e)
{
	error_set(e, -EINVAL, "%s line %u: %s '%.60s'", ini->name, ini->line, what, word);
	if (nearest)
		return error_remedy(e, "did you mean '%s'?", nearest);
	return error_remedy(e, "`glovebox serve --help` lists what may stand here");
}

static int read_section(struct ini *ini, char *line, struct error *e)
{
	const char *groups[GROUPS_MAX + 1];
	size_t n = 0, len = strlen(line);

	if (line[len - 1] != ']')
		return refuse(ini, "a section needs a closing bracket:", line, NULL, e);
	line[len - 1] = '\0';
	char *name = trim(line + 1);
	for (const struct option_row *row = ini->rows; row->name && n < GROUPS_MAX; row++)
		if (row->group)
			groups[n++] = row->group;
	groups[n] = NULL;
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(groups[i], name))
			return 0;
	return refuse(ini, "unknown section", name, nearest_word(name, groups), e);
}

static int read_setting(struct ini *ini, char *line, struct error *e)
{
	char origin[ORIGIN_MAX];
	char *equals = strchr(line, '=');

	if (!equals) {
		error_set(e, -EINVAL, "%s line %u: '%.60s' is not a setting", ini->name, ini->line,
			line);
		return error_remedy(e, "write `key = value`");
	}

	*equals = '\0';
	char *key = trim(line), *value = unquote(trim(equals + 1));
	const struct option_row *row = option_find(ini->rows, key, strlen(key));
	if (!row || row->flag_only)
		return refuse(ini, "unknown setting", key, option_nearest(ini->rows, key), e);
	uint64_t bit = 1ULL << (row - ini->rows);
	bool again = ini->seen & bit;
	if (again && row->type != OPTION_LIST && row->type != OPTION_ITEMS)
		return refuse(ini, "set a second time:", row->name, NULL, e);
	ini->seen |= bit;
	snprintf(origin, sizeof(origin), "%s line %u: %s", ini->name, ini->line, row->name);
	return option_set(row, ini->target, value, again, origin, e);
}

static int read_line(struct ini *ini, char *line, struct error *e)
{
	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	return *line == '[' ? read_section(ini, line, e) : read_setting(ini, line, e);
}

int options_parse_ini(const struct option_row *rows, void *target, const char *origin,
	const char *text, struct error *e)
{
	struct ini ini = { .rows = rows, .target = target, .name = origin };
	_cleanup_free_ char *copy = strdup(text);
	if (!copy)
		return error_set_errno(e, -ENOMEM, "%s", origin);
	for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
		ini.line++;
		int r = read_line(&ini, line, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int options_parse_file(
	const struct option_row *rows, void *target, const char *path, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = fd_read_file(path, OPTION_FILE_BYTES, &text, &len);
	if (r < 0)
		return error_set_errno(e, r, "%s", path);
	if (strlen(text) != len) {
		error_set(e, -EINVAL, "%s: there is a NUL byte in it", path);
		return error_remedy(e, "settings are plain text");
	}
	return options_parse_ini(rows, target, path, text, e);
}
