/*
 * `glovebox picture-fitter SIDE BYTES`: a process that scales one picture down. The picture is
 * hostile, so the process gives up everything but reading descriptor 0, writing descriptor 1 and
 * memory before it reads the first byte.
 *
 * In: the picture, to the end of descriptor 0. Out: one byte (FITTER_PNG or FITTER_JPEG) and the
 * file; nothing when it failed.
 */
#pragma once

#include <stdint.h>

enum { FITTER_PNG = 'P', FITTER_JPEG = 'J', FITTER_INPUT_MAX = 64 * 1024 * 1024 };

/* The exit code: 0 when the picture was written. */
int fitter_main(uint32_t side, uint32_t max_bytes);
