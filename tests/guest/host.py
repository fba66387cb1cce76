"""Stands in for the C part of a guest: runs cells with the support code as the guest does.

Reads {"cells": […], "stdin": "…", "preload": […], "warm": true} as JSON from fd 3, writes a list of outcomes as JSON to fd 4. This file is
compiled under the support code's own name, because the C part has no frames either.
"""

import ast
import builtins
import io
import json
import os
import sys
import types
from pathlib import Path


def load(folder):
    """The support code as the module _glovebox."""
    module = types.ModuleType('_glovebox')
    for path in sorted(Path(folder).glob('*.py')):
        exec(compile(path.read_text(), '<glovebox>', 'exec'), vars(module))
    return module


def main(folder):
    gb = sys.modules['_glovebox'] = load(folder)
    request = json.loads(os.fdopen(3).read())
    main_module = types.ModuleType('__main__')
    main_module.__builtins__ = builtins
    sys.modules['__main__'] = main_module
    gb.install()
    report = {'preload': gb.preload(request.get('preload', []))}
    if request.get('warm'):
        report['warm'] = gb.warm_up()
        report['modules'] = sorted(sys.modules)
    if 'seed' in request:
        gb.reseed(request['seed'])
    displays = []
    gb._emit = displays.append
    outcomes = []
    for n, source in enumerate(request['cells'], 1):
        del displays[:]
        sys.stdin = io.StringIO(request.get('stdin', ''))
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        outcome = run_cell(gb, f'<cell {n}>', source, vars(main_module))
        outcome.update(stdout=sys.stdout.getvalue(), stderr=sys.stderr.getvalue(), displays=list(displays))
        outcomes.append(outcome)
    report['cells'] = outcomes
    with os.fdopen(4, 'w') as f:
        json.dump(report, f)


def run_cell(gb, name, source, namespace):
    outcome = {'result': None, 'error': None}
    gb.register_source(name, source)
    try:
        value = evaluate(gb, name, source, namespace)
        if value is not None:
            outcome['result'] = gb.bundle(value)
    except BaseException as e:
        outcome['error'] = gb.format_error(e, name)
    helpers = sys.modules.get('matplotlib._pylab_helpers')
    if helpers is not None and helpers.Gcf.figs:
        gb.flush_figures()
    return outcome


def evaluate(gb, name, source, namespace):
    tree = compile(source, name, 'exec', ast.PyCF_ONLY_AST)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    body = compile(tree, name, 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if last is not None:
        last = compile(last, name, 'eval', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if any(code is not None and code.co_flags & 0x80 for code in (body, last)):  # a coroutine
        return gb.run_async_cell(body, last, namespace)
    eval(body, namespace)
    return None if last is None else eval(last, namespace)
