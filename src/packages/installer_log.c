#include "packages/installer_log.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "packages/names.h"

/* The first line that has the words, or NULL. */
static const char *find(const json_t *log, const char *words)
{
	const json_t *line;
	size_t i;
	json_array_foreach(log, i, line)
	{
		const char *text = json_string_value(line);
		if (text && strstr(text, words))
			return text;
	}
	return NULL;
}

/* What pip was at when it ended. */
static const char *find_last(const json_t *log, const char *words)
{
	for (size_t i = json_array_size(log); i > 0; i--) {
		const char *text = json_string_value(json_array_get(log, i - 1));
		if (text && strstr(text, words))
			return text;
	}
	return NULL;
}

/* The name behind the words, without versions, in its one form. */
static void name_behind(const char *line, const char *words, char *ret)
{
	char word[REQUIREMENT_NAME_MAX + 1] = "";
	const char *at = line ? strstr(line, words) : NULL;
	*ret = '\0';
	if (!at)
		return;
	at += strlen(words);
	size_t n = strcspn(at, " <>=!~;[(,@");
	if (n && n <= REQUIREMENT_NAME_MAX) {
		memcpy(word, at, n);
		if (!requirement_normalise(word, ret))
			*ret = '\0';
	}
}

static bool explain_unreachable(const json_t *log, const json_t *settings, struct pip_failure *f)
{
	static const char *const signs[] = { "connection broken by", "Could not fetch URL",
		"Connection refused", "ProxyError", "ConnectTimeoutError", "Max retries exceeded",
		"Name or service not known", "Temporary failure in name resolution" };
	const char *index = json_string_value(json_object_get(settings, "index"));

	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		if (!find(log, signs[i]))
			continue;
		f->slug = "index_unreachable";
		snprintf(f->reason, sizeof(f->reason), "the package index %.200s cannot be reached",
			index ? index : "https://pypi.org/simple");
		snprintf(f->remedy, sizeof(f->remedy),
			"Try again later. {setting:packages-index} of the server names the index, {setting:packages-host} "
			"other hosts its files come from; {setting:packages-offline} with {setting:packages-find-links} works without one.");
		return true;
	}

	return false;
}

static bool explain_missing(const json_t *log, const json_t *settings, struct pip_failure *f)
{
	static const char words[] = "No matching distribution found for ";
	const char *line = find(log, words), *versions = find(log, "(from versions: ");

	if (!line)
		return false;
	bool none = !versions || strstr(versions, "(from versions: none)"),
	     build = json_is_true(json_object_get(settings, "build"));
	name_behind(line, words, f->package);
	const char *near = none ? names_suggest(f->package, NULL) : NULL;
	f->slug = "package_not_found";
	if (!none) {
		const char *list = strstr(versions, "(from versions: ") +
				   strlen("(from versions: ");
		snprintf(f->reason, sizeof(f->reason),
			"no version of %s fits '%.120s'; there are: %.*s", f->package,
			line + (strstr(line, words) - line) + strlen(words),
			(int)strcspn(list, ")"), list);
	} else if (near) {
		snprintf(f->reason, sizeof(f->reason), "there is no package %s; did you mean %s?",
			f->package, near);
	} else {
		snprintf(f->reason, sizeof(f->reason), "there is no package %s%s", f->package,
			build ? "" : " with a wheel for this system");
	}

	snprintf(f->remedy, sizeof(f->remedy), "%s",
		build ? "Check the name and the version."
		      : "Check the name and the version. Source packages are built only where the server "
			"says {setting:packages-build}, or by its operator with `glovebox packages add`.");
	return true;
}

static bool explain_conflict(const json_t *log, struct pip_failure *f)
{
	const char *line = find(log, "Cannot install ");
	if (!line && !find(log, "ResolutionImpossible"))
		return false;
	f->slug = "package_conflict";
	snprintf(f->reason, sizeof(f->reason), "the packages' versions exclude each other: %.300s",
		line ? strstr(line, "Cannot install ") : "see the log");
	snprintf(f->remedy, sizeof(f->remedy),
		"Relax the requested versions; the log says which versions each package needs.");
	return true;
}

static bool explain_build(const json_t *log, struct pip_failure *f)
{
	static const char *const words[] = { "Failed building wheel for ", "Failed to build ",
		"Could not build wheels for " };

	for (size_t i = 0; i < ARRAY_LEN(words) && !*f->package; i++)
		name_behind(find(log, words[i]), words[i], f->package);
	if (!*f->package && !find(log, "subprocess-exited-with-error") &&
		!find(log, "metadata-generation-failed"))
		return false;
	if (!*f->package)
		name_behind(find_last(log, "Collecting "), "Collecting ", f->package);
	f->slug = "package_build_failed";
	snprintf(f->reason, sizeof(f->reason), "building %s failed",
		*f->package ? f->package : "a source package");
	snprintf(f->remedy, sizeof(f->remedy),
		"The log's last lines say why. A version with a wheel needs no building.");
	return true;
}

static void explain_rest(const json_t *log, struct pip_failure *f)
{
	const char *line = find(log, "ERROR: ");
	if (find(log, "No space left on device")) {
		f->slug = "packages_too_large";
		snprintf(f->reason, sizeof(f->reason),
			"the packages need more disk space than one installation may use");
		snprintf(f->remedy, sizeof(f->remedy),
			"Ask for fewer packages, or {start_larger:packages-max-size}.");
		return;
	}

	if (find(log, "No module named pip")) {
		snprintf(f->reason, sizeof(f->reason), "pip is not installed on the server");
		snprintf(f->remedy, sizeof(f->remedy), "Install it: apt install python3-pip");
		return;
	}

	if (find(log, "THESE PACKAGES DO NOT MATCH THE HASHES") ||
		find(log, "Hashes are required in --require-hashes mode")) {
		f->slug = "package_hash_mismatch";
		snprintf(f->reason, sizeof(f->reason),
			"a package does not have the requested hash, or no hash was given for it");
		snprintf(f->remedy, sizeof(f->remedy),
			"Give the right hash for every package, also for those that others need.");
		return;
	}

	snprintf(f->reason, sizeof(f->reason), "pip failed: %.300s",
		line ? strstr(line, "ERROR: ") + strlen("ERROR: ") : "see the log");
	snprintf(f->remedy, sizeof(f->remedy), "The log's last lines say why.");
}

void pip_explain(const json_t *log, const json_t *settings, struct pip_failure *ret)
{
	struct pip_failure f = { .slug = "package_failed" };
	if (!explain_unreachable(log, settings, &f) && !explain_conflict(log, &f) &&
		!explain_missing(log, settings, &f) && !explain_build(log, &f))
		explain_rest(log, &f);
	*ret = f;
}
