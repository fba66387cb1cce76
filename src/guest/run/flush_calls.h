/*
 * Functions of Python that write to our descriptors without sys.stdout, or end or replace the
 * process: the streams are flushed before each call, so that output keeps its order.
 */
#pragma once

int flush_calls_wrap(void); /* once, in the zygote; -1 with a Python error */
