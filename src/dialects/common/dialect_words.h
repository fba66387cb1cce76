/*
 * Words for the remedies of dialects whose clients see neither routes nor options: OpenEnv's
 * messages and Jupyter's kernels.
 */
#pragma once

#include "base/edge_words.h"

extern const struct edge dialect_words;
