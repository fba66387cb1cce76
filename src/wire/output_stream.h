/* The two streams of a guest's output. */
#pragma once

enum stream { STREAM_STDOUT, STREAM_STDERR };
