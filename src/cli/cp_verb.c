/* glovebox cp: files and folders of a session, both ways. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/local_tree.h"
#include "http/http_client.h"
#include "json/json_read.h"

enum { SILENCE_MS = 60000, LOCAL_MAX = 4096 };

#define WORKSPACE "/workspace"

struct options {
	struct client_options client;
	bool quiet, help;
};

/* clang-format off */
static const struct option_row rows[] = {
	CLIENT_ROWS(struct options),
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct options, quiet), .flag_only = true,
	  .help = "do not print what was copied" },
	CLI_HELP(struct options),
	{ NULL },
};
/* clang-format on */

static const struct cli_page page = {
	.verb = "cp",
	.usage = "[options] SESSION:PATH LOCAL | LOCAL SESSION:PATH",
	.about =
		"Copies a file or a folder out of a session of a server, or into it. PATH is below /workspace. If the target is\n"
		"a folder that is there already, the copy is made in it; SESSION:PATH/. and LOCAL/. mean the contents of the\n"
		"folder. LOCAL may be - for standard output or input. Links and devices are not copied.",
	.rows = rows,
	.examples = "  glovebox cp data.csv analysis:\n"
		    "  glovebox cp analysis:plots .\n"
		    "  glovebox cp analysis:result.json - | jq .\n",
	.environment = true,
};

/* One side of the copy. */
struct side {
	char *session;    /* the word for it; NULL: this machine */
	const char *path; /* below /workspace, "" for itself; or a local path */
	bool contents;    /* PATH/. */
};

struct copy {
	const struct options *options;
	struct client *client;
	struct error *e;
	char *id;
};

/* ---- the two words ------------------------------------------------------------------- */

