#include <errno.h>
#include <string.h>

#include "api/run_files.h"
#include "api/workspace.h"
#include "base/text.h"
#include "dialects/trainers/trainers.h"
#include "json/json_write.h"

const char *script_path(const char *path)
{
	static const char root[] = "/workspace/";
	if (!strncmp(path, root, sizeof(root) - 1))
		path += sizeof(root) - 1;
	while (!strncmp(path, "./", 2))
		path += 2;
	return workspace_check_path(path, strlen(path), NULL) < 0 ? NULL : path;
}

static int wrong_content(const char *name, struct error *e)
{
	return error_set(e, -EINVAL, "%.200s: the content must be base64 of at most 24 MiB", name);
}

static int take_file(
	const char *name, const json_t *value, struct field_files *ret, struct error *e)
{
	const char *path = script_path(name);
	struct field_text content;

	if (!path || ret->n >= LIMIT_RUN_FILES)
		return error_set(e, -EINVAL,
			"%.200s: files are written below /workspace, %d at most", name,
			LIMIT_RUN_FILES);
	if (!json_is_string(value) || json_string_length(value) % 4)
		return wrong_content(name, e);

	field_text_share(&content, value);
	bool encoded = content.len > 0;
	int r = run_files_add(ret, path, &content);
	field_text_finish(&content);
	if (r < 0)
		return error_set(e, r, "out of memory");
	struct field_file *added = &ret->file[ret->n - 1];
	added->base64 = encoded;
	return field_file_bytes(added) > LIMIT_RUN_FILES_BYTES ? wrong_content(name, e) : 0;
}

int script_take_files(const json_t *files, struct field_files *ret, struct error *e)
{
	const char *name;
	json_t *value;
	int r = 0;
	json_object_foreach((json_t *)files, name, value)
	{
		if (r == 0 && !json_is_null(value))
			r = take_file(name, value, ret, e);
	}
	return r;
}

void script_put_files(struct json_writer *w, const json_t *paths, struct session *s)
{
	struct run_files_budget budget = RUN_FILES_BUDGET;
	json_key(w, "files");
	json_open_object(w);
	for (size_t i = 0; s && i < json_array_size(paths); i++) {
		_cleanup_buffer_ struct buffer content = BUFFER_INIT(0);
		const char *name = json_string_value(json_array_get(paths, i)),
			   *path = name ? script_path(name) : NULL;
		if (!path || !run_files_fetch(s, path, &budget, &content))
			continue;
		json_key_text(w, name, strlen(name));
		json_put_base64(w, content.data ? content.data : "", content.len);
	}
	json_close(w);
}
