/*
 * Places the objects that a first cell uses on adjacent pages, so that fewer pages are copied after
 * a fork.
 *
 * A session shares the memory of the warm interpreter until it writes to a page; that page is then
 * copied, in 4 µs. Even code that only reads changes reference counts: those of some 700 objects in
 * a typical first cell, 170 KB. Without placement these objects lie in 500 pages of the 60 MB that
 * the imports allocated.
 *
 * The place of an object is decided when it is allocated, so the modules are imported twice: first
 * in a copy of the zygote, the scout (the profiling process), which gives each allocation a name
 * (last imported module, number of allocations since, size), runs a first cell under a trace, and
 * reports the names of the objects that the cell used. Then the zygote imports the modules and
 * takes the blocks of these names from a separate region. They are blocks of Python's own
 * allocator, which is restored after the import.
 *
 * Imports are repeatable: at the next start more than 19 of 20 names are still right. So the report
 * is kept in a file (placement_cache.h), and the scout runs only at the first start, or when too
 * few names were found again.
 */
#pragma once

#include <stdbool.h>

/*
 * Before the import of a template. `book`: the file, open for reading and writing, or -1: then
 * nothing is laid out. Where it is empty, returns twice: first in the scout, a child that is to do
 * exactly what the zygote will do up to heap_placement_end(), and once that has ended, in the
 * zygote.
 */
void heap_placement_begin(int book);

bool heap_placement_is_scout(void); /* of which the daemon must hear nothing */

/* Names the allocations that follow, beside those of imports. */
void heap_placement_mark(const char *what);

/* After the import: `first_cell` is run by the scout, which ends here. */
void heap_placement_end(void (*first_cell)(void));
