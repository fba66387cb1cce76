/* What session_display.c and display_servers.c share; not for others. */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "base/memory_account.h"
#include "base/buffer.h"
#include "base/limits.h"
#include "session/display/session_display.h"
#include "session/display/display_servers.h"
#include "wire/wire.h"

/* NOWHERE (no socket yet) → LISTENING (nobody connected) → WAITING (for the helpers) → STARTING → UP, and back to LISTENING. */
enum display_state { DISPLAY_NOWHERE, DISPLAY_LISTENING, DISPLAY_WAITING, DISPLAY_STARTING, DISPLAY_UP, DISPLAY_CLOSED };

struct question {
	uint32_t serial; /* 0: free */
	uint64_t deadline_ns; /* 0: none */
	display_answer answer;
	void *userdata;
	const char *refused; /* it is about to be answered with this error; else NULL */
};

enum display_end { END_LISTEN, END_STREAM, END_TIMER, END_COUNT };

struct display {
	TAILQ_ENTRY(display) link;
	struct displays *displays;
	struct display_size size;
	const struct display_events *events;
	void *owner;
	struct sandbox *sandbox;
	enum display_state state;
	uint8_t cookie[XSOCKET_COOKIE];
	int listening, place;   /* xsocket.h */
	int stream;             /* to the screen */
	int server, screen;     /* pidfds */
	uint32_t spawn_serial;
	unsigned retries;
	int start_error; /* why start() failed; the next tick tells it */
	uint64_t start_ns;
	uv_poll_t listen_poll, stream_poll;
	uv_timer_t timer;
	bool listen_open, stream_open, writing;
	unsigned closing;       /* handles whose close is on its way */
	struct wire_reader in;
	struct hold held;       /* of `in` */
	bool held_back;         /* reading waits until the daemon holds less */
	struct buffer queue;    /* frames for the screen: until it is up, or takes them */
	uint32_t next_serial;
	struct question question[LIMIT_DISPLAY_ASKS];
	const char *death;      /* how server and screen ended, if not by our hand, while the session's interpreter was this one; else NULL */
	bool untold;            /* nobody has heard of it */
	bool up_before;         /* a screen has been there since the socket was made */
};

TAILQ_HEAD(display_list, display);

/* Asks for a film process in the display's jail; film_spawned() follows. */
int display_spawn_film(struct display *d, uint32_t serial, const struct film_make *make, int recording, int film);

/* The helpers are up, or one of them is gone. */
void display_helpers_changed(struct display *d);

/* The answer to displays_spawn(); the pidfd (-1 on failure) is the display's from here on. */
void display_spawned(struct display *d, enum display_process process, int err, const char *step, int pidfd);

/* display_death.c */
const char *display_note_death(struct display *d); /* the screen is gone: says, and keeps, what ended */
const char *display_refuses(struct display *d);    /* once: the error for a question after a death that nobody has heard of; else NULL */

/* display_connect.c: -errno, or a descriptor of the caller's */
int display_connect(const struct display *d); /* by the socket's place, not by its name, which belongs to the session */
int display_authority(const struct display *d);
