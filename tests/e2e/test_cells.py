"""What a cell is: state, values, the language as CPython has it, exits."""

import json

import pytest


def test_state_persists_from_cell_to_cell(session):
    session.execute('x = 41\ndef add(n): return x + n').ok()
    assert session.value('add(1)') == '42'
    session.execute('x = 1').ok()
    assert session.value('add(1)') == '2'


def test_cells_are_numbered_and_name_their_session(session):
    first, second = session.execute('1'), session.execute('2')
    assert (first.cell, second.cell) == (1, 2)
    assert first.session == session.id == second.session
    assert first.id and first.id != second.id


def test_observation_has_every_field(session):
    seen = session.execute('1')
    assert set(seen) == {
        'id', 'session', 'cell', 'status', 'exit_code', 'stdout', 'stderr', 'result', 'displays', 'error',
        'is_final_answer', 'final_answer', 'screenshot', 'files', 'truncated', 'usage', 'state_lost', 'rolled_back', 'files_rolled_back', 'replayed', 'may_differ', 'files_lost', 'interpreter_died', 'checkpoints_evicted', 'packages', 'recording', 'film',
    }  # fmt: skip
    assert seen.status == 'ok' and seen.exit_code == 0 and seen.error is None
    assert seen.displays == [] and seen.files == [] and seen.state_lost is False
    assert seen.truncated['stdout'] == seen.truncated['stderr'] == 0


@pytest.mark.parametrize(
    'code, text',
    [
        ('1 + 1', '2'),
        ('"a" "b"', "'ab'"),
        ('x = 5', None),
        ('None', None),
        ('x = 3; x', '3'),
        ('x = 3; x;', None),
        ('for i in range(3): i', None),
        ('', None),
        ('# only a comment', None),
        ('\n\n  \n', None),
        ('(lambda: 7)()', '7'),
        ('[i for i in range(3)]\n# behind it', '[0, 1, 2]'),
        ('f"{1}{2}"', "'12'"),
        ('(\n 1 +\n 2\n)', '3'),
        ('if True:\n  4', None),
        ('...', 'Ellipsis'),
        ('(y := 9)', '9'),
        ('"a;b"', "'a;b'"),
        ('"é\u2028\\u00e9"', "'é\\u2028é'"),
        ('𝔵 = 5\n𝔵', '5'),
        ('\r\n1\r\n', '1'),
        ('\ufeff1', '1'),
        ('x = 1\f\nx', '1'),
    ],
)
def test_value_of_the_last_expression(session, code, text):
    assert session.execute(code).ok().text == text


def test_underscore_is_the_last_value(session):
    session.execute('6 * 7').ok()
    assert session.value('_ + 1') == '43'


def test_plain_values_come_as_json_too(session):
    result = session.execute('{"a": [1, 2.5, None, True, "é"]}').ok().result
    assert result['application/json'] == {'a': [1, 2.5, None, True, 'é']}
    assert result['text/plain'] == "{'a': [1, 2.5, None, True, 'é']}"


def test_values_that_json_cannot_say_stay_text(session):
    assert session.value('float("nan")') == 'nan'
    assert 'application/json' not in session.execute('float("inf")').ok().result
    assert session.value('object').startswith("<class 'object'")
    assert session.value('a = []; a.append(a); a') == '[[...]]'
    assert session.value('"\\ud800"') == "'\\ud800'"
    assert session.value('10 ** 30') == '1' + '0' * 30


def test_repr_that_fails_is_an_error_of_the_cell(session):
    session.execute('class Bad:\n  def __repr__(self): return 1 / 0').ok()
    seen = session.execute('Bad()')
    assert seen.status in ('ok', 'error')
    assert 'ZeroDivisionError' in json.dumps(seen)
    assert session.value('1') == '1'


def test_huge_repr_is_cut(session, daemon):
    before = daemon.rss()
    seen = session.execute('"x" * 300_000_000').ok()
    assert 1000 < len(seen.text) < 3_000_000
    assert 'left out' in seen.text
    assert daemon.rss() - before < 64 << 20
    assert session.value('1') == '1'


