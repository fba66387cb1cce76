/*
 * What is kept for several owners in one bounded place: an owner with much loses its own before it
 * takes anything from the others.
 */
#include <string.h>

#include "base/limits.h"
#include "base/memory_account.h"
#include "base/text.h"
#include "session/cells/cell_history.h"
#include "tap.h"

/* A record of a cell of about 256 kB. */
static void add_cell(struct cell_history *h)
{
	static char code[LIMIT_RECORD_CODE_BYTES];
	memset(code, '#', sizeof(code));
	cell_history_add(h, cell_record_create(RECORD_CELL, 1, code, sizeof(code)));
}

static void shares_the_history(void)
{
	struct cell_store store;
	struct cell_history quiet, loud[16];
	size_t before = hold_total();
	cell_store_init(&store);
	cell_history_init(&quiet, &store, 1);
	add_cell(&quiet);

	for (size_t i = 0; i < ARRAY_LEN(loud); i++) {
		cell_history_init(&loud[i], &store, 2);
		for (int n = 0; n < LIMIT_HISTORY_BYTES / LIMIT_RECORD_CODE_BYTES + 1; n++)
			add_cell(&loud[i]);
		OK(loud[i].bytes <= LIMIT_HISTORY_BYTES);
	}
	OK(store.bytes <= LIMIT_ALL_HISTORY_BYTES);
	OK(hold_total() - before == store.bytes);
	OK(quiet.n == 1 && quiet.dropped == 0);
	OK(loud[0].n == 0 && loud[0].dropped);
	OK(loud[ARRAY_LEN(loud) - 1].n > 1);

	for (size_t i = 0; i < ARRAY_LEN(loud); i++)
		cell_history_finish(&loud[i]);
	cell_history_finish(&quiet);
	OK(store.bytes == 0 && LIST_EMPTY(&store.shares) && hold_total() == before);
}

/* The history gives way to requests and output. */
static void shrinks_the_history(void)
{
	struct cell_store store;
	struct cell_history h[8];
	struct hold others[32] = { 0 };
	cell_store_init(&store);
	for (size_t i = 0; i < ARRAY_LEN(h); i++) {
		cell_history_init(&h[i], &store, 1);
		for (int n = 0; n < LIMIT_HISTORY_BYTES / LIMIT_RECORD_CODE_BYTES / 2; n++)
			add_cell(&h[i]);
	}
	size_t much = store.bytes;
	for (size_t i = 0; i < ARRAY_LEN(others) && !hold_is_short(); i++)
		hold_set(&others[i], 16 << 20);
	OK(hold_is_short());
	add_cell(&h[0]);
	OK(store.bytes < much && (!hold_is_short() || store.bytes <= 32 << 20));
	OK(h[0].n > 0);

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		hold_set(&others[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(h); i++)
		cell_history_finish(&h[i]);
	OK(hold_total() == 0);
}

int main(void)
{
	shares_the_history();
	shrinks_the_history();
	return tap_done();
}