/* A path with a slash before its first colon is local, as in scp. */
static int read_side(char *word, struct side *ret, struct error *e)
{
	char *colon = strchr(word, ':');
	*ret = (struct side){ .path = word };
	if (colon && colon != word && !memchr(word, '/', (size_t)(colon - word))) {
		*colon = '\0';
		*ret = (struct side){ .session = word, .path = colon + 1 };
	}

	char *path = (char *)ret->path;
	size_t len = strlen(path);
	if (len > LIMIT_PATH_BYTES)
		return error_set(e, -ENAMETOOLONG, "the path is too long: %.60s…", path);
	ret->contents = text_eq(path, ".") || (len > 1 && text_eq(path + len - 2, "/."));
	if (!ret->session)
		return 0;
	if (ret->contents)
		path[len -= len > 1 ? 2 : 1] = '\0';
	while (len && path[len - 1] == '/')
		path[--len] = '\0';
	if (text_starts(path, WORKSPACE) &&
		(path[strlen(WORKSPACE)] == '/' || !path[strlen(WORKSPACE)]))
		ret->path = path + strlen(WORKSPACE) + (path[strlen(WORKSPACE)] == '/');
	ret->contents |= !*ret->path;
	if (*ret->path != '/')
		return 0;
	error_set(e, -EINVAL, "%s: not below " WORKSPACE, ret->path);
	return error_remedy(e,
		"give a path below " WORKSPACE "; `glovebox exec SESSION -- cat PATH` "
		"reads other files");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* The last part of a local path: of "dir/" it is dir. */
static void local_name(const char *path, char out[LOCAL_MAX])
{
	snprintf(out, LOCAL_MAX, "%s", path);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	memmove(out, base_name(out), strlen(base_name(out)) + 1);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- calls --------------------------------------------------------------------------- */

/* "/v1/sessions/ID/KIND?path=…" */
static int query_target(struct copy *c, struct buffer *b, const char *kind, const char *path)
{
	int r = buffer_printf(b, "/v1/sessions/%s/%s", c->id, kind);
	if (*path) {
		r |= buffer_append_str(b, "?path=");
		r |= http_percent_encode(b, path);
	}
	return r || !buffer_cstr(b) ? error_set_errno(c->e, -ENOMEM, "the address") : 0;
}

/* "/v1/sessions/ID/files/…", each part of the path encoded by itself */
static int file_target(struct copy *c, struct buffer *b, const char *path)
{
	int r = buffer_printf(b, "/v1/sessions/%s/files", c->id);
	while (*path) {
		size_t n = strcspn(path, "/");
		_cleanup_free_ char *part = strndup(path, n);
		r |= buffer_append_str(b, "/");
		r |= part ? http_percent_encode(b, part) : -ENOMEM;
		path += n + (path[n] == '/');
	}
	return r || !buffer_cstr(b) ? error_set_errno(c->e, -ENOMEM, "the address") : 0;
}

static int is_remote_folder(struct copy *c, const char *path, bool *ret)
{
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	struct error e = { 0 };
	*ret = true;
	if (!*path)
		return 0;
	int r = query_target(c, &target, "files", path);
	if (r == 0)
		r = client_call(c->client, "GET", target.data, &e, &answer);
	*ret = r == 0;
	if (r == 0 || text_eq(e.slug, "file_not_found") || text_eq(e.slug, "not_a_directory"))
		return 0;
	*c->e = e;
	return r;
}

static int upload(struct copy *c, const char *target, int fd, json_t **ret)
{
	_cleanup_http_response_ struct http_client_response response = { 0 };
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_set_errno(c->e, -errno, "the file");
	size_t len = (size_t)st.st_size;
	void *data = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : (void *)"";
	if (data == MAP_FAILED)
		return error_set_errno(c->e, -errno, "the file");

	int r = client_exchange(c->client,
		&(struct http_client_request){ .method = "PUT",
			.target = target,
			.content_type = "application/octet-stream",
			.body = data,
			.body_len = len,
			.silence_ms = SILENCE_MS },
		c->e, &response);
	if (len)
		munmap(data, len);
	if (r == 0 && response.body.len)
		r = json_read(response.body.data, response.body.len, c->e, ret);
	return r;
}

static void tell(const struct copy *c, const struct tree_counts *n)
{
	char size[CLI_AMOUNT_MAX];
	if (c->options->quiet)
		return;
	fprintf(stderr, "%u %s, %s", n->files, n->files == 1 ? "file" : "files",
		cli_format_size((double)n->bytes, size));
	if (n->skipped)
		fprintf(stderr, "; not copied: %u links or devices", n->skipped);
	fputc('\n', stderr);
}

/* ---- out of the session -------------------------------------------------------------- */

struct download {
	const char *name;
	int fd;
	uint64_t bytes;
	int err;
};

static int open_download(struct download *d)
{
	if (d->fd >= 0)
		return 0;
	d->fd = text_eq(d->name, "-")
			? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
			: open(d->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return d->fd < 0 ? (d->err = -errno) : 0;
}

static int on_piece(const char *data, size_t len, void *userdata)
{
	struct download *d = userdata;
	int r = open_download(d);
	if (r == 0 && (r = fd_write_waiting(d->fd, data, len)) < 0)
		d->err = r;
	d->bytes += len;
	return r;
}

/*
 * The local file is opened when the first content arrives, so that an old copy is kept if the
 * remote file is missing.
 */
static int get_file(struct copy *c, const char *path, const char *to)
{
	_cleanup_http_response_ struct http_client_response response = { 0 };
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(0);
	struct download d = { .name = to, .fd = -1 };
	int r = file_target(c, &target, path);

	if (r == 0)
		r = client_exchange(c->client,
			&(struct http_client_request){ .method = "GET",
				.target = target.data,
				.on_data = on_piece,
				.userdata = &d,
				.silence_ms = SILENCE_MS },
			c->e, &response);
	if (r == 0)
		r = open_download(&d);
	fd_close(d.fd);
	if (d.err)
		return error_set_errno(c->e, d.err, "%s", to);
	if (r == 0 && !text_eq(to, "-"))
		tell(c, &(struct tree_counts){ .files = 1, .bytes = d.bytes });
	return r;
}

static int on_archive(const char *data, size_t len, void *userdata)
{
	return local_tree_feed(userdata, data, len);
}

static int get_folder(struct copy *c, const char *path, const char *to)
{
	_cleanup_http_response_ struct http_client_response response = { 0 };
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(0);
	struct tree_counts n;
	struct local_tree *t = NULL;
	int r = query_target(c, &target, "archive", path);

	if (r == 0)
		r = local_tree_create(to, c->e, &t);
	if (r == 0) {
		struct error e = { 0 };
		r = client_exchange(c->client,
			&(struct http_client_request){ .method = "GET",
				.target = target.data,
				.on_data = on_archive,
				.userdata = t,
				.silence_ms = SILENCE_MS },
			&e, &response);
		/* what stopped the unpacking says more than that the call was stopped */
		if (r == 0 || response.status / 100 == 2)
			r = local_tree_end(t, c->e, &n);
		else
			*c->e = e;
	}

	local_tree_destroy(t);
	if (r == 0)
		tell(c, &n);
	return r;
}

static int copy_out(struct copy *c, const struct side *from, const char *to)
{
	char path[LOCAL_MAX + LIMIT_PATH_BYTES + 2];
	bool folder;
	int r = is_remote_folder(c, from->path, &folder);
	if (r < 0)
		return r;
	if (folder && text_eq(to, "-"))
		return error_set(c->e, -EISDIR, "%s is a folder; - accepts files only", from->path);
	snprintf(path, sizeof(path), "%s", to);
	if (is_folder(to) && !(folder && from->contents))
		snprintf(path, sizeof(path), "%s/%s", to, base_name(from->path));
	return folder ? get_folder(c, from->path, path) : get_file(c, from->path, path);
}

/* ---- into the session ---------------------------------------------------------------- */

/* Standard input is kept in a file without a name first: its length must be known. */
static int keep_input(struct copy *c, int *ret)
{
	char piece[65536];
	const char *dir = getenv("TMPDIR");
	_cleanup_fd_ int fd = open(
		dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ssize_t n = 0;
	int r = fd < 0 ? -errno : 0;
	while (r == 0 && (n = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
		r = fd_write_full(fd, piece, (size_t)n);
	if (r == 0 && n < 0)
		r = -errno;
	if (r < 0)
		return error_set_errno(c->e, r, "standard input");
	*ret = TAKE_FD(fd);
	return 0;
}

static int put_file(struct copy *c, const char *from, const char *path)
{
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st = { 0 };
	int r = 0;
	if (text_eq(from, "-"))
		r = keep_input(c, &fd);
	else if ((fd = open(from, O_RDONLY | O_CLOEXEC)) < 0)
		r = error_set_errno(c->e, -errno, "%s", from);
	if (r == 0)
		r = file_target(c, &target, path);
	if (r == 0)
		r = upload(c, target.data, fd, &answer);
	if (r == 0 && fstat(fd, &st) == 0)
		tell(c, &(struct tree_counts){ .files = 1, .bytes = (uint64_t)st.st_size });
	return r;
}

static int put_folder(struct copy *c, const char *from, const char *path)
{
	_cleanup_buffer_ struct buffer target = BUFFER_INIT(0);
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_fd_ int fd = -1;
	struct tree_counts n;
	int r = local_tree_pack(from, c->e, &n, &fd);
	if (r == 0)
		r = query_target(c, &target, "archive", path);
	if (r == 0)
		r = upload(c, target.data, fd, &answer);
	if (r == 0)
		tell(c, &n);
	return r;
}

static int copy_in(struct copy *c, const struct side *from, const struct side *to)
{
	char path[LIMIT_PATH_BYTES + LOCAL_MAX + 2], name[LOCAL_MAX];
	bool folder = is_folder(from->path), into;
	int r = is_remote_folder(c, to->path, &into);
	if (r < 0)
		return r;
	local_name(text_eq(from->path, "-") ? "stdin" : from->path, name);
	snprintf(path, sizeof(path), "%s", to->path);
	if (into && !(folder && from->contents))
		snprintf(path, sizeof(path), "%s%s%s", to->path, *to->path ? "/" : "", name);
	return folder ? put_folder(c, from->path, path) : put_file(c, from->path, path);
}

/* ---- the whole ----------------------------------------------------------------------- */

static int copy(const struct options *o, const struct side *from, const struct side *to)
{
	_cleanup_(client_cleanup) struct client *client = NULL;
	_cleanup_free_ char *id = NULL;
	struct error e = { 0 };
	int r = client_create(&o->client, &e, &client);
	if (r == 0)
		r = client_find_session(
			client, from->session ? from->session : to->session, &e, &id);
	if (r == 0) {
		struct copy c = { .options = o, .client = client, .e = &e, .id = id };
		r = from->session ? copy_out(&c, from, to->path) : copy_in(&c, from, to);
	}
	if (r < 0)
		cli_show_error(page.verb, &e);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

int cli_cp(int argc, char **argv)
{
	struct options o = { 0 };
	struct side from, to;
	struct error e = { 0 };
	int code, first = cli_parse(&page, &o, argc, argv, true, &code);
	if (first >= 0 && argc - first != 2) {
		code = cli_usage(page.verb, "give a source and a target");
	} else if (first >= 0 && (read_side(argv[first], &from, &e) < 0 ||
					 read_side(argv[first + 1], &to, &e) < 0)) {
		cli_show_error(page.verb, &e);
		code = CLI_USAGE;
	} else if (first >= 0 && !from.session == !to.session) {
		code = cli_usage(page.verb, from.session ? "one side must be a path of this machine"
							 : "one side must be SESSION:PATH");
	} else if (first >= 0) {
		code = copy(&o, &from, &to);
	}

	options_finish(rows, &o);
	return code;
}