def test_name_is_main(session):
    assert session.value('__name__') == "'__main__'"
    assert session.value('import sys; sys.modules["__main__"].__dict__ is globals()') == 'True'
    assert session.execute('if __name__ == "__main__": print("yes")').stdout == 'yes\n'


def test_working_directory_is_workspace(session):
    assert session.value('import os; os.getcwd()') == "'/workspace'"
    session.execute('open("here", "w").write("x")').ok()
    assert session.value('os.path.exists("/workspace/here")') == 'True'


def test_top_level_await(session):
    seen = session.execute(
        'import asyncio\nasync def double(n):\n  await asyncio.sleep(0.01)\n  return 2 * n\n'
        'print(sum(await asyncio.gather(*map(double, range(5)))))\nawait double(21)'
    ).ok()
    assert seen.stdout == '20\n' and seen.text == '42'


def test_async_comprehension_for_and_with_at_top_level(session):
    session.execute(
        'from contextlib import asynccontextmanager\nasync def count(n):\n  for i in range(n): yield i\n'
        '@asynccontextmanager\nasync def opened():\n  print("in")\n  yield 5\n  print("out")'
    ).ok()
    assert session.value('[i * i async for i in count(4)]') == '[0, 1, 4, 9]'
    assert session.execute('async for i in count(2): print(i)').ok().stdout == '0\n1\n'
    assert session.execute('async with opened() as n: print(n)').ok().stdout == 'in\n5\nout\n'


def test_tasks_go_on_while_a_later_cell_awaits(session):
    session.execute(
        'import asyncio\nseen = []\nasync def later():\n  await asyncio.sleep(0.05)\n  seen.append("late")\n'
        'task = asyncio.create_task(later())\nawait asyncio.sleep(0)'
    ).ok()
    assert session.value('await task; seen') == "['late']"


def test_asyncio_run_works_in_a_cell(session):
    assert session.value('import asyncio\nasync def f(): return 5\nasyncio.run(f())') == '5'
    assert session.value('await f()') == '5'
    assert session.value('asyncio.run(f())') == '5'


def test_inspect_getsource_of_functions_and_classes(session):
    session.execute(
        'def f(a):\n    # why\n    return a\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2'
    ).ok()
    session.execute('class Plain:\n    y = 2').ok()
    assert session.execute('import inspect; print(inspect.getsource(f))').stdout == (
        'def f(a):\n    # why\n    return a\n\n'
    )
    assert session.execute('print(inspect.getsource(C))').stdout.startswith('class C:\n    x = 1')
    assert session.execute('print(inspect.getsource(C.m))').stdout.startswith('    def m(self):')
    assert session.execute('print(inspect.getsource(Plain))').stdout.startswith('class Plain:\n    y = 2')


def test_dataclasses(session):
    session.execute(
        'from dataclasses import dataclass, field, asdict\n@dataclass(order=True, frozen=True)\nclass P:\n'
        '  x: int\n  y: "float" = 2.0\n  tags: list = field(default_factory=list, compare=False)'
    ).ok()
    assert session.value('P(1)') == 'P(x=1, y=2.0, tags=[])'
    assert session.value('sorted([P(2), P(1)])[0] < P(3), asdict(P(4))') == "(True, {'x': 4, 'y': 2.0, 'tags': []})"
    assert session.execute('P(1).x = 2').error['type'] == 'dataclasses.FrozenInstanceError'


def test_annotations_from_future_last(session):
    session.execute('from __future__ import annotations').ok()
    session.execute('def f(x: Undefined) -> Missing: return x').ok()
    assert session.value('f.__annotations__') == "{'x': 'Undefined', 'return': 'Missing'}"


