"""register_source(), inspect on what cells define, is_complete()."""

import linecache
import sys

import pytest
from conftest import SUPPORT


def test_linecache_knows_cells(gb):
    gb.register_source('<cell 1>', 'a\nb\r\nc\rd\fe\u2028f')
    linecache.checkcache()
    assert linecache.getlines('<cell 1>') == ['a\n', 'b\n', 'c\n', 'd\fe\u2028f\n']
    gb.register_source('<cell 1>', '')
    assert linecache.getlines('<cell 1>') == []


def test_line_numbers_are_the_compilers(cells):
    name, message, text, line, notes = cells.error('x = "a\fb\x1c\u2028"\n\f\n1 / 0  # here\n')
    assert line == 3 and '1 / 0  # here' in text


def test_sources_are_bounded(gb):
    mib = 'x = 1' + ' ' * (1 << 20)
    for i in range(80):
        gb.register_source(f'<bound {i}>', mib)
    assert gb._entries_bytes <= gb.MAX_SOURCES
    assert linecache.getlines('<bound 79>') and not linecache.getlines('<bound 1>')
    many_lines = 'x\n' * 500_000
    gb.register_source('<many>', many_lines)
    assert len(linecache.getlines('<many>')) == 500_000
    assert gb._entries_bytes <= gb.MAX_SOURCES
    for i in range(100):
        gb.register_source('<bound 79>', mib)
    assert gb._entries_bytes == sum(map(gb._cost, gb._entries.values()))
    for name in gb._entries:
        del linecache.cache[name]


SOURCES = {
    'function': 'def thing(x):\n    return x\n',
    'coroutine': 'async def thing(x):\n    return x\n',
    'class': 'class thing:\n    def method(self):\n        pass\n',
    'class without methods': 'class thing:\n    x = 1\n',
    'nested class': 'class thing:\n    class inner:\n        y = 2\n',
    'dataclass': '@dataclasses.dataclass\nclass thing:\n    x: int\n    y: int = 2\n',
    'decorated': '@functools.lru_cache(None)\ndef thing(x):\n    return x\n',
    'enum': 'class thing(enum.Enum):\n    A = 1\n',
    'only properties': 'class thing:\n    @property\n    def p(self): return 1\n',
    'only statics': 'class thing:\n    @staticmethod\n    def p(): return 1\n',
}


@pytest.mark.parametrize('kind', SOURCES)
def test_getsource(guest, kind):
    outcome = guest(
        'import inspect, dataclasses, functools, enum\nclass other: pass',
        '# a comment\n\n' + SOURCES[kind],
        'unrelated = "class thing"',
        'inspect.getsource(thing)',
    )
    assert outcome.error is None, outcome.error[2]
    assert eval(outcome.result[0][2]) == SOURCES[kind]


def test_getsource_of_parts(guest):
    outcome = guest(
        'import inspect\nclass A:\n    class B:\n        z = 1\n    def m(self):\n        return 1\nf = lambda x: x + 1\n',
        'def make():\n    class Local:\n        q = 1\n    return Local\n',
        '[inspect.getsource(t) for t in (A.B, A.m, A().m, f, make())]',
    )
    assert outcome.error is None, outcome.error[2]
    assert eval(outcome.result[0][2]) == [
        '    class B:\n        z = 1\n',
        '    def m(self):\n        return 1\n',
        '    def m(self):\n        return 1\n',
        'f = lambda x: x + 1\n',
        '    class Local:\n        q = 1\n',
    ]


def test_getsource_of_a_redefined_class(guest):
    outcome = guest(
        'import inspect\nclass A:\n    def f(self): return 1\nold = A',
        'class A:\n    def f(self): return 2',
        'def stranger(self): pass\nclass C:\n    x = 1\n    borrowed = stranger\n',
        '[inspect.getsource(old), inspect.getsource(A), inspect.getsource(C)]',
    )
    assert eval(outcome.result[0][2]) == [
        'class A:\n    def f(self): return 1\n',
        'class A:\n    def f(self): return 2\n',
        'class C:\n    x = 1\n    borrowed = stranger\n',
    ]


def test_getsource_still_refuses_what_it_should(guest):
    guest(
        'import inspect\nA = type("A", (), {})',
        'inspect.getsource(A)',
        'inspect.getsource(int)',
        'inspect.getsource(5)',
    )
    assert [cell.error[0] for cell in guest.cells[1:]] == [
        'OSError' if sys.version_info >= (3, 10) else 'TypeError',
        'TypeError',
        'TypeError',
    ]
    outcome = guest(
        'import inspect, json\n"def dumps" in inspect.getsource(json), inspect.getfile(json.JSONEncoder)[-10:]'
    )
    assert outcome.result[0][2] == "(True, 'encoder.py')"


def test_pickle_and_multiprocessing(guest):
    guest(
        'import pickle, dataclasses, multiprocessing\n@dataclasses.dataclass\nclass P:\n    x: int\ndef double(p): return P(p.x * 2)',
        'pickle.loads(pickle.dumps(P(3))), pickle.loads(pickle.dumps(double)) is double',
        'with multiprocessing.get_context("fork").Pool(2) as pool:\n    r = pool.map(double, [P(1), P(2)])\nr',
    )
    assert guest.cells[1].result[0][2] == '(P(x=3), True)'
    assert guest.cells[2].error is None, guest.cells[2].error[2]
    assert guest.cells[2].result[0][2] == '[P(x=2), P(x=4)]'


@pytest.mark.parametrize(
    'source, expected',
    [
        ('', 'complete'),
        ('# only a comment', 'complete'),
        ('x = 1', 'complete'),
        ('x = 1\ny = 2', 'complete'),
        ('await f()', 'complete'),
        ('async for x in y:', 'incomplete'),
        ('def f():', 'incomplete'),
        ('def f():\n    return 1', 'incomplete'),
        ('def f():\n    return 1\n', 'complete'),
        ('def f():\n    return 1\n    ', 'complete'),
        ('for i in x: print(i)', 'incomplete'),
        ('for i in x: print(i)\n', 'complete'),
        ('if x:\n    pass\nelse:', 'incomplete'),
        ('try:\n    x', 'incomplete'),
        ('@decorator', 'incomplete'),
        ('@decorator\ndef f(): pass', 'incomplete'),
        ('x = \\', 'incomplete'),
        ('f(1,', 'incomplete'),
        ("'''text", 'incomplete'),
        ("'''text\n", 'incomplete'),
        ("print('abc", 'invalid'),
        ('x = = 1', 'invalid'),
        ('return 5', 'invalid'),
        ('a b', 'invalid'),
        (')', 'invalid'),
        ('x = "\\', 'incomplete'),
        ('(' * 300, 'invalid'),
    ],
)
def test_is_complete(gb, source, expected):
    assert gb.is_complete(source) == expected


def test_is_complete_is_silent(gb, recwarn):
    assert gb.is_complete('x = 1 is 1\ny = "\\d"') == 'complete'
    assert not recwarn.list


def test_files_join_in_alphabetical_order():
    """The guest may also run them as one text."""
    namespace = {'__name__': '_glovebox'}
    text = '\n'.join(path.read_text() for path in sorted(SUPPORT.glob('*.py')))
    exec(compile(text, '<glovebox>', 'exec'), namespace)
    assert namespace['bundle'](2) == [('text/plain', 't', '2'), ('application/json', 'j', '2')]
    assert namespace['format_error'](ValueError('x'))[2] == 'ValueError: x\n'
