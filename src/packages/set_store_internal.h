/* Declarations shared by the files of the store; private to them. */
#pragma once

#include <dirent.h>
#include <stdint.h>

#include "packages/set_store.h"

struct store {
	int dir; /* DIR */
	int sets, requests, objects, staging, tree;
	char *tree_path;
};

/*
 * Locks DIR/lock (LOCK_SH, LOCK_EX, with or without LOCK_NB): the descriptor, or a negative errno.
 */
int store_lock(struct store *s, int how);

/* Writes NAME in the directory whole: under another name first, synced, then renamed. */
int store_write(int dir, const char *name, const char *data, size_t len);

/* Reads NAME of the directory. */
int store_read(int dir, const char *name, size_t max, char **ret, size_t *ret_len);

/* Is it an id of a set (and not a path)? */
bool store_is_id(const char *id);

/* Removes NAME and all below it, as far as that goes. */
void store_remove_tree(int dir, const char *name);

/*
 * Calls `each` for every entry but "." and ".."; stops at the first negative value, which it
 * returns.
 */
int store_each(
	int dir, int (*each)(void *userdata, int dir, const struct dirent *entry), void *userdata);

/* "ab/cdef…" of a hash; buf has SHA256_HEX + 2 bytes. */
const char *store_object_name(const char *hex, char *buf);

/* Is this text the member of that name at the top of a record, which is JSON? */
bool store_record_says(const char *record, const char *member, const char *text);

/* What processes that are gone left under way. */
unsigned store_remove_leftovers(struct store *s);
