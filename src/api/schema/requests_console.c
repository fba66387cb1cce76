#include "api/schema/requests_console.h"

#include "base/limits.h"

#define YEAR_SECONDS 31536000.0
#define NUMBER_MOST 9007199254740991.0

static const struct field cells_query_table[] = {
	{ "after", FIELD_UINT, .offset = offsetof(struct cells_query, after), .max = NUMBER_MOST,
		.default_text = "0", .help = "`next` of the previous page; 0 is the beginning." },
	{ "limit", FIELD_UINT, .offset = offsetof(struct cells_query, limit), .min = 1,
		.max = LIMIT_PAGE, .default_text = "100",
		.help = "Maximum number of entries of a page (a page also ends at 1 MiB)." },
	{ "last", FIELD_UINT, .offset = offsetof(struct cells_query, last), .min = 1,
		.max = LIMIT_PAGE, .help = "Return this many of the last entries instead." },
};
const struct fields cells_query_fields = FIELDS("CellsQuery", cells_query_table);

static const struct field events_query_table[] = {
	{ "session", FIELD_WORD, .offset = offsetof(struct events_query, session), .min = 1,
		.max = SESSION_ID_LEN, .help = "Only events of this session." },
	{ "after", FIELD_WORD, .offset = offsetof(struct events_query, after), .max = 64,
		.help = "`event_id` of the last event that the client received; the header Last-Event-ID does the same." },
	{ "output", FIELD_BOOL, FIELD_HAS_FLAG, .offset = offsetof(struct events_query, output),
		.flag_offset = offsetof(struct events_query, has_output), .default_text = "true",
		.help = "false: omit the events output and display." },
};
const struct fields events_query_fields = FIELDS("EventsQuery", events_query_table);

static const struct field archive_query_table[] = {
	{ "path", FIELD_WORD, .offset = offsetof(struct archive_query, path),
		.max = LIMIT_PATH_BYTES,
		.help = "A folder below /workspace; default: all of /workspace." },
};
const struct fields archive_query_fields = FIELDS("ArchiveQuery", archive_query_table);

static const struct field volume_table[] = {
	{ "name", FIELD_WORD, FIELD_REQUIRED, .offset = offsetof(struct volume_request, name),
		.min = 1, .max = LIMIT_NAME_BYTES, .example = "\"results\"",
		.help = "At most 31 letters, digits and _." },
	{ "quota_bytes", FIELD_UINT, .offset = offsetof(struct volume_request, quota_bytes),
		.min = 1 << 20, .max = NUMBER_MOST, .default_text = "the server's max-volume-bytes",
		.example = "104857600", .help = "Bytes that the volume may have." },
};
const struct fields volume_fields = FIELDS("CreateVolume", volume_table);

static const char *const export_formats[] = { "ipynb", "py", NULL };
static const struct field export_query_table[] = {
	{ "format", FIELD_WORD, .offset = offsetof(struct export_query, format), .max = 8,
		.choices = export_formats, .default_text = "ipynb",
		.help = "A Jupyter notebook with the outputs, or a Python file." },
};
const struct fields export_query_fields = FIELDS("ExportQuery", export_query_table);

static const struct field session_update_table[] = {
	{ "name", FIELD_WORD, FIELD_HAS_FLAG, .offset = offsetof(struct session_update, name),
		.flag_offset = offsetof(struct session_update, has_name), .max = LIMIT_NAME_BYTES,
		.example = "\"analysis\"",
		.help = "The new name; an empty text removes the name." },
	{ "metadata", FIELD_JSON, FIELD_HAS_FLAG,
		.offset = offsetof(struct session_update, metadata),
		.flag_offset = offsetof(struct session_update, has_metadata),
		.max = LIMIT_METADATA_BYTES, .example = "{\"user\":\"ada\"}",
		.help = "Replaces the metadata of the session." },
	{ "ttl_s", FIELD_NUMBER, .offset = offsetof(struct session_update, ttl_s), .min = 1,
		.max = YEAR_SECONDS,
		.help = "The session ends this many seconds after its creation." },
	{ "idle_timeout_s", FIELD_NUMBER, .offset = offsetof(struct session_update, idle_timeout_s),
		.min = 1, .max = YEAR_SECONDS,
		.help = "The session ends this many seconds after its last cell." },
};
const struct fields session_update_fields = FIELDS("SessionUpdate", session_update_table);

static const struct field resume_table[] = {
	{ "ttl_s", FIELD_NUMBER, .offset = offsetof(struct resume_request, ttl_s), .min = 1,
		.max = YEAR_SECONDS, .default_text = "the remaining time, at least 300",
		.help = "The session ends this many seconds from now." },
};
const struct fields resume_fields = FIELDS("Resume", resume_table);

static const struct field drain_table[] = {
	{ "deadline_s", FIELD_NUMBER, .offset = offsetof(struct drain_request, deadline_s),
		.max = YEAR_SECONDS, .default_text = "0",
		.help = "Sessions that are still there after this time are ended; 0: they are served to their end." },
};
const struct fields drain_fields = FIELDS("Drain", drain_table);

static const struct field introspect_table[] = {
	{ "code", FIELD_TEXT, FIELD_REQUIRED, .offset = offsetof(struct introspect_request, code),
		.max = LIMIT_CODE_BYTES, .example = "\"df.he\"",
		.help = "The source text in the editor." },
	{ "cursor", FIELD_UINT, FIELD_HAS_FLAG,
		.offset = offsetof(struct introspect_request, cursor),
		.flag_offset = offsetof(struct introspect_request, has_cursor), .max = NUMBER_MOST,
		.default_text = "the end",
		.help = "Position of the cursor, in characters (code points) from the start." },
};
const struct fields introspect_fields = FIELDS("IntrospectRequest", introspect_table);