def test_pickling_of_what_cells_define(session):
    session.execute(
        'import pickle, enum\nclass A:\n  def __init__(self, n): self.n = n\nclass Color(enum.Enum):\n  RED = 1\n'
        'def g(): return 3'
    ).ok()
    assert session.value('pickle.loads(pickle.dumps(A(5))).n') == '5'
    assert session.value('pickle.loads(pickle.dumps(Color.RED)) is Color.RED') == 'True'
    assert session.value('pickle.loads(pickle.dumps(g))()') == '3'


def test_multiprocessing_with_fork(session):
    seen = session.execute(
        'import multiprocessing as mp\nctx = mp.get_context("fork")\ndef square(n): return n * n\n'
        'with ctx.Pool(3) as pool: result = pool.map(square, range(10))\nresult'
    ).ok()
    assert seen.text == str([n * n for n in range(10)])
    assert session.value('ctx is mp.get_context() or mp.get_start_method()') in ('True', "'fork'")


def test_process_pool_executor_and_queue(session):
    assert (
        session.value(
            'from concurrent.futures import ProcessPoolExecutor\ndef cube(n): return n ** 3\n'
            'with ProcessPoolExecutor(2) as ex: out = list(ex.map(cube, [1, 2, 3]))\nout'
        )
        == '[1, 8, 27]'
    )
    assert (
        session.value(
            'import multiprocessing as mp\nq = mp.Queue()\ndef put(): q.put("from the child")\n'
            'p = mp.Process(target=put); p.start(); got = q.get(timeout=30); p.join(); (got, p.exitcode)'
        )
        == "('from the child', 0)"
    )


def test_fork_child_does_not_answer_for_the_cell(session):
    seen = session.execute(
        'import os, sys\npid = os.fork()\nif pid == 0:\n  print("child", flush=True)\n  os._exit(7)\n'
        'print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'
    ).ok()
    assert sorted(seen.stdout.splitlines()) == ['child', 'parent 7']
    seen = session.execute('if os.fork() == 0: sys.exit(3)\nos.waitstatus_to_exitcode(os.wait()[1])').ok()
    assert seen.text == '3'
    seen = session.execute('def fail(): 1/0\nif os.fork() == 0: fail()\nos.waitstatus_to_exitcode(os.wait()[1])').ok()
    assert seen.text == '1' and 'ZeroDivisionError' in seen.stderr and 'in fail' in seen.stderr
    # One that runs off the end of the cell.
    seen = session.execute('pid = os.fork()\nif pid: os.waitpid(pid, 0)\npid != 0').ok()
    assert seen.text == 'True'
    assert session.value('"alive"') == "'alive'"


@pytest.mark.parametrize(
    'code, exit_code, status',
    [
        ('import sys; sys.exit()', 0, 'ok'),
        ('import sys; sys.exit(0)', 0, 'ok'),
        ('import sys; sys.exit(3)', 3, 'error'),
        ('import sys; sys.exit(-1)', 255, 'error'),
        ('import sys; sys.exit(256 + 4)', 4, 'error'),
        ('import sys; sys.exit("text")', 1, 'error'),
        ('raise SystemExit(9)', 9, 'error'),
        ('exit(5)', 5, 'error'),
        ('quit()', 0, 'ok'),
    ],
)
def test_exit_ends_the_cell_and_the_session_lives(session, code, exit_code, status):
    session.execute('kept = 1').ok()
    seen = session.execute(f'print("before")\n{code}\nprint("after")')
    assert (seen.exit_code, seen.status, seen.state_lost) == (exit_code, status, False)
    assert seen.stdout == 'before\n'
    assert session.value('kept') == '1'


def test_exit_with_text_prints_it(session):
    assert session.execute('import sys; sys.exit("goodbye")').stderr == 'goodbye\n'


def test_input_without_stdin_fails_at_once(session):
    seen = session.execute('input("name? ")', timeout_s=20)
    assert seen.status == 'error' and seen.error['type'] == 'EOFError'
    assert 'keyboard' in seen.error['message'] and 'stdin' in seen.error['message']
    assert seen.stdout == 'name? '
    assert session.execute('import sys; sys.stdin.read()').ok().text == "''"
    assert session.execute('import getpass; getpass.getpass()').error['type'] == 'EOFError'


