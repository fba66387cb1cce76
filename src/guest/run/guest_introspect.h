/* Requests of an editor about the session's variables, answered by support/introspect.py. */
#pragma once

#include <Python.h>

#include "base/buffer.h"
#include "wire/wire.h"

/* In the zygote: keeps the function and the dictionary that cells run in. */
void introspect_prepare(PyObject *function, PyObject *globals);

/* Appends the answer to a WIRE_INTROSPECT frame, whatever happens. */
void introspect_answer(const struct wire_frame *f, struct buffer *out);
