/*
 * Final answers: final_answer(x), FINAL(x) and FINAL_VAR("name") are builtins of every session, and
 * a cell that leaves answer = {"content": …, "ready": True} has given one too. The last one of a
 * cell counts.
 */
#pragma once

#include "guest/run/python.h"

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * In the zygote: makes the functions; `encode` turns a value into (is JSON, text, safe encoding or
 * None). -1 with a Python error.
 */
int final_answer_prepare(PyObject *encode, PyObject *globals);

/* Adds the functions to a dict of builtins. */
int final_answer_add_builtins(PyObject *builtins);

/* Whether final_answer() ends the cell, by an exception that only BaseException catches. */
void final_answer_stops(bool stops);

/* A new cell: no answer yet. */
void final_answer_forget(void);

/* True when the exception is the one by which final_answer() ended the cell. */
bool final_answer_is_stop(PyObject *exception);

/* Appends a WIRE_ANSWER frame when the cell gave one. */
void final_answer_report(struct buffer *out, uint32_t serial);
