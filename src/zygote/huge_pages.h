/* Reduces the page table entries and mappings that a fork of the warm interpreter has to copy. */
#pragma once

/*
 * Huge pages for the heap: 2 MiB need 512 times fewer entries. Turns this process's private
 * writable memory into huge pages where the kernel allows it; else does nothing. Memory that ends
 * in the middle of one is made longer, where nothing else lies there.
 */
void pages_collapse(void);

/*
 * Huge pages for code that is in use: a copy of it takes the place of the file's. Of a file's pages
 * a fork copies no entries, so that every guest would have a fault for each few of them; a huge
 * page is one entry.
 */
void pages_copy_code(void);

/*
 * Makes one mapping of what a library has in several that differ in nothing but their protection:
 * its headers, code and constants become readable and executable, its relocated constants writable
 * as the data behind them is. Two hundred mappings fewer to copy in each fork. Guests run machine
 * code of their own anyway; what this takes from them is no wall of ours.
 */
void pages_merge(void);
