/*
 * Requests as tables: a JSON object (or a query string) becomes a C struct, or an error that says
 * which field is wrong, why, and what would be right. The same tables are written out as JSON
 * Schema for /openapi.json and /docs.
 *
 * A table is a `struct fields`: each row says where in the struct the value goes and what is
 * allowed. The struct must be zeroed before decoding; a field that is absent or null leaves its
 * place as it was. Everything a decoded struct points to is malloc'd and released by
 * fields_finish() with the same table, also after a failed decode.
 *
 * Errors are -EINVAL with slug "missing_field", "unknown_field" or "invalid_field", and begin with
 * the path of the value: `$.limits.timeout_s: must be a number between 0.1 and 3600, not a string`.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct json_writer;

enum field_type {
	FIELD_BOOL,   /* bool */
	FIELD_UINT,   /* uint64_t; min and max are values */
	FIELD_NUMBER, /* double; min and max are values */
	/* char *: text without NUL; min and max are bytes; one of `choices` when given */
	FIELD_WORD,
	FIELD_CHOICE, /* an enum: the index of the word among `choices` */
	FIELD_TEXT,   /* struct field_text; min and max are bytes */
	FIELD_WORDS,  /* char **, NULL at the end; max is the count, max_bytes of one */
	FIELD_ENV,    /* char ** of "NAME=value"; max is the count, max_bytes of all */
	FIELD_FILES,  /* struct field_files; max is the count, max_bytes of all */
	FIELD_JSON,   /* char *: the JSON text of an object; max is bytes */
	FIELD_ID,     /* char *: the JSON text of a string or whole number; max is bytes */
	FIELD_LIST,   /* json_t *: an array, as it is; max is the count */
	FIELD_VALUE,  /* json_t *: any value, as it is */
	FIELD_NAMED,  /* char *: a name, or the JSON text of an object; max is bytes */
	FIELD_OBJECT, /* a struct inside the struct, described by `object` */
	/* struct network_policy: "none", "loopback" or {"allow": [rule, …]}; max is the count */
	FIELD_NETWORK,
	FIELD_MATCH, /* query strings only: struct field_match, "name.KEY=value" any number of times; max is
			 the count */
};

enum {
	FIELD_REQUIRED = 1 << 0,
	FIELD_NUL_ALLOWED = 1 << 1, /* FIELD_TEXT: NUL characters are data */
	FIELD_HAS_FLAG = 1 << 2,    /* the bool at `flag_offset` is set when the field is there */
	/* FIELD_OBJECT: true stands for an empty object, false for none */
	FIELD_OR_BOOL = 1 << 3,
};

/* Released with field_text_finish(). */
struct field_text {
	char *data; /* NUL-terminated behind len */
	size_t len;
	json_t *owner; /* the string of the request that has the memory; NULL: it is malloc'd */
};
void field_text_finish(struct field_text *text);

/* The text of a JSON string, which is not copied. */
void field_text_share(struct field_text *text, const json_t *string);

struct field_files {
	struct field_file {
		char *path; /* checked: workspace_check_path() */
		struct field_text content;
		/*
		 * The content is base64, of which only the length has been looked at: see
		 * run_files_check().
		 */
		bool base64;
	} * file;
	size_t n;
};

/* Of the content, decoded. */
size_t field_file_bytes(const struct field_file *file);

struct field_match {
	struct field_pair {
		char *key, *value;
	} * pair;
	size_t n;
};

struct fields;

struct field {
	const char *name;
	enum field_type type;
	unsigned flags;
	size_t offset, flag_offset;
	double min, max;
	size_t max_bytes;
	const char *const *choices; /* FIELD_WORD, FIELD_CHOICE: NULL at the end */
	const struct fields *object;
	const char *default_text; /* for the documentation; may be NULL */
	const char *example;      /* JSON text; may be NULL */
	const char *help;
};

struct fields {
	const char *name; /* of the schema, such as "ExecuteRequest" */
	const struct field *field;
	size_t n;
};

#define FIELDS(schema, table)                                                               \
	{                                                                                   \
		.name = (schema), .field = (table), .n = sizeof(table) / sizeof((table)[0]) \
	}

/* Decodes one JSON object. */
int fields_decode(const struct fields *f, const json_t *object, void *ret, struct error *e);

/*
 * Reads JSON text and decodes it; an empty text is an empty object. Also the errors of json_read().
 */
int fields_decode_text(
	const struct fields *f, const char *text, size_t len, void *ret, struct error *e);

/*
 * Decodes a query string ("a=1&b=2"). Slugs: "unknown_parameter", "invalid_parameter",
 * "missing_parameter".
 */
int fields_decode_query(const struct fields *f, const char *query, void *ret, struct error *e);

/* Frees what a decoded struct owns and empties those places. */
void fields_finish(const struct fields *f, void *decoded);

/* Writes the table as a JSON Schema object (draft 2020-12, as OpenAPI 3.1 uses it). */
void fields_write_schema(const struct fields *f, struct json_writer *w);

/* Writes the schema of one field's value. */
void fields_write_value_schema(const struct field *f, struct json_writer *w);

/* "number, 0.1 to 3600", "string, at most 128 bytes" …, for people. Returns buf. */
char *fields_describe(const struct field *f, char *buf, size_t size);
