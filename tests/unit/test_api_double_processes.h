/*
 * Sessions of the double have no processes: each request about one is refused as the real table
 * refuses it.
 */
#pragma once

#include "session/files/file_watch.h"
#include "session/ports/port_link.h"
#include "session/processes/processes.h"

static int no_process(struct error *e)
{
	error_set(e, -ENOENT, "there is no such process");
	return error_slug(e, "process_not_found");
}

const char *process_state_name(enum process_state s)
{
	return s == PROCESS_FAILED ? "failed" : "running";
}

int session_process_start(struct session *s, const struct process_request *q,
	struct process_reader *r, struct error *e, struct session_process **ret)
{
	error_set(e, -EPERM, "this session may not start programs");
	return error_slug(e, "exec_not_allowed");
}

int session_process_find(
	struct session *s, unsigned id, struct error *e, struct session_process **ret)
{
	return no_process(e);
}

struct session_process *session_process_find_tag(struct session *s, const char *tag)
{
	return NULL;
}

struct session_process *session_process_next(struct session *s, struct session_process *after)
{
	return NULL;
}

void session_process_info(const struct session_process *p, struct process_info *ret)
{
	*ret = (struct process_info){ 0 };
}

void session_process_output(struct session_process *p, enum stream stream, struct captured *ret)
{
	*ret = (struct captured){ 0 };
}

int session_process_write(struct session_process *p, const char *data, size_t len, struct error *e)
{
	return no_process(e);
}

void session_process_close_input(struct session_process *p)
{
}

int session_process_signal(struct session_process *p, int sig, struct error *e)
{
	return no_process(e);
}

int session_process_resize(
	struct session_process *p, unsigned rows, unsigned columns, struct error *e)
{
	return no_process(e);
}

void session_process_delete(struct session_process *p)
{
}

void process_reader_attach(struct process_reader *r, struct session_process *p)
{
}

void process_reader_detach(struct process_reader *r)
{
}

bool process_reader_next(struct process_reader *r, struct kept_view *ret)
{
	return false;
}

/* … and one context. */
#include "session/contexts/contexts.h"

bool session_is_context(const struct session *s)
{
	return false;
}

const char *session_context_cwd(const struct session *s)
{
	return "/workspace";
}

struct session *session_context_next(struct session *s, struct session *after)
{
	return NULL;
}

int session_context_find(struct session *s, const char *id, struct error *e, struct session **ret)
{
	*ret = s;
	return 0;
}

int session_context_create(
	struct session *s, const char *cwd, struct error *e, struct session **ret)
{
	error_set(e, -EBUSY, "no more contexts");
	return error_slug(e, "too_many_contexts");
}

int session_port_open(struct session *s, unsigned port, const struct port_link_events *events,
	void *owner, struct error *e, struct port_link **ret)
{
	error_set(e, -ENOTCONN, "this session has no loopback");
	return error_slug(e, "no_loopback");
}

int port_link_write(struct port_link *l, const void *data, size_t len)
{
	return 0;
}

void port_link_hold(struct port_link *l, bool hold)
{
}

void port_link_close(struct port_link *l)
{
}

size_t session_ports(const struct session *s, uint16_t *ret, size_t max)
{
	return 0;
}

int session_watch_files(struct session *s, const char *path, bool recursive,
	const struct file_watch_events *events, void *owner, struct error *e,
	struct file_watch **ret)
{
	error_set(e, -ENOENT, "there is no such directory");
	return error_slug(e, "file_not_found");
}

bool file_watch_next(struct file_watch *w, struct file_event *ret)
{
	return false;
}

const char *file_event_name(enum file_event_type t)
{
	return "missed";
}

void file_watch_close(struct file_watch *w)
{
}

int file_watch_stat(const struct file_watch *w, const char *name, struct stat *ret)
{
	return -ENOENT;
}

unsigned file_watch_number(const struct file_watch *w)
{
	return 0;
}

struct file_watch *session_file_watch(struct session *s, unsigned number)
{
	return NULL;
}

uv_loop_t *session_loop(const struct session *s)
{
	return uv_default_loop();
}
