#include <string.h>

#include "guest/run/cell.h"
#include "support_sources.h"

/* Runs the embedded sources in one namespace, as the module _glovebox. */
static PyObject *load_module(void)
{
	PyObject *module = PyImport_AddModule("_glovebox"); /* borrowed; sys.modules keeps it */
	if (!module)
		return NULL;
	PyObject *dict = PyModule_GetDict(module);
	if (PyDict_SetItemString(dict, "__builtins__", PyEval_GetBuiltins()) < 0)
		return NULL;
	for (const struct support_source *s = support_sources; s->text; s++) {
		PyObject *code = Py_CompileString(s->text, "<glovebox>", Py_file_input);
		PyObject *r = code ? PyEval_EvalCode(code, dict, dict) : NULL;
		Py_XDECREF(code);
		if (!r)
			return NULL;
		Py_DECREF(r);
	}

	return module;
}

int support_load(struct support *ret)
{
	PyObject *module = load_module();
	const struct {
		const char *name;
		PyObject **to;

	} names[] = { { "register_source", &ret->register_source },
		{ "format_error", &ret->format_error }, { "bundle", &ret->bundle },
		{ "flush_figures", &ret->flush_figures },
		{ "run_async_cell", &ret->run_async_cell }, { "is_complete", &ret->is_complete },
		{ "introspect", &ret->introspect }, { "encode_answer", &ret->encode_answer },
		{ "reseed", &ret->reseed }, { "write_program", &ret->write_program },
		{ "end_program", &ret->end_program }, { "nothing_to_end", &ret->nothing_to_end },
		{ "forget_source", &ret->forget_source }, { "preload", &ret->preload },
		{ "define_tools", &ret->define_tools }, { "set_variables", &ret->set_variables },
		{ "add_typed", &ret->add_typed }, { "warm_up", &ret->warm_up },
		{ "install", &ret->install }, { "find_commands", &ret->find_commands },
		{ "translate_cell", &ret->translate_cell }, { "run_command", &ret->run_command },
		{ "use_display", &ret->use_display }, { "paint_screen", &ret->paint_screen },
		{ "advise", &ret->advise }, { "profile_words", &ret->profile_words },
		{ "set_network", &ret->set_network },
		{ "loop_descriptors", &ret->loop_descriptors }, { "part_ways", &ret->part_ways },
		{ "threads_text", &ret->threads_text }, { "child_text", &ret->child_text },
		{ "reap_children", &ret->reap_children } };
	if (!module)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!(*names[i].to = PyObject_GetAttrString(module, names[i].name)))
			return -1;
	return 0;
}
