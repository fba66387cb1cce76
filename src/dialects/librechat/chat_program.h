/*
 * Programmatic tool calls of LibreChat (private to its files): a program that calls the client's
 * tools over several requests. The first request starts the program; an answer with status
 * tool_call_required names the calls that wait, and the next request brings their results, until
 * the status is completed or error.
 *
 * 	started ─► call waits ─► told (no request is there) ─► results ─► call waits …
 * 	    └───────────┴──────────────── program ended ─► last answer
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "api/call.h"

struct chat_program;
struct job_outcome;
struct observation;
struct run_request;

LIST_HEAD(chat_programs, chat_program);

/* ---- tools (chat_tools.c, chat_tool_names.c) ------------------------------------------------ */

enum { CHAT_TOOL_NAME_MAX = 64 };

struct chat_tools {
	json_t *definitions; /* for session_set_tools() */
	json_t *names;       /* {name in the program: name of the tool} */
};

/*
 * The name of a tool in a program, as LibreChat's clients look for it: what is no letter, digit or
 * underscore is replaced or left out, and keywords get the suffix "_tool".
 */
void chat_tool_name(const char *given, bool bash, char ret[CHAT_TOOL_NAME_MAX + 1]);
/* -EINVAL: a tool has no name. -ENOMEM. */
int chat_tools_make(const json_t *tools, bool bash, struct chat_tools *ret, struct error *e);
void chat_tools_finish(struct chat_tools *t);
/* The program so that it can call the tools. Replaces script_prepare(). -ENOMEM. */
int chat_tools_prepare(const struct chat_tools *t, struct run_request *run);

/* ---- programs (chat_program.c) ---------------------------------------------------------------- */

void chat_programs_drain(struct chat_programs *list); /* ends those whose client runs tools */
/* Frees them. Their sessions are gone. */
void chat_programs_finish(struct chat_programs *list);

void handle_chat_programmatic(struct call *c);
