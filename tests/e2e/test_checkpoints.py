"""Checkpoints: taken, listed as a tree, gone back to, let go of."""

import contextlib
import os
import random
import re
import signal
from pathlib import Path

import gb
import pytest


def checkpoint(session, name=None):
    answer = session.api.post(f'{session.path}/checkpoints', json={'name': name} if name else {})
    assert answer.status_code == 201, answer.text
    return answer.json()['checkpoint']


def rollback(session, which=None):
    answer = session.api.post(f'{session.path}/rollback', json={'checkpoint': which} if which else {'undo': True})
    assert answer.status_code == 200, answer.text
    return answer.json()


def tree(session):
    return session.api.get(f'{session.path}/checkpoints').json()['checkpoints']


def test_there_and_back(session):
    session.execute('x = [1]; open("f", "w").write("one")').ok()
    first = checkpoint(session, 'first')
    assert first['name'] == 'first' and first['cell'] == 1 and first['files'] and first['current']
    session.execute('x.append(2); open("f", "w").write("two"); open("g", "w").close()').ok()
    second = checkpoint(session)
    assert second['name'] == 'cell 2' and second['parent'] == first['id']
    session.execute('x.append(3)').ok()
    look = 'import os\nx, open("f").read(), sorted(os.listdir())'
    assert rollback(session, 'first')['checkpoint']['id'] == first['id']
    assert session.value(look) == "([1], 'one', ['f'])"
    rollback(session, second['id'])
    assert session.value(look) == "([1, 2], 'two', ['f', 'g'])"
    rollback(session, first['id'])
    assert session.value(look) == "([1], 'one', ['f'])"
    assert {c['name'] for c in tree(session)} >= {'first', 'cell 2'}
    assert all(c['size_bytes'] > 0 for c in tree(session))


def test_before_the_first_cell(api):
    session = api.session()
    start = checkpoint(session, 'start')
    assert start['cell'] == 0 and start['parent'] is None
    session.execute('x = 1; open("f", "w").close()').ok()
    rollback(session, 'start')
    assert session.value('import os; "x" in globals(), os.listdir()') == '(False, [])'


def test_branches_are_a_tree(session):
    session.execute('x = 0').ok()
    root = checkpoint(session, 'root')
    for i in (1, 2):
        rollback(session, 'root')
        session.execute(f'x = {i}').ok()
        checkpoint(session, f'branch {i}')
    parents = {c['name']: c['parent'] for c in tree(session) if c['name']}
    assert parents['branch 1'] == parents['branch 2'] == root['id']
    rollback(session, 'branch 1')
    assert [c['name'] for c in tree(session) if c['current']] == ['branch 1']
    assert session.value('x') == '1'


@pytest.mark.parametrize('pause', [False, True])
def test_undo(session, pause):
    """Whether a copy was taken between the cells or not."""
    for i in range(3):
        before = session.api.metrics()['glovebox_copies_parked_total']
        session.execute(f'x = {i}; open("f", "w").write("{i}")').ok()
        if pause:
            gb.wait_until(lambda: session.api.metrics()['glovebox_copies_parked_total'] > before, 'a copy is parked')
    rollback(session)
    assert session.value('x, open("f").read()') == "(1, '1')"
    rollback(session)
    assert session.value('x') == '1', 'what was undone was the looking'


def test_undo_many(api):
    session = api.session(keep_checkpoints=6)
    for i in range(6):
        before = session.api.metrics()['glovebox_copies_parked_total']
        session.execute(f'x = {i}').ok()
        gb.wait_until(lambda: session.api.metrics()['glovebox_copies_parked_total'] > before, 'a copy is parked')
    for i in (4, 3, 2):
        rollback(session)
    assert session.value('x') == '2'


def test_undo_beside_a_checkpoint_of_another_branch(api):
    """The way back leads over a copy of what was before the checkpoint, which must not have gone."""
    session = api.session()

    def run(code):
        cell = session.execute(code).ok()['cell']
        gb.wait_until(lambda: any(c['cell'] == cell for c in tree(session)), 'a copy after the cell')

    run('x = 0')
    run('x = 1')
    checkpoint(session, 'branch')
    run('x = 2')
    rollback(session, 'branch')
    rollback(session)
    run('x = 7')
    rollback(session)
    assert session.value('x') == '0'


def test_undo_of_nothing(api):
    session = api.session()
    session.execute('1', transaction=False).ok()
    session.execute('2', transaction=False).ok()
    answer = session.api.post(f'{session.path}/rollback', json={'undo': True})
    assert answer.status_code == 409 and answer.json()['code'] == 'nothing_to_undo'


def test_wrong_requests(session):
    post = lambda path, **body: session.api.post(f'{session.path}/{path}', json=body)
    assert post('rollback', checkpoint='none').json()['code'] == 'checkpoint_not_found'
    assert post('rollback').status_code == 400
    assert session.api.delete(f'{session.path}/checkpoints/none').status_code == 404
    running = session.in_background('import time; time.sleep(1e6)')
    session.wait_busy()
    assert post('checkpoints').json()['code'] == 'session_busy'
    session.interrupt()
    running.result()


