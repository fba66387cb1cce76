"""format_error(): as CPython prints it, bounded, and whatever the exception is like."""

import subprocess
import sys
import traceback

import pytest

HAS_GROUPS = sys.version_info >= (3, 11)


def printed_by_cpython(source, tmp_path):
    """What the interpreter itself prints, with its file's name replaced by the cell's."""
    path = tmp_path / 'cell.py'
    path.write_text(source)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    text = done.stderr.replace(str(path), '<cell 1>')
    # Before 3.11 the interpreter wrote __main__.E where the traceback module writes E, as we do.
    return text if HAS_GROUPS else text.replace('__main__.', '')


@pytest.mark.parametrize(
    'source',
    [
        'def f(x):\n    return 1 / x\n\nf(0)\n',
        'try:\n    {}["a"]\nexcept KeyError as e:\n    raise ValueError("bad") from e\n',
        'try:\n    {}["a"]\nexcept KeyError:\n    raise ValueError("bad")\n',
        'try:\n    {}["a"]\nexcept KeyError:\n    raise ValueError("bad") from None\n',
        'def r(n):\n    return r(n + 1) if n < 90 else 1 / 0\nr(0)\n',
        'import json\njson.loads("{")\n',
        'class E(Exception):\n    pass\nraise E("é ☃ 𝄞", 2)\n',
        'assert 1 == 2, "no"\n',
        'eval("1 +")\n',
        'x = [1, 2][3]["a"] + foo(1)(2)\n',
        'raise SystemError\n',
        'class A:\n    class B(Exception):\n        pass\nraise A.B("multi\\nline")\n',
        'def f():\n    class L(Exception): pass\n    raise L\nf()\n',
    ],
)
def test_as_cpython_prints_it(cells, tmp_path, source):
    assert cells.error(source)[2] == printed_by_cpython(source, tmp_path)


@pytest.mark.parametrize(
    'source',
    ['x = = 1\n', 'def f(:\n', 'if 1:\nx = 1\n', 'print("abc\n', '(1,\n', 'x = 1\n  y = 2\n', 'é = 08\n'],
)
def test_syntax_error_with_its_caret(gb, tmp_path, source):
    gb.register_source('<cell 1>', source)
    with pytest.raises(SyntaxError) as caught:
        compile(source, '<cell 1>', 'exec')
    error = caught.value.with_traceback(None)
    name, message, text, line, notes = gb.format_error(error, '<cell 1>')
    assert text == printed_by_cpython(source, tmp_path)
    assert not text.startswith('Traceback')
    assert name == type(error).__name__
    assert line == error.lineno


@pytest.mark.skipif(not HAS_GROUPS, reason='exception groups came with Python 3.11')
@pytest.mark.parametrize(
    'source',
    [
        'raise ExceptionGroup("some", [ValueError(1), TypeError("t")])\n',
        'try:\n    1 / 0\nexcept Exception as e:\n    raise ExceptionGroup("g", [e, ExceptionGroup("h", [KeyError("k")])]) from e\n',
        'e = ValueError("v")\ne.add_note("first\\nsecond")\ne.add_note("third")\nraise e\n',
        'raise ExceptionGroup("many", [ValueError(i) for i in range(20)])\n',
    ],
)
def test_groups_and_notes(cells, tmp_path, source):
    assert cells.error(source)[2] == printed_by_cpython(source, tmp_path)


@pytest.mark.skipif(sys.version_info < (3, 10), reason='suggestions came with Python 3.10')
@pytest.mark.parametrize(
    'source',
    [
        'pritn(1)\n',
        'value = 1\nprint(valeu)\n',
        'def f(number):\n    return nubmer\nf(1)\n',
        '"a".uper()\n',
        '[].apend(1)\n',
        'import math\nmath.Sqrt(2)\n',
        'qqqqqq\n',
        'values = 1\nvalue\n',
        'class T:\n    def __dir__(self):\n        return 5\nT().x\n',
    ],
)
def test_did_you_mean(cells, tmp_path, source):
    assert cells.error(source)[2] == printed_by_cpython(source, tmp_path)


