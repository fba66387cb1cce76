"""Processes that multiprocessing starts anew find what the code defined, in programs and in cells."""

import pytest

METHODS = ['spawn', 'forkserver']
DEFINITIONS = """
import math
SCALE = 10
class Point:
    def __init__(self, x):
        self.x = x
ORIGIN = Point(1)
def grow(x, by=SCALE):
    return math.floor(x * by) + SCALE + ORIGIN.x
def make(x):
    return Point(grow(x))
"""
USE = """
import multiprocessing
with multiprocessing.get_context('{}').Pool(2) as pool:
    made = pool.map(make, [1, 2])
    answer = pool.map(grow, [1, 2]), [p.x for p in made], {{type(p) is Point for p in made}}
"""
EXPECTED = '([21, 31], [21, 31], {True})'


@pytest.mark.parametrize('method', METHODS)
def test_cells(session, method):
    for code in (DEFINITIONS, USE.format(method)):
        session.execute(code, timeout_s=60).ok()
    assert session.value('answer') == EXPECTED
    session.execute('SCALE = 100\ndef grow(x):\n    return later(x) + SCALE\n\ndef later(x): return x').ok()
    o = session.execute(f'with multiprocessing.get_context("{method}").Pool(1) as pool:\n    r = pool.map(grow, [1])\nr', timeout_s=60).ok()
    assert o.text == '[101]' and o.stderr == '' and o.files == []


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('guarded', [True, False])
def test_programs(api, method, guarded):
    use = USE.format(method).strip()
    if guarded:
        use = "if __name__ == '__main__':\n    " + use.replace('\n', '\n    ')
    o = api.run(f'{DEFINITIONS}\n{use}\nif __name__ == "__main__": print(answer)', timeout_s=60) if guarded else api.run(f'{DEFINITIONS}\n{use}\nprint(answer)', timeout_s=60)
    assert (o.stdout.strip(), o.stderr, o.status) == (EXPECTED, '', 'ok')


def test_executors_and_processes(session):
    session.execute(DEFINITIONS).ok()
    code = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
context = multiprocessing.get_context('spawn')
with ProcessPoolExecutor(2, mp_context=context) as pool:
    first = list(pool.map(grow, [1, 2]))
def put(queue, x):
    queue.put(grow(x))
queue = context.Queue()
process = context.Process(target=put, args=(queue, 3))
process.start()
second = queue.get(timeout=30)
process.join()
first, second, process.exitcode
"""
    assert session.execute(code, timeout_s=60).ok().text == '([21, 31], 41, 0)'


def test_an_error_in_a_child_tells_the_line_of_the_cell(session):
    session.execute('x = 1\n\ndef fail(n):\n    return 1 / n').ok()
    o = session.execute('import multiprocessing\nwith multiprocessing.get_context("spawn").Pool(1) as pool:\n    pool.map(fail, [0])', timeout_s=60)
    assert o.error['type'] == 'ZeroDivisionError' and 'line 4, in fail' in o.error['traceback']


def test_decorated_and_nested_definitions(session):
    code = """
import functools
from dataclasses import dataclass
@functools.lru_cache
def slow(x):
    return x + 1
@dataclass
class Pair:
    left: int
    right: int = 2
if True: pass
def total(pair): return slow(pair.left) + pair.right
"""
    session.execute(code).ok()
    use = 'import multiprocessing\nwith multiprocessing.get_context("spawn").Pool(1) as pool:\n    r = pool.map(total, [Pair(1), Pair(3, 4)])\nr'
    assert session.execute(use, timeout_s=60).ok().text == '[4, 8]'
