#include "profile/profiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/text.h"
#include "profile/profiles_internal.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { BASE_DEPTH = 8, RULE_BYTES = LIMIT_NAME_BYTES + 32, NAMES_MAX = LIMIT_PROFILES + 16 };

/* What a profile is while it is put together. */
struct draft {
	const struct profile_table *table;
	char **imports, **rules;
	size_t n_imports, n_rules;
};

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static void draft_finish(struct draft *d)
{
	free_list(d->imports, d->n_imports);
	free_list(d->rules, d->n_rules);
	*d = (struct draft){ 0 };
}

static int add(char ***list, size_t *n, const char *text)
{
	for (size_t i = 0; i < *n; i++)
		if (text_eq((*list)[i], text))
			return 0;
	char **grown = realloc(*list, (*n + 2) * sizeof(*grown)), *copy = strdup(text);
	if (grown)
		*list = grown;
	if (!grown || !copy) {
		free(copy);
		return -ENOMEM;
	}
	grown[(*n)++] = copy;
	grown[*n] = NULL;
	return 0;
}

void profile_choice_finish(struct profile_choice *c)
{
	free(c->name);
	for (char **r = c->rules; r && *r; r++)
		free(*r);
	free(c->rules);
	*c = (struct profile_choice){ 0 };
}

/* ---- errors ------------------------------------------------------------ */

static int __attribute__((format(printf, 2, 3))) invalid(struct error *e, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(e, -EINVAL, "%s", text);
	return error_slug(e, "invalid_profile");
}

static int unknown_profile(const struct profiles *p, const char *name, struct error *e)
{
	const char *names[NAMES_MAX + 1];
	char list[ERROR_REMEDY_MAX] = "";
	size_t n = 0;

	for (const struct profile_table *t = profile_tables; t->name; t++)
		names[n++] = t->name;
	for (size_t i = 0; p && i < p->n && n < NAMES_MAX; i++)
		names[n++] = p->own[i].name;
	names[n] = NULL;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(list);
		snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names[i]);
	}

	const char *near = nearest_word(name, names);
	error_set(e, -EINVAL, "there is no profile '%.60s'", name);
	error_remedy(e, "%s%s%sThe profiles are: %.300s.", near ? "Did you mean '" : "",
		near ? near : "", near ? "'? " : "", list);
	return error_slug(e, "unknown_profile");
}

/* ---- entries ----------------------------------------------------------- */

static bool name_ok(const char *s, size_t len)
{
	if (!len || len > LIMIT_NAME_BYTES || strlen(s) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == '=' || s[i] == ',')
			return false;
	return true;
}

/* A list of names: `what` is the key it is given under. */
static int each_name(const json_t *v, const char *what, struct error *e,
	int (*take)(struct draft *, const char *), struct draft *d)
{
	if (!json_is_array(v))
		return invalid(e, "profile.%s: must be a list of names", what);
	if (json_array_size(v) > LIMIT_PROFILE_NAMES)
		return invalid(e, "profile.%s: more than %d names", what, LIMIT_PROFILE_NAMES);
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *item = json_array_get(v, i);
		if (!json_is_string(item) ||
			!name_ok(json_string_value(item), json_string_length(item))) {
			invalid(e,
				"profile.%s[%zu]: must be a name such as \"numpy\" or \"numpy.*\"",
				what, i);
			return -EINVAL;
		}
		int r = take(d, json_string_value(item));
		if (r < 0)
			return error_set_errno(e, r, "profile.%s", what);
	}

	return 0;
}

static int take_import(struct draft *d, const char *name)
{
	return add(&d->imports, &d->n_imports, name);
}

static int take_rule(struct draft *d, const char *key, const char *value)
{
	char rule[RULE_BYTES];
	snprintf(rule, sizeof(rule), "%s=%s", key, value);
	return add(&d->rules, &d->n_rules, rule);
}

static int take_builtin(struct draft *d, const char *name)
{
	return take_rule(d, "builtin", name);
}

static int take_refuse(struct draft *d, const char *name)
{
	return take_rule(d, "refuse", name);
}

static int set_imports(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	free_list(d->imports, d->n_imports);
	d->imports = NULL;
	d->n_imports = 0;
	return each_name(v, key, e, take_import, d);
}

static int add_imports(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	return each_name(v, key, e, take_import, d);
}

static int set_builtins(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	return each_name(v, key, e, take_builtin, d);
}

static int set_refuse(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	return each_name(v, key, e, take_refuse, d);
}

static int set_count(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	char text[32];
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return invalid(e, "profile.%s: must be a whole number, 0 for no limit", key);
	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
	return take_rule(d, key, text);
}

static int set_flag(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	if (!json_is_boolean(v))
		return invalid(e, "profile.%s: must be true or false", key);
	return take_rule(d, key, json_is_true(v) ? "1" : "0");
}

static int set_text(const json_t *v, const char *key, struct draft *d, struct error *e)
{
	(void)d;
	return json_is_string(v) ? 0 : invalid(e, "profile.%s: must be a text", key);
}

