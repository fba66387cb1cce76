#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "options/options.h"

enum { HELP_COLUMN = 32, HELP_WIDTH = 100 };

/*
 * Prints words from `column` on, breaking lines before HELP_WIDTH. Returns the column it ended in.
 */
static int print_wrapped(FILE *out, const char *text, int column)
{
	while (*text) {
		size_t len = strcspn(text, " ");
		if (column > HELP_COLUMN && column + 1 + (int)len > HELP_WIDTH) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, len, out);
		column += (int)len;
		text += len;
		text += strspn(text, " ");
	}

	return column;
}

static int print_flag(const struct option_row *row, FILE *out)
{
	int column = row->letter ? fprintf(out, "  -%c, --%s", row->letter, row->name)
				 : fprintf(out, "      --%s", row->name);
	if (row->type != OPTION_FLAG)
		column += fprintf(out, " %s", row->value);
	return column;
}

static void print_row(const struct option_row *row, FILE *out)
{
	char text[96];
	int column = print_flag(row, out);

	if (column > HELP_COLUMN - 2) {
		fputc('\n', out);
		column = 0;
	}

	fprintf(out, "%*s", HELP_COLUMN - column, "");
	column = print_wrapped(out, row->help, HELP_COLUMN);
	if (row->fallback && row->type != OPTION_FLAG) {
		const struct option_row *most = row[1].name && row[1].is_maximum ? &row[1] : NULL;
		snprintf(text, sizeof(text), "(default %s%s%s%s%s)", row->fallback,
			most ? "; --" : "", most ? most->name : "", most ? " " : "",
			most ? most->fallback : "");
		print_wrapped(out, text, column);
	}

	fputc('\n', out);
}

void options_print(const struct option_row *rows, FILE *out)
{
	for (const struct option_row *row = rows; row->name; row++) {
		if (row->group)
			fprintf(out, "%s%c%s:\n", row == rows ? "" : "\n",
				toupper((unsigned char)row->group[0]), row->group + 1);
		if (!row->is_maximum) /* told with the row before */
			print_row(row, out);
	}
}
