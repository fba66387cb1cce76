"""Executor profiles: what each allows and refuses, in whose words, and that ordinary Python stays Python under them."""

import json
import subprocess
import time

import gb
import pytest
from snippets import REFUSED_BY_RESTRICTED, SNIPPETS

AUTHORIZED = 'Authorized imports are: ['


@pytest.fixture(scope='module')
def printed_by_python():
    """What /usr/bin/python3 prints for each snippet: one process runs them all, each in a namespace of its own."""
    program = (
        'import contextlib, io, json, sys\n'
        'out = {}\n'
        'for name, code in json.load(sys.stdin).items():\n'
        '    f = io.StringIO()\n'
        '    with contextlib.redirect_stdout(f):\n'
        '        exec(code, {"__name__": "__main__"})\n'
        '    out[name] = f.getvalue()\n'
        'print(json.dumps(out))\n'
    )
    done = subprocess.run([gb.PYTHON, '-c', program], input=json.dumps(SNIPPETS), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# ---- Python stays Python -----------------------------------------------------------------


def test_there_are_enough_snippets():
    assert len(SNIPPETS) >= 65 and len(SNIPPETS) - len(REFUSED_BY_RESTRICTED) >= 65


@pytest.mark.parametrize('name', SNIPPETS)
def test_smolagents_runs_python(api, printed_by_python, name):
    seen = api.run(SNIPPETS[name], profile='smolagents').ok()
    assert seen.stdout == printed_by_python[name]


@pytest.mark.parametrize('name', SNIPPETS)
def test_restricted_runs_python(api, printed_by_python, name):
    seen = api.run(SNIPPETS[name], profile='restricted')
    if name in REFUSED_BY_RESTRICTED:
        assert seen.status in ('refused', 'error') and seen.stdout == '' and seen.error['code'].startswith('policy_')
    else:
        assert seen.ok().stdout == printed_by_python[name]


# ---- smolagents --------------------------------------------------------------------------


@pytest.mark.parametrize(
    'code, message',
    [
        ('import os', 'Import of os is not allowed. ' + AUTHORIZED),
        ('from os import path', 'Import from os is not allowed. ' + AUTHORIZED),
        ('().__class__', 'Forbidden access to dunder attribute: __class__'),
        ('[].__len__()', 'Forbidden call to dunder function: __len__'),
        ('eval("1")', "Forbidden function evaluation: 'eval' is not among the explicitly allowed tools or"),
        ('open("x")', "Forbidden function evaluation: 'open' is not among the explicitly allowed tools or"),
        ('print = 3', "Cannot assign to name 'print': doing this would erase the existing tool!"),
        ('match ():\n    case object(__class__=c): pass', 'Forbidden access to dunder attribute: __class__'),
        ('import numpy.linalg', 'Import of numpy.linalg is not allowed. ' + AUTHORIZED),
    ],
)
def test_smolagents_refuses_before_anything_runs(api, code, message):
    seen = api.run('print("ran")\n' + code, profile='smolagents', additional_imports=['numpy'])
    assert seen.status == 'refused' and seen.stdout == '' and seen.exit_code == 1
    assert seen.error['type'] == 'InterpreterError' and f'due to: InterpreterError: {message}' in seen.error['message']
    assert seen.error['message'].startswith("Code execution failed at line '")
    assert seen.error['line'] == 2 or 'match' in code and seen.error['line'] == 3
    assert seen.error['code'].startswith('policy_')


@pytest.mark.parametrize(
    'code, message',
    [
        ('import random\nrandom._os', 'Forbidden access to module: os'),
        ('import queue\nqueue.threading', 'Forbidden access to module: threading'),
        ('getattr((), "__cla" + "ss__")', 'Forbidden access to dunder attribute: __class__'),
        ('nothing_like_it', 'The variable `nothing_like_it` is not defined.'),
        ('nothing_like_it()', "Forbidden function evaluation: 'nothing_like_it' is not among the explicitly allowed tools"),
        ('i = 0\nwhile True: i += 1', 'Maximum number of 1000000 iterations in While loop exceeded'),
        ('s = 0\nfor i in range(10**8): s += i', 'Reached the max number of operations of 10000000. Maybe there is an'),
        ('assert 1 == 2', 'Assertion failed: 1 == 2'),
    ],
)
def test_smolagents_stops_what_it_meets(api, code, message):
    seen = api.run('print("ran")\n' + code, profile='smolagents')
    assert seen.status == 'error' and seen.stdout == 'ran\n'
    assert seen.error['message'].startswith("Code execution failed at line '") and f'Error: {message}' in seen.error['message']


@pytest.mark.parametrize(
    'code, statement, cause',
    [
        ('a = 1\ncounts = [1]\ncounts += 1\na += 1', 'counts += 1', 'InterpreterError: Cannot add non-list value 1 to a list.'),
        ('x = 1; y = 1 / 0; z = 2', 'y = 1 / 0', 'ZeroDivisionError: division by zero'),
        ('def f():\n    raise ValueError("no")\n\nf()', 'f()', 'ValueError: no'),
        ('x = {}\nx["key"]', 'x["key"]', "InterpreterError: Could not index {} with 'key': KeyError: 'key'"),
        ('c = {"Bhutan": 1}\nc["Butan"]', 'c["Butan"]', "InterpreterError: Could not index {'Bhutan': 1} with 'Butan': KeyError: 'Butan'. "
         "Maybe you meant one of these indexes instead: ['Bhutan']"),
        ('x = "a"\nx.foo(3)', 'x.foo(3)', 'InterpreterError: Object a has no attribute foo'),
        ('x = "a"\nx.foo', 'x.foo', "AttributeError: 'str' object has no attribute 'foo'"),
        ('raise', 'raise', 'InterpreterError: Re-raise is not supported without an active exception'),
        ('x = [1]\nx[-4]', 'x[-4]', "InterpreterError: Could not index [1] with '-4': IndexError: list index out of range"),
        ('def f(v): return v[0]\nf(7)', 'f(7)', "InterpreterError: Could not index 7 with '0': TypeError: 'int' object is not subscriptable"),
        ('del x', 'del x', "InterpreterError: Cannot delete name 'x': name is not defined"),
        ('x = {}\ndel x[1]', 'del x[1]', 'InterpreterError: Cannot delete index/key: 1'),
        ('a, b = 1, 2, 3', 'a, b = 1, 2, 3', 'InterpreterError: Cannot unpack tuple of wrong size'),
        ('a, b = 5', 'a, b = 5', 'InterpreterError: Cannot unpack non-tuple value'),
        ('def f(**k): pass\nf(**[1])', 'f(**[1])', 'InterpreterError: Cannot unpack non-dict value in **kwargs: list'),
        ('b = {}.__class__.__base__.__subclasses__()', 'b = {}.__class__.__base__.__subclasses__()',
         'InterpreterError: Forbidden access to dunder attribute: __base__'),
        ('e = 1\ne.__traceback__.tb_frame.f_globals', 'e.__traceback__.tb_frame.f_globals',
         'InterpreterError: Forbidden access to dunder attribute: __traceback__'),
    ],
)  # fmt: skip
def test_smolagents_says_which_statement_failed_and_why(api, code, statement, cause):
    message = api.run(code, profile='smolagents').error['message']
    assert message.startswith(f"Code execution failed at line '{statement}' due to: {cause}")


def test_smolagents_points_at_syntax(api):
    error = api.run('x = 1\na = ;', profile='smolagents').error
    assert error['message'].startswith('Code parsing failed on line 2 due to: SyntaxError: invalid syntax')
    assert error['message'].endswith('\na = ;\n     ^') and error['line'] == 2
    caught = 'try:\n    {}["k"]\nexcept KeyError as e:\n    print(type(e), e)'  # in the code itself errors are Python's own
    assert api.run(caught, profile='smolagents').ok().stdout == "<class 'KeyError'> 'k'\n"


def test_words_do_not_trust_what_they_show(api):
    """Texts of errors are made by code of ours that may do what cells may not; a cell's own __str__ still may not."""
    hostile = 'def __str__(self):\n        pd.read_csv("/etc/passwd"); print("ESCAPED"); return "x"\n'
    for code in (f'class E(Exception):\n    {hostile}raise E()', f'class V:\n    {hostile}v = V()\nv[0]'):
        seen = api.run('import pandas as pd\n' + code, profile='smolagents', additional_imports=['pandas'])
        assert seen.status == 'error' and 'ESCAPED' not in seen.stdout


def test_names_of_tools_and_of_other_builtins(api):
    assert api.run('id = 5\nformat = "x"\n(id, format)', profile='smolagents').ok().text == "(5, 'x')"
    for name in ('sum', 'final_answer', 'log'):
        assert f"Cannot assign to name '{name}'" in api.run(f'{name} = 1', profile='smolagents').error['message']


def test_operations_are_counted_alike_every_time(api):
    code = 's = 0\nn = 0\ntry:\n    while True:\n        n += 1\n        for i in range(n):\n            s += i * 2\nexcept ValueError:\n    pass\nprint(n, s)'
    assert len({api.run(code, profile='smolagents').ok().stdout for _ in range(3)}) == 1


def test_smolagents_gives_the_value_of_the_last_statement(api):
    for code, value in (
        ('x = 5', '5'),
        ('a, b = 1, 2', '(1, 2)'),
        ('x = 1\nx += 4', '5'),
        ('d = {}\nd["k"] = 7', '7'),
        ('if True:\n    y = 8\nelse:\n    9', '8'),
        ('for i in range(4):\n    i * 2', '6'),
        ('for i in range(4):\n    x = i\n    print(i)', '3'),
        ('for i in range(4):\n    if i == 2:\n        i * 10', '20'),
        ('x = [0]\nx[0] += 3', '3'),
        ('class A:\n    n = 1\nA.n += 1', '2'),
        ('x: int = 4', '4'),
    ):
        assert api.run(code, profile='smolagents').ok().text == value
    for code in ('x = None', 'i = 0\nwhile i < 3:\n    i += 1', 'x: int', 'try:\n    1\nfinally:\n    2'):
        assert api.run(code, profile='smolagents').ok().result is None


def test_smolagents_cuts_what_is_printed(api):
    seen = api.run('for i in range(100000): print(i)', profile='smolagents').ok()
    mark = '\n..._This content has been truncated to stay below 50000 characters_...\n'
    head, tail = seen.stdout.split(mark)
    assert (len(head), len(tail)) == (25000, 25000) and head.startswith('0\n1\n') and tail.endswith('\n99999\n')


def test_variables_stay_and_imports_are_copies(api):
    session = api.session(profile='smolagents')
    session.execute('import math\nmath.pi = 3\nx = 1').ok()
    assert session.execute('import math as again\nmath.pi, again.pi, x').ok().text == '(3, 3, 1)'


# ---- restricted --------------------------------------------------------------------------


@pytest.mark.parametrize(
    'code, message',
    [
        ('_x = 1', 'Line 1: "_x" is an invalid variable name because it starts with "_"'),
        ('import _a.b as c', 'Line 1: "_a.b" is an invalid variable name because it starts with "_"'),
        ('a = 1\na._b', 'Line 2: "_b" is an invalid attribute name because it starts with "_".'),
        ('(x for x in []).gi_frame', 'Line 1: "gi_frame" is a restricted name, that is forbidden to access in RestrictedPython.'),
        ('from math import *', 'Line 1: "*" imports are not allowed.'),
        ('exec("1")', 'Line 1: Exec calls are not allowed.'),
        ('eval("1")', 'Line 1: Eval calls are not allowed.'),
        ('a = [1]\na[0] += 1', 'Line 2: Augmented assignment of object items and slices is not allowed.'),
        ('a = 1\na.b += 1', 'Line 2: Augmented assignment of attributes is not allowed.'),
        ('class A(metaclass=type): pass', 'Line 1: The keyword argument "metaclass" is not allowed.'),
        ('async def f(): pass', 'Line 1: AsyncFunctionDef statements are not allowed.'),
        ('try:\n    pass\nexcept* ValueError:\n    pass', 'Line 1: TryStar statements are not allowed.'),
        ('def f(_getattr_, /): pass', 'Line 1: "_getattr_" is an invalid variable name because it starts with "_"'),
        ('print = 1', 'Line 1: "print" is a reserved name.'),
        ('def f(a,\n  _b): pass', 'Line 1: "_b" is an invalid variable name because it starts with "_"'),
        ('asdf|', "Line 1: SyntaxError: invalid syntax at statement: 'asdf|'"),
        ('x = 1\nx.a._b += 1', 'Line 2: "_b" is an invalid attribute name because it starts with "_".\nLine 2: Augmented assignment of'),
        ('import os\nasync def f():\n    await _x', 'Line 2: AsyncFunctionDef statements are not allowed.'),
        ('x.gi_frame.f_back', 'Line 1: "f_back" is a restricted name, that is forbidden to access in RestrictedPython.\nLine 1: "gi_frame"'),
        ('_a = 1\n_b = 2', 'Line 1: "_a" is an invalid variable name because it starts with "_"\nLine 2: "_b" is an invalid'),
    ],
)
def test_restricted_refuses_in_restrictedpythons_words(api, code, message):
    seen = api.run(code, profile='restricted')
    assert seen.status == ('error' if '|' in code else 'refused') and seen.error['type'] == 'SyntaxError'
    assert seen.error['message'].startswith(message)


ORDINARY = """
from dataclasses import dataclass

@dataclass
class Ball:
    x: int
    dx: int = 2
    def __post_init__(self):
        self.seen = {}
    def __repr__(self):
        return f"<ball at {self.x}>"

class Red(Ball):
    def __init__(self):
        super().__init__(1)

def main():
    ball, turns = Red(), 0
    def move():
        nonlocal turns
        turns += 1
        ball.x += ball.dx
        ball.seen["n"] = 1
        ball.seen["n"] += turns
    move()
    print(ball, ball.seen, turns)

if __name__ == "__main__":
    main()
"""


def test_permissive_restricted_runs_ordinary_programs(api):
    assert api.run(ORDINARY, profile='restrictedpython').ok().stdout == "<ball at 3> {'n': 2} 1\n"
    assert api.run(ORDINARY, profile='restricted').status == 'refused', 'the strict one stays RestrictedPython'
    assert api.run('print(1)', profile='RestrictedPython').ok().stdout == '1\n'


@pytest.mark.parametrize(
    'code',
    [
        '_x = 1', 'x._y', 'x._y += 1', 'print(__builtins__)', '__name__ = "x"', 'x.__class__', 'x.__init__()', 'super().__init__.__globals__', 'super().__class__',
        'class A:\n    def __getattr__(self, n): pass', 'class A:\n    def __getattribute__(self, n): pass', 'class A:\n    __array_interface__ = {}',
        'def __repr__(): pass', 'try:\n    1 .foo\nexcept AttributeError as e:\n    e.obj += 1', 'def f():\n    _a = 1\n    def g():\n        nonlocal _a',
        'class A(metaclass=type): pass', 'async def f(): pass', 'from math import *', 'exec("1")', 'import os',
    ],
)  # fmt: skip
def test_permissive_restricted_refuses_the_rest(api, code):
    assert api.run(code, profile='restrictedpython').status == 'refused'


def test_restricted_leaves_modules_to_the_list(api):
    seen = api.run('print(1)\nimport os', profile='restricted')  # known, and not on the list
    assert seen.status == 'refused' and seen.stdout == '' and seen.error['code'] == 'policy_import' and seen.error['line'] == 2
    seen = api.run('print(1)\nfrom _nosuch import m', profile='restricted')  # RestrictedPython's compiler has nothing against it
    assert seen.status == 'error' and seen.stdout == '1\n' and seen.error['type'] == 'ImportError'


@pytest.mark.parametrize(
    'code, type, message',
    [
        ("'Hello {}'.format('world')", 'NotImplementedError', 'Using the format*() methods of `str` is not safe'),
        ("str.format_map('{a}', {'a': 1})", 'NotImplementedError', 'Using the format*() methods of `str` is not safe'),
        ('class S(str): pass\ngetattr([], S("append"))', 'TypeError', 'type(name) must be str'),
        ('getattr([], "__class__")', 'AttributeError', '"__class__" is an invalid attribute name because it starts with "_"'),
        ('getattr((x for x in []), "gi_frame")', 'AttributeError', '"gi_frame" is a restricted name, that is forbidden to access in RestrictedPython.'),
    ],
)
def test_restricted_guards_in_restrictedpythons_words(api, code, type, message):
    seen = api.run(code, profile='restricted')
    assert (seen.status, seen.error['type'], seen.error['message']) == ('error', type, message)


def test_restricted_collects_what_a_scope_prints_when_it_reads_printed(api):
    code = 'def f():\n    print("a", 1)\n    print("b", end="")\n    return printed\nx = f()\nprint("seen")\nx'
    seen = api.run(code, profile='restricted').ok()
    assert seen.stdout == 'seen\n' and seen.text == repr('a 1\nb')


def test_format_strings_cannot_walk(api):
    for profile in ('restricted', 'smolagents'):
        seen = api.run('class A: pass\n"{0.__class__.__mro__}".format(A())', profile=profile)
        assert seen.status == 'error' and seen.error['code'] == 'policy_format'
    assert api.run('"{0[a]} {x.real:.1f}".format({"a": 1}, x=2.0)', profile='smolagents').ok().text == "'1 2.0'"


def test_utilities_of_restrictedpython(api):
    code = 'same_type(1, 2), same_type(1, "x"), test(0, "a", 1, "b"), test(0, "a", "c"), reorder(list("abcd"), with_=["d", "a", "x"], without=["a"])'
    assert api.run(code, profile='restricted').ok().text == "(True, False, 'b', 'c', [('d', 'd')])"


def test_tools_of_openenv(api):
    code = 'try:\n    1 / 0\nexcept Exception:\n    print(format_exc())\nprint(safe_json_dumps({"a": {1}}))'
    for profile in ('restricted', 'smolagents'):
        seen = api.run(code, profile=profile).ok()
        assert 'ZeroDivisionError: division by zero' in seen.stdout and '{"a": "{1}"}' in seen.stdout


# ---- tinyagent ---------------------------------------------------------------------------


def test_tinyagent(api):
    session = api.session(profile='tinyagent')
    seen = session.execute('x = 1\nfinal_answer(x)\nprint("goes on")').ok()
    assert seen.stdout == 'goes on\n' and seen.is_final_answer and seen.final_answer == 1
    assert session.execute('x').error['type'] == 'NameError'  # nothing is kept
    assert session.execute('import os').error['message'] == "Import 'os' not allowed"
    assert session.execute('from os import path').error['message'] == "Import from 'os' not allowed"
    assert session.execute('class A: pass').error['type'] == 'NameError'
    assert not session.execute('1').ok().is_final_answer
    assert api.run('isinstance(1, int)', profile='tinyagent').error['type'] == 'NameError'
    assert api.run('isinstance(1, int)', profile='tinyagent-0.73.5').ok().text == 'True'


# ---- final answers -----------------------------------------------------------------------


@pytest.mark.parametrize('profile', ['python', 'smolagents', 'restricted', 'tinyagent'])
@pytest.mark.parametrize(
    'code, answer, encoded',
    [
        ('final_answer({"a": [1, None, "x"]})', {'a': [1, None, 'x']}, 'safe:{"a": [1, null, "x"]}'),
        ('final_answer(answer=(1, 2))', [1, 2], 'safe:{"__type__": "tuple", "data": [1, 2]}'),
        ('FINAL("done")', 'done', 'safe:"done"'),
        ('x = 1.5\nFINAL_VAR("x")', 1.5, 'safe:1.5'),
        ('answer = {"content": 3, "ready": True}', 3, 'safe:3'),
        ('final_answer(range(3))', 'range(0, 3)', None),
    ],
)
def test_final_answers(api, profile, code, answer, encoded):
    seen = api.run(code, profile=profile).ok()
    assert seen.is_final_answer and seen.final_answer == answer
    assert seen.get('final_answer_encoded') == encoded


def test_encoded_answers_are_smolagents_own(session):
    code = 'import decimal, datetime, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nfinal_answer([2**70, float("nan"), {1: 2}, b"x", 1j, {3}, decimal.Decimal("1.5"), datetime.date(2020, 1, 2), P(1)])'
    seen = session.execute(code).ok()
    assert seen.final_answer_encoded == (
        'safe:[1180591620717411303424, NaN, {"__type__": "dict_with_complex_keys", "data": [[1, 2]]}, {"__type__": "bytes", "data": "eA=="}, '
        '{"__type__": "complex", "real": 0.0, "imag": 1.0}, {"__type__": "set", "data": [3]}, {"__type__": "Decimal", "data": "1.5"}, '
        '{"__type__": "date", "data": "2020-01-02"}, {"__type__": "dataclass", "class_name": "P", "module": "__main__", "data": {"x": 1}}]'
    )


def test_an_answer_belongs_to_its_cell(session):
    assert session.execute('answer = {"content": 1, "ready": False}').ok().is_final_answer is False
    assert session.execute('answer["ready"] = True').ok().final_answer == 1
    assert session.execute('2').ok().is_final_answer is False
    assert session.execute('FINAL_VAR("missing")').error['type'] == 'NameError'


def test_final_answer_ends_a_cell_of_smolagents(api):
    seen = api.run('try:\n    final_answer(1)\nexcept Exception:\n    print("caught")\nprint("after")', profile='smolagents').ok()
    assert seen.stdout == '' and seen.final_answer == 1


# ---- choosing ----------------------------------------------------------------------------


def test_additional_imports(api):
    assert api.run('import heapq\nheapq.nsmallest(1, [3, 2])', profile='smolagents', additional_imports=['heapq']).ok().text == '[2]'
    assert api.run('import os\nos.getpid() > 0', profile='smolagents', additional_imports=['*']).ok().text == 'True'
    assert api.run('import xml.dom', profile='smolagents', additional_imports=['xml.*']).ok()
    refused = api.run('import xml.dom', profile='smolagents', additional_imports=['xml'])
    assert refused.status == 'refused' and 'xml.*' in refused.error['remediation']
    assert 'dataclasses' in api.run('import dataclass', profile='smolagents').error['remediation']


@pytest.mark.parametrize(
    'imports, code, text',
    [
        (['sys'], 'import sys\nsys.modules["io"]', 'Forbidden access to module: io'),
        (['importlib'], 'import importlib\nimportlib.import_module("os").getcwd()', 'Forbidden access to module: os'),
        (['threading'], 'import queue\nqueue.threading._os', 'Forbidden access to module: os'),
        (['doctest', 'inspect'], 'import doctest\ndoctest.inspect.os', 'Forbidden access to module: os'),
        (['warnings'], 'import warnings\nlist(map(getattr, [warnings], ["sys"]))', 'Forbidden access to module: sys'),
        (['builtins'], 'import builtins\nbuiltins.exec', 'Forbidden access to function: exec'),
        (['os'], 'import os\nos.popen', 'Forbidden access to function: popen'),
        (['os'], 'import os\nos.system', 'Forbidden access to function: system'),
    ],
)
def test_what_allowed_modules_lead_to(api, imports, code, text):
    assert text in api.run(code, profile='smolagents', additional_imports=imports).error['message']


def test_what_is_allowed_by_name_works(api):
    code = 'import subprocess\nsubprocess.run(["echo", "hi"], capture_output=True).stdout'
    assert api.run(code, profile='smolagents', additional_imports=['subprocess']).ok().text == "b'hi\\n'"
    code = 'import numpy as np\nnp.arange(3, dtype="u1").tofile("a.bin")\nnp.fromfile("a.bin", "u1").tolist()'
    assert api.run(code, profile='restricted', additional_imports=['numpy']).ok().text == '[0, 1, 2]'
    profile = {'base': 'smolagents', 'builtins': ['eval', 'exec', 'compile']}
    assert api.run('exec(compile("x = 20", "t", "exec"))\neval("x + 1")', profile=profile).ok().text == '21'


def test_python_with_a_list_of_imports(api):
    profile = {'base': 'python', 'imports': ['math']}
    assert api.run('import math\nopen("x", "w").write("a"); eval("math.pi > 3")', profile=profile).ok().text == 'True'
    assert api.run('import os', profile=profile).status == 'refused'


def test_own_profile_in_a_request(api):
    profile = {'base': 'smolagents', 'imports': ['math'], 'builtins': ['open'], 'refuse': ['math.pi', 'sum'], 'max_operations': 100}
    assert api.run('open("f", "w").write("x")', profile=profile).ok().text == '1'
    assert 'Forbidden access to function: pi' in api.run('import math\nmath.pi', profile=profile).error['message']
    assert 'sum' in api.run('sum([1])', profile=profile).error['message']
    assert 'operations of 100' in api.run('for i in range(1000): i', profile=profile).error['message']


@pytest.mark.parametrize(
    'profile, detail',
    [
        ('nosuch', "there is no profile 'nosuch'"),
        ({'base': 'nosuch'}, "there is no profile 'nosuch'"),
        ({'imports': 'math'}, 'profile.imports: must be a list of names'),
        ({'imports': ['math', 3]}, 'profile.imports[1]: must be a name'),
        ({'import': []}, 'profile.import: there is no such entry'),
        ({'max_operations': -1}, 'profile.max_operations: must be a whole number'),
        ({'final_answer_stops': 'yes'}, 'profile.final_answer_stops: must be true or false'),
    ],
)
def test_wrong_profiles_are_refused_by_name(api, profile, detail):
    answer = api.post('/v1/sessions', json={'profile': profile})
    assert answer.status_code == 400 and detail in answer.json()['detail']


def test_profiles_are_listed(api):
    listed = {p['name']: p for p in api.get('/v1/profiles').json()['profiles']}
    assert list(listed)[:5] == ['python', 'smolagents', 'restricted', 'restrictedpython', 'tinyagent']
    assert listed['smolagents']['max_while_iterations'] == 1000000 and 'math' in listed['smolagents']['imports']
    assert listed['python']['imports'] == ['*'] and listed['restricted']['refuses']
    assert api.session(profile='restricted').info['profile'] == 'restricted'


def test_cells_and_violations_are_counted_by_profile(api):
    before = api.metrics()
    api.run('import os', profile='smolagents')
    api.run('1', profile='tinyagent')
    api.run('import os', profile={'base': 'restricted', 'name': 'a "label" of mine'})
    after = api.metrics()
    grown = {name: after[name] - before[name] for name in after if name.startswith(('glovebox_cells_total', 'glovebox_policy')) and after[name] != before[name]}
    assert grown == {
        'glovebox_cells_total{profile="smolagents",dialect="native",template="default",status="refused"}': 1,
        'glovebox_cells_total{profile="tinyagent",dialect="native",template="default",status="ok"}': 1,
        'glovebox_cells_total{profile="restricted",dialect="native",template="default",status="refused"}': 1,
        'glovebox_policy_violations_total{profile="smolagents",rule="import"}': 1,
        'glovebox_policy_violations_total{profile="restricted",rule="import"}': 1,
    }


def test_denials_are_logged_but_not_without_bound():
    with gb.running_daemon() as daemon, daemon.api() as api:
        session = api.session(profile='restrictedpython')
        session.execute('x = 1')
        session.execute('y = 2\nimport os\n# one\n')
        (line,) = [line for line in daemon.log().splitlines() if 'policy:' in line]
        assert f'info policy: profile restrictedpython refused cell 2 of {session.id}, rule policy_import, line 2: Import of os is not allowed' in line
        session.execute('getattr(1, "__class__\\n2026 error forged")')
        counted = 'glovebox_policy_violations_total{profile="restrictedpython",rule="import"}'
        left_out = 0
        while not left_out:  # as many in a second as the machine can
            for _ in range(60):
                session.execute('import os')
            left_out = api.metrics()['glovebox_policy_denials_not_logged_total']
        time.sleep(1.1)
        session.execute('import os')
        logged = [line for line in daemon.log().splitlines() if 'policy: profile' in line and 'rule policy_import' in line]
        assert len(logged) == api.metrics()[counted] - left_out
        assert 'more denials were not logged' in daemon.log() and '\n2026 error forged' not in daemon.log()


def test_server_wide_choice_and_own_files(tmp_path):
    (tmp_path / 'profiles').mkdir()
    (tmp_path / 'profiles/house.json').write_text(json.dumps({'base': 'smolagents', 'summary': 'ours', 'additional_imports': ['json']}))
    (tmp_path / 'profiles/mini.ini').write_text('base = house\nmax_operations = 50\nfinal_answer_stops = no\n')
    (tmp_path / 'glovebox.conf').write_text('')
    env = gb.clean_env(EXECUTOR_BACKEND='house', ADDITIONAL_IMPORTS='heapq,bisect')
    with gb.running_daemon('--config', str(tmp_path / 'glovebox.conf'), '--preload', 'json', env=env) as d, d.api() as api:
        assert api.run('import json, heapq, bisect\njson.dumps([1])').ok().text == repr('[1]')
        assert api.run('import os').status == 'refused'
        assert api.run('for i in range(100): i', profile='mini').error['code'] == 'policy_operations'
        assert {p['name'] for p in api.get('/v1/profiles').json()['profiles']} >= {'house', 'mini'}
        assert api.run('import os\n1', profile='python').ok()


def test_a_wrong_file_stops_the_server(tmp_path):
    (tmp_path / 'profiles').mkdir()
    (tmp_path / 'profiles/bad.json').write_text('{"imports": [""]}')
    (tmp_path / 'glovebox.conf').write_text('')
    done = gb.cli('serve', '--listen', '127.0.0.1:0', '--config', tmp_path / 'glovebox.conf', '--state-dir', tmp_path / 'state')
    assert done.returncode != 0 and 'profile bad: profile.imports[0]' in done.stderr


def test_command_line():
    assert gb.cli('run', '--profile', 'smolagents', '--import', 'heapq', '-c', 'import heapq; print(heapq.nlargest(1, [1, 4]))').stdout == '[4]\n'
    done = gb.cli('run', '--profile', 'restricted', '-c', 'print(1)\n_x = 2')
    assert done.returncode == 1 and done.stdout == '' and '"_x" is an invalid variable name' in done.stderr
    listed = gb.cli('profiles')
    assert listed.returncode == 0 and 'smolagents' in listed.stdout
    assert 'Forbidden' not in gb.cli('profiles', 'restricted').stdout and json.loads(gb.cli('profiles', '--json').stdout)[0]['name'] == 'python'
    assert gb.cli('profiles', 'nosuch').returncode == 1
    wrong = gb.cli('run', '--profile', 'smolagent', '-c', '1')
    assert wrong.returncode == 125 and 'smolagents' in wrong.stderr
