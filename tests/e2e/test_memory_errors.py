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


FULL = 'kept = []\nwhile True: kept.append(bytearray(1 << 20))'


def test_a_session_that_keeps_its_memory_has_a_snapshot(small):
    """Beyond half of the memory a snapshot is taken, too; it shares what neither changes."""
    assert small.execute(FULL, timeout_s=60).status == 'out_of_memory'
    small.execute('n = len(kept); y = 43').ok()
    seen = small.execute('y = 0; kept[0][0] = 1; import os; os._exit(1)', transaction=True)
    assert seen.rolled_back and not seen.state_lost, seen.error
    assert small.value('x, y, len(kept) == n, kept[0][0]') == '(42, 43, True, 0)'


def test_such_a_snapshot_goes_first_when_memory_runs_short(small):
    """The session goes on; a crash in that cell then costs the state, and the answer says why."""
    small.execute('import numpy; a = numpy.ones(300 << 17)').ok()  # 300 MB
    seen = small.execute('a += 1; float(a[-1])', transaction=True, timeout_s=60).ok()
    assert seen.text == '2.0'
    assert small.value('x, float(a[0])') == '(42, 2.0)'
    seen = small.execute('a += 1; import os; os._exit(1)', transaction=True, timeout_s=60)
    assert seen.status == 'killed' and seen.exit_code == 1 and (seen.rolled_back or 'memory ran short' in seen.error['remediation']), seen


def test_a_session_within_its_limit_is_never_ended_for_a_snapshot(small):
    small.execute('import numpy; a = numpy.ones(215 << 17)').ok()  # a little more than half
    small.execute('"a snapshot"', transaction=True).ok()
    for i in range(3):
        seen = small.execute('a += 1; b = numpy.ones(140 << 17); b += 1; del b; float(a[-1])', transaction=True, timeout_s=60).ok()
        assert seen.text == f'{i + 2}.0'
    assert small.value('x') == '42'


def test_no_checkpoint_is_made_of_it(small):
    small.execute('import numpy; a = numpy.ones(300 << 17)').ok()
    answer = small.api.post(f'{small.path}/checkpoints', json={})
    assert answer.status_code == 409 and 'more than half' in answer.text
