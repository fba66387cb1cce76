/*
 * Opens files of a session for its watches (private to this folder), always with the file rights of
 * the session's user: a watch shows nothing that code of the session could not see itself.
 */
#pragma once

#include <stdbool.h>

struct session;

/* Whether the path is the directory or is below it. */
bool watch_path_is_below(const char *path, const char *dir);

/*
 * `root` is absolute, as code of the session sees it, links included, or relative to the workspace;
 * then no part of it may be a link. No part of `below`, which is relative to the root ("" is the
 * root itself), may be a link. Returns a descriptor or a negative errno: -EAGAIN while the session
 * has no sandbox, -ELOOP for a link, -EACCES.
 */
int watch_open(const struct session *s, const char *root, const char *below, int flags);

/* A directory by its name in an open one; a link is not followed. A negative errno on failure. */
int watch_open_directory_at(const struct session *s, int dir, const char *name);
