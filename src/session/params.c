/* What a session is made from: snapshots and their end. */
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"

char **session_words_copy(const char *const *list)
{
	size_t n = 0;
	while (list[n])
		n++;
	char **copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		if (!(copy[i] = strdup(list[i]))) {
			session_words_free(copy);
			return NULL;
		}
	}
	return copy;
}

void session_words_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

void session_package_free(struct session_package *p)
{
	for (struct session_package *next; p; p = next) {
		next = p->next;
		if (p->release)
			p->release(p->hold);
		free(p->path);
		free(p);
	}
}

void session_params_finish(struct session_params *p)
{
	session_package_free(p->packages);
	session_words_free(p->want_packages);
	free(p->packages_report);
	session_words_free(p->template_modules);
	free(p->name);
	session_words_free(p->env);
	session_words_free(p->preload);
	session_words_free(p->mounts);
	session_words_free(p->volumes);
	free(p->metadata);
	network_policy_finish(&p->network);
	free(p->profile);
	session_words_free(p->additional_imports);
	*p = (struct session_params){ 0 };
}

static int too_large(struct error *e, const char *what, size_t max)
{
	error_set(e, -EINVAL, "%s must have at most %zu bytes", what, max);
	return error_slug(e, "invalid_field"), -EINVAL;
}

int session_params_check_sizes(const struct session_params *p, struct error *e)
{
	size_t env = 0, n = 0;
	for (; p->env && p->env[n]; n++)
		env += strlen(p->env[n]) + 1;
	if (p->name && strlen(p->name) > LIMIT_NAME_BYTES)
		return too_large(e, "the session's name", LIMIT_NAME_BYTES);
	if (p->metadata && strlen(p->metadata) > LIMIT_METADATA_BYTES + LIMIT_KEPT_METADATA_BYTES)
		return too_large(e, "the metadata, as JSON,", LIMIT_METADATA_BYTES);
	if (env > LIMIT_ENV_BYTES)
		return too_large(e, "all environment variables together", LIMIT_ENV_BYTES);
	if (n <= LIMIT_ENV_COUNT)
		return 0;
	error_set(e, -EINVAL, "there must be at most %d environment variables, not %zu",
		LIMIT_ENV_COUNT, n);
	return error_slug(e, "invalid_field"), -EINVAL;
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

static char **copy_words(char *const *list)
{
	return list ? session_words_copy((const char *const *)list) : NULL;
}

static struct session_package *copy_packages(const struct session_package *p)
{
	struct session_package *first = NULL, **at = &first;
	for (; p; p = p->next) {
		struct session_package *one = calloc(1, sizeof(*one));
		if (!one || !(one->path = strdup(p->path))) {
			free(one);
			session_package_free(first);
			return NULL;
		}
		if (p->retain) {
			p->retain(p->hold);
			one->retain = p->retain;
			one->release = p->release;
			one->hold = p->hold;
		}
		*at = one;
		at = &one->next;
	}

	return first;
}

int session_params_copy(const struct session_params *p, struct session_params *ret)
{
	struct session_params c = { .limits = p->limits,
		.ttl_s = p->ttl_s,
		.idle_timeout_s = p->idle_timeout_s,
		.pause_on_expiry = p->pause_on_expiry,
		.private_ports = p->private_ports,
		.wants_loopback = p->wants_loopback,
		.has_exec = true,
		.exec = p->exec,
		.has_transactions = true,
		.transactions = !p->no_transactions,
		.has_keep_checkpoints = true,
		.keep_checkpoints = p->keep_checkpoints,
		.has_keep_files = true,
		.keep_files_bytes = p->keep_files_bytes,
		.owner = p->owner,
		.dialect = p->dialect,
		.packages_replace = p->packages_replace };

	c.metadata = copy_text(p->metadata);
	c.profile = copy_text(p->profile);
	c.env = copy_words(p->env);
	c.preload = copy_words(p->preload);
	c.mounts = copy_words(p->mounts);
	c.volumes = session_volumes_copy(p->volumes);
	c.additional_imports = copy_words(p->additional_imports);
	c.imports_below = p->imports_below;
	c.packages = copy_packages(p->packages);
	c.packages_report = copy_text(p->packages_report);
	bool whole = !p->packages == !c.packages && !p->metadata == !c.metadata &&
		     !p->profile == !c.profile && !p->env == !c.env && !p->preload == !c.preload &&
		     !p->mounts == !c.mounts && !p->volumes == !c.volumes &&
		     !p->additional_imports == !c.additional_imports;
	if (!whole || network_policy_copy(&p->network, &c.network) < 0) {
		session_params_finish(&c);
		return -ENOMEM;
	}

	*ret = c;
	return 0;
}