static const struct entry {
	const char *key;
	int (*set)(const json_t *, const char *, struct draft *, struct error *);
} entries[] = {
	/* In the order in which they take effect. */
	{ "base", set_text },
	{ "name", set_text },
	{ "summary", set_text },
	{ "imports", set_imports },
	{ "additional_imports", add_imports },
	{ "builtins", set_builtins },
	{ "refuse", set_refuse },
	{ "max_operations", set_count },
	{ "max_while_iterations", set_count },
	{ "print_chars", set_count },
	{ "final_answer_stops", set_flag },
	{ "fresh_namespace", set_flag },
};

static int check_keys(const json_t *object, struct error *e)
{
	const char *known[ARRAY_LEN(entries) + 1], *key;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		known[i] = entries[i].key;
	known[ARRAY_LEN(entries)] = NULL;
	json_object_foreach((json_t *)object, key, value)
	{
		bool found = false;
		for (size_t i = 0; i < ARRAY_LEN(entries); i++)
			found = found || text_eq(known[i], key);
		if (found)
			continue;
		const char *near = nearest_word(key, known);
		invalid(e, "profile.%.60s: there is no such entry", key);
		return near ? error_remedy(e, "Did you mean '%s'?", near)
			    : error_remedy(e,
				      "Entries are base, imports, additional_imports, builtins, refuse, max_operations, "
				      "max_while_iterations, print_chars, final_answer_stops, fresh_namespace.");
	}

	return 0;
}

/* ---- putting together -------------------------------------------------- */

static int apply_table(const struct profile_table *t, struct draft *d)
{
	int r = 0;
	d->table = t;
	for (const char *const *m = t->imports; r == 0 && *m; m++)
		r = take_import(d, *m);
	return r;
}

static int apply_name(const struct profiles *p, const char *name, unsigned depth, struct draft *d,
	struct error *e);

static int apply_object(const struct profiles *p, const json_t *object, unsigned depth,
	struct draft *d, struct error *e)
{
	int r = check_keys(object, e);
	const json_t *base = json_object_get(object, "base");
	if (r == 0 && base && !json_is_string(base))
		r = invalid(e, "profile.base: must be the name of a profile");
	if (r == 0)
		r = apply_name(p, base ? json_string_value(base) : "python", depth + 1, d, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(entries); i++) {
		const json_t *v = json_object_get(object, entries[i].key);
		if (v && !json_is_null(v))
			r = entries[i].set(v, entries[i].key, d, e);
	}
	return r;
}

static const struct own_profile *find_own(const struct profiles *p, const char *name)
{
	for (size_t i = 0; p && i < p->n; i++)
		if (text_eq(p->own[i].name, name))
			return &p->own[i];
	return NULL;
}

static int apply_name(const struct profiles *p, const char *name, unsigned depth, struct draft *d,
	struct error *e)
{
	const struct own_profile *own = find_own(p, name);
	if (depth > BASE_DEPTH)
		return invalid(e, "profile.base: '%.60s' is built on itself", name);
	if (own)
		return apply_object(p, own->object, depth, d, e);
	const struct profile_table *t = profile_find(name);
	if (!t)
		return unknown_profile(p, name, e);
	int r = apply_table(t, d);
	return r < 0 ? error_set_errno(e, r, "the profile") : 0;
}

static bool allows_all(const struct draft *d)
{
	for (size_t i = 0; i < d->n_imports; i++)
		if (text_eq(d->imports[i], "*"))
			return true;
	return false;
}

/*
 * Writes the rules in the format of the guest, starting with the base profile. The unchanged
 * profile python has no rules.
 */
static int finish_rules(struct draft *d, struct profile_choice *c)
{
	char **rules = NULL;
	size_t n = 0;
	int r = 0;
	char text[RULE_BYTES];
	bool plain = d->table->base == PROFILE_PYTHON && allows_all(d) && !d->n_rules;

	if (!plain) {
		snprintf(text, sizeof(text), "base=%s", d->table->name);
		r = add(&rules, &n, text);
	}

	for (size_t i = 0; r == 0 && !plain && i < d->n_imports; i++) {
		snprintf(text, sizeof(text), "import=%s", d->imports[i]);
		r = add(&rules, &n, text);
	}

	for (size_t i = 0; r == 0 && !plain && i < d->n_rules; i++)
		r = add(&rules, &n, d->rules[i]);
	if (r < 0)
		free_list(rules, n);
	else
		c->rules = rules;
	return r;
}

static int apply_text(const struct profiles *p, const char *text, struct draft *d, char **ret_name,
	struct error *e)
{
	_cleanup_json_ json_t *object = NULL;
	if (*text != '{') {
		*ret_name = strdup(text);
		return *ret_name ? apply_name(p, text, 0, d, e)
				 : error_set_errno(e, -ENOMEM, "the profile");
	}
	int r = json_read(text, strlen(text), e, &object);
	if (r < 0)
		return r;
	const char *name = json_string_value(json_object_get(object, "name"));
	*ret_name = strdup(name ? name : "custom");
	return *ret_name ? apply_object(p, object, 0, d, e)
			 : error_set_errno(e, -ENOMEM, "the profile");
}