def test_fields(cells):
    name, message, text, line, notes = cells.error('x = 1\n\nraise ValueError("bad", 1)\n')
    assert (name, message, line, notes) == ('ValueError', "('bad', 1)", 3, [])
    assert cells.error('import json\njson.loads("{")')[0] == 'json.decoder.JSONDecodeError'
    assert cells.error('class Mine(Exception): pass\nraise Mine')[0] == 'Mine'
    assert cells.error('def f():\n  class In(Exception): pass\n  raise In\nf()')[0] == 'f.<locals>.In'


def test_line_is_the_nearest_one_of_this_cell(cells):
    cells.error('def helper():\n    pass\n\n\n    raise ValueError')
    name, message, text, line, notes = cells.error('\nhelper()\n')
    assert line == 2
    assert 'File "<cell 1>", line 5, in helper\n    raise ValueError' in text
    assert cells.error('import json\n\njson.loads("{")')[3] == 3
    assert cells.error('def f():\n    1 / 0\nf()')[3] == 2
    assert cells.gb.format_error(ValueError('never raised'), '<cell 1>')[3] == 0


def test_frames_of_ours_do_not_show(gb, cells):
    exec(compile('def call(f):\n    return f()\n', '<glovebox>', 'exec'), vars(gb))
    cells.namespace['call'] = gb.call
    text = cells.error('def f():\n    1 / 0\ncall(lambda: call(f))\n')[2]
    assert '<glovebox>' not in text
    assert text.count('File "<cell 1>"') == 3


def test_survives_clearcache(cells):
    cells.error('def f():\n    raise ValueError("deep")  # marked\n')
    text = cells.error('import linecache\nlinecache.checkcache()\nlinecache.clearcache()\nf()')[2]
    assert '# marked' in text and '    f()\n' in text


# ---- bounds ------------------------------------------------------------


def chain(n):
    newest = None
    for i in range(n):
        e = ValueError(i)
        e.__context__ = newest
        newest = e
    return newest


def test_long_chain_is_cut_in_the_middle(gb):
    text = gb.format_error(chain(100_000))[2]
    assert text.startswith('ValueError: 0\n')
    assert text.endswith('ValueError: 99999\n')
    assert '[... 99,950 exceptions of this chain left out ...]' in text
    assert text.count('ValueError') == 50
    assert 'left out' not in gb.format_error(chain(50))[2]


def test_chain_with_a_loop(gb):
    a, b = ValueError('a'), ValueError('b')
    a.__cause__, b.__cause__ = b, a
    text = gb.format_error(a)[2]
    assert text.count('ValueError: a') == 1 and text.count('ValueError: b') == 1
    a.__cause__ = a.__context__ = a
    assert gb.format_error(a)[2].count('ValueError: a') == 1


def test_endless_chain_by_property(gb):
    class Endless(Exception):
        __cause__ = property(lambda self: Endless())
        __context__ = property(lambda self: 1 / 0)

    assert gb.format_error(Endless('x'))[2].endswith('Endless: x\n')


def test_deep_recursion_is_folded(cells):
    limit = sys.getrecursionlimit()
    text = cells.error(
        f'import sys\nsys.setrecursionlimit({limit + 9000})\ndef r(n):\n    return r(n + 1)\nr(0)'
    )[2]
    sys.setrecursionlimit(limit)
    assert '[Previous line repeated ' in text
    assert len(text) < 1000


def test_many_different_frames_lose_their_middle(cells, gb):
    limit = sys.getrecursionlimit()
    text = cells.error(
        f'import sys\nsys.setrecursionlimit({limit + 9000})\ndef a(n):\n    b(n)\ndef b(n):\n    if n == 0: 1 / 0\n    a(n - 1)\na(2500)'
    )[2]
    sys.setrecursionlimit(limit)
    assert ' frames left out ...]' in text
    assert text.count('File "<cell 1>"') == gb.MAX_FRAMES
    assert text.endswith('ZeroDivisionError: division by zero\n')