def test_stdin_is_what_the_request_says(session):
    seen = session.execute('a = input("? "); b = input(); (a, b)', stdin='first\nzweite ä\n').ok()
    assert seen.text == "('first', 'zweite ä')"
    assert session.execute('import sys; sys.stdin.read()', stdin='x\n\0y').ok().text == r"'x\n\x00y'"
    assert session.execute('import subprocess; subprocess.check_output("cat")', stdin='pipe').ok().text == "b'pipe'"
    assert session.execute('input()', stdin='').error['type'] == 'EOFError'
    assert session.execute('input()').error['type'] == 'EOFError', 'what one cell left must not reach the next'


def test_large_stdin(session):
    seen = session.execute('import sys; len(sys.stdin.read())', stdin='x' * 8_000_000).ok()
    assert seen.text == '8000000'


def test_environment_is_not_the_daemons(session):
    names = session.value('import os; sorted(os.environ)')
    assert 'PATH' in names
    for word in ('SUDO', 'SSH', 'TOKEN', 'GLOVEBOX'):
        assert word not in names


def test_usage_is_measured(session):
    idle = session.execute('import time; time.sleep(0.3)').ok().usage
    assert idle['wall_ms'] >= 299 and idle['cpu_ms'] < 200
    busy = (
        session.execute('import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass')
        .ok()
        .usage
    )
    assert busy['cpu_ms'] >= 190 and busy['wall_ms'] >= 190
    small = session.execute('1').usage['peak_memory_bytes']
    big = session.execute('b = bytearray(200_000_000); del b').ok().usage['peak_memory_bytes']
    assert big > small + 150_000_000
    after = session.execute('1').ok().usage['peak_memory_bytes']
    assert after < big - 100_000_000, 'the peak is the cell\'s own, not the session\'s'


def test_cpu_of_subprocesses_counts(session):
    usage = (
        session.execute(
            'import subprocess, sys\n'
            'subprocess.run(["/usr/bin/python3", "-c", "import time\\nwhile time.process_time() < .3: pass"])'
        )
        .ok()
        .usage
    )
    assert usage['cpu_ms'] >= 290


def test_files_lists_what_changed(session):
    seen = session.execute(
        'import os\nos.makedirs("d/e")\nopen("a", "w").write("12345")\nopen("d/e/b", "w").write("1")'
    ).ok()
    assert sorted((f['path'], f['size'], f['change']) for f in seen.files) == [
        ('a', 5, 'created'),
        ('d/e/b', 1, 'created'),
    ]
    assert session.execute('x = 1').files == []
    seen = session.execute('open("a", "a").write("6")\nos.remove("d/e/b")\nopen("/tmp/elsewhere", "w").write("x")').ok()
    assert sorted((f['path'], f['size'], f['change']) for f in seen.files if f['change'] != 'deleted') == [
        ('a', 6, 'modified')
    ]
    assert [f['path'] for f in seen.files if f['change'] == 'deleted'] == ['d/e/b']
    seen = session.execute('open("same", "w").write("aa")').ok()
    seen = session.execute('open("same", "w").write("bb")').ok()
    assert [(f['path'], f['change']) for f in seen.files] == [('same', 'modified')]
    seen = session.execute('open("brief", "w").close(); os.remove("brief")').ok()
    assert seen.files == []


def test_files_are_listed_also_when_the_cell_fails(session):
    seen = session.execute('open("left", "w").write("x")\n1/0')
    assert [(f['path'], f['change']) for f in seen.files] == [('left', 'created')]
    seen = session.execute('open("unicode-ä-名.txt", "w").write("x")').ok()
    assert [f['path'] for f in seen.files] == ['unicode-ä-名.txt']


def test_more_files_than_are_listed(session):
    seen = session.execute('for i in range(1500): open(f"f{i}", "w").close()').ok()
    assert len(seen.files) == 1000 and seen.truncated['files'] is True


