/* What a handler can ask about a request. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "http/http_conn.h"

static const struct http_head *head_of(const struct http_exchange *x)
{
	return &x->conn->parser.head;
}

enum http_method http_method(const struct http_exchange *x)
{
	return head_of(x)->method;
}

const char *http_target(const struct http_exchange *x)
{
	return http_head_target(head_of(x));
}

const char *http_path(const struct http_exchange *x)
{
	return http_head_path(head_of(x));
}

const char *http_query(const struct http_exchange *x)
{
	const struct http_head *h = head_of(x);
	const char *target = http_head_target(h);
	return target[h->path_len] == '?' ? target + h->path_len + 1 : "";
}

const char *http_header(const struct http_exchange *x, const char *name)
{
	return http_head_find(head_of(x), name);
}

bool http_header_at(
	const struct http_exchange *x, unsigned i, const char **ret_name, const char **ret_value)
{
	const struct http_head *h = head_of(x);
	if (i >= h->n_headers)
		return false;
	*ret_name = h->bytes.data + h->header[i].name;
	*ret_value = h->bytes.data + h->header[i].value;
	return true;
}

const char *http_request_id(const struct http_exchange *x)
{
	return x->request_id;
}

const char *http_remote(const struct http_exchange *x)
{
	return x->conn->remote;
}

bool http_wants_websocket(const struct http_exchange *x)
{
	return head_of(x)->websocket;
}

int64_t http_content_length(const struct http_exchange *x)
{
	return head_of(x)->content_length;
}

bool http_request_done(const struct http_exchange *x)
{
	return x->request_done;
}

const char *http_body(const struct http_exchange *x, size_t *ret_len)
{
	*ret_len = x->body.len;
	return x->body.data ? x->body.data : "";
}

void http_drop_body(struct http_exchange *x)
{
	assert(x->request_done);
	buffer_finish(&x->body);
}

void http_limit_body(struct http_exchange *x, uint64_t max)
{
	x->body_max = max;
}

void http_pause(struct http_exchange *x)
{
	if (x->paused)
		return;
	x->paused = true;
	x->paused_ms = uv_now(x->conn->server->loop);
	http_conn_update_reading(x->conn);
}

void http_resume(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	if (!x->paused)
		return;
	x->paused = false;
	/* the wait was ours, not the client's */
	c->since_ms += uv_now(c->server->loop) - x->paused_ms;
	http_conn_schedule(c); /* the end of the body may have been seen already */
	http_conn_update_reading(c);
}

void http_set_problem_form(struct http_exchange *x, const struct http_problem_form *form)
{
	x->problem_form = form;
}

void http_set_userdata(struct http_exchange *x, void *userdata)
{
	x->userdata = userdata;
}

void *http_userdata(const struct http_exchange *x)
{
	return x->userdata;
}

int http_form_value(const char *form, const char *name, char *out, size_t size)
{
	const char *q = form;
	char key[64];

	while (*q) {
		size_t len = strcspn(q, "&"), key_len = strcspn(q, "=&");
		int r = http_percent_decode(q, key_len, true, key, sizeof(key));
		if (r == 0 && text_eq(key, name)) {
			bool has_value = key_len < len;
			r = http_percent_decode(q + key_len + has_value, len - key_len - has_value,
				true, out, size);
			return r < 0 ? r : 1;
		}
		q += len + (q[len] == '&');
	}

	return 0;
}

int http_query_param(const struct http_exchange *x, const char *name, char *out, size_t size)
{
	return http_form_value(http_query(x), name, out, size);
}

bool http_cookie(const struct http_exchange *x, const char *name, char *out, size_t size)
{
	const char *header = http_header(x, "Cookie");
	size_t name_len = strlen(name);
	while (header && *header) {
		header += strspn(header, " ;");
		size_t n = strcspn(header, ";");
		if (n > name_len && !strncmp(header, name, name_len) && header[name_len] == '=') {
			size_t len = n - name_len - 1;
			snprintf(out, size, "%.*s", (int)len, header + name_len + 1);
			return len < size;
		}
		header += n;
	}
	return false;
}

/* ---- the log ---------------------------------------------------------- */

void http_conn_log(struct http_exchange *x, int status)
{
	struct http_server *s = x->conn->server;
	s->stats.by_class[status / 100 < 6 ? status / 100 : 5]++;
	if (!s->handler->on_log)
		return;
	struct http_log_entry entry = {
		.request_id = x->request_id,
		.remote = x->conn->remote,
		.method = x->head_bad ? "-" : http_method_name(x->conn->parser.head.method),
		.target = x->head_bad ? "-" : http_head_target(&x->conn->parser.head),
		.status = status,
		.body_bytes_in = x->body_in,
		.bytes_out = x->bytes_out,
		.duration_ns = uv_hrtime() - x->started_ns,
	};
	s->handler->on_log(&entry, s->userdata);
}
