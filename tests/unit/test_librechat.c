/* LibreChat: forms as they come from clients, and files that tokens keep beside one another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "dialects/librechat/librechat.h"
#include "tap.h"

/* ---- forms --------------------------------------------------------------------------- */

#define TYPE "multipart/form-data; boundary=q"
#define FILE_PART(name) \
	"--q\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" name "\"\r\n\r\n"

static char said[1024];

/* All parts in words, and what ended them. */
static int parse(const char *type, const char *body, size_t len)
{
	struct form_part part;
	size_t at = 0;
	int r;
	/* memory of its own: a read beyond the body is one beyond the block */
	char *copy = malloc(len ? len : 1);
	memcpy(copy, body, len);
	said[0] = '\0';
	while ((r = multipart_next(type, copy, len, &at, &part)) > 0) {
		size_t n = strlen(said);
		snprintf(said + n, sizeof(said) - n, "%s|%s|%.*s;", part.name, part.filename,
			(int)part.len, part.data);
	}
	free(copy);
	return r;
}

static int parse_text(const char *body)
{
	return parse(TYPE, body, strlen(body));
}

static void test_sound_forms(void)
{
	OK(parse_text(FILE_PART("a.txt") "1\r\n2\r\n--q--\r\n") == 0);
	OK_STR(said, "file|a.txt|1\r\n2;");
	OK(parse_text(
		   "preamble\r\n--q\r\nContent-Disposition: form-data; name=\"k\"\r\n\r\nv\r\n" FILE_PART(
			   "b") "\r\n--q--") == 0);
	OK_STR(said, "k||v;file|b|;");
	OK(parse("multipart/form-data; boundary=\"q\"; x=y", "--q--", 5) == 0);
	OK_STR(said, "");
}

/* The boundary is a whole line: a line that only begins with it belongs to the content. */
static void test_content_like_a_boundary(void)
{
	OK(parse_text(FILE_PART("a") "1\r\n--qq\r\n2\r\n--q--\r\n") == 0);
	OK_STR(said, "file|a|1\r\n--qq\r\n2;");
	OK(parse_text(FILE_PART("a") "1\r\n--q-\r\n2\r\n--q\r\n\r\n3\r\n--q--") == 0);
	OK_STR(said, "file|a|1\r\n--q-\r\n2;||3;");
}

static void test_broken_forms(void)
{
	static const char whole[] = FILE_PART("a") "1\r\n--q--";
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		OK(parse(TYPE, whole, n) == -EINVAL);
	OK(parse(TYPE, whole, sizeof(whole) - 1) == 0);
	OK(parse(NULL, whole, sizeof(whole) - 1) == -EINVAL);
	OK(parse("multipart/form-data", whole, sizeof(whole) - 1) == -EINVAL);
	OK(parse("multipart/form-data; boundary=", whole, sizeof(whole) - 1) == -EINVAL);
	OK(parse("x; boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		   whole, sizeof(whole) - 1) == -EINVAL);
}

/* ---- kept files ------------------------------------------------------------------------ */

enum { MIB = 1024 * 1024, FIRST = 1, SECOND = 2 };

static char data[LIMIT_CHAT_FILES_BYTES + 1];

static unsigned count(struct chat_store *s, uint64_t owner)
{
	const struct chat_file *f = NULL;
	unsigned n = 0;
	while ((f = chat_store_next(s, owner, "s", f)))
		n++;
	return n;
}

static bool add(struct chat_store *s, uint64_t owner, size_t len)
{
	return chat_store_add(s, owner, "s", "name", data, len) != NULL;
}

static void test_a_token_evicts_its_own_files(void)
{
	struct chat_store s;
	chat_store_init(&s);
	OK(add(&s, FIRST, 8 * MIB) && add(&s, FIRST, 8 * MIB));
	for (int i = 0; i < 20; i++)
		if (!add(&s, SECOND, 8 * MIB))
			break;
	OK(count(&s, FIRST) == 2 && count(&s, SECOND) == 5);
	OK(s.bytes <= LIMIT_CHAT_FILES_BYTES);

	/* more than everything: refused, and nothing is lost for it */
	OK(!add(&s, SECOND, sizeof(data)) && count(&s, FIRST) == 2 && count(&s, SECOND) == 5);
	/* the other token gets its share of what the greedy one keeps */
	OK(add(&s, FIRST, 8 * MIB) && count(&s, FIRST) == 3 && count(&s, SECOND) == 4);
	chat_store_finish(&s);
	OK(s.bytes == 0 && hold_total() == 0);
}

static void test_empty_files_count(void)
{
	struct chat_store s;
	chat_store_init(&s);
	for (int i = 0; i < 3 * LIMIT_CHAT_FILES; i++)
		add(&s, FIRST, 0);
	OK(count(&s, FIRST) == LIMIT_CHAT_FILES);
	OK(hold_total() >= LIMIT_CHAT_FILES * sizeof(struct chat_file));
	chat_store_finish(&s);
	OK(hold_total() == 0);
}

/* As LibreChat's clients compute the names that they look for in the code. */
static void test_names_of_tools(void)
{
	static const struct {
		const char *given;
		bool bash;
		const char *name;
	} names[] = {
		{ "get-weather", false, "get_weather" },
		{ "a b.c!", false, "a_bc" },
		{ "a b.c!", true, "a_b_c" },
		{ "2nd", false, "_2nd" },
		{ "import", false, "import_tool" },
		{ "import", true, "import" },
		{ "done", true, "done_tool" },
		{ "\xc3\xbc", false, "" },
	};
	char name[CHAT_TOOL_NAME_MAX + 1], longest[200];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		chat_tool_name(names[i].given, names[i].bash, name);
		OK_STR(name, names[i].name);
	}
	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	chat_tool_name(longest, true, name);
	OK(strlen(name) <= CHAT_TOOL_NAME_MAX - 3);
}

int main(void)
{
	test_sound_forms();
	test_content_like_a_boundary();
	test_broken_forms();
	test_a_token_evicts_its_own_files();
	test_empty_files_count();
	test_names_of_tools();
	return tap_done();
}
