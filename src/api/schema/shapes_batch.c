#include "api/schema/shapes.h"
#include "base/text.h"

static const struct shape_row verdict_rows[] = {
	{ "passed", "boolean", NULL, 0, NULL },
	{ "score", "number", NULL, 0, "1 or 0, or the score from the checker." },
	{ "reason", "string", NULL, 0, "Why the item did not pass." },
};
const struct shape shape_verdict = {
	.name = "Verdict", .row = verdict_rows, .n = ARRAY_LEN(verdict_rows)
};

static const struct shape_row batch_line_rows[] = {
	{ "index", "integer", NULL, 0, "Index of the item, from 0." },
	{ "id", "any", NULL, 1, "The `id` from the item." },
	{ "waited_ms", "number", NULL, 0,
		"Time that the item waited for its session; not part of usage." },
	{ "observation", "object", &shape_observation, 1,
		"The observation, as in the answer of POST /v1/run." },
	{ "error", "any", NULL, 1, "Why the item could not run: code, detail, remediation." },
	{ "verdict", "object", &shape_verdict, 1,
		"The verdict, if the item has expected_output or a checker." },
};
const struct shape shape_batch_line = {
	.name = "BatchLine", .row = batch_line_rows, .n = ARRAY_LEN(batch_line_rows)
};
