#include "packages/requirement.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t");
}

static int refuse(struct error *e, const char *text, const char *why)
{
	error_set(e, -EINVAL, "'%.100s' is not a package: %s", text, why);
	error_remedy(e,
		"Write a name and, where it matters, versions: \"rich\", \"pandas>=2,<3\", \"uvicorn[standard]==0.30.1\".");
	return error_slug(e, "invalid_package");
}

bool requirement_normalise(const char *name, char ret[REQUIREMENT_NAME_MAX + 1])
{
	size_t n = 0, len = strlen(name);
	if (!len || len > REQUIREMENT_NAME_MAX || !isalnum((unsigned char)name[0]) ||
		!isalnum((unsigned char)name[len - 1]))
		return false;
	for (const char *p = name; *p; p++) {
		if (isalnum((unsigned char)*p))
			ret[n++] = (char)tolower((unsigned char)*p);
		else if (!strchr("-_.", *p))
			return false;
		else if (ret[n - 1] != '-')
			ret[n++] = '-';
	}

	ret[n] = '\0';
	return true;
}

bool requirement_matches(const char *pattern, const char *name)
{
	char form[REQUIREMENT_NAME_MAX + 1];
	size_t n = 0;
	for (const char *p = pattern; *p && n < REQUIREMENT_NAME_MAX; p++)
		form[n++] = *p == '_' || *p == '.' ? '-' : (char)tolower((unsigned char)*p);
	form[n] = '\0';
	return fnmatch(form, name, 0) == 0;
}

/* ---- the parts -------------------------------------------------------------------- */

static size_t name_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-_.", p[n])))
		n++;
	while (n && !isalnum((unsigned char)p[n - 1]))
		n--;
	return n;
}

/* "[a,b]"; NULL when it is not. */
static const char *skip_extras(const char *p)
{
	if (*p != '[')
		return p;
	do {
		p = skip_space(p + 1);
		size_t n = name_length(p);
		if (!n)
			return NULL;
		p = skip_space(p + n);
	} while (*p == ',');
	return *p == ']' ? p + 1 : NULL;
}

/* ">=2, <3"; NULL when it is not. */
static const char *skip_versions(const char *p)
{
	static const char *const operators[] = { "===", "==", "!=", "<=", ">=", "~=", "<", ">" };
	if (!*p || !strchr("=!<>~", *p))
		return p;
	for (;; p++) {
		size_t op = 0, n;
		p = skip_space(p);
		while (op < ARRAY_LEN(operators) && !text_starts(p, operators[op]))
			op++;
		if (op == ARRAY_LEN(operators))
			return NULL;
		p = skip_space(p + strlen(operators[op]));
		for (n = 0; isalnum((unsigned char)p[n]) || (p[n] && strchr(".*+!_-", p[n])); n++)
			;
		if (!n)
			return NULL;
		p = skip_space(p + n);
		if (*p != ',')
			return p;
	}
}

/* "; python_version < '3.12'"; NULL when it is not. */
static const char *skip_marker(const char *p)
{
	if (*p != ';')
		return p;
	size_t n = 1;
	while (isalnum((unsigned char)p[n]) || (p[n] && strchr(" \t_.'\"<>=!()~", p[n])))
		n++;
	return p + n;
}

/* " --hash=sha256:0123…", any number of them; NULL when it is not. */
static const char *skip_hashes(const char *p, bool *ret_any)
{
	static const char hash[] = "--hash=sha256:";
	for (p = skip_space(p); *p; p = skip_space(p)) {
		if (!text_starts(p, hash))
			return NULL;
		p += sizeof(hash) - 1;
		size_t n = strspn(p, "0123456789abcdef");
		if (n != 64 || (p[n] && !isspace((unsigned char)p[n])))
			return NULL;
		p += n;
		*ret_any = true;
	}
	return p;
}

int requirement_parse(const char *text, struct requirement *ret, struct error *e)
{
	struct requirement q = { 0 };
	const char *p = skip_space(text);
	size_t n = name_length(p);

	if (strlen(text) > REQUIREMENT_TEXT_MAX || strpbrk(text, "\r\n"))
		return refuse(e, text, "it is too long, or has more than one line");
	if (*p == '-')
		return refuse(e, text, "options are the server's settings");
	if ((*p && strchr("./~", *p)) || strstr(p, "://") || strchr(p + n, '@') || strchr(p, '/'))
		return refuse(e, text,
			"addresses and paths are not accepted, only names of packages in the index");
	if (!n || n > REQUIREMENT_NAME_MAX)
		return refuse(e, text, "it has no name");
	memcpy(q.given, p, n);
	if (!requirement_normalise(q.given, q.name))
		return refuse(e, text, "its name has wrong characters");
	const char *rest = p + n, *end = skip_extras(skip_space(rest));
	if (!end)
		return refuse(e, text, "its extras are not [name,name]");
	if (!(end = skip_versions(skip_space(end))))
		return refuse(e, text, "its versions are not such as >=2,<3");
	if (!(end = skip_marker(skip_space(end))) || !(end = skip_hashes(end, &q.hashed)))
		return refuse(e, text, "the text after the name cannot be read");
	q.plain = !*skip_space(rest);
	snprintf(q.text, sizeof(q.text), "%s%s", q.name, rest);
	for (size_t len = strlen(q.text); len && isspace((unsigned char)q.text[len - 1]); len--)
		q.text[len - 1] = '\0';
	*ret = q;
	return 0;
}