def test_the_least_used_goes(api):
    session = api.session()
    ids = []
    for i in range(17):
        session.execute(f'x = {i}').ok()
        answer = session.api.post(f'{session.path}/checkpoints', json={'name': str(i)}).json()
        ids.append(answer['checkpoint']['id'])
        if i == 3:
            rollback(session, '0')
    assert answer['evicted'] == [ids[1]], 'the first was used since'
    assert session.api.delete(f'{session.path}/checkpoints/5').status_code == 204
    assert not [c for c in tree(session) if c['name'] == '5']
    rollback(session, '0')
    assert session.value('x') == '0'


def test_deaths_go_back_to_what_was_rolled_back_to(session):
    session.execute('x = 1').ok()
    checkpoint(session, 'one')
    session.execute('x = 2').ok()
    rollback(session, 'one')
    assert session.execute('x = 3; import os; os._exit(1)').rolled_back
    assert session.value('x') == '1'


def test_again_and_again(session):
    """The copy itself takes over and leaves another one in its place, each time."""
    session.execute('x = [0]; open("f", "w").write("01"); f = open("f"); f.read(1)').ok()
    here = checkpoint(session, 'here')['id']
    pids = set()
    for i in range(40):
        if i % 2:
            session.execute('x.append(1); f.read(); f.close(); open("f", "w").close()').ok()
        assert rollback(session, 'here')['checkpoint']['id'] == here
        pids.add(session.get()['pid'])
    assert session.value('x, f.read(), open("f").read()') == "([0], '1', '01')"
    assert len(pids) > 1 and [c['id'] for c in tree(session) if c['name'] == 'here'] == [here]
    assert session.execute('x.append(1); import os; os._exit(1)').rolled_back
    assert session.value('x') == '[0]'


def test_at_once_after_a_way_back(session):
    """What is asked of a checkpoint whose copy has just taken over waits for the one that it leaves behind."""
    session.execute('x = 1').ok()
    here = checkpoint(session, 'here')['id']
    for _ in range(5):
        rollback(session, 'here')
        assert [c['id'] for c in tree(session) if c['current']] == [here]
        rollback(session, here)
        made = session.api.post(f'{session.path}/fork', json={'at': 'here'})
        assert made.status_code == 201, made.text
        child = gb.Session(session.api, made.json()['sessions'][0])
        assert child.value('x') == '1'
        child.delete()
        rollback(session, here)
        assert checkpoint(session, 'same')['parent'] == here
        rollback(session, 'same')
        assert session.api.delete(f'{session.path}/checkpoints/same').status_code == 204
        rollback(session, here)
        session.execute('x += 1').ok()
    rollback(session, here)
    assert session.value('x') == '1'


def test_a_death_right_after_a_way_back(session):
    """Killed from outside between two cells: the checkpoint is there and works, or the next answer says that it went, with the state."""
    for i in range(8):
        session.execute(f'x = {i}').ok()
        checkpoint(session, f'{i}')
        rollback(session, f'{i}')
        with contextlib.suppress(ProcessLookupError):
            os.kill(session.get()['pid'], signal.SIGKILL)
        seen = session.execute('x')
        answer = session.api.post(f'{session.path}/rollback', json={'checkpoint': f'{i}'})
        if answer.status_code == 200:
            assert session.value('x') == f'{i}'
        else:
            assert answer.status_code == 404 and (seen.state_lost or seen.checkpoints_evicted), (seen, answer.text)


# ---- what a copy costs ----------------------------------------------------------------


def bytes_in_huge_pages(session):
    """Of its mappings, what the kernel was asked to keep in huge pages; whether it had some to give is another matter."""
    text = Path(f'/proc/{session.get()["pid"]}/smaps').read_text()
    sizes = [(int(m[1], 16) - int(m[0], 16), m[2].split()) for m in re.findall(r'^([0-9a-f]+)-([0-9a-f]+) .*?^VmFlags: (.*?)$', text, re.M | re.S)]
    return sum(size for size, flags in sizes if 'hg' in flags)


def test_a_large_heap_lies_in_huge_pages(session):
    """Which is what makes copies of it cheap; a small one counts every page."""
    session.execute('a = [str(i) for i in range(1000)]').ok()
    small = bytes_in_huge_pages(session)
    session.execute('a = [str(i) for i in range(1_000_000)]').ok()
    grown = bytes_in_huge_pages(session)
    assert grown - small >= 32 << 20
    session.execute('del a').ok()
    assert bytes_in_huge_pages(session) < grown / 2
    session.execute('a = [[i] for i in range(100_000)]').ok()
    assert session.value('all(a[i] == [i] for i in range(100_000))') == 'True'


# ---- what they hold --------------------------------------------------------------------------

