/* The tools of a programmatic call: functions of Python or bash for LibreChat's tools. No I/O. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/run_files.h"
#include "api/schema/requests.h"
#include "base/text.h"
#include "dialects/librechat/chat_program.h"
#include "dialects/trainers/trainers.h"
#include "json/json_read.h"

/* A bash function calls a Python function of this prefix, so that it may be called `import`. */
static const char bash_prefix[] = "sh_";

/*
 * The bash program runs beside this one, which calls the tools for it: a call is a directory with
 * the name and the argument, and with a FIFO for the answer, whose first line is the exit status.
 */
static const char bash_launcher[] =
	"import json, os, subprocess, sys, tempfile, threading\n"
	"where = tempfile.mkdtemp()\n"
	"os.mkfifo(f'{where}/calls')\n"
	"def answer(place):\n"
	"    try:\n"
	"        with open(f'{place}/name') as f:\n"
	"            tool = globals()[f.read()]\n"
	"        with open(f'{place}/input') as f:\n"
	"            given = json.loads(f.read().strip() or '{}')\n"
	"        status, said = 0, json.dumps(tool(**given), ensure_ascii=False, separators=(',', ':'))\n"
	"    except BaseException as e:\n"
	"        status, said = 1, str(e)\n"
	"    with open(f'{place}/answer', 'w') as f:\n"
	"        f.write(f'{status}\\n{said}\\n')\n"
	"def serve():\n"
	"    with os.fdopen(os.open(f'{where}/calls', os.O_RDWR)) as calls:\n"
	"        for place in calls:\n"
	"            threading.Thread(target=answer, args=(place[:-1],), daemon=True).start()\n"
	"threading.Thread(target=serve, daemon=True).start()\n"
	"environ = {**os.environ, 'BASH_ENV': '/workspace/tools.sh', 'TOOL_CALLS': where}\n"
	"code = subprocess.call(['/bin/bash', 'main.sh', *sys.argv[1:]], env=environ)\n"
	"sys.exit(code if code >= 0 else 128 - code)\n";

static const char bash_caller[] =
	"__call_tool() {\n"
	"  local place status\n"
	"  place=$(mktemp -d \"$TOOL_CALLS/XXXXXXXX\") && mkfifo \"$place/answer\" || return 1\n"
	"  printf '%s' \"$1\" >\"$place/name\"\n"
	"  printf '%s' \"$2\" >\"$place/input\"\n"
	"  printf '%s\\n' \"$place\" >\"$TOOL_CALLS/calls\"\n"
	"  { read -r status; if [ \"$status\" = 0 ]; then cat; else cat >&2; fi; } <\"$place/answer\"\n"
	"  rm -rf \"$place\"\n"
	"  return \"$status\"\n"
	"}\n";

/* ---- definitions ------------------------------------------------------------------------ */

/*
 * The properties by name and description alone: the tool checks its arguments itself, and its
 * schema may have words that are not checked here.
 */
static json_t *loosen(const json_t *parameters)
{
	const json_t *properties = json_object_get(parameters, "properties");
	json_t *names = json_object(), *property;
	const char *name;

	json_object_foreach((json_t *)properties, name, property)
	{
		json_t *text = json_object_get(property, "description");
		json_t *loose = json_is_string(text) ? json_pack("{s:O}", "description", text)
						     : json_object();
		if (json_object_set_new(names, name, loose) < 0)
			break;
	}
	return json_pack(
		"{s:s,s:o,s:b}", "type", "object", "properties", names, "additionalProperties", 1);
}

static int add_tool(struct chat_tools *t, const json_t *tool, bool bash)
{
	const char *given = json_string_value(json_object_get(tool, "name"));
	json_t *text = json_object_get(tool, "description");
	char own[CHAT_TOOL_NAME_MAX + 1], name[CHAT_TOOL_NAME_MAX + sizeof(bash_prefix)];

	if (!given)
		return -EINVAL;
	chat_tool_name(given, bash, own);
	snprintf(name, sizeof(name), "%s%s", bash ? bash_prefix : "", own);
	if (json_object_get(t->names, name))
		return 0; /* the first one of two whose names become the same */
	json_t *d = json_pack("{s:s,s:o,s:b,s:i}", "name", name, "parameters",
		loosen(json_object_get(tool, "parameters")), "async", !bash, "timeout_s",
		LIMIT_CHAT_TOOL_SECONDS);
	if (d && json_is_string(text))
		json_object_set(d, "description", text);
	if (json_array_append_new(t->definitions, d) < 0 ||
		json_object_set_new(t->names, name, json_string(given)) < 0)
		return -ENOMEM;
	return 0;
}

int chat_tools_make(const json_t *tools, bool bash, struct chat_tools *ret, struct error *e)
{
	struct chat_tools t = { json_array(), json_object() };
	int r = t.definitions && t.names ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < json_array_size(tools); i++)
		r = add_tool(&t, json_array_get(tools, i), bash);
	if (r < 0) {
		chat_tools_finish(&t);
		return error_set(e, r, r == -EINVAL ? "every tool needs a name" : "out of memory");
	}
	*ret = t;
	return 0;
}

void chat_tools_finish(struct chat_tools *t)
{
	json_decref(t->definitions);
	json_decref(t->names);
	*t = (struct chat_tools){ 0 };
}

/* ---- programs ------------------------------------------------------------------------------ */

/* The examples that models are given use asyncio and json without importing them. */
static int wrap_python(struct field_text *code)
{
	static const char head[] = "import asyncio, json\n";
	struct buffer b = BUFFER_INIT(0);
	if (memmem(code->data, code->len, "__future__", strlen("__future__")))
		return 0; /* such imports are allowed at the beginning only */
	if (buffer_append(&b, head, sizeof(head) - 1) < 0 ||
		buffer_append(&b, code->data, code->len + 1) < 0) {
		buffer_finish(&b);
		return -ENOMEM;
	}
	free(code->data);
	code->len += sizeof(head) - 1;
	code->data = buffer_take(&b, NULL);
	return 0;
}

static int add_functions(const struct chat_tools *t, struct field_files *files)
{
	struct buffer b = BUFFER_INIT(0);
	struct field_text text;
	const char *name;
	json_t *given;

	int r = buffer_append_str(&b, bash_caller);
	json_object_foreach(t->names, name, given)
	{
		if (r == 0)
			r = buffer_printf(&b, "%s() { __call_tool %s \"${1:-}\"; }\n",
				name + strlen(bash_prefix), name);
	}

	size_t len = b.len;
	if (r == 0)
		r = buffer_append_char(&b, '\0');
	if (r < 0) {
		buffer_finish(&b);
		return r;
	}
	text = (struct field_text){ buffer_take(&b, NULL), len };
	r = run_files_add(files, "tools.sh", &text);
	free(text.data);
	return r;
}

int chat_tools_prepare(const struct chat_tools *t, struct run_request *run)
{
	if (run->language == SCRIPT_PYTHON)
		return wrap_python(&run->execute.code);
	int r = add_functions(t, &run->files);
	if (r == 0)
		r = run_files_add(&run->files, "main.sh", &run->execute.code);
	free(run->execute.code.data);
	run->execute.code = (struct field_text){ 0 };
	if (r == 0)
		r = script_set_text(&run->execute.code, bash_launcher, sizeof(bash_launcher) - 1);
	return r;
}
