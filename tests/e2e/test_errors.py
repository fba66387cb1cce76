"""Tracebacks as CPython prints them, of bounded size, without frames of ours."""

import re
import subprocess

import pytest

import gb


def as_python_prints(tmp_path, code):
    """What /usr/bin/python3 says about a program, with the file called as the first cell is."""
    path = tmp_path / 'program.py'
    path.write_text(code)
    said = subprocess.run([gb.PYTHON, '-I', '-B', path], capture_output=True, text=True, timeout=gb.PATIENCE).stderr
    return said.replace(str(path), '<cell 1>')


PROGRAMS = {
    'plain': 'def f(x):\n    return 1 / x\n\ndef g():\n    f(0)\n\ng()\n',
    'chained': 'try:\n    {}["a"]\nexcept KeyError as e:\n    raise ValueError("no a") from e\n',
    'context': 'try:\n    int("x")\nexcept ValueError:\n    None.foo\n',
    'suppressed': 'try:\n    int("x")\nexcept ValueError:\n    raise RuntimeError("only this") from None\n',
    'notes': 'e = ValueError("bad")\ne.add_note("first note")\ne.add_note("second\\nnote")\nraise e\n',
    'group': (
        'def fail(e):\n    try:\n        raise e\n    except Exception as x:\n        return x\n'
        'raise ExceptionGroup("several", [fail(ValueError(1)), ExceptionGroup("inner", [fail(TypeError("t"))])])\n'
    ),
    'syntax': 'x = 1\ny = (2 +\nz = 3\n',
    'caret': 'a = 1\nb = a a\n',
    'indent': 'if True:\nx = 1\n',
    'tab': 'if True:\n\tx = 1\n        y = 2\n',
    'unclosed': 'print("abc\n',
    'unclosed-bracket': 'x = [1, 2\n',
    'fstring': 'x = f"{1 +}"\n',
    'return-outside': 'return 5\n',
    'yield-outside': 'x = 1\n[(yield 1) for x in y]\n',
    'nonlocal': 'def f():\n    nonlocal x\n',
    'break-outside': 'if 1:\n    break\n',
    'await-in-def': 'def f():\n    await x\n',
    'name': 'lenght = 1\nprint(length)\n',
    'attribute': 'import math\nmath.squrt(2)\n',
    'import': 'import no_such_module\n',
    'import-name': 'from json import nothing\n',
    'assert': 'assert 1 == 2, "sums"\n',
    'column-marks': 'd = {"a": {"b": None}}\nd["a"]["b"]["c"]\n',
    'recursion': 'def f():\n    f()\nf()\n',
    'class': 'class C:\n    def m(self):\n        raise KeyError("k")\nC().m()\n',
    'own-exception': 'class Mine(Exception):\n    pass\nraise Mine("own")\n',
    'empty-message': 'raise ValueError\n',
    'unicode': 'ä = "grün"\nraise ValueError(ä * 2)\n',
    'multiline-message': 'raise ValueError("one\\ntwo")\n',
    'lambda': 'list(map(lambda n: 1 // n, [1, 0]))\n',
    'generator': 'def g():\n    yield 1\n    raise OSError(2, "gone", "file")\nlist(g())\n',
    'stdlib': 'import json\njson.loads("{bad")\n',
    'unpack': 'a, b = 1, 2, 3\n',
    'in-except-finally': 'try:\n    1/0\nfinally:\n    [][1]\n',
    'no-newline': 'raise ValueError("x")',
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_traceback_is_cpythons(api, tmp_path, name):
    code = PROGRAMS[name]
    expected = as_python_prints(tmp_path, code)
    seen = api.session().execute(code)
    assert seen.status == 'error' and seen.exit_code == 1
    # One frame of recursion more or less is where the cell's own stack begins.
    fold = lambda text: re.sub(r'repeated \d+ more', 'repeated N more', text)
    assert fold(seen.error['traceback']) == fold(expected)


def test_error_fields(session):
    seen = session.execute('x = 1\n\nint("abc")')
    error = seen.error
    assert error['type'] == 'ValueError'
    assert error['message'] == "invalid literal for int() with base 10: 'abc'"
    assert error['line'] == 3
    assert error['traceback'].startswith('Traceback (most recent call last):\n  File "<cell 1>", line 3, in <module>\n')
    assert set(error) == {'type', 'message', 'traceback', 'line', 'code', 'remediation'}


def test_source_lines_of_earlier_cells(session):
    session.execute('def inner():\n    raise LookupError("deep")').ok()
    session.execute('def outer():\n    inner()').ok()
    traceback = session.execute('outer()').error['traceback']
    assert re.findall(r'File "(<cell \d>)", line (\d+), in (\S+)\n    (.*)', traceback) == [
        ('<cell 3>', '1', '<module>', 'outer()'),
        ('<cell 2>', '2', 'outer', 'inner()'),
        ('<cell 1>', '2', 'inner', 'raise LookupError("deep")'),
    ]


def test_line_is_the_one_in_this_cell(session):
    session.execute('def f():\n\n\n\n    1/0').ok()
    assert session.execute('\nf()').error['line'] == 2


def test_syntax_error_runs_nothing(session):
    seen = session.execute('print("ran")\nx = = 1')
    assert seen.stdout == '' and seen.error['type'] == 'SyntaxError' and seen.error['line'] == 2


def test_tracebacks_have_no_frames_of_ours(session):
    session.execute(
        'import asyncio\nasync def bad():\n    await asyncio.sleep(0)\n    raise ValueError("async")\n'
        'class R:\n    def _repr_html_(self): raise KeyError("in repr")'
    ).ok()
    traceback = session.execute('await bad()').error['traceback']
    assert 'glovebox' not in traceback.lower() and 'asyncio/' not in traceback
    assert re.findall(r'File "(.*?)"', traceback) == ['<cell 2>', '<cell 1>']
    said = session.execute('R()')
    assert 'glovebox' not in str(said.error).lower() and '<glovebox>' not in said.stderr


def test_traceback_module_sees_the_cell(session):
    seen = session.execute('import traceback\ntry:\n    1/0\nexcept ZeroDivisionError:\n    traceback.print_exc()').ok()
    assert '  File "<cell 1>", line 3, in <module>\n    1/0\n' in seen.stderr
    seen = session.execute('import sys; sys.last_value')
    assert seen.status in ('ok', 'error')


def test_error_in_a_thread_is_on_stderr(session):
    seen = session.execute('import threading\nt = threading.Thread(target=lambda: 1/0); t.start(); t.join()').ok()
    assert 'ZeroDivisionError' in seen.stderr and '<cell 1>' in seen.stderr


def test_chain_of_100000_exceptions(session, daemon):
    before = daemon.rss()
    seen = session.execute(
        'e = None\nfor i in range(100_000):\n    n = ValueError(i)\n    n.__context__ = e\n    e = n\nraise e',
        timeout_s=60,
    )
    assert seen.status == 'error' and seen.error['type'] == 'ValueError'
    assert 'left out' in seen.error['traceback'] and len(seen.error['traceback']) < 300_000
    assert daemon.rss() - before < 32 << 20
    assert session.value('1') == '1'


def test_chain_that_is_a_circle(session):
    seen = session.execute('a, b = ValueError("a"), ValueError("b")\na.__context__ = b\nb.__context__ = a\nraise a')
    assert seen.status == 'error'
    assert session.value('1') == '1'


def test_deep_and_wide_groups(session):
    seen = session.execute(
        'e = ValueError(0)\nfor i in range(5000): e = ExceptionGroup("g", [e])\nraise e', timeout_s=60
    )
    assert seen.status == 'error' and len(seen.error['traceback']) < 300_000
    seen = session.execute('raise ExceptionGroup("wide", [ValueError(i) for i in range(100_000)])', timeout_s=60)
    assert 'and 99985 more exceptions' in seen.error['traceback']
    assert session.value('1') == '1'


def test_huge_messages_are_cut(session, daemon):
    before = daemon.rss()
    seen = session.execute('raise ValueError("m" * 100_000_000)', timeout_s=60)
    assert seen.error['type'] == 'ValueError'
    assert len(seen.error['message']) < 300_000 and len(seen.error['traceback']) < 300_000
    assert daemon.rss() - before < 32 << 20


def test_hostile_exceptions(session):
    hostile = {
        'str raises': 'class E(Exception):\n  def __str__(self): raise RuntimeError\nraise E()',
        'str never ends': 'class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E()',
        'str exits': 'class E(Exception):\n  def __str__(self): raise SystemExit(3)\nraise E()',
        'repr of type': 'class M(type):\n  def __repr__(c): 1/0\nclass E(Exception, metaclass=M): pass\nraise E()',
        'odd name': 'E = type("x\\n\\0y" * 1000, (Exception,), {})\nraise E()',
        'odd notes': 'e = ValueError()\ne.__notes__ = 5\nraise e',
        'many notes': 'e = ValueError()\nfor i in range(10**5): e.add_note("n" * 100)\nraise e',
        'odd traceback': 'e = ValueError()\ne.__traceback__ = None\nraise e',
        'base exception': 'raise BaseException("base")',
        'generator exit': 'raise GeneratorExit',
        'stop iteration': 'raise StopIteration',
        'no exception': 'raise 5',
        'surrogates': 'raise ValueError("\\ud800\\udfff")',
        'nul': 'raise ValueError("a\\0b")',
    }
    for name, code in hostile.items():
        seen = session.execute(code, timeout_s=2)
        assert seen.status in ('error', 'timeout', 'interrupted'), name
        assert seen.error['type'], name
        assert session.value('1') == '1', name


def test_settrace_and_excepthook_do_not_break_us(session):
    session.execute('import sys\nsys.excepthook = None\nsys.settrace(lambda *a: 1/0)')
    seen = session.execute('1/0')
    assert seen.status == 'error'
    session.execute('sys.settrace(None)')
    assert session.value('1') == '1'


def test_traceback_module_replaced(session):
    session.execute(
        'import traceback\ntraceback.TracebackException.format = None\nimport linecache\nlinecache.getlines = None'
    ).ok()
    seen = session.execute('1/0')
    assert seen.error['type'] == 'ZeroDivisionError'
