/* Declarations shared by cell_picture.c and painting.c; private to them. */
#pragma once

#include "session/internal.h"

enum { LAST_PICTURE_S = 12 }; /* a cell that is over waits no longer than this for its picture */

/*
 * The end of a cell whose guest paints its windows for the picture: in this order, each but NONE
 * with a limit.
 */
enum painting {
	PAINTING_NONE,     /* the code runs, or there was nothing to paint */
	PAINTING_REFRESH,  /* the guest has its toolkits paint */
	PAINTING_PICTURE,  /* the guest handles events, the screen was asked for the picture */
	PAINTING_RELEASED, /* the guest was told to go on */
	PAINTING_DONE,     /* it goes on */
};

struct picture {
	bool there;         /* answered: with data, or with trouble */
	struct buffer data; /* counted */
	struct picture_info info;
	struct window_entry *windows;
	unsigned n_windows;
	char code[64], text[256], remedy[256];
	struct screenshot shown;
};

struct cell_picture {
	struct session *session;
	struct cell *cell;
	bool wanted, wants_end; /* reported, not only used to see that it blocks */
	struct shot_options options;
	enum on_block on_block;
	/* later: in the main loop; empty but while it is asked for */
	struct picture first, end, later;
	uint32_t question; /* open, about `asking`; 0: none */
	struct picture *asking;
	bool finishing, closed, interrupted, stuck;
	enum painting painting;
	enum cell_status status; /* of a cell that is over */
	int exit_code;
	unsigned ticks;
	uint64_t picture_ms; /* when the first picture was there, by the loop */
	enum wire_loop loop; /* what the guest said last */
	uint64_t loop_ms;    /* when it got into that loop */
	bool hinted;         /* it has said MAIN in this cell: its toolkit tells us */
	/*
	 * a pause ended since the question was asked: a main loop in its answer may be that of the
	 * pause
	 */
	bool pause_over;
	uint64_t progress; /* what was open when it was last asked to close */
	uv_timer_t timer;
};

/* cell_picture.c */
void picture_finish(struct picture *p);
void cell_picture_ask(struct cell_picture *p, struct picture *about, const struct shot_options *o,
	bool lazy, double timeout_s);
/* the picture of the end, when it is wanted and not there; true when it was asked for */
bool cell_picture_ask_last(struct cell_picture *p);
void cell_picture_replace(struct cell_picture *p); /* the first picture, by the later one */
/* the program has wiped away what it showed */
bool cell_picture_shows_less(const struct picture *later, const struct picture *before);

/* painting.c */
/* what the guest says from the end of the code on */
void painting_hear(struct cell_picture *p, enum wire_loop loop);
/* the picture that was asked for is there */
void painting_pictured(struct cell_picture *p);
