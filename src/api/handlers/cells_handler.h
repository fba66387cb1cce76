/* The JSON of a cell in the history. */
#pragma once

#include "session/cells/session_cells.h"

struct json_writer;

void answer_put_cell_record(struct json_writer *w, struct session *s, const struct cell_record *r);
