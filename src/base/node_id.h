/*
 * Ids that name the node. A node is one server of a fleet. Its ids begin with the letters of the
 * node and the letters of its incarnation, which is another one after each start. A router finds
 * the node of a request in the id, and the node knows an id from before its last start. A process
 * is one node: the letters are set once, before the first id is made. Without them all letters of
 * an id are random.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	NODE_LETTERS = 4,
	NODE_INCARNATION = 2,
	NODE_TAG = NODE_LETTERS + NODE_INCARNATION,
	NODE_INCARNATIONS = 1 << (5 * NODE_INCARNATION),
	NODE_NAME_MAX = 63,  /* the longest label of a host name */
	NODE_HEX_DIGITS = 5, /* the letters of the node at the start of a UUID */
	NODE_UUID_MAX = 37
};

/*
 * The letters of a node of this name: the name itself when it is four letters of [a-z2-7], else the
 * first letters of its SHA-256. -EINVAL for a name that is not 1 to NODE_NAME_MAX letters, digits,
 * '.', '_' and '-'.
 */
int node_letters(const char *name, char ret[NODE_LETTERS + 1]);

/* The letters as they are at the start of a UUID. */
void node_hex(const char *letters, char ret[NODE_HEX_DIGITS + 1]);

/* Sets the node of this process; the incarnation is below NODE_INCARNATIONS. NULL: no node. */
void node_set(const char *letters, unsigned incarnation);

/* The letters of the node and of the incarnation; "" without a node. */
const char *node_tag(void);

/* As text_random_id(), but the id begins with node_tag(). `len` is at least NODE_TAG. */
void node_make_id(char *out, size_t len);

/* A random UUID (version 4) whose first 30 bits are node_tag(). */
void node_make_uuid(char out[NODE_UUID_MAX]);

/* Was the id (without a prefix such as "s_") made by an earlier incarnation of this node? */
bool node_made_before(const char *id);
