/*
 * Tar archives: whatever comes is read without harm, and files end with as many bytes as they
 * announced.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t left;

static int on_directory(void *userdata, const char *path)
{
	(void)userdata;
	assert(*path && strlen(path) <= LIMIT_PATH_BYTES);
	return 0;
}

static int on_file(void *userdata, const char *path, uint64_t size)
{
	assert(!left);
	left = size;
	return on_directory(userdata, path);
}

static int on_data(void *userdata, const char *data, size_t len)
{
	(void)userdata, (void)data;
	assert(len <= left);
	left -= len;
	return 0;
}

static int on_file_end(void *userdata)
{
	(void)userdata;
	assert(!left);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tar_handler handler = { on_directory, on_file, on_data, on_file_end };
	struct tar_reader r;
	size_t piece = size ? data[0] + 1 : 1;
	int err = 0;
	left = 0;
	tar_reader_init(&r, &handler, NULL);
	for (size_t at = 1; at < size && err == 0; at += piece)
		err = tar_feed(&r, (const char *)data + at, size - at < piece ? size - at : piece);
	tar_is_complete(&r);
	tar_reader_finish(&r);
	return 0;
}
