/* Releasing what the decoders of fields.h made. */
#include <stdlib.h>

#include "api/schema/fields.h"
#include "base/deferred.h"
#include "network/network_policy.h"
#include "json/json_read.h"

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void field_text_finish(struct field_text *text)
{
	if (text->owner)
		json_discard(text->owner);
	else
		deferred_free(text->data, text->len);
	*text = (struct field_text){ 0 };
}

static void free_files(struct field_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->file[i].path);
		field_text_finish(&files->file[i].content);
	}
	free(files->file);
	*files = (struct field_files){ 0 };
}

static void free_match(struct field_match *match)
{
	for (size_t i = 0; i < match->n; i++) {
		free(match->pair[i].key);
		free(match->pair[i].value);
	}
	free(match->pair);
	*match = (struct field_match){ 0 };
}

static void free_value(const struct field *f, void *value)
{
	switch (f->type) {
	case FIELD_WORD:
	case FIELD_JSON:
	case FIELD_ID:
	case FIELD_NAMED:
		free(*(char **)value);
		*(char **)value = NULL;
		break;
	case FIELD_TEXT:
		field_text_finish(value);
		break;
	case FIELD_WORDS:
	case FIELD_ENV:
		free_list(*(char ***)value);
		*(char ***)value = NULL;
		break;
	case FIELD_FILES:
		free_files(value);
		break;
	case FIELD_NETWORK:
		network_policy_finish(value);
		break;
	case FIELD_MATCH:
		free_match(value);
		break;
	case FIELD_LIST:
	case FIELD_VALUE:
		json_discard(*(json_t **)value);
		*(json_t **)value = NULL;
		break;
	case FIELD_OBJECT:
		fields_finish(f->object, value);
		break;
	default:
		break;
	}
}

void fields_finish(const struct fields *f, void *decoded)
{
	for (size_t i = 0; i < f->n; i++)
		free_value(&f->field[i], (char *)decoded + f->field[i].offset);
}
