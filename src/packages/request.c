#include "packages/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/interpreter.h"
#include "base/text.h"
#include "json/json_write.h"

enum {
	CONSTRAINTS_BYTES = 1 << 20,
	FORMAT = 2, /* part of every key: answers that an older program wrote are not used */
};

/*
 * Where Debian's packages and the administrator's lie; their times change when one comes or goes.
 */
static const char *const system_places[] = { "/usr/lib/python3/dist-packages", "/usr/local/lib" };

static size_t count(char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted: the order of the wishes is not part of the request. */
static int put_list(struct json_writer *w, const char *key, char *const *list)
{
	size_t n = count(list);
	_cleanup_free_ char **sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	if (n) {
		memcpy(sorted, list, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), by_text);
	}

	json_key(w, key);
	json_open_array(w);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(sorted[i - 1], sorted[i]))
			json_put_cstr(w, sorted[i]);
	json_close(w);
	return 0;
}

/* Time and size of what is there, so that an answer does not outlive it. */
static void put_age(struct json_writer *w, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return;
	json_put_uint(
		w, (uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec);
}

static int put_constraints(struct json_writer *w, const char *path, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	if (!path)
		return 0;
	int r = fd_read_file(path, CONSTRAINTS_BYTES, &text, &len);
	if (r < 0)
		return error_set_errno(e, r, "the file of packages-constraints, %s", path);
	json_field_text(w, "constraints", text, len);
	return 0;
}

static int put_settings(struct json_writer *w, const struct packages_settings *s, struct error *e)
{
	json_key(w, "settings");
	json_open_object(w);
	if (s->index)
		json_field_cstr(w, "index", s->index);
	if (s->proxy)
		json_field_cstr(w, "proxy", s->proxy);
	const struct {
		const char *key;
		char **list;
	} lists[] = { { "extra_index", s->extra_index }, { "find_links", s->find_links },
		{ "trusted_host", s->trusted_host }, { "hosts", s->hosts }, { "allow", s->allow },
		{ "deny", s->deny } };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (put_list(w, lists[i].key, lists[i].list) < 0)
			return error_set(e, -ENOMEM, "out of memory");
	json_field_bool(w, "offline", s->offline);
	json_field_bool(w, "isolate", s->isolate);
	json_field_bool(w, "require_hashes", s->require_hashes);
	int r = put_constraints(w, s->constraints, e);
	json_close(w);
	return r;
}

static int put_wishes(struct json_writer *w, const struct packages_settings *s,
	const struct packages_request *q, struct error *e)
{
	if (count(q->packages) + count(q->imports) > REQUEST_NAMES_MAX) {
		error_set(e, -E2BIG, "more than %d packages and modules are requested at once",
			REQUEST_NAMES_MAX);
		return error_slug(e, "too_many_packages");
	}

	if (put_list(w, "packages", q->packages) < 0 || put_list(w, "imports", q->imports) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	json_field_uint(w, "format", FORMAT);
	json_key(w, "system");
	json_open_array(w);
	for (size_t i = 0; i < ARRAY_LEN(system_places); i++)
		put_age(w, system_places[i]);
	put_age(w, interpreter_path());
	for (char **link = s->find_links; link && *link; link++)
		put_age(w, *link);
	json_close(w);
	return put_settings(w, s, e);
}

static void make_keys(const struct buffer *wishes, const char *client, struct request_keys *ret)
{
	struct sha256 sum;
	*ret = (struct request_keys){ 0 };
	sha256_init(&sum);
	sha256_add(&sum, wishes->data, wishes->len);
	sha256_end(&sum, ret->shared);
	if (!client)
		return;
	sha256_init(&sum);
	sha256_add(&sum, ret->shared, SHA256_HEX);
	sha256_add(&sum, client, strlen(client));
	sha256_end(&sum, ret->own);
}

int packages_request_write(const struct packages_settings *settings, const char *state_dir,
	const struct packages_request *q, struct error *e, struct buffer *out,
	struct request_keys *ret_keys)
{
	struct json_writer w;
	struct request_keys keys;

	json_writer_init(&w, out);
	json_open_object(&w);
	int r = put_wishes(&w, settings, q, e);
	if (r < 0)
		return r;
	make_keys(out, q->client, &keys);
	/*
	 * From here on what does not change the answer. Whether to build is not part of the
	 * question: what an operator had built is there for all.
	 */
	json_field_bool(&w, "build", settings->build || q->build);
	json_field_cstr(&w, "key", keys.shared);
	if (*keys.own)
		json_field_cstr(&w, "own_key", keys.own);
	json_field_bool(&w, "refresh", q->refresh);
	json_field_cstr(&w, "state_dir", state_dir);
	if (settings->uv)
		json_field_cstr(&w, "uv", settings->uv);
	json_field_double(&w, "timeout_s", settings->timeout_s);
	json_field_uint(&w, "max_bytes", settings->max_bytes);
	json_close(&w);
	r = json_writer_end(&w);
	if (r < 0)
		return error_set_errno(e, r, "the request for packages");
	*ret_keys = keys;
	return 0;
}
