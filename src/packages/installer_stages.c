/* The stages of an installation: resolve, fetch (and build), arrange. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "packages/claims.h"
#include "packages/installer.h"
#include "packages/installer_log.h"

enum { TRIES_MAX = 16, LEFT_DEPTH_MAX = 128 };

/* ---- between stages ------------------------------------------------------------------ */

/*
 * Removes all entries of a directory but one. The tree is hostile: nothing is followed, and it is
 * not entered without end.
 */
static int remove_all(int dir, const char *but, unsigned depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d || depth > LEFT_DEPTH_MAX) {
		r = depth > LEFT_DEPTH_MAX ? -ELOOP : -errno;
		if (d)
			closedir(d);
		else
			fd_close(fd);
		return r;
	}

	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		const char *name = entry->d_name;
		if (text_eq(name, ".") || text_eq(name, "..") || (but && text_eq(name, but)) ||
			unlinkat(fd, name, 0) == 0)
			continue;
		_cleanup_fd_ int below = openat(
			fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = below < 0 ? -errno : remove_all(below, NULL, depth + 1);
		if (r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0)
			r = -errno;
	}

	closedir(d);
	return r;
}

/*
 * A fresh interpreter with the driver, beside files that were left under the name `kept` only
 * (NULL: beside none).
 */
