#include "daemon/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/log.h"
#include "daemon/config.h"

enum { TOKEN_FILE_BYTES = 64 * 1024, TOKEN_MIN = 16 };

static unsigned count_tokens(const struct config *c)
{
	unsigned n = 0;
	while (c->token && c->token[n])
		n++;
	return n;
}

/* Makes room for the options of `n` tokens. */
static int grow(struct config *c, unsigned n)
{
	if (n <= c->n_token_options)
		return 0;
	struct token_options *all = realloc(c->token_options, n * sizeof(*all));
	if (!all)
		return -ENOMEM;

	memset(all + c->n_token_options, 0, (n - c->n_token_options) * sizeof(*all));
	c->token_options = all;
	c->n_token_options = n;
	return 0;
}

/*
 * The line's settings for the tokens from number `first` on: a value with commas is several tokens.
 */
static int apply_settings(
	struct config *c, unsigned first, char *settings, const char *origin, struct error *e)
{
	_cleanup_(mcp_options_finish) struct mcp_options o = { 0 };
	unsigned n = count_tokens(c);
	int r = grow(c, n);
	if (!r)
		r = mcp_options_copy(&c->mcp, &o);
	if (r < 0)
		return error_set_errno(e, r, "%s", origin);
	r = mcp_options_apply(&o, settings, origin, e);
	if (r < 0)
		return r;

	for (unsigned i = first; i < n; i++) {
		r = mcp_options_copy(&o, &c->token_options[i].mcp);
		if (r < 0)
			return error_set_errno(e, r, "%s", origin);
		c->token_options[i].given = true;
	}
	return 0;
}

/* "TOKEN NAME=VALUE … # comment" */
static int take_line(struct config *c, char *line, unsigned number, struct error *e)
{
	char origin[64], *end = line + strcspn(line, " \t\r");
	char *settings = end + strspn(end, " \t\r");
	unsigned first = count_tokens(c);

	*end = '\0';
	snprintf(origin, sizeof(origin), "token-file line %u", number);
	int r = option_set(
		option_find(config_rows, "token", 5), c, line, c->token != NULL, "token-file", e);
	if (r < 0 || !*settings || *settings == '#')
		return r;
	return apply_settings(c, first, settings, origin, e);
}

static int take_lines(struct config *c, char *text, bool *ret_found, struct error *e)
{
	unsigned number = 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		number++;
		line += strspn(line, " \t\r");
		if (!*line || *line == '#')
			continue;
		int r = take_line(c, line, number, e);
		if (r < 0)
			return r;
		*ret_found = true;
	}
	return 0;
}

static int read_token_file(struct config *c, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	bool found = false;
	size_t len;
	int r = fd_read_file(c->token_file, TOKEN_FILE_BYTES, &text, &len);
	if (r < 0) {
		error_set_errno(e, r, "token-file %s", c->token_file);
		return error_remedy(e,
			"create the file, for example: head -c 24 /dev/urandom | base64 > %s && chmod 600 %s",
			c->token_file, c->token_file);
	}
	if (stat(c->token_file, &st) == 0 && st.st_mode & 077)
		log_warning(
			"token-file %s can be read by other users of this machine (chmod 600 %s)",
			c->token_file, c->token_file);

	r = take_lines(c, text, &found, e);
	if (r < 0 || found)
		return r;
	/* Without this the server would be open to all, against what was plainly meant. */
	error_set(e, -EINVAL, "token-file %s contains no token", c->token_file);
	return error_remedy(e, "add a token, for example: head -c 24 /dev/urandom | base64 >> %s",
		c->token_file);
}

static int check_length(const char *name, const char *token, struct error *e)
{
	if (strlen(token) >= TOKEN_MIN)
		return 0;
	error_set(e, -EINVAL, "%s: '%.2s…' is shorter than %d characters", name, token, TOKEN_MIN);
	return error_remedy(e, "take a random one: head -c 24 /dev/urandom | base64");
}

int tokens_load(struct config *c, struct error *e)
{
	int r = c->token_file ? read_token_file(c, e) : 0;
	if (r < 0)
		return r;

	if (c->token && !c->token[0]) {
		option_list_free(c->token);
		c->token = NULL;
	}
	r = c->metrics_token ? check_length("metrics-token", c->metrics_token, e) : 0;
	for (char **t = c->token; r == 0 && t && *t; t++)
		r = check_length("token", *t, e);
	return r;
}

void tokens_finish(struct config *c)
{
	for (unsigned i = 0; i < c->n_token_options; i++)
		mcp_options_finish(&c->token_options[i].mcp);
	free(c->token_options);
	c->token_options = NULL;
	c->n_token_options = 0;
}
