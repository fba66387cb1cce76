/* A zygote with packages of the store lives in the jails' tree, where those have the names that sessions know them by. */
#pragma once

#define SETTLED_CACHE "/tmp/matplotlib"

/*
 * Moves into the jailer's mount namespace (a copy of it, with an empty /tmp), and puts the path before the system's packages. The
 * font cache comes along. NULL, or what failed.
 */
const char *settle_in_tree(const char *path, const char *cache);
