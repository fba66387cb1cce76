#include "session/outcome.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { WORDS_AT_LEAST = 16 * 1024 }; /* of an error, however short of memory the daemon is */

static void bundle_finish(struct bundle *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		free((char *)b->item[i].mime);
		free((char *)b->item[i].data);
	}
	b->n = 0;
}

void outcome_init(struct outcome *o)
{
	*o = (struct outcome){ .rule = POLICY_RULES };
}

static void answer_finish(struct final_answer *a)
{
	free((char *)a->data);
	free((char *)a->encoded);
	*a = (struct final_answer){ 0 };
}

void outcome_finish(struct outcome *o)
{
	for (unsigned i = 0; i < o->n_displays; i++)
		bundle_finish(&o->displays[i]);
	free(o->displays);
	bundle_finish(&o->result);
	free(o->error_type);
	free(o->error_message);
	free(o->error_traceback);
	free(o->error_code);
	free(o->error_remedy);
	answer_finish(&o->answer);
	for (unsigned i = 0; i < o->n_files; i++)
		free((char *)o->files[i].path);
	free(o->files);
	hold_set(&o->held, 0);
	outcome_init(o);
}

/* Whether so much more may be kept; counts it. */
static bool room_for(struct outcome *o, size_t bytes)
{
	return hold_set(&o->held, o->held.bytes + bytes) == 0;
}

static void no_more(struct outcome *o, size_t bytes)
{
	hold_set(&o->held, o->held.bytes < bytes ? 0 : o->held.bytes - bytes);
}

/* A NUL-terminated copy of at most max bytes. */
static char *copy_text(const struct wire_field *f, size_t max)
{
	return strndup(f->data, f->len < max ? f->len : max);
}

/* A copy that may hold zeros, of at most max bytes. */
static char *copy_some(const struct wire_field *f, size_t max, size_t *ret_len)
{
	size_t len = f->len < max ? f->len : max;
	char *p = malloc(len + 1);
	if (p) {
		memcpy(p, f->data, len);
		p[len] = '\0';
	}

	*ret_len = len;
	return p;
}

static char *copy_bytes(const struct wire_field *f)
{
	size_t unused;
	return copy_some(f, SIZE_MAX, &unused);
}

/* A text of the guest's that is shown as it is, or nothing. */
static char *copy_utf8(const struct wire_field *f, size_t max)
{
	return f->len <= max && text_is_utf8(f->data, f->len) && !memchr(f->data, '\0', f->len)
		       ? copy_bytes(f)
		       : NULL;
}

/* A code for programs: letters, digits and underscores, or nothing. */
static char *copy_word(const struct wire_field *f)
{
	for (size_t i = 0; i < f->len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", f->data[i]) || !f->data[i])
			return NULL;
	return f->len && f->len < ERROR_SLUG_MAX ? copy_bytes(f) : NULL;
}

/* A mime type names a key of the answer: printable ASCII only. */
static bool mime_ok(const struct wire_field *f)
{
	for (size_t i = 0; i < f->len; i++)
		if (f->data[i] <= ' ' || f->data[i] > '~' || f->data[i] == '"' ||
			f->data[i] == '\\')
			return false;
	return f->len > 0 && f->len <= LIMIT_MIME_BYTES;
}

static int read_bundle(const struct wire_frame *f, struct bundle *b, size_t *ret_bytes)
{
	struct wire_field field, mime = { 0 };
	size_t at = 0, bytes = 0;
	int r;

	*b = (struct bundle){ 0 };
	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (field.tag == WIRE_MIME) {
			mime = field;
			continue;
		}
		if ((field.tag != WIRE_TEXT && field.tag != WIRE_JSON) || !mime.data ||
			!mime_ok(&mime)) {
			r = -EPROTO;
			break;
		}
		if (b->n == LIMIT_BUNDLE_ITEMS)
			continue;
		struct bundle_item *i = &b->item[b->n++];
		*i = (struct bundle_item){ .mime = copy_text(&mime, LIMIT_MIME_BYTES),
			.data = copy_bytes(&field),
			.len = field.len,
			.is_json = field.tag == WIRE_JSON };
		mime.data = NULL;
		bytes += field.len;
		if (!i->mime || !i->data) {
			r = -ENOMEM;
			break;
		}
	}

	if (r < 0)
		bundle_finish(b);
	*ret_bytes = bytes;
	return r;
}