static int next_stage(struct installer *in, const char *kept, struct error *e)
{
	struct stat st;
	int r = installer_quiet(in, e);

	if (r < 0)
		return r;
	int workspace = local_workspace(in->local);
	r = remove_all(workspace, kept, 0);
	if (r == 0 && kept &&
		(fstatat(workspace, kept, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
		r = -ENOTDIR;
	if (r < 0) {
		error_set_errno(
			e, r, "the files that the build of the packages left cannot be removed");
		return error_slug(e, "package_build_failed");
	}

	return installer_load(in, e);
}

static void forget(json_t **said)
{
	json_decref(*said);
	*said = NULL;
}

/* ---- the stages ------------------------------------------------------------------------ */

static json_t *arguments(const struct installer *in, bool build)
{
	json_t *q = json_copy(in->settings), *lines = json_array(), *one;
	size_t i;
	json_array_foreach(in->plan.requirements, i, one)
		json_array_append(lines, json_object_get(one, "text"));
	json_object_set_new(q, "requirements", lines);
	json_object_set_new(q, "build", json_boolean(build));
	return q;
}

/*
 * Runs a stage. 0 also when it failed in a way that the caller explains (`failed`, `refused`); else
 * its answer must be there.
 */
static int run_stage(struct installer *in, const char *function, json_t *q, json_t *const *answer,
	struct error *e)
{
	int r = installer_call(in, function, q, e);
	if (r < 0 || in->failed || json_array_size(in->refused) || *answer)
		return r;
	error_set(e, -EIO, "the installer's jail gave no answer");
	return error_slug(e, "package_failed");
}

/* Code of source packages runs here, where they may be built: pip asks them what they need. */
static int resolve(struct installer *in, struct error *e, json_t **ret, bool *ret_source)
{
	bool build = json_is_true(json_object_get(in->request, "build"));
	_cleanup_json_ json_t *q = arguments(in, build);
	int r = next_stage(in, NULL, e);

	forget(&in->failed);
	/* after the kill: whatever was said in its name before is forgotten */
	forget(&in->resolved);
	if (r == 0)
		r = run_stage(in, "resolve", q, &in->resolved, e);
	if (r < 0 || in->failed || json_array_size(in->refused))
		return r;
	r = claims_resolved(in->resolved, json_object_get(in->survey, "dists"), e, ret, ret_source);
	if (r == 0 && *ret_source && !build) {
		error_set(e, -EPROTO, "the installer's jail sent an invalid answer");
		return error_slug(e, "package_failed");
	}

	return r;
}

/* Without `build` no code of a package runs here, so the files are what the hashes say. */
static int fetch(struct installer *in, json_t *resolved, bool build, struct error *e)
{
	_cleanup_json_ json_t *q = arguments(in, build);
	json_object_set(q, "resolved", resolved);
	int r = next_stage(in, NULL, e);
	forget(&in->fetched);
	if (r == 0)
		r = run_stage(in, "fetch", q, &in->fetched, e);
	return r < 0 || in->failed ? r : claims_fetched(in->fetched, resolved, e);
}

static int arrange(struct installer *in, json_t *resolved, struct error *e)
{
	_cleanup_json_ json_t *q = json_object();
	bool by_uv = text_eq(json_string_value(json_object_get(resolved, "by")), "uv");
	int r = next_stage(in, by_uv ? "tree" : "wheels", e);
	forget(&in->arranged);
	return r < 0 ? r : run_stage(in, "arrange", q, &in->arranged, e);
}

/* 0 with in->failed set: pip's words say why. */
static int install_once(struct installer *in, struct error *e)
{
	_cleanup_json_ json_t *resolved = NULL;
	bool source = false;
	int r = resolve(in, e, &resolved, &source);

	if (r < 0 || !resolved)
		return r;
	json_t *packages = json_object_get(resolved, "packages");
	in->built = source;
	if (json_array_size(packages)) {
		r = fetch(in, resolved, source, e);
		if (r == 0 && !in->failed)
			r = arrange(in, resolved, e);
	}

	if (r == 0 && in->failed &&
		text_eq(json_string_value(json_object_get(resolved, "by")), "uv")) {
		/* pip may know a way, and says better why there is none */
		json_object_set_new(in->settings, "uv", json_string("no"));
		return install_once(in, e);
	}

	if (r < 0 || in->failed)
		return r;
	forget(&in->installed);
	in->installed = json_object();
	json_object_set(in->installed, "packages", packages);
	json_object_set_new(
		in->installed, "modules", claims_modules(json_object_get(in->arranged, "modules")));
	json_object_set(in->installed, "dists", json_object_get(in->survey, "dists"));
	return 0;
}

/* ---- what pip could not find --------------------------------------------------------------- */

/*
 * A name in pip's words that one of the requirements has; it goes into the report. Only imports may
 * fail without failing the request.
 */
static bool blame_import(struct installer *in, const struct pip_failure *f)
{
	json_t *one;
	size_t i;
	bool only_imports = true;

	in->incomplete = true;
	json_array_foreach(in->plan.requirements, i, one)
		only_imports &= json_object_get(one, "module") != NULL;
	if (only_imports && !*f->package) { /* nobody in particular: then all of them */
		while (json_array_size(in->plan.requirements))
			plan_fail(&in->plan,
				json_string_value(json_object_get(
					json_array_get(in->plan.requirements, 0), "name")),
				f->reason);
		return true;
	}

	json_array_foreach(in->plan.requirements, i,
		one) if (json_object_get(one, "module") &&
			 text_eq(json_string_value(json_object_get(one, "name")),
				 f->package)) return plan_fail(&in->plan, f->package, f->reason);
	return false;
}

int installer_pip(struct installer *in, struct error *e)
{
	struct pip_failure f;
	for (int tries = 0; json_array_size(in->plan.requirements); tries++) {
		int r = install_once(in, e);
		if (r < 0)
			return r;
		if (json_array_size(in->refused)) {
			error_set(e, -EPERM,
				"this server does not allow the package %.100s, which is needed",
				json_string_value(json_array_get(in->refused, 0)));
			return error_slug(e, "package_refused");
		}
		if (!in->failed)
			return plan_installed(&in->plan, in->installed, in->settings, e);
		pip_explain(in->failed, in->settings, &f);
		if (tries >= TRIES_MAX || !blame_import(in, &f)) {
			plan_fail(&in->plan, f.package, f.reason);
			error_set(e, -ENOENT, "%s", f.reason);
			error_remedy(e, "%s", f.remedy);
			return error_slug(e, f.slug);
		}
	}

	return 0;
}
