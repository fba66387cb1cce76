#include "api/program_imports.h"

#include <stdlib.h>
#include <string.h>

#include "api/schema/requests.h"
#include "base/limits.h"
#include "base/text.h"

/*
 * Modules of CPython's 3.11 to 3.13 standard library, sorted. Not tkinter and turtle, which need a
 * display.
 */
static const char *const standard[] = { "__future__", "__main__", "_thread", "abc", "aifc",
	"argparse", "array", "ast", "asyncio", "atexit", "base64", "bdb", "binascii", "bisect",
	"builtins", "bz2", "cProfile", "calendar", "chunk", "cmath", "cmd", "code", "codecs",
	"codeop", "collections", "colorsys", "compileall", "concurrent", "configparser",
	"contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes", "dataclasses", "datetime",
	"dbm", "decimal", "difflib", "dis", "doctest", "email", "encodings", "enum", "errno",
	"faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "ftplib",
	"functools", "gc", "getopt", "getpass", "gettext", "glob", "graphlib", "grp", "gzip",
	"hashlib", "heapq", "hmac", "html", "http", "imaplib", "importlib", "inspect", "io",
	"ipaddress", "itertools", "json", "keyword", "linecache", "locale", "logging", "lzma",
	"mailbox", "marshal", "math", "mimetypes", "mmap", "modulefinder", "multiprocessing",
	"netrc", "ntpath", "numbers", "opcode", "operator", "optparse", "os", "pathlib", "pdb",
	"pickle", "pickletools", "pkgutil", "platform", "plistlib", "poplib", "posix", "posixpath",
	"pprint", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr", "pydoc", "queue",
	"quopri", "random", "re", "reprlib", "resource", "runpy", "sched", "secrets", "select",
	"selectors", "shelve", "shlex", "shutil", "signal", "site", "smtplib", "socket",
	"socketserver", "sqlite3", "ssl", "stat", "statistics", "string", "stringprep", "struct",
	"subprocess", "symtable", "sys", "sysconfig", "tarfile", "tempfile", "termios", "textwrap",
	"this", "threading", "time", "timeit", "token", "tokenize", "tomllib", "trace", "traceback",
	"tracemalloc", "tty", "types", "typing", "unicodedata", "unittest", "urllib", "uuid",
	"venv", "warnings", "wave", "weakref", "wsgiref", "xml", "xmlrpc", "zipapp", "zipfile",
	"zipimport", "zlib", "zoneinfo" };

/* Of the default template, and what is written without an import of theirs. */
static const char *const packages[] = { "numpy", "pandas", "matplotlib", "pylab", "PIL" };

struct text {
	const char *at, *end;
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

static int compare_word(const char *word, size_t len, const char *with)
{
	int r = strncmp(word, with, len);
	return r ? r : with[len] ? -1 : 0;
}

static bool is_standard(const char *word, size_t len)
{
	size_t low = 0, high = ARRAY_LEN(standard);
	while (low < high) {
		size_t middle = (low + high) / 2;
		int r = compare_word(word, len, standard[middle]);
		if (r == 0)
			return true;
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

static bool is_own(const char *word, size_t len, const char *const *own)
{
	for (; own && *own; own++)
		if (compare_word(word, len, *own) == 0)
			return true;
	return false;
}

static bool is_package(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(packages); i++)
		if (compare_word(word, len, packages[i]) == 0)
			return true;
	return false;
}

static size_t word_at(const struct text *t)
{
	size_t len = 0;
	while (t->at + len < t->end && is_word(t->at[len]))
		len++;
	return len;
}

/* Blanks, and ends of lines behind a backslash. */
static void skip_blanks(struct text *t)
{
	while (t->at < t->end) {
		bool joined = *t->at == '\\' && t->end - t->at > 1 && t->at[1] == '\n';
		if (!joined && *t->at != ' ' && *t->at != '\t')
			return;
		t->at += joined ? 2 : 1;
	}
}

/* The name of a module, dotted: is its first part one that the template without packages has? */
static bool take_module(struct text *t, const char *const *own)
{
	skip_blanks(t);
	if (t->at < t->end && *t->at == '.') /* relative: the program's own */
		return true;

	size_t len = word_at(t);
	bool known = is_standard(t->at, len) || is_own(t->at, len, own);
	while (t->at < t->end && (is_word(*t->at) || *t->at == '.'))
		t->at++;
	return known;
}

/* What follows `import`: names with commas between them, each perhaps with `as` another name. */
static bool take_modules(struct text *t, const char *const *own)
{
	for (;;) {
		if (!take_module(t, own))
			return false;
		while (t->at < t->end && *t->at != ',' && *t->at != '\n' && *t->at != ';' &&
			*t->at != '#') {
			skip_blanks(t);
			size_t len = word_at(t);
			if (is_package(t->at, len))
				return false;
			t->at += len ? len : t->at < t->end && *t->at != ',' && *t->at != '\n';
		}
		if (t->at == t->end || *t->at != ',')
			return true;
		t->at++;
	}
}

/* Can a statement begin here? In strings, too: exec("import x"). */
static bool begins_statement(const char *text, const char *at)
{
	while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return at == text || strchr("\n\r;:\"'", at[-1]);
}

bool imports_are_standard(const char *text, size_t len, const char *const *own)
{
	struct text t = { text, text + len };
	while (t.at < t.end) {
		size_t word = word_at(&t);
		const char *at = t.at;
		if (!word) {
			t.at++;
			continue;
		}

		t.at += word;
		if (is_package(at, word))
			return false;
		bool import = compare_word(at, word, "import") == 0;
		if ((!import && compare_word(at, word, "from") != 0) || !begins_statement(text, at))
			continue;
		if (import ? !take_modules(&t, own) : !take_module(&t, own))
			return false;
	}
	return true;
}

/* ---- a run ---------------------------------------------------------------------- */

static bool is_python(const struct field_file *file)
{
	size_t len = strlen(file->path);
	return len > 3 && text_eq(file->path + len - 3, ".py");
}

/* The name by which a file is imported: its first folder, or itself without ".py". */
static char *module_name(const char *path)
{
	size_t len = strcspn(path, "/.");
	return strndup(path, len);
}

static bool texts_are_short(const struct run_request *run)
{
	size_t len = run->execute.code.len;
	for (size_t i = 0; i < run->files.n && len <= LIMIT_GUESSED_BYTES; i++)
		if (is_python(&run->files.file[i]))
			len += run->files.file[i].content.len;
	return len <= LIMIT_GUESSED_BYTES;
}

static bool texts_are_standard(const struct run_request *run, const char *const *own)
{
	const struct field_text *code = &run->execute.code;
	if (!code->data || !imports_are_standard(code->data, code->len, own))
		return false;
	for (size_t i = 0; i < run->files.n; i++) {
		const struct field_file *file = &run->files.file[i];
		if (is_python(file) &&
			!imports_are_standard(file->content.data, file->content.len, own))
			return false;
	}
	return true;
}

bool run_imports_are_standard(const struct run_request *run)
{
	size_t n = 0;
	bool yes = false;
	if (!texts_are_short(run))
		return false;

	char **own = calloc(run->files.n + 1, sizeof(*own));
	if (!own)
		return false;
	for (size_t i = 0; i < run->files.n; i++) {
		const struct field_file *file = &run->files.file[i];
		if (is_python(file) && (own[n] = module_name(file->path)))
			n++;
	}

	yes = texts_are_standard(run, (const char *const *)own);
	for (size_t i = 0; i < n; i++)
		free(own[i]);
	free(own);
	return yes;
}
