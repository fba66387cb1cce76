/* One cell: compiled, run in __main__, its value, displays, error and end put into frames. */
#pragma once

#include "guest/run/python.h"

#include "base/buffer.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Functions of guest/support/, looked up once in the zygote so that cells cannot replace them. */
struct support {
	PyObject *register_source, *format_error, *bundle, *flush_figures, *run_async_cell,
		*is_complete, *introspect, *encode_answer, *reseed, *write_program, *end_program,
		*forget_source, *preload, *define_tools, *warm_up, *install, *use_display,
		*paint_screen, *advise, *set_network, *find_commands, *translate_cell, *run_command,
		*loop_descriptors, *part_ways, *threads_text, *child_text, *reap_children,
		*set_variables, *add_typed, *profile_words, *nothing_to_end;
};

/* Loads the embedded Python sources as module _glovebox and fills *ret. -1 with a Python error. */
int support_load(struct support *ret);

/* In the zygote: looks up what cells need. -1 with a Python error. */
int cell_prepare(const struct support *support);

/* Where frames go when they cannot wait (displays): called with everything gathered so far. */
typedef void (*cell_send)(struct buffer *frames);

/*
 * Runs the source (NUL-terminated, len bytes) as cell number `serial` and appends its frames to
 * `out`, the last one being WIRE_DONE. Never fails: whatever goes wrong becomes a frame. `final`:
 * the program ends with this cell, so its threads are waited for and atexit's functions called.
 * Returns the exit code, which counts in a copy made by os.fork().
 */
int cell_run(const char *code, size_t len, uint32_t serial, bool final, struct buffer *out,
	cell_send send);

/*
 * A typical first cell, of which nothing is left but what it wrote to. Before the first fork, often
 * enough that the interpreter has adapted the code it runs: until then it writes to it, and every
 * child would do so in pages of its own. In a child that has nothing to do yet, so that its
 * session's first cell finds pages copied.
 */
void cell_rehearse(unsigned times);
enum { CELL_ADAPTED = 16 };

/* Whether the results of cells also come with typed markers. */
void cell_type_result(bool yes);

/*
 * Whether the next cell paints its windows when its code has ended, and waits until the daemon has
 * a picture of them.
 */
void cell_paint(bool yes);

/* Tells the daemon how the cell that runs waits for its windows' events, when that changes. */
void cell_tell_loop(enum wire_loop loop);

/* Nobody looks at the windows of the cell that comes next; for support code. */
void cell_set_unwatched(bool yes);

/* Whether the next cell gives data frames and figures as data, too. */
void cell_set_data_forms(bool yes);

/* JSON text of variables that the next cell finds; must be there until it runs. */
void cell_set_variables(const char *json, size_t len);

/* The next word of sys.argv of the program that runs next. */
void cell_add_argument(const char *text, size_t len);

/* This process is a copy of the guest: its errors go to stderr, because nobody reads its frames. */
void cell_forked(void);

/* "complete", "incomplete" or "invalid". */
const char *cell_check(const char *code, size_t len);
