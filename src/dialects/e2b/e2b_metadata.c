/*
 * Metadata of files: names and values that come with an upload as headers X-Metadata-<name>, kept in
 * an extended attribute of the file. The filter of system calls lets no code of a sandbox set one.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/xattr.h>

#include "api/workspace.h"
#include "base/cleanup.h"
#include "base/file_identity.h"
#include "base/limits.h"
#include "base/text.h"
#include "dialects/e2b/e2b.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Of a file: an object of texts. Of the workspace: some file in it has had the first one. */
#define ATTRIBUTE "user.glovebox.metadata"
#define MARK "user.glovebox.has_metadata"
static const char prefix[] = "X-Metadata-";

/* ---- of a request ------------------------------------------------------------------- */

static int add(json_t *tree, const char *name, const char *value)
{
	char lower[LIMIT_NAME_BYTES + 1];
	size_t len = strlen(name);
	if (!len || len > LIMIT_NAME_BYTES)
		return -EINVAL;
	for (size_t i = 0; i <= len; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	return json_object_set_new(tree, lower, json_string(value)) < 0 ? -EINVAL : 0;
}

int e2b_metadata_read(struct call *c, char **ret, struct error *e)
{
	const char *name, *value;
	_cleanup_json_ json_t *tree = json_object();
	int r = tree ? 0 : -ENOMEM;
	for (unsigned i = 0; r == 0 && http_header_at(c->x, i, &name, &value); i++)
		if (!strncasecmp(name, prefix, sizeof(prefix) - 1))
			r = add(tree, name + sizeof(prefix) - 1, value);
	*ret = NULL;
	if (r == 0 && json_object_size(tree) && !(*ret = json_dumps(tree, JSON_COMPACT)))
		r = -ENOMEM;
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	if (r < 0 || (*ret && strlen(*ret) > LIMIT_FILE_METADATA_BYTES)) {
		free(*ret);
		*ret = NULL;
		return error_set(e, -EINVAL,
			"metadata: names of at most %d bytes and %d bytes in all are possible",
			LIMIT_NAME_BYTES, LIMIT_FILE_METADATA_BYTES);
	}
	return 0;
}

/* ---- of a file ---------------------------------------------------------------------- */

static int set(int fd, const char *name, const char *value, struct session *s)
{
	uid_t uid;
	gid_t gid;
	session_owner(s, &uid, &gid);
	struct file_identity own = file_identity_enter(uid, gid);
	int r = fsetxattr(fd, name, value, strlen(value), 0) < 0 ? -errno : 0;
	file_identity_leave(&own);
	return r;
}

/* The session holds the workspace by a descriptor that has no attributes (O_PATH). */
static int open_top(int root)
{
	return openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int e2b_metadata_store(struct session *s, const char *path, const char *json, struct error *e)
{
	const char *below = e2b_below_home(path);
	int root = session_workspace_fd(s);
	struct stat st;
	_cleanup_fd_ int fd = -1;
	int r = below ? workspace_open(root, below, e, &fd, &st) : -EINVAL;
	if (r < 0)
		return r;
	_cleanup_fd_ int top = open_top(root);
	r = top < 0 ? -errno : set(fd, ATTRIBUTE, json, s);
	if (r == 0)
		r = set(top, MARK, "1", s);
	if (r == 0)
		return 0;
	if (r != -EOPNOTSUPP)
		return error_set_errno(e, r, "storing the metadata of %s", path);
	return error_set(e, -ENOSYS,
		"file metadata needs Linux 6.6 or later on the server. Leave the metadata out");
}

int e2b_metadata_root(struct session *s)
{
	int root = session_workspace_fd(s);
	_cleanup_fd_ int top = root < 0 ? -1 : open_top(root);
	return top >= 0 && fgetxattr(top, MARK, NULL, 0) > 0 ? root : -1;
}

void e2b_metadata_put(struct json_writer *w, int root, const char *path)
{
	const char *below = e2b_below_home(path);
	char text[LIMIT_FILE_METADATA_BYTES + 1];
	struct error e = { 0 };
	struct stat st;
	_cleanup_fd_ int fd = -1;
	if (root < 0 || !below || !*below || workspace_open(root, below, &e, &fd, &st) < 0)
		return;
	ssize_t len = fgetxattr(fd, ATTRIBUTE, text, sizeof(text));
	if (len > 0 && *text == '{' && json_validate(text, (size_t)len, NULL) == 0)
		json_field_raw(w, "metadata", text, (size_t)len);
}