def test_replaced_builtins_harm_only_the_cell(session):
    session.execute('import builtins\nbuiltins.len = builtins.isinstance = builtins.str = builtins.print = None').ok()
    assert session.execute('1/0').error['type'] == 'ZeroDivisionError'
    assert session.value('[1, 2]') == '[1, 2]'
    session.execute('builtins.__import__ = None').ok()
    assert session.execute('6 * 7').ok().text == '42'
    seen = session.execute('import sys\nsys.modules.clear()\nsys.meta_path.clear()')
    assert seen.status in ('ok', 'error')
    session.reset()
    assert session.value('len("abc")') == '3'


def test_stdout_replaced_by_the_cell(session):
    assert (
        session.execute('import sys, io\nsys.stdout = io.StringIO(); print("swallowed"); sys.stdout = sys.__stdout__')
        .ok()
        .stdout
        == ''
    )
    session.execute('sys.stdout = None; sys.stderr = None; sys.stdin = None').ok()
    seen = session.execute('1/0')
    assert seen.error['type'] == 'ZeroDivisionError'
    assert session.value('5') == '5'


def test_closed_descriptors_do_not_hang_the_session(session):
    seen = session.execute('import os\nos.closerange(0, 300)', timeout_s=10)
    assert seen.status in ('killed', 'error', 'ok')
    assert session.execute('1 + 1').ok().text == '2'


def test_name_of_a_cell_in_code_objects(session):
    assert session.value('(lambda: 0).__code__.co_filename') == "'<cell 1>'"
    assert session.value('(lambda: 0).__code__.co_filename') == "'<cell 2>'"


def test_deep_recursion_is_an_error(session):
    seen = session.execute('def f(n): return f(n + 1)\nf(0)')
    assert seen.error['type'] == 'RecursionError'
    assert len(seen.error['traceback']) < 20_000
    assert session.value('1') == '1'


def test_large_and_deeply_nested_source(session):
    assert session.execute('\n'.join(f'v{i} = {i}' for i in range(100_000))).ok().status == 'ok'
    assert session.value('v99999') == '99999'
    seen = session.execute('(' * 5000 + ')' * 5000)
    assert seen.status == 'error' and seen.error['type'] in ('SyntaxError', 'MemoryError', 'RecursionError')
    seen = session.execute('-' * 300_000 + '1')
    assert seen.status in ('error', 'out_of_memory', 'killed')
    seen = session.execute('x' + '.x' * 200_000)
    assert seen.status in ('error', 'out_of_memory', 'killed')
    assert session.execute('1 + 1').ok().text == '2'


def test_warnings_go_to_stderr(session):
    seen = session.execute('import warnings; warnings.warn("careful")').ok()
    assert 'careful' in seen.stderr and 'UserWarning' in seen.stderr
    assert 'SyntaxWarning' in session.execute('1 is 1').ok().stderr


@pytest.mark.parametrize('code, status', [
    ('x = 1\nx is 1', 'ok'),
    ('x = 1\nx is 1\n*[1],', 'ok'),
    ('x = 1\nx is 1\nreturn 5', 'error'),
])  # fmt: skip
def test_the_compiler_warns_once(session, code, status):
    seen = session.execute(code)
    assert seen.status == status and seen.stderr.count('SyntaxWarning') == 1
    filters = session.value('import warnings; warnings.filters')
    assert filters != '[]' and 'error' not in filters


def test_help_and_breakpoint_do_not_hang(session):
    assert 'Return the number of items' in session.execute('help(len)', timeout_s=20).ok().stdout
    seen = session.execute('breakpoint()', timeout_s=20)
    assert seen.status in ('ok', 'error')
    assert session.value('1') == '1'


def test_subinterpreters_and_atexit(session):
    session.execute('import atexit; atexit.register(print, "at exit")').ok()
    assert session.value('1') == '1'
    assert session.execute('import sys; sys.exit(2)').exit_code == 2
    assert session.value('2') == '2'
