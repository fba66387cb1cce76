/*
 * POST …/input: actions with the names that agents use, and their translation into input for the
 * screen.
 */
#pragma once

#include "api/schema/fields.h"
#include "api/schema/requests_display.h"
#include "display/protocol.h"

/* What an action asks of the screen: to act, or a picture. */
enum input_answer { INPUT_ACTS, INPUT_TELLS_POINTER, INPUT_SHOWS };

struct input_step {
	const char *name; /* of the action */
	enum input_answer answer;
	struct input_action *action; /* INPUT_ACTS, INPUT_TELLS_POINTER */
	struct shot_options shot;    /* INPUT_SHOWS */
};

struct input_plan {
	struct input_step step[LIMIT_INPUT_ACTIONS];
	unsigned n;
	bool settle, screenshot; /* after the last one */
	struct shot_options shot;
};

extern const struct fields input_fields;

/*
 * Reads a request for a screen of that size. Errors as fields_decode(): they name the value, such
 * as `$.actions[2].coordinate`. The plan is the caller's: input_plan_destroy().
 */
int input_plan_create(const char *text, size_t len, unsigned width, unsigned height,
	struct error *e, struct input_plan **ret);
void input_plan_destroy(struct input_plan *p); /* NULL is fine */