FILL = 'import ctypes; ctypes.memset((ctypes.c_char * len(x)).from_buffer(x), {0}, len(x)); x[0]'


def sizes(session):
    return {c['name']: c['size_bytes'] for c in tree(session)}


def test_memory_is_bounded(api):
    """Beyond half of the session's memory the least used goes, and the next answer says so."""
    session = api.session(limits={'memory_bytes': 400 << 20}, keep_checkpoints=0)
    session.execute('x = bytearray(110 << 20)').ok()
    first = checkpoint(session, 'first')
    session.execute(FILL.format(1)).ok()
    second = checkpoint(session, 'second')
    assert {c['name'] for c in tree(session)} >= {'first', 'second'}
    before = api.metrics()['glovebox_checkpoints_evicted_total']
    told = session.execute(FILL.format(2)).ok().checkpoints_evicted  # where it went while the cell was still running
    gb.wait_until(lambda: api.metrics()['glovebox_checkpoints_evicted_total'] > before, 'a checkpoint goes')
    assert (told or session.execute('x[0]').ok().checkpoints_evicted) == [first['id']]
    assert session.execute('x[0]').ok().checkpoints_evicted is None, 'it is told once'
    assert 'first' not in sizes(session)
    gb.wait_until(lambda: sizes(session)['second'] > 100 << 20, 'what only it holds is its size')
    answer = session.api.post(f'{session.path}/rollback', json={'checkpoint': 'first'})
    assert answer.status_code == 404 and 'checkpoints' in answer.json()['remediation']
    rollback(session, second['id'])
    assert session.value('x[0], x[-1]') == '(1, 1)'


def test_memory_that_becomes_theirs(api):
    """What a process beside them shares counts as theirs when it ends, which is nobody's request."""
    session = api.session(limits={'memory_bytes': 400 << 20}, keep_checkpoints=0)
    session.execute('x = bytearray(110 << 20)').ok()
    first = checkpoint(session, 'first')
    session.execute(FILL.format(1)).ok()
    checkpoint(session, 'second')
    session.execute('import os, time\nif not os.fork():\n  while not os.path.exists("end"): time.sleep(0.01)\n  os._exit(0)').ok()
    session.execute(FILL.format(2)).ok()
    gb.wait_until(lambda: sizes(session)['first'] > 100 << 20, 'it holds what was before alone')
    assert sizes(session)['second'] < 70 << 20
    before = api.metrics()['glovebox_checkpoints_evicted_total']
    assert session.api.put(f'{session.path}/files/end', data=b'').status_code < 300
    gb.wait_until(lambda: api.metrics()['glovebox_checkpoints_evicted_total'] > before, 'a checkpoint goes')
    gb.wait_until(lambda: set(sizes(session)) & {'first', 'second'} == {'second'}, 'the least used one')
    assert first['id'] in session.execute('1').ok().checkpoints_evicted


def test_memory_for_checkpoints_alone():
    """A bound of the server's own; an answer names those that went: to the checkpoint itself, or the next."""
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--checkpoint-memory', '64M') as daemon, daemon.api() as api:
        session, gone, ids = api.session(), [], []

        def run(code):
            gone.extend(session.execute(code).ok().checkpoints_evicted or [])
            return gone

        for i in range(4):
            run(f'x = bytearray(b"{i}" * (40 << 20))')
            answer = session.api.post(f'{session.path}/checkpoints', json={'name': str(i)}).json()
            ids.append(answer['checkpoint']['id'])
            gone += answer['evicted']
        gb.wait_until(lambda: run('1'), 'an answer names those that went')
        assert gone == ids[: len(gone)] and ids[-1] not in gone
        rollback(session, ids[-1])
        assert session.value('x[0]') == str(ord('3'))


def test_none_allowed():
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--max-checkpoints', '0') as daemon, daemon.api() as api:
        session = api.session()
        session.execute('x = 1').ok()
        answer = session.api.post(f'{session.path}/checkpoints', json={})
        assert answer.status_code == 409 and answer.json()['code'] == 'cannot_checkpoint' and 'undo' in answer.json()['remediation']
        session.execute('x = 2').ok()
        rollback(session)
        assert session.value('x') == '1'


def own_memory(session):
    """Bytes that it shares with nobody."""
    text = Path(f'/proc/{session.get()["pid"]}/smaps_rollup').read_text()
    return int(re.search(r'^Private_Dirty: +(\d+) kB', text, re.M)[1]) * 1024


def test_what_cells_write_to_is_copied_while_nobody_waits(session):
    """Right after a checkpoint all is shared; what a small cell needs is soon the session's own again."""
    for i in range(2):
        session.execute(f'x = {i}').ok()
        checkpoint(session)
    gb.wait_until(lambda: own_memory(session) > 256 << 10, 'pages are copied without a cell')
    before = session.value('x')
    rollback(session, checkpoint(session)['id'])
    gb.wait_until(lambda: own_memory(session) > 256 << 10, 'pages are copied after a rollback')
    assert session.value('x') == before == '1'