static int take_display(
	struct outcome *o, const struct wire_frame *f, const struct bundle **ret_display)
{
	struct bundle b;
	size_t bytes;
	int r = read_bundle(f, &b, &bytes);

	if (r < 0)
		return r;

	if (o->n_displays == LIMIT_DISPLAYS || o->display_bytes + bytes > LIMIT_DISPLAY_BYTES ||
		!room_for(o, bytes)) {
		o->displays_left_out++;
		bundle_finish(&b);
		return 0;
	}

	struct bundle *grown = realloc(o->displays, (o->n_displays + 1) * sizeof(*grown));
	if (!grown) {
		bundle_finish(&b);
		return -ENOMEM;
	}

	o->displays = grown;
	o->displays[o->n_displays] = b;
	o->display_bytes += bytes;
	*ret_display = &o->displays[o->n_displays++];
	return 0;
}

static int take_result(struct outcome *o, const struct wire_frame *f)
{
	size_t bytes;
	if (o->has_result)
		return -EPROTO;

	int r = read_bundle(f, &o->result, &bytes);
	if (r == 0 && !room_for(o, bytes)) {
		o->displays_left_out++;
		bundle_finish(&o->result);
		return 0;
	}

	o->has_result = r == 0;
	return r;
}

/* An exception's text or its traceback: what is too long, for itself or for the daemon, is cut. */
static char *take_words(struct outcome *o, const struct wire_field *f, size_t max, size_t *ret_len)
{
	size_t len = f->len < max ? f->len : max;
	if (!room_for(o, len)) {
		len = len < WORDS_AT_LEAST ? len : WORDS_AT_LEAST;
		hold_set(&o->held, o->held.bytes + len);
	}
	o->error_bytes += len;
	return copy_some(f, len, ret_len);
}

static void forget_error(struct outcome *o)
{
	free(o->error_type);
	free(o->error_message);
	free(o->error_traceback);
	free(o->error_code);
	free(o->error_remedy);
	o->error_type = o->error_message = o->error_traceback = o->error_code = o->error_remedy =
		NULL;
	o->rule = POLICY_RULES;
	o->error = (struct cell_error){ .code = "", .remedy = "" };
	o->error_errno = 0;
	no_more(o, o->error_bytes);
	o->error_bytes = 0;
}

static int take_error(struct outcome *o, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t line = 0, rule, number = 0;
	int r;

	forget_error(o);
	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (field.tag == WIRE_ERROR_TYPE && !o->error_type) {
			o->error_type = copy_text(&field, 1024);
		} else if (field.tag == WIRE_TEXT && !o->error_message) {
			o->error_message = take_words(
				o, &field, LIMIT_MESSAGE_BYTES, &o->error.message_len);
		} else if (field.tag == WIRE_TRACEBACK && !o->error_traceback) {
			o->error_traceback = take_words(
				o, &field, LIMIT_ERROR_BYTES, &o->error.traceback_len);
		} else if (field.tag == WIRE_ERROR_CODE && !o->error_code) {
			o->error_code = copy_word(&field);
		} else if (field.tag == WIRE_REMEDY && !o->error_remedy) {
			o->error_remedy = copy_utf8(&field, LIMIT_ADVICE_BYTES);
		} else if (field.tag == WIRE_LINE && wire_field_u64(&field, &line) == 0) {
			o->error.line = line < 1000000000 ? (int)line : 0;
		} else if (field.tag == WIRE_RULE && wire_field_u64(&field, &rule) == 0) {
			o->rule = rule < POLICY_RULES ? (unsigned)rule : POLICY_RULES;
		} else if (field.tag == WIRE_ERRNO && wire_field_u64(&field, &number) == 0) {
			o->error_errno = number < 4096 ? (int)number : 0;
		}
	}

	if (r < 0 || !o->error_type || !o->error_message || !o->error_traceback)
		return -EPROTO;

	o->error.type = o->error_type;
	o->error.message = o->error_message;
	o->error.traceback = o->error_traceback;
	o->error.code = o->error_code ? o->error_code : "";
	o->error.remedy = o->error_remedy ? o->error_remedy : "";
	if (o->rule < POLICY_RULES)
		o->error.code = policy_rule_codes[o->rule];
	o->has_error = true;
	return 0;
}

