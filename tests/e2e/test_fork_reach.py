"""Which processes a session, its forks and their siblings can reach. docs/security.md#forks-of-sessions says the same in words."""

import gb
import pytest

LOOK = '''
import os, resource

def attempt(what):
    try:
        what()
    except OSError as e:
        return type(e).__name__
    return "done"

def look(number):
    path = f"/proc/{number}"
    return {
        "signal": attempt(lambda: os.kill(number, 0)),
        "files": attempt(lambda: open(f"{path}/root/workspace/f").read()),
        "memory": attempt(lambda: os.close(os.open(f"{path}/mem", os.O_RDWR))),
        "priority": attempt(lambda: os.setpriority(os.PRIO_PROCESS, number, os.getpriority(os.PRIO_PROCESS, number))),
        "control socket": attempt(lambda: os.open(f"{path}/fd/1023", os.O_RDWR)),
        "limits": attempt(lambda: resource.prlimit(number, resource.RLIMIT_NOFILE)),
        "handle": attempt(lambda: os.pidfd_open(number)),
    }

def others():
    return {n: look(n) for n in map(int, filter(str.isdigit, os.listdir("/proc"))) if n not in (1, os.getpid())}
'''


@pytest.fixture
def family(session):
    """A session, and two forks of it that each have another file `f`."""
    session.execute(LOOK).ok()
    answer = session.api.post(f'{session.path}/fork', json={'count': 2})
    assert answer.status_code == 201, answer.text
    forks = [session.api.adopt(s) for s in answer.json()['sessions']]
    for i, fork in enumerate(forks):
        fork.execute(f'open("f", "w").write("fork {i}")').ok()
    return session, forks


def number_in_parent(fork):
    """The number that the fork's interpreter has in the jail of its parent: the last but one of its numbers."""
    with open(f'/proc/{fork.get()["pid"]}/status') as f:
        return next(int(line.split()[-2]) for line in f if line.startswith('NSpid:'))


def test_forks_reach_neither_parent_nor_siblings(family):
    parent, forks = family
    parent.execute('import subprocess; child = subprocess.Popen(["sleep", "1000"])').ok()
    before = parent.get()['pid'], forks[1].get()['pid']
    assert forks[0].value('others()') == '{}'
    forks[0].execute('[attempt(lambda: os.kill(n, 9)) for n in range(1, 5000) if n != os.getpid()]').ok()
    assert parent.value('child.poll() is None') == 'True' and forks[1].value('open("f").read()') == "'fork 1'"
    assert (parent.get()['pid'], forks[1].get()['pid']) == before


def test_a_parent_reaches_processes_of_its_forks_one_by_one(family):
    parent, forks = family
    forks[0].execute('import subprocess; program = subprocess.Popen(["sleep", "1000"])').ok()
    numbers = {number_in_parent(fork) for fork in forks}
    seen = eval(parent.value('others()'))
    assert numbers < set(seen) and len(seen) == 3, seen
    for found in seen.values():
        assert [found[k] for k in ('signal', 'files', 'memory', 'priority')] == ['done'] * 4, seen
        assert [found[k] for k in ('limits', 'handle')] == ['PermissionError', 'OSError'], seen
        assert found['control socket'] in ('OSError', 'FileNotFoundError'), seen


def test_a_fork_that_its_parent_killed_says_so(family):
    parent, forks = family
    forks[0].execute('x = 1').ok()
    before = [fork.get()['pid'] for fork in forks]
    parent.execute(f'os.kill({number_in_parent(forks[0])}, 9)').ok()
    gb.wait_until(lambda: forks[0].get()['state'] == 'idle' and forks[0].get()['pid'] not in (0, before[0]), 'the fork has a new interpreter')
    seen = forks[0].execute('1')
    assert seen['rolled_back'] or seen['state_lost'], seen
    assert forks[1].get()['pid'] == before[1] and forks[1].value('open("f").read()') == "'fork 1'"