/* The rule for a module and what is below it; "numpy.*" and "*" are such rules already. */
static int take_below(struct draft *d, const char *name)
{
	char rule[LIMIT_NAME_BYTES + 3];
	size_t len = strlen(name);
	snprintf(rule, sizeof(rule), name[len - 1] == '*' ? "%s" : "%s.*", name);
	return take_import(d, rule);
}

static int check_additional(char *const *additional, bool below, struct draft *d, struct error *e)
{
	for (size_t i = 0; additional && additional[i]; i++) {
		const char *name = additional[i];
		if (i >= LIMIT_PROFILE_NAMES || !name_ok(name, strlen(name))) {
			error_set(e, -EINVAL,
				"additional_imports[%zu]: must be the name of a module such as numpy, or numpy.* with all below it",
				i);
			return error_slug(e, "invalid_profile");
		}
		int r = below ? take_below(d, name) : take_import(d, name);
		if (r < 0)
			return error_set_errno(e, r, "additional_imports");
	}
	return 0;
}

int profiles_choose(const struct profiles *p, const char *profile, const char *fallback,
	char *const *additional, bool below, struct error *e, struct profile_choice *ret)
{
	_cleanup_(draft_finish) struct draft d = { 0 };
	struct profile_choice c = { 0 };
	const char *text = profile && *profile     ? profile
			   : fallback && *fallback ? fallback
						   : profile_tables[0].name;
	int r = apply_text(p, text, &d, &c.name, e);

	if (r == 0)
		r = check_additional(additional, below, &d, e);
	if (r == 0 && (r = finish_rules(&d, &c)) < 0)
		error_set_errno(e, r, "the profile");
	if (r < 0) {
		profile_choice_finish(&c);
		return r;
	}

	c.table = (unsigned)(d.table - profile_tables);
	for (size_t i = 0; p && i < p->n; i++)
		if (text_eq(p->own[i].name, text))
			c.own = p->own[i].name;
	*ret = c;
	return 0;
}

/* ---- listing ----------------------------------------------------------- */

static void write_list(struct json_writer *w, const char *key, const char *const *list)
{
	json_key(w, key);
	json_open_array(w);
	for (; list && *list; list++)
		json_put_cstr(w, *list);
	json_close(w);
}

/* A limit of the rules, where they have one, else of the table. */
static uint64_t limit_of(const struct draft *d, const char *key, uint64_t fallback)
{
	size_t len = strlen(key);
	for (size_t i = 0; i < d->n_rules; i++)
		if (!strncmp(d->rules[i], key, len) && d->rules[i][len] == '=')
			fallback = strtoull(d->rules[i] + len + 1, NULL, 10);
	return fallback;
}

static void write_draft(struct json_writer *w, const char *name, const char *summary, bool own,
	const struct draft *d)
{
	const struct profile_table *t = d->table;
	json_open_object(w);
	json_field_cstr(w, "name", name);
	json_field_cstr(w, "base", t->name);
	json_field_bool(w, "own", own);
	json_field_cstr(w, "stands_for", t->stands_for);
	json_field_cstr(w, "summary", summary ? summary : t->summary);
	write_list(w, "imports", (const char *const *)d->imports);
	write_list(w, "builtins", t->builtins);
	write_list(w, "refuses", t->refuses);
	json_field_uint(w, "max_operations", limit_of(d, "max_operations", t->max_operations));
	json_field_uint(w, "max_while_iterations",
		limit_of(d, "max_while_iterations", t->max_while_iterations));
	json_field_uint(w, "print_chars", limit_of(d, "print_chars", t->print_chars));
	json_field_bool(
		w, "final_answer_stops", limit_of(d, "final_answer_stops", t->final_answer_stops));
	json_field_bool(w, "fresh_namespace", limit_of(d, "fresh_namespace", t->fresh_namespace));
	json_close(w);
}

void profiles_write(const struct profiles *p, struct json_writer *w)
{
	json_open_array(w);
	for (const struct profile_table *t = profile_tables; t->name; t++) {
		_cleanup_(draft_finish) struct draft d = { 0 };
		if (!find_own(p, t->name) && apply_table(t, &d) == 0)
			write_draft(w, t->name, NULL, false, &d);
	}

	for (size_t i = 0; p && i < p->n; i++) {
		_cleanup_(draft_finish) struct draft d = { 0 };
		if (apply_name(p, p->own[i].name, 0, &d, NULL) == 0)
			write_draft(w, p->own[i].name,
				json_string_value(json_object_get(p->own[i].object, "summary")),
				true, &d);
	}

	json_close(w);
}

int profiles_check(const struct profiles *p, const char *name, struct error *e)
{
	_cleanup_(draft_finish) struct draft d = { 0 };
	return apply_name(p, name, 0, &d, e);
}
