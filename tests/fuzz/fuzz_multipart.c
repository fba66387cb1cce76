/* Forms: parts lie within the body, one behind the other, whatever comes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/librechat/librechat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first line is the Content-Type, the rest the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *eol = size ? memchr(data, '\n', size) : NULL;
	size_t n = eol ? (size_t)(eol - data) : 0, len = eol ? size - n - 1 : size, at = 0;
	char *type = strndup((const char *)data, n), *body = malloc(len ? len : 1);
	struct form_part part;
	assert(type && body);
	if (len)
		memcpy(body, data + size - len, len);

	for (size_t before = 0; multipart_next(type, body, len, &at, &part) > 0; before = at) {
		assert(at > before && at <= len);
		assert(part.data >= body + before && part.data + part.len <= body + at);
		assert(strlen(part.name) < sizeof(part.name));
		assert(strlen(part.filename) < sizeof(part.filename));
	}
	free(type);
	free(body);
	return 0;
}
