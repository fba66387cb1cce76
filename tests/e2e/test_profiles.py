"""Executor profiles: what each allows and refuses, in whose words, and that ordinary Python stays Python under them."""

import json
import subprocess

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
        assert seen.status == 'refused' and seen.stdout == '' and seen.error['code'].startswith('policy_')
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
    assert seen.error['type'] == 'InterpreterError' and seen.error['message'].startswith(message)
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
    assert seen.error['message'].startswith(message)


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
    ):
        assert api.run(code, profile='smolagents').ok().text == value


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
        ('_a = 1\n_b = 2', 'Line 1: "_a" is an invalid variable name because it starts with "_"\nLine 2: "_b" is an invalid'),
    ],
)
def test_restricted_refuses_in_restrictedpythons_words(api, code, message):
    seen = api.run(code, profile='restricted')
    assert seen.status == 'refused' and seen.error['type'] == 'SyntaxError'
    assert seen.error['message'].startswith(message)


def test_restricted_collects_what_a_scope_prints_when_it_reads_printed(api):
    code = 'def f():\n    print("a", 1)\n    print("b", end="")\n    return printed\nx = f()\nprint("seen")\nx'
    seen = api.run(code, profile='restricted').ok()
    assert seen.stdout == 'seen\n' and seen.text == repr('a 1\nb')


def test_format_strings_cannot_walk(api):
    for profile in ('restricted', 'smolagents'):
        seen = api.run('class A: pass\n"{0.__class__.__mro__}".format(A())', profile=profile)
        assert seen.status == 'error' and seen.error['code'] == 'policy_format'
        assert api.run('"{0[a]} {x.real:.1f}".format({"a": 1}, x=2.0)', profile=profile).ok().text == "'1 2.0'"


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


def test_python_with_a_list_of_imports(api):
    profile = {'base': 'python', 'imports': ['math']}
    assert api.run('import math\nopen("x", "w").write("a"); eval("math.pi > 3")', profile=profile).ok().text == 'True'
    assert api.run('import os', profile=profile).status == 'refused'


def test_own_profile_in_a_request(api):
    profile = {'base': 'smolagents', 'imports': ['math'], 'builtins': ['open'], 'refuse': ['math.pi', 'sum'], 'max_operations': 100}
    assert api.run('open("f", "w").write("x")', profile=profile).ok().text == '1'
    assert api.run('import math\nmath.pi', profile=profile).error['message'] == 'Forbidden access to function: pi'
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
    assert list(listed)[:4] == ['python', 'smolagents', 'restricted', 'tinyagent']
    assert listed['smolagents']['max_while_iterations'] == 1000000 and 'math' in listed['smolagents']['imports']
    assert listed['python']['imports'] == ['*'] and listed['restricted']['refuses']
    assert api.session(profile='restricted').info['profile'] == 'restricted'


def test_violations_are_counted(api):
    def count():
        text = api.get('/metrics').text
        return int(text.split('glovebox_policy_violations_total{rule="import"} ')[1].split('\n')[0])

    before = count()
    api.run('import os', profile='smolagents')
    assert count() == before + 1


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
