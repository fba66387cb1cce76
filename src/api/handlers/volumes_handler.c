/* Volumes over HTTP: create, list, look, delete. */
#include "api/call.h"
#include "api/schema/requests_console.h"
#include "base/clock.h"
#include "session/volumes/volumes.h"
#include "json/json_write.h"

static void put_volume(struct json_writer *w, const struct volume *v)
{
	struct volume_info info;
	struct session_info writer = { 0 };
	char text[CLOCK_TEXT_MAX];

	volume_info(v, &info);
	if (info.writer)
		session_info(info.writer, &writer);
	json_open_object(w);
	json_field_cstr(w, "name", info.name);
	json_field_uint(w, "quota_bytes", info.quota_bytes);
	json_field_uint(w, "bytes", info.bytes);
	json_field_uint(w, "files", info.files);
	json_field_bool(w, "full", info.full);
	json_field_cstr(w, "created", clock_format(info.created_wall_ns, text));
	json_field_cstr(w, "writer", writer.id);
	json_field_uint(w, "readers", info.readers);
	json_close(w);
}

static void answer(struct call *c, int status, const struct volume *v)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct json_writer w;
	json_writer_init(&w, &b);
	put_volume(&w, v);
	call_respond(c, status, &w, &b);
}

void handle_volume_create(struct call *c)
{
	struct volume_request q = { 0 };
	struct error e = { 0 };
	struct volume *v;
	size_t len;
	const char *body = http_body(c->x, &len);
	int r = api_check_open(c->api, &e);

	if (r == 0)
		r = fields_decode_text(&volume_fields, body, len, &q, &e);
	if (r == 0)
		r = volumes_make(sessions_volumes(c->api->sessions), c->owner, q.name,
			q.quota_bytes, &e, &v);
	fields_finish(&volume_fields, &q);
	if (r < 0)
		call_error(c, &e);
	else
		answer(c, 201, v);
}

void handle_volume_list(struct call *c)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct volumes *volumes = sessions_volumes(c->api->sessions);
	struct json_writer w;

	json_writer_init(&w, &b);
	json_open_object(&w);
	json_key(&w, "volumes");
	json_open_array(&w);
	for (struct volume *v = NULL; (v = volumes_next(volumes, c->owner, v));)
		put_volume(&w, v);
	json_close(&w);
	json_close(&w);
	call_respond(c, 200, &w, &b);
}

void handle_volume_get(struct call *c)
{
	struct error e = { 0 };
	struct volume *v;
	if (volumes_find(sessions_volumes(c->api->sessions), c->owner, c->id, &e, &v) < 0)
		call_error(c, &e);
	else
		answer(c, 200, v);
}

void handle_volume_delete(struct call *c)
{
	struct error e = { 0 };
	if (volumes_remove(sessions_volumes(c->api->sessions), c->owner, c->id, &e) < 0)
		call_error(c, &e);
	else
		call_respond_as(c, 204, NULL, NULL);
}
