/* Pictures and films of a cell, and the end of a cell that blocks in a main loop. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "session/session.h"

struct cell_picture;
struct film_cell;

/* ---- cell_picture.c ---- */

int cell_picture_create(
	struct session *s, struct cell *c, const struct cell_request *q, struct error *e);
void cell_picture_destroy(struct cell_picture *p); /* NULL is fine */
void cell_picture_begin(struct cell_picture *p);   /* its cell starts */
/*
 * The code has ended; true when a picture is still awaited: session_end_cell() is then called with
 * these.
 */
bool cell_picture_finish(struct cell_picture *p, enum cell_status status, int exit_code);
/* The windows were not painted within the limit: the cell is interrupted. */
void cell_picture_stuck(struct cell_picture *p);
/* Of a cell that is dead: true when the daemon interrupted it, and the error says so. */
bool cell_picture_tell_kill(const struct cell_picture *p);
/* The status and exit code that cell_picture_finish() was given. */
enum cell_status cell_picture_status(const struct cell_picture *p, int *ret_exit_code);
void cell_picture_loop(
	struct cell_picture *p, enum wire_loop loop); /* the guest entered or left a loop */
/* The interpreter is gone: there will be no more pictures. */
void cell_picture_abort(struct cell_picture *p);
void cell_picture_report(const struct cell_picture *p, struct observation *o);
enum { CAPTURE_PICTURES = 2 };
/* Takes the bytes of the pictures that are reported. */
void cell_picture_take_pictures(struct cell_picture *p, struct buffer ret[CAPTURE_PICTURES]);
/* Tells a cell that waits at its end for a picture to go on. */
void session_tell_continue(struct session *s, uint32_t serial);
/* The guest's environment variables about its display, for SETUP. NULL at the end. */
extern const char *const cell_picture_environment[];

/* ---- film_cell.c: a recording that is part of the cell's answer ---- */

int film_cell_create(struct session *s, struct cell *c, enum film_format format, struct error *e);
void film_cell_destroy(struct film_cell *f); /* NULL is fine */
/*
 * The code has ended: true when the film is awaited first; then session_end_cell() is called with
 * these.
 */
bool film_cell_finish(
	struct film_cell *f, unsigned recording, enum cell_status status, int exit_code);
/* The status and exit code that film_cell_finish() was given, or `otherwise`. */
enum cell_status film_cell_status(
	const struct film_cell *f, enum cell_status otherwise, int *exit_code);
void film_cell_report(struct film_cell *f, struct observation *o);
void film_cell_take(struct film_cell *f, struct buffer *ret); /* the film's bytes */