def test_long_texts_are_cut(gb):
    name, message, text, line, notes = gb.format_error(ValueError('x' * 10_000_000))
    assert len(message) < gb.MAX_MESSAGE + 100 and 'characters left out' in message
    assert len(text) < gb.MAX_TRACEBACK + 100
    text = gb.format_error(ValueError('☃' * 300_000))[2]
    assert len(text.encode()) < gb.MAX_TRACEBACK + 100
    assert gb.format_error(ValueError('a\ud800b'))[1] == 'a\\ud800b'


@pytest.mark.skipif(not HAS_GROUPS, reason='exception groups came with Python 3.11')
def test_large_and_deep_groups(gb):
    text = gb.format_error(ExceptionGroup('wide', [ValueError(i) for i in range(100_000)]))[2]
    assert 'and 99985 more exceptions' in text
    deep = ValueError('bottom')
    for i in range(5000):
        deep = ExceptionGroup(str(i), [deep])
    assert 'max_group_depth is 10' in gb.format_error(deep)[2]
    bushy = ValueError('leaf')
    for i in range(9):
        bushy = ExceptionGroup(str(i), [bushy] * 15)
    assert 'more exceptions left out' in gb.format_error(bushy)[2]


def test_bad_notes(gb):
    class Odd(Exception):
        pass

    class Bad:
        def __str__(self):
            1 / 0

    for notes, expected in (
        (5, '5'),
        ('text', "'text'"),
        ([Bad(), 'ok'], '<note str() failed>'),
        (['n'] * 100_000, 'n'),
        (Bad(), 'Bad object'),
    ):
        error = Odd('x')
        error.__notes__ = notes
        assert expected in '\n'.join(gb.format_error(error)[4])
        assert 'Odd: x' in gb.format_error(error)[2]
        assert len(gb.format_error(error)[2]) < 10_000


def test_bad_str(gb):
    class Raises(Exception):
        def __str__(self):
            1 / 0

    class NotText(Exception):
        def __str__(self):
            return 5

    class Exits(Exception):
        def __str__(self):
            raise SystemExit

    class Lies(str):
        def __str__(self):
            1 / 0

        __len__ = encode = isascii = __str__

    class LyingText(Exception):
        def __str__(self):
            return Lies('lies')

    for kind in (Raises, NotText, Exits):
        name, message, text, line, notes = gb.format_error(kind('x'))
        assert message == '<exception str() failed>'
        assert name in text
    assert type(gb.format_error(LyingText())[1]) is str


def test_bad_attributes(gb):
    class Meta(type):
        __module__ = property(lambda cls: 5)

    class Odd(Exception, metaclass=Meta):
        pass

    class Hides(SyntaxError):
        lineno = filename = property(lambda self: 1 / 0)

    error = SyntaxError('msg', ('<cell 1>', 'one', [], {}))
    for e in (Odd('x'), Hides('x'), error, SyntaxError(), SyntaxError('m', ('<cell 1>', 10**30, 1, 'x'))):
        name, message, text, line, notes = gb.format_error(e, '<cell 1>')
        assert all(type(t) is str for t in (name, message, text)) and text
        assert line == 0


def test_a_broken_traceback_module(gb, monkeypatch):
    monkeypatch.setattr(traceback.TracebackException, 'format', lambda self: 1 / 0)
    assert gb.format_error(ValueError('x'))[2] == 'ValueError: x\n'


def test_replaced_builtins_do_not_matter(guest):
    guest(
        'import builtins\nsaved = dict(vars(builtins))\nfor n in ("len", "isinstance", "repr", "str", "type", "dict"):\n    delattr(builtins, n)',
        '[1, 2]',
        '1 / 0',
        'vars(builtins).update(saved)',
    )
    assert guest.cells[1].result[0] == ['text/plain', 't', '[1, 2]']
    assert guest.cells[2].error[0] == 'ZeroDivisionError'
