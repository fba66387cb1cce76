#include "packages/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "packages/requirement.h"

enum { VERSION_MAX = 128, URL_MAX = 4096, HASHES_MAX = 1 << 20, MODULE_NAME_MAX = 128 };

#define HEX_DIGITS "0123456789abcdef"
#define DECIMALS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static int nonsense(struct error *e)
{
	error_set(e, -EPROTO, "the installer's jail sent an invalid answer");
	return error_slug(e, "package_failed");
}

/* A text of these characters only, not empty and not too long; NULL for anything else. */
static const char *text_of(
	const json_t *object, const char *member, const char *characters, size_t max)
{
	const char *text = json_string_value(json_object_get(object, member));
	size_t len = text ? strlen(text) : 0;
	return len && len <= max && strspn(text, characters) == len ? text : NULL;
}

/* ---- addresses ------------------------------------------------------------------------ */

/*
 * The characters of RFC 3986 without '#': no spaces, quotes or line ends, which would end the
 * address in a requirements file.
 */
static bool address_is_sound(const char *url)
{
	static const char *const schemes[] = { "https://", "http://", "file:///" };
	bool known = false;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		known |= strncmp(url, schemes[i], strlen(schemes[i])) == 0;
	return known && strlen(url) <= URL_MAX &&
	       strspn(url, LOWER UPPER DECIMALS "-._~:/?[]@!&'()*+,;=%") == strlen(url);
}

bool claims_is_wheel(const char *url)
{
	static const char suffix[] = ".whl";
	/* what follows is not part of the file's name: evil.tar.gz?.whl is no wheel */
	size_t path = strcspn(url, "?#");
	return path > strlen(suffix) &&
	       strncmp(url + path - strlen(suffix), suffix, strlen(suffix)) == 0;
}

/* ---- packages --------------------------------------------------------------------------- */

/*
 * One SHA-256, or (by uv) those of all files of a version; "" when the index has none. NULL: no
 * hashes.
 */
static const char *hashes_of(const json_t *item, bool several)
{
	const char *text = json_string_value(json_object_get(item, "sha256"));
	if (!text || !*text)
		return text;
	size_t len = strlen(text), one = 64;
	if (len > HASHES_MAX || (!several && len != one))
		return NULL;
	for (const char *at = text;; at += one + 1) {
		if (strspn(at, HEX_DIGITS) != one)
			return NULL;
		if (!at[one])
			return text;
		if (at[one] != ' ')
			return NULL;
	}
}

static json_t *resolved_item(const json_t *said, const json_t *dists, bool by_uv)
{
	char name[REQUIREMENT_NAME_MAX + 1];
	const char *given = json_string_value(json_object_get(said, "name")),
		   *version = text_of(said, "version", LOWER UPPER DECIMALS ".!+-_", VERSION_MAX),
		   *hashes = hashes_of(said, by_uv),
		   *url = json_string_value(json_object_get(said, "url"));

	if (!given || !version || !hashes || !requirement_normalise(given, name) ||
		(by_uv ? !*hashes : !url || !address_is_sound(url)))
		return NULL;
	json_t *item = json_object(), *there = json_object_get(dists, name);
	json_object_set_new(item, "name", json_string(name));
	json_object_set_new(item, "version", json_string(version));
	json_object_set_new(item, "sha256", json_string(hashes));
	json_object_set_new(item, "source", json_boolean(!by_uv && !claims_is_wheel(url)));
	json_object_set_new(
		item, "requested", json_boolean(json_is_true(json_object_get(said, "requested"))));
	json_object_set_new(item, "replaces", there ? json_incref(there) : json_null());
	if (!by_uv)
		json_object_set_new(item, "url", json_string(url));
	return item;
}

int claims_resolved(
	const json_t *said, const json_t *dists, struct error *e, json_t **ret, bool *ret_source)
{
	const char *by = json_string_value(json_object_get(said, "by"));
	const json_t *list = json_object_get(said, "packages"), *one;
	bool by_uv = text_eq(by, "uv"), source = false;
	size_t i;

	if ((!by_uv && !text_eq(by, "pip")) || !json_is_array(list) ||
		json_array_size(list) > CLAIMS_PACKAGES_MAX)
		return nonsense(e);
	_cleanup_json_ json_t *checked = json_object();
	json_t *items = json_array();
	json_object_set_new(checked, "by", json_string(by));
	json_object_set_new(checked, "packages", items);
	json_array_foreach(list, i, one)
	{
		json_t *item = resolved_item(one, dists, by_uv);
		if (!item)
			return nonsense(e);
		source |= json_is_true(json_object_get(item, "source"));
		json_array_append_new(items, item);
	}

	*ret = TAKE_PTR(checked);
	*ret_source = source;
	return 0;
}

int claims_fetched(const json_t *said, json_t *resolved, struct error *e)
{
	json_t *items = json_object_get(resolved, "packages"), *item;
	const json_t *list = json_object_get(said, "packages");
	bool by_uv = text_eq(json_string_value(json_object_get(resolved, "by")), "uv");
	size_t i;

	if (!json_is_array(list) || json_array_size(list) != json_array_size(items))
		return nonsense(e);
	json_array_foreach(items, i, item)
	{
		const json_t *one = json_array_get(list, i);
		const char *hashes = hashes_of(one, by_uv),
			   *name = json_string_value(json_object_get(one, "name"));
		if (!hashes || !text_eq(name, json_string_value(json_object_get(item, "name"))))
			return nonsense(e);
		json_object_set_new(item, "sha256", json_string(hashes));
	}

	return 0;
}

json_t *claims_modules(const json_t *said)
{
	json_t *checked = json_array();
	for (size_t i = 0; i < json_array_size(said) && i < CLAIMS_MODULES_MAX; i++) {
		const char *name = json_string_value(json_array_get(said, i));
		if (name && *name && strlen(name) <= MODULE_NAME_MAX && !strpbrk(name, "./ \\\"'"))
			json_array_append_new(checked, json_string(name));
	}
	return checked;
}

/* ---- identity ------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *line_of(const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name")),
		   *version = json_string_value(json_object_get(item, "version")),
		   *hashes = json_string_value(json_object_get(item, "sha256"));
	char *line = NULL;
	if (!name || !version || !hashes || !*hashes ||
		asprintf(&line, "%s %s %s\n", name, version, hashes) < 0)
		return NULL;
	return line;
}

char *claims_identity(const json_t *packages)
{
	_cleanup_buffer_ struct buffer text = BUFFER_INIT(0);
	size_t n = json_array_size(packages), made = 0;
	char *identity = NULL;
	_cleanup_free_ char **lines = calloc(n + 1, sizeof(*lines));

	if (!lines)
		return NULL;
	while (made < n && (lines[made] = line_of(json_array_get(packages, made))))
		made++;
	int r = made < n ? -ENODATA : 0;
	qsort(lines, made, sizeof(*lines), by_text);
	for (size_t i = 0; i < made; i++) {
		if (r == 0)
			r = buffer_append_str(&text, lines[i]);
		free(lines[i]);
	}

	if (r == 0 && buffer_cstr(&text))
		identity = strdup(buffer_cstr(&text));
	return identity;
}
