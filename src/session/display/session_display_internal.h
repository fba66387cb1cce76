/* Declarations shared by session_display.c and display_servers.c; private to them. */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/memory_account.h"
#include "session/display/display_servers.h"
#include "session/display/session_display.h"
#include "wire/wire.h"

/*
 * NOWHERE (no socket yet) → LISTENING (nobody connected) → WAITING (for the helpers) → STARTING →
 * UP, and back to LISTENING.
 */
enum display_state {
	DISPLAY_NOWHERE,
	DISPLAY_LISTENING,
	DISPLAY_WAITING,
	DISPLAY_STARTING,
	DISPLAY_UP,
	DISPLAY_CLOSED
};

struct question {
	uint32_t serial;      /* 0: free */
	uint64_t deadline_ns; /* 0: none */
	display_answer answer;
	void *userdata;
	const char *refused; /* it is about to be answered with this error; else NULL */
	bool outlives; /* somebody outside the session waits: it is answered also when the session ends */
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
	int listening, place; /* xsocket.h */
	int stream;           /* to the screen */
	int server, screen;   /* pidfds */
	uint32_t spawn_serial;
	unsigned retries;
	int start_error; /* why start() failed; the next tick tells it */
	uint64_t start_ns;
	uv_poll_t listen_poll, stream_poll;
	uv_timer_t timer;
	bool listen_open, stream_open, writing;
	unsigned closing; /* handles whose close is on its way */
	struct wire_reader in;
	struct hold held;    /* of `in` */
	bool held_back;      /* reading waits until the daemon holds less */
	struct buffer queue; /* frames for the screen: until it is up, or takes them */
	uint32_t next_serial;
	struct question question[LIMIT_DISPLAY_ASKS];
	/* how server and screen ended, if not by our hand, while the session's interpreter was this
	 * one; else NULL */
	const char *death;
	bool untold;    /* nobody has heard of it */
	bool up_before; /* a screen has existed since the socket was made */
};

TAILQ_HEAD(display_list, display);

/* Asks for a film process in the display's jail; film_spawned() follows. */
int display_spawn_film(
	struct display *d, uint32_t serial, const struct film_make *make, int recording, int film);

/* The helpers are up, or one of them is gone. */
void display_helpers_changed(struct display *d);

/*
 * A helper ended: the one that forks screens (and starts plain X servers), or the X zygote of the
 * display's size. If the display has asked for a process and got no answer, there will be none.
 */
void display_helper_ended(struct display *d, bool screens);

/* The answer to displays_spawn(); the pidfd (-1 on failure) is the display's from here on. */
void display_spawned(
	struct display *d, enum display_process process, int err, const char *step, int pidfd);

/* display_death.c */
bool display_server_ended(const struct display *d);
/* the screen is gone: says, and keeps, what ended */
const char *display_note_death(struct display *d);
/* once: the error for a question after a death that nobody has heard of; else NULL */
const char *display_refuses(struct display *d);

/* display_connect.c: -errno, or a descriptor of the caller's */
/* by the socket's place, not by its name, which belongs to the session */
int display_connect(const struct display *d);
int display_authority(const struct display *d);

/* session_display.c: sends what is queued for the screen, as far as it takes it. */
void display_flush(struct display *d);

/* display_spawn.c: asks for a process; display_spawned() follows. */
int display_spawn(struct display *d, enum display_process process, int a, int b);
void display_kill_processes(struct display *d); /* X server and screen */

/* ---- display_questions.c ---- */

struct question *display_find_question(struct display *d, uint32_t serial); /* NULL for none */
/* Ends the question, then tells the asker. */
void display_answer_question(struct question *q, const struct display_reply *r);
void display_fail_question(
	struct question *q, const char *code, const char *text, const char *remedy);
void display_fail_questions(
	struct display *d, const char *code, const char *text, const char *remedy);
bool display_has_questions(const struct display *d);

/* session_display.c: waits for the next connection of a client. */
void display_listen_again(struct display *d);
