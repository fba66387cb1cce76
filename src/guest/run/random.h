/*
 * Random numbers after a fork: a guest must not draw the numbers of its siblings.
 *
 * numpy's seed() from Python costs half a millisecond in a fresh guest, all of it pages copied for
 * the objects it touches, so its generator's state is written in place. Its address is obtained
 * from numpy and checked once, in the zygote.
 */
#pragma once

#include "guest/run/python.h"

#include <stdbool.h>

/* In the zygote, when all is imported. */
void random_prepare(void);

/*
 * In the guest: random and numpy.random, as far as imported, go on from somewhere nobody knows.
 * `reseed` does the same from Python and is called when numpy's state was not found where it was
 * expected.
 */
void random_renew(PyObject *reseed);

/*
 * Whether numbers were drawn from `random` or `numpy.random`, or their state was set, since the
 * mark. True when that cannot be told.
 */
void random_mark(void);
bool random_moved(void);
