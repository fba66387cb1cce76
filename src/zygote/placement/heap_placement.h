/*
 * What a first cell touches, side by side.
 *
 * A session shares the warm interpreter's memory until it writes to it; each page it writes to is copied for it, at 4 µs. Even code that only reads
 * changes reference counts, of some 700 objects in a typical first cell: 170 KB, which among the 60 MB that the imports left behind lay in 500 pages. And
 * as much again is only read, each from another line of another page, none of which is in a cache when a session begins.
 *
 * Where an object lies is decided when it is allocated. So the template is imported twice. The first time in a copy of the zygote, the scout, which gives
 * each allocation a name (the module whose import came last, how many allocations ago that was, the size) and then runs a first
 * cell under a trace: the names of what was touched are its report. The second time, the blocks of these names come from a place of their own,
 * set aside before all others. They are blocks of Python's own allocator, which is the only one again when the import is done.
 *
 * Imports repeat themselves well: on the next start more than nineteen of twenty names are still right. So the report is kept in a file (placement_cache.h), and
 * only the first start sends a scout; another one when too few names were met.
 */
#pragma once

#include <stdbool.h>

/*
 * Before the import of a template. `book`: the file, open for reading and writing, or -1: then nothing is laid out. Where it is empty, returns twice: first
 * in the scout, a child that is to do exactly what the zygote will do up to heap_placement_end(), and once that has ended, in the zygote.
 */
void heap_placement_begin(int book);

bool heap_placement_is_scout(void); /* of which the daemon must hear nothing */

/* Names the allocations that follow, beside those of imports. */
void heap_placement_mark(const char *what);

/* After the import: `first_cell` is run by the scout, which ends here. */
void heap_placement_end(void (*first_cell)(void));
