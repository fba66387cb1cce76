/*
 * The files that changed under /workspace between two scans. At most FILES_SEEN_MAX files are
 * remembered; beyond that the list is marked as cut.
 */
#pragma once

#include "base/buffer.h"

#include <stdint.h>

enum { FILES_SEEN_MAX = 20000, FILES_DEPTH_MAX = 32 };

/*
 * Looks, and appends a WIRE_FILES frame with the changes since the last look when there are any.
 * Nothing before files_forget_changes() was called for the first time.
 */
int files_report(struct buffer *out, uint32_t serial);

/* Looks without telling: changes up to now were not the cell's. */
void files_forget_changes(void);
