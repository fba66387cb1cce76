/* Names of tools as identifiers of Python and bash. No I/O. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "dialects/librechat/chat_program.h"

static const char *const python_words[] = { "False", "None", "True", "and", "as", "assert", "async",
	"await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally",
	"for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
	"pass", "raise", "return", "try", "while", "with", "yield", NULL };
static const char *const bash_words[] = { "if", "then", "else", "elif", "fi", "case", "esac", "for",
	"while", "until", "do", "done", "in", "function", "select", "time", "coproc", "declare",
	"typeset", "local", "readonly", "export", "unset", NULL };

static bool is_word(const char *const *words, const char *name)
{
	for (; *words; words++)
		if (text_eq(*words, name))
			return true;
	return false;
}

void chat_tool_name(const char *given, bool bash, char ret[CHAT_TOOL_NAME_MAX + 1])
{
	size_t n = 0;
	/* the last bytes are for a prefix and a suffix */
	for (; *given && n < CHAT_TOOL_NAME_MAX - 10; given++) {
		unsigned char c = (unsigned char)*given;
		bool separates = c == '-' || isspace(c) || (bash && c == '.');
		if (!separates && !isalnum(c) && c != '_')
			continue;
		if (!n && isdigit(c))
			ret[n++] = '_';
		ret[n++] = separates ? '_' : (char)c;
	}

	ret[n] = '\0';
	if (is_word(bash ? bash_words : python_words, ret))
		memcpy(ret + n, "_tool", sizeof("_tool"));
}
