/*
 * LibreChat's code interpreter (private to its files): programs over /v1/exec, and files that are
 * kept by id between them, because LibreChat's sessions are folders of files, not interpreters.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/call.h"
#include "base/memory_account.h"
#include "dialects/librechat/chat_program.h"

struct json_writer;
struct observation;
struct run_request;

enum { CHAT_ID_LEN = 21 };

struct chat_file {
	uint64_t made_ns;
	char session[CHAT_ID_LEN + 1], id[CHAT_ID_LEN + 1];
	char *name, *data;
	size_t len;
	struct hold held; /* data, name and this struct */
	TAILQ_ENTRY(chat_file) link;
};

/* The files of one token. */
struct chat_shelf {
	uint64_t owner;
	TAILQ_HEAD(chat_files, chat_file) files; /* the oldest first; never empty */
	size_t bytes, n;
	LIST_ENTRY(chat_shelf) link;
};

struct chat_store {
	LIST_HEAD(, chat_shelf) shelves;
	size_t bytes;
};

void chat_store_init(struct chat_store *s);
void chat_store_finish(struct chat_store *s);

/*
 * Copies a file into the store. When there is no room, the oldest file of the token that keeps the
 * most bytes is evicted, so that a token which fills the store evicts its own files. NULL when the
 * file does not fit.
 */
const struct chat_file *chat_store_add(struct chat_store *s, uint64_t owner, const char *session,
	const char *name, const char *data, size_t len);
const struct chat_file *chat_store_find(
	struct chat_store *s, uint64_t owner, const char *session, const char *id);
/* The next one of a session; NULL starts, NULL ends. */
const struct chat_file *chat_store_next(
	struct chat_store *s, uint64_t owner, const char *session, const struct chat_file *after);

/* ---- the dialect (librechat.c) ------------------------------------------------------ */

struct librechat {
	struct chat_store store;
	struct chat_programs programs;
};
struct librechat *librechat_of(const struct call *c);

void chat_answer_error(struct call *c, int status, const char *text);

/* ---- programs (chat_exec.c) ------------------------------------------------------------ */

/*
 * Code, arguments and files of a request. Adds the bytes of the files to *bytes. -EFBIG: they are
 * too large together; -ENOMEM.
 */
int chat_fill_run(struct call *c, const json_t *body, struct run_request *run, size_t *bytes);
/* The member `files`: those that the program has made or changed, which are kept. `s` may be NULL. */
void chat_put_files(struct json_writer *w, struct api *a, uint64_t owner, const char *session,
	struct session *s, const struct observation *o);

/* ---- multipart/form-data (multipart.c) ------------------------------------------- */

struct form_part {
	char name[64], filename[256]; /* filename is "" for a field */
	const char *data;
	size_t len;
};

/*
 * Begins with *at 0 and goes from part to part: 1 and *ret, 0 at the end, -EINVAL. No I/O, no
 * memory.
 */
int multipart_next(
	const char *content_type, const char *body, size_t len, size_t *at, struct form_part *ret);

void handle_chat_exec(struct call *c);
void handle_chat_upload(struct call *c);
void handle_chat_upload_batch(struct call *c);
void handle_chat_files(struct call *c);
void handle_chat_download(struct call *c);

extern const struct route librechat_routes[];
