/*
 * Scales a picture down in a separate process (display/image/fitter.h): the picture comes from a
 * session and is hostile, so the daemon never decodes it. Some jobs run at a time, others wait for
 * them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"

struct picture_job;

/*
 * The file that came out, or NULL when there is none; valid during the call. The job is gone after.
 */
typedef void (*picture_job_done)(void *userdata, const char *mime, const char *data, size_t len);

/*
 * Starts a job over a copy of the picture. `done` is called later, never from inside, and not after
 * picture_job_cancel(). -ENOBUFS: the server holds too much already; -ENOMEM; and what starting the
 * process says.
 */
int picture_job_start(uv_loop_t *loop, const struct buffer *picture, uint32_t side,
	uint32_t max_bytes, picture_job_done done, void *userdata, struct picture_job **ret);
void picture_job_cancel(struct picture_job *j); /* NULL is fine */

/*
 * The size of a picture, read from its header alone: PNG, JPEG, GIF, WebP. Returns its MIME type,
 * or NULL when it is none of them or its header is not whole.
 */
const char *picture_size(
	const uint8_t *data, size_t len, uint32_t *ret_width, uint32_t *ret_height);
