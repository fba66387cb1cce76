#include "daemon/mcp_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct mcp_options, member)
const struct option_row mcp_option_rows[] = { MCP_OPTION_ROWS(AT), { NULL } };

static int copy_text(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int copy_list(char *const *list, char ***ret)
{
	size_t n = 0;
	*ret = NULL;
	if (!list)
		return 0;

	while (list[n])
		n++;
	*ret = calloc(n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++)
		if (copy_text(list[i], &(*ret)[i]) < 0)
			return -ENOMEM;
	return *ret ? 0 : -ENOMEM;
}

int mcp_options_copy(const struct mcp_options *o, struct mcp_options *ret)
{
	struct mcp_options copy = *o;
	copy.profile = copy.network = NULL;
	copy.packages = copy.tools = NULL;

	int r = copy_text(o->profile, &copy.profile);
	if (!r)
		r = copy_text(o->network, &copy.network);
	if (!r)
		r = copy_list(o->packages, &copy.packages);
	if (!r)
		r = copy_list(o->tools, &copy.tools);
	if (r < 0)
		mcp_options_finish(&copy);
	else
		*ret = copy;
	return r;
}

void mcp_options_finish(struct mcp_options *o)
{
	options_finish(mcp_option_rows, o);
}

static int refuse(const char *word, const char *origin, struct error *e)
{
	size_t len = strcspn(word, "=");
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)(len < 60 ? len : 60), word);
	const char *near = word[len] ? option_nearest(mcp_option_rows, name) : NULL;

	error_set(e, -EINVAL, "%s: '%s' is not a setting of a token", origin, name);
	if (near)
		return error_remedy(e, "did you mean %s=VALUE?", near);
	return error_remedy(e,
		"write NAME=VALUE after the token, such as mcp-tools=run_python,read_file; "
		"a comment begins with #");
}

int mcp_options_apply(struct mcp_options *o, char *text, const char *origin, struct error *e)
{
	for (char *rest = text, *word; (word = strsep(&rest, " \t\r"));) {
		char *value = strchr(word, '=');
		if (!*word)
			continue;
		if (*word == '#')
			break;

		const struct option_row *row = value ? option_find(mcp_option_rows, word,
							       (size_t)(value - word))
						     : NULL;
		if (!row)
			return refuse(word, origin, e);
		int r = option_set(row, o, value + 1, false, origin, e);
		if (r < 0)
			return r;
	}
	return 0;
}
