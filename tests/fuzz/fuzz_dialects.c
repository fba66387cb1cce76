/*
 * What dialects read: Jupyter's messages in both framings, and texts that Python's JSON reader is
 * asked about. What our own reader takes, Python takes too, and what is spelled as Python does is
 * still the same JSON.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "dialects/common/python_json.h"
#include "dialects/jupyter/jupyter_message.h"
#include "dialects/openenv/openenv_reward.h"
#include "json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_message(const char *data, size_t len)
{
	struct jupyter_request r;
	struct error e = { 0 };
	if (jupyter_read_text(data, len, &e, &r) == 0) {
		assert(r.type && r.channel[0] && json_is_object(r.content));
		jupyter_request_finish(&r);
	}
	if (jupyter_read_binary(data, len, &e, &r) == 0) {
		assert(r.type && json_is_object(r.content));
		jupyter_request_finish(&r);
	}
}

static void ask_python(const char *text, size_t len)
{
	_cleanup_json_ json_t *tree = NULL, *again = NULL;
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct python_json_error e;
	if (!text_is_utf8(text, len))
		return;
	openenv_reward(text, len, false);
	bool wrong = python_json_error(text, len, &e);
	assert(!wrong || (e.message && e.position <= len && e.line >= 1 && e.column >= 1));
	if (json_read(text, len, NULL, &tree) < 0)
		return;
	assert(!wrong);
	assert(python_json_dumps(&b, text, len) == 0);
	assert(json_read(b.data, b.len, NULL, &again) == 0 && json_equal(tree, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	read_message(copy, size);
	ask_python(copy, size);
	free(copy);
	return 0;
}
