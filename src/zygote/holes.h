/*
 * Holes: the free places between live objects of a warmed-up heap. Whoever is forked from it would put new objects there, and every
 * one into another page that it then has to copy. Filled up before forking, new objects lie side by side in fresh pages instead.
 */
#pragma once

/* Takes the free places of malloc and of Python's allocator for good, as far as they lie between live ones. */
void holes_fill(void);
