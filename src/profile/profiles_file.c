/* Own profiles: NAME.json and NAME.ini files of the configuration directories. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/profiles_internal.h"
#include "json/json_read.h"

enum { FILE_BYTES = 256 * 1024 };

static char *trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t len = strlen(s);
	while (len && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* INI knows only text: what it means follows from the key, which the JSON form is checked by. */
static json_t *ini_value(const char *key, char *value)
{
	static const char *const lists[] = { "imports", "additional_imports", "builtins", "refuse",
		NULL };
	static const char *const texts[] = { "base", "name", "summary", NULL };
	uint64_t n;
	bool yes;

	for (const char *const *t = texts; *t; t++)
		if (text_eq(key, *t))
			return json_string(value);
	for (const char *const *l = lists; *l; l++) {
		if (!text_eq(key, *l))
			continue;
		json_t *list = json_array();
		for (char *rest = value, *item; list && (item = strsep(&rest, ", \t"));)
			if (*item)
				json_array_append_new(list, json_string(item));
		return list;
	}

	if (text_parse_u64(value, 0, INT64_MAX, &n) == 0 && !strstr(key, "_stops") &&
		!strstr(key, "fresh"))
		return json_integer((json_int_t)n);
	return text_parse_bool(value, &yes) == 0 ? json_boolean(yes) : json_string(value);
}

static int read_ini(const char *path, char *text, struct error *e, json_t **ret)
{
	_cleanup_json_ json_t *object = json_object();
	unsigned number = 0;

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		number++;
		line = trim(line);
		if (!*line || *line == '#' || *line == ';' || *line == '[')
			continue;
		char *equals = strchr(line, '=');
		if (!equals) {
			error_set(e, -EINVAL, "%s line %u: '%.60s': unknown setting", path, number,
				line);
			return error_remedy(e, "Write `key = value`.");
		}
		*equals = '\0';
		char *key = trim(line);
		if (json_object_set_new(object, key, ini_value(key, trim(equals + 1))) < 0)
			return error_set(e, -ENOMEM, "%s line %u: not UTF-8 text", path, number);
	}

	*ret = json_incref(object);
	return 0;
}

static int read_one(const char *path, bool ini, struct error *e, json_t **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = fd_read_file(path, FILE_BYTES, &text, &len);
	if (r < 0)
		return error_set_errno(e, r, "%s", path);
	r = ini ? read_ini(path, text, e, ret) : json_read(text, len, e, ret);
	if (r < 0)
		return ini ? r : error_wrap(e, "%s", path);
	if (!json_is_object(*ret)) {
		json_decref(*ret);
		return error_set(e, -EINVAL, "%s: a profile is a JSON object", path);
	}
	return 0;
}

static int keep(struct profiles *p, const char *name, size_t len, json_t *object)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strlen(p->own[i].name) == len && !strncmp(p->own[i].name, name, len)) {
			json_decref(object); /* an earlier directory has it */
			return 0;
		}
	}

	struct own_profile *grown = realloc(p->own, (p->n + 1) * sizeof(*grown));
	char *copy = strndup(name, len);
	if (grown)
		p->own = grown;
	if (!grown || !copy) {
		free(copy);
		json_decref(object);
		return -ENOMEM;
	}

	grown[p->n++] = (struct own_profile){ .name = copy, .object = object };
	return 0;
}

static int read_entry(struct profiles *p, const char *directory, const char *file, struct error *e)
{
	const char *dot = strrchr(file, '.');
	char path[LIMIT_PATH_BYTES * 2];
	json_t *object = NULL;
	bool ini = text_eq(dot, ".ini");
	if (!dot || dot == file || file[0] == '.' || (!ini && !text_eq(dot, ".json")))
		return 0;
	if (p->n == LIMIT_PROFILES)
		return error_set(e, -E2BIG, "%s: more than %d profiles", directory, LIMIT_PROFILES);
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	int r = read_one(path, ini, e, &object);
	if (r == 0 && (r = keep(p, file, (size_t)(dot - file), object)) < 0)
		error_set_errno(e, r, "%s", path);
	return r;
}

static int read_directory(struct profiles *p, const char *directory, struct error *e)
{
	DIR *d = opendir(directory);
	int r = 0;
	for (struct dirent *entry = d ? readdir(d) : NULL; entry && r == 0; entry = readdir(d))
		r = read_entry(p, directory, entry->d_name, e);
	if (d)
		closedir(d);
	return r;
}

int profiles_create(const char *const *directories, struct error *e, struct profiles **ret)
{
	struct profiles *p = calloc(1, sizeof(*p));
	int r = p ? 0 : error_set_errno(e, -ENOMEM, "profiles");
	for (; r == 0 && directories && *directories; directories++)
		r = read_directory(p, *directories, e);
	for (size_t i = 0; r == 0 && i < p->n; i++)
		if ((r = profiles_check(p, p->own[i].name, e)) < 0)
			error_wrap(e, "profile %s", p->own[i].name);
	if (r < 0) {
		profiles_destroy(p);
		return r;
	}
	*ret = p;
	return 0;
}

void profiles_destroy(struct profiles *p)
{
	for (size_t i = 0; p && i < p->n; i++) {
		free(p->own[i].name);
		json_decref(p->own[i].object);
	}
	if (p)
		free(p->own);
	free(p);
}
