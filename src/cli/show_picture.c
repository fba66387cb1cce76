#include "cli/show_picture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/fds.h"
#include "base/text.h"
#include "cli/cli.h"

enum { NUMBERS_MAX = 10000, NAME_MAX_BYTES = 64 };

/* What is worth a file. Binary forms arrive as base64. */
static const struct form {
	const char *mime, *extension;
	bool base64;
} forms[] = {
	{ "image/png", "png", true },
	{ "image/jpeg", "jpg", true },
	{ "image/gif", "gif", true },
	{ "image/svg+xml", "svg", false },
	{ "application/pdf", "pdf", true },
};

static const struct form *form_of(const char *mime)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (text_eq(forms[i].mime, mime))
			return &forms[i];
	return NULL;
}

static const struct bundle_item *find_item(const struct bundle *b, const char *mime)
{
	for (unsigned i = 0; i < b->n; i++)
		if (text_eq(b->item[i].mime, mime))
			return &b->item[i];
	return NULL;
}

/* Opens the next free name; the descriptor, or a negative errno. */
static int open_new(const char *extension, unsigned *number, char name[NAME_MAX_BYTES])
{
	for (unsigned tries = 0; tries < NUMBERS_MAX; tries++) {
		snprintf(name, NAME_MAX_BYTES, "glovebox-%u.%s", ++*number, extension);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int save_bytes(const struct form *form, const void *data, size_t len, unsigned *number,
	char name[NAME_MAX_BYTES])
{
	_cleanup_fd_ int fd = open_new(form->extension, number, name);
	if (fd < 0)
		return fd;
	int r = fd_write_waiting(fd, data, len);
	if (r < 0)
		unlink(name);
	return r;
}

static void print_form(
	const struct bundle_item *item, const struct form *form, bool save, unsigned *number)
{
	_cleanup_buffer_ struct buffer decoded = BUFFER_INIT(LIMIT_DISPLAY_BYTES);
	char size[CLI_AMOUNT_MAX], name[NAME_MAX_BYTES];
	const void *data = item->data;
	size_t len = item->len;

	if (form->base64) {
		if (text_base64_decode(&decoded, item->data, item->len) < 0) {
			printf("[%s, damaged]\n", form->mime);
			return;
		}
		data = decoded.data;
		len = decoded.len;
	}
	cli_format_size((double)len, size);
	if (!save) {
		printf("[%s, %s]\n", form->mime, size);
		return;
	}
	int r = save_bytes(form, data, len, number, name);
	if (r < 0)
		printf("[%s, %s: could not be saved: %s]\n", form->mime, size, strerror(-r));
	else
		printf("[%s, %s: saved to %s]\n", form->mime, size, name);
}

void display_print(const struct bundle *b, bool save, unsigned *number)
{
	const struct bundle_item *text = find_item(b, "text/plain");
	if (text)
		printf("%.*s\n", (int)text->len, text->data);
	for (unsigned i = 0; i < b->n; i++) {
		const struct form *form = form_of(b->item[i].mime);
		char size[CLI_AMOUNT_MAX];
		if (form)
			print_form(&b->item[i], form, save, number);
		else if (!text)
			printf("[%s, %s]\n", b->item[i].mime,
				cli_format_size((double)b->item[i].len, size));
	}
	fflush(stdout);
}
