/*
 * Whether a cell ends with an expression. With the argument `-`: tells it of every text on standard
 * input, for tests/guest/test_last_expression.py, which compares it with what Python says; each
 * text comes with its length in a line before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/run/last_expression.h"
#include "tap.h"

/* What is taken for the closing expression; "" for none, NULL when unsure. */
static const char *closing(const char *code)
{
	size_t start = 0;
	switch (last_expression_find(code, strlen(code), &start)) {
	case CLOSING_EXPRESSION:
		return code + start;
	case CLOSING_STATEMENT:
		return "";
	default:
		return NULL;
	}
}

static void expressions(void)
{
	OK_STR(closing("x"), "x");
	OK_STR(closing("x = 1\nx + 1"), "x + 1");
	OK_STR(closing("x = 1\n\nx\n\n# the end\n   # really\n"), "x\n\n# the end\n   # really\n");
	OK_STR(closing("import pandas as pd\npd.DataFrame({\"a\": [1, 2, 3]})[\"a\"].sum()"),
		"pd.DataFrame({\"a\": [1, 2, 3]})[\"a\"].sum()");
	OK_STR(closing("x = [\n]\nf(\n    a=1,\n)\n"), "f(\n    a=1,\n)\n");
	OK_STR(closing("f(\n    a=1)"), "f(\n    a=1)");
	OK_STR(closing("a == b"), "a == b");
	OK_STR(closing("a <= b != c >= d"), "a <= b != c >= d");
	OK_STR(closing("'a = b'"), "'a = b'");
	OK_STR(closing("b'\\'=' # = ["), "b'\\'=' # = [");
	OK_STR(closing("[({x: [y]})]"), "[({x: [y]})]");
	OK_STR(closing("if x:\n  y\nz"), "z");
	OK_STR(closing("-1"), "-1");
	OK_STR(closing("[x for x in y if x == 1]"), "[x for x in y if x == 1]");
	OK_STR(closing("await f()"), "await f()");
	OK_STR(closing("not x"), "not x");
	OK_STR(closing("ä.ö"), "ä.ö");
	OK_STR(closing("x[1:2]"), "x[1:2]");
	OK_STR(closing("f(lambda a=1: a)"), "f(lambda a=1: a)");
	OK_STR(closing("print(f'{x = :>10} and {y}')"), "print(f'{x = :>10} and {y}')");
}

static void statements(void)
{
	OK_STR(closing("x = 1 + 1"), "");
	OK_STR(closing("x\ny = 1"), "");
	OK_STR(closing("x <<= 1"), "");
	OK_STR(closing("x >>= 1"), "");
	OK_STR(closing("x //= 1"), "");
	OK_STR(closing("x.y[z] = w == v"), "");
	OK_STR(closing("x: int = 1"), "");
	OK_STR(closing("for x in y:\n    x\n"), "");
	OK_STR(closing("if x:\n    y\nelse:\n    z = 'a'\n"), "");
	OK_STR(closing("def f(x=1, *, y: int = 2) -> int:\n    return {x: 'y'}[x]\n\n    # more\n"),
		"");
	OK_STR(closing("import os"), "");
	OK_STR(closing("(a, b) = c"), "");
}

static void unclear(void)
{
	OK(!closing(""));
	OK(!closing("\n  \n# nothing\n"));
	OK(!closing("import os; os"));
	OK(!closing("x;"));
	OK(!closing("[x\nfor x in y]")); /* these lines begin in brackets */
	OK(!closing("f(\nx = 1)"));
	OK(!closing("(\nx\n)"));
	OK(!closing("x = '''\ny = 1'''"));
	OK(!closing("f(\"\"\"\nx\"\"\")"));
	OK(!closing("x = \\\ny"));
	OK(!closing("x = 'a\\\nb'"));
	OK(!closing("x\ry"));
	OK(!closing("x\fy"));
	OK(!closing("\xef\xbb\xbfx"));
	OK(!closing("f'{{x'"));
	OK(!closing("print(f'{x[\"a\"]}')"));
	OK(!closing("print(rF'{x['a']}')"));
	OK(!closing("f'{x:{y}}'"));
	OK(!closing("f'\\'{x}'"));
	OK(!closing("f'{\nx}'"));
	OK(!closing("total = 3\nf'{\ntotal:*=#10x}'")); /* of 3.12 and later */
	OK(!closing("f'{\nx\nif y else z:#x}'"));
	OK(!closing("g(\nf'{x\n\nif x else y:#}')"));
	OK(!closing("x=1\nf\"{\nx: ='}'\" # \""));
	OK(!closing("f'{\nx:0=(}' # '"));
	OK(!closing("f'{x #}' = [\n}'  # '"));
	OK(!closing("x = 1  # }"));
	OK(!closing("(]"));
	OK(!closing("((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))"));
	OK(!closing("*a, b"));
	OK(!closing("*a, b = c"));
	OK(!closing("yield x"));
	OK(!closing("lambda x=1: x"));
	OK(!closing("x: int"));
	OK(!closing("(x\n"));
	OK(!closing("x)"));
	OK(!closing("x\n  y"));
	OK(!closing("match x:\n  case 1:\n    y"));
	OK(!closing("match"));
	OK(!closing("type X = int"));
	OK(!closing("@f\ndef g(): pass\n@"));
	OK(!closing("x := 1"));
	OK(!closing("<= 1"));
	OK(!closing("= 1"));
	OK(!closing("'x"));
	OK(!closing("'x\\"));
	OK(!closing("x = \\"));
	OK(last_expression_find("x\0y", 3, &(size_t){ 0 }) == CLOSING_UNSURE);
}

static int answer(void)
{
	char line[32];
	while (fgets(line, sizeof(line), stdin)) {
		size_t len = strtoul(line, NULL, 10), start = 0;
		char *text = malloc(len + 1);
		if (!text || fread(text, 1, len, stdin) != len)
			return 1;
		text[len] = '\0';
		int found = last_expression_find(text, len, &start);
		printf("%d %zu\n", found, start);
		free(text);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-") == 0)
		return answer();
	expressions();
	statements();
	unclear();
	return tap_done();
}
