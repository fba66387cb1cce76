/* What a program imports, guessed from its text. */
#include "api/program_imports.h"
#include "api/schema/requests.h"
#include "base/limits.h"
#include "tap.h"

#include <stdlib.h>

static const char *const own[] = { "helper", "tools", NULL };

static bool standard(const char *text)
{
	/* a block of its own, without a NUL: a read behind the text is one behind the block */
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	bool yes = imports_are_standard(copy, len, own);
	free(copy);
	return yes;
}

static void test_standard(void)
{
	OK(standard(""));
	OK(standard("print(6*7)"));
	OK(standard("import json"));
	OK(standard("import os.path as p, sys , re as r # and scipy\nimport csv;import math"));
	OK(standard("from collections import deque\nfrom . import anything\nfrom .x import y"));
	OK(standard("try:\n\timport tomllib\nexcept ImportError: import json\n"));
	OK(standard("import json, \\\n  math"));
	OK(standard("import helper, tools.deep\nfrom helper import x"));
	OK(standard("raise ValueError from error\n"));
	OK(standard("def f():\n  yield from scipy_like()\nimported = reimport = 1\n"));
	OK(standard("print('goods import duties')"));
	OK(standard("from __future__ import annotations\nimport xml.etree.ElementTree as ET"));
	OK(standard("numpyish = pandas_like = 1"));
}

static void test_other(void)
{
	OK(!standard("import numpy"));
	OK(!standard("import numpy as np"));
	OK(!standard("import json, numpy"));
	OK(!standard("import json as j, scipy as s"));
	OK(!standard("import json, \\\n  scipy"));
	OK(!standard("from scipy import stats"));
	OK(!standard("x = 1; import sklearn"));
	OK(!standard("if x: import sklearn"));
	OK(!standard("\tfrom requests.sessions import Session"));
	OK(!standard("\r\nimport scipy\r\n"));
	OK(!standard("__import__('pandas')"));
	OK(!standard("m = importlib.import_module(\"PIL.Image\")"));
	OK(!standard("exec('import scipy')"));
	OK(!standard("%matplotlib inline"));
	OK(!standard("%pylab"));
	OK(!standard("import tkinter"));
	OK(!standard("import turtle as t"));
	OK(!standard("import"));
	OK(!standard("import "));
	OK(!standard("from"));
	OK(!standard("import ("));
	OK(!standard("import json,"));
	OK(!standard("import jso"));
	OK(!standard("import jsonx"));
	OK(!standard("import \xc3\xa4"));
}

/* Every beginning of a text has an answer. */
static void test_beginnings(void)
{
	static const char text[] =
		"import os as o, \\\n json\nfrom . import x # c\nif a: import re;";
	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len + 1);
		memcpy(copy, text, len);
		copy[len] = '\0';
		standard(copy);
		free(copy);
	}
	OK(standard(text));
}

static bool run_standard(const char *code, const char *path, const char *content)
{
	struct field_file file = { .path = (char *)path,
		.content = { (char *)content, content ? strlen(content) : 0 } };
	struct run_request run = { .execute.code = { (char *)code, strlen(code) },
		.files = { &file, path ? 1 : 0 } };
	return run_imports_are_standard(&run);
}

static void test_runs(void)
{
	OK(run_standard("import json", NULL, NULL));
	OK(!run_standard("import mine", NULL, NULL));
	OK(run_standard("import mine", "mine.py", "import math"));
	OK(!run_standard("import mine", "mine.py", "import pandas"));
	OK(!run_standard("import mine", "mine.txt", ""));
	OK(run_standard("import mine.deep", "mine/deep.py", ""));
	OK(!run_standard("import deep", "mine/deep.py", ""));
	OK(run_standard("open('a.csv')", "a.csv", "numpy"));

	char *large = malloc(LIMIT_GUESSED_BYTES + 1);
	memset(large, ' ', LIMIT_GUESSED_BYTES);
	large[LIMIT_GUESSED_BYTES] = '\0';
	OK(run_standard(large, NULL, NULL));
	OK(run_standard("", "a.py", large));
	OK(!run_standard(" ", "a.py", large));
	OK(run_standard(" ", "a.csv", large));
	free(large);
	OK(!run_imports_are_standard(&(struct run_request){ 0 }));
}

int main(void)
{
	test_standard();
	test_other();
	test_beginnings();
	test_runs();
	return tap_done();
}
