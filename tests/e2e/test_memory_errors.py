"""A cell that runs out of memory: the memory is free again, and the session has a snapshot to go back to."""

import pytest

LIMIT = 400 << 20
MEGABYTE = 1 << 20

FILLS = {
    'large objects': 'def f():\n  kept = []\n  while True: kept.append(bytearray(1 << 20))\nf()',
    'malloc': 'def f():\n  kept = []\n  while True: kept.append(bytearray(5000))\nf()',
    'small objects': 'def f():\n  kept = []\n  while True: kept.append(str(len(kept)) * 20)\nf()',
    'numpy': 'import numpy\ndef f():\n  kept = []\n  while True: kept.append(numpy.ones(1 << 18))\nf()',
    'generator': 'def g():\n  kept = []\n  while True:\n    kept.append(bytearray(1 << 20)); yield 1\nfor _ in g(): pass',
    'chained': 'def f():\n  kept = []\n  try:\n    while True: kept.append(bytearray(1 << 20))\n'
    '  except MemoryError as e:\n    held = e\n    raise ValueError("full")\nf()',
    'a cycle': 'def f():\n  kept = []\n  kept.append(kept)\n  while True: kept.append(bytearray(1 << 20))\nf()',
}


def resident(session):
    """Bytes of memory that the interpreter has."""
    return int(session.value('int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0])')) * 1024


@pytest.fixture
def small(api):
    session = api.session(limits={'memory_bytes': LIMIT})
    session.execute('x = 42').ok()
    return session


@pytest.mark.parametrize('kind', FILLS)
def test_its_memory_is_released(small, kind):
    before = resident(small)
    seen = small.execute(FILLS[kind], timeout_s=60)
    assert seen.status == ('error' if kind == 'chained' else 'out_of_memory')
    assert 'MemoryError' in seen.error['traceback'] and 'line' in seen.error['traceback']
    assert resident(small) < before + 40 * MEGABYTE
    small.execute('b = bytearray(100 << 20); del b').ok()


def test_there_is_a_snapshot_after_it(small):
    small.execute(FILLS['large objects'], timeout_s=60)
    small.execute('y = 43').ok()
    seen = small.execute('y = 0; import os; os._exit(1)', transaction=True)
    assert seen.rolled_back and not seen.state_lost, seen.error
    assert small.value('x, y') == '(42, 43)'


def test_the_error_can_still_be_printed(small):
    small.execute('def f():\n  kept = bytearray(300 << 20)\n  return kept * 2\nf()')
    seen = small.execute('import sys, traceback\ntraceback.print_exception(sys.last_value)\nsys.last_traceback.tb_next.tb_lineno').ok()
    assert seen.text == '3' and 'return kept * 2' in seen.stderr and seen.stderr.endswith('MemoryError\n')


def test_other_errors_keep_their_frames(small):
    small.execute('def f():\n  inside = 7\n  1 / 0\nf()')
    assert small.value('import sys; sys.last_traceback.tb_next.tb_frame.f_locals["inside"]') == '7'


def test_a_generator_that_goes_on_is_not_closed(small):
    small.execute(
        'def g():\n  global saved\n  try: bytearray(1 << 40)\n  except MemoryError as e: saved = e\n  n = 1\n  while True: yield n; n += 1\n'
        'it = g(); next(it)\nraise ValueError("later") from saved'
    )
    assert small.value('next(it)') == '2'


def test_variables_that_keep_the_memory_can_be_looked_at_and_deleted(small):
    seen = small.execute('kept = []\nwhile True: kept.append(bytearray(1 << 20))', timeout_s=60)
    assert seen.status == 'out_of_memory'
    for _ in range(3):  # each has a little room
        assert small.value('len(kept) > 300, sum(range(100000)), len([str(i) for i in range(10000)])') == '(True, 4999950000, 10000)'
        assert small.execute('more = bytearray(100 << 20)').status == 'out_of_memory'
    small.execute('del kept').ok()
    small.execute('more = bytearray(300 << 20)').ok()
    assert small.execute('again = bytearray(105 << 20)').status == 'out_of_memory'  # the limit is what it was