static void forget_answer(struct outcome *o)
{
	answer_finish(&o->answer);
	o->has_answer = false;
	no_more(o, o->answer_bytes);
	o->answer_bytes = 0;
}

static int take_answer(struct outcome *o, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	int r;

	forget_answer(o); /* the last one counts */
	if (!room_for(o, f->len)) {
		o->displays_left_out++;
		return 0;
	}

	o->answer_bytes = f->len;
	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (field.len > LIMIT_ANSWER_BYTES)
			return -EPROTO;
		if ((field.tag == WIRE_JSON || field.tag == WIRE_TEXT) && !o->answer.data) {
			o->answer.data = copy_bytes(&field);
			o->answer.len = field.len;
			o->answer.is_json = field.tag == WIRE_JSON;
		} else if (field.tag == WIRE_ENCODED && !o->answer.encoded) {
			o->answer.encoded = copy_bytes(&field);
			o->answer.encoded_len = field.len;
		}
	}

	if (r < 0 || !o->answer.data)
		return -EPROTO;

	o->has_answer = true;
	return 0;
}

static int take_file(struct outcome *o, const struct wire_field *f)
{
	uint64_t size;
	if (f->len < 10 || f->len - 9 > LIMIT_PATH_BYTES ||
		(unsigned char)f->data[0] > FILE_DELETED)
		return -EPROTO;

	if (o->n_files == LIMIT_FILES) {
		o->files_cut = true;
		return 0;
	}

	struct file_entry *grown = realloc(o->files, (o->n_files + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;

	o->files = grown;
	memcpy(&size, f->data + 1, sizeof(size));
	char *path = strndup(f->data + 9, f->len - 9);
	if (!path)
		return -ENOMEM;

	o->files[o->n_files++] = (struct file_entry){
		.path = path, .size = le64toh(size), .change = (enum file_change)f->data[0]
	};
	return 0;
}

static int take_files(struct outcome *o, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	int r;
	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (field.tag == WIRE_CUT)
			o->files_cut = true;
		else if (field.tag == WIRE_FILE && (r = take_file(o, &field)) < 0)
			return r;
	}
	return r;
}

static int take_done(struct outcome *o, const struct wire_frame *f)
{
	struct wire_field field;
	size_t at = 0;
	uint64_t n;
	int r;

	while ((r = wire_field_next(f, &at, &field)) == 1) {
		if (wire_field_u64(&field, &n) < 0)
			return -EPROTO;
		if (field.tag == WIRE_OUTCOME && n <= WIRE_OUTCOME_REFUSED)
			o->kind = (enum wire_outcome)n;
		else if (field.tag == WIRE_EXIT_CODE)
			o->exit_code = (int)(n & 0xff);
		else if (field.tag == WIRE_CPU_NS)
			o->cpu_ms = (double)n / 1e6;
		else if (field.tag == WIRE_PEAK)
			o->peak_memory_bytes = n;
		else if (field.tag == WIRE_EFFECTS)
			o->effects = (unsigned)n;
		else if (field.tag == WIRE_STEP)
			step_add_packed(&o->steps, n);
	}

	o->done = r == 0;
	return r;
}

int outcome_take(struct outcome *o, const struct wire_frame *f, const struct bundle **ret_display)
{
	*ret_display = NULL;
	switch (f->type) {
	case WIRE_DISPLAY:
		return take_display(o, f, ret_display);
	case WIRE_RESULT:
		return take_result(o, f);
	case WIRE_ERROR:
		return take_error(o, f);
	case WIRE_ANSWER:
		return take_answer(o, f);
	case WIRE_FILES:
		return take_files(o, f);
	case WIRE_DONE:
		return take_done(o, f);
	default:
		return -EPROTO;
	}
}
