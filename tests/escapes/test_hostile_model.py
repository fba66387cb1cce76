"""Stateful fuzzing of the daemon with hostile guests: a model of the guest's half of the wire that answers anything at any time
(hostile/model.py), while clients execute, checkpoint, roll back, fork, interrupt and delete at random.

What must hold: the damage stays with that session and within its limits. The daemon lives, answers others in time, keeps its memory and
descriptors, every process is in a control group, and nothing is left of a session that was deleted.

GLOVEBOX_MODEL_S=3600 runs it for an hour (default: a minute); GLOVEBOX_MODEL_SEED=N repeats a run's choices.
"""

import contextlib
import os
import random
import re
import threading
import time
from collections import Counter
from pathlib import Path

import gb
import pytest
import requests
from test_forged import WITHOUT_LANDLOCK, groups, homeless

HERE = Path(__file__).resolve().parent
CODE = ''.join((HERE / name).read_text() for name in ('prelude.py', 'hostile/wire.py'))
MODEL = (HERE / 'hostile/model.py').read_text()
SECONDS = float(os.environ.get('GLOVEBOX_MODEL_S', 60))
SEED = int(os.environ.get('GLOVEBOX_MODEL_SEED', random.SystemRandom().randrange(1 << 32)))
CLIENTS = 3
TOOL = {'name': 'ask', 'description': 'asks', 'parameters': {'type': 'object', 'properties': {'a': {'type': 'integer'}}}, 'timeout_s': 1}
PROCESSES, MEMORY = 24, 256 << 20
MOVER = 4  # descriptors of a helper that was not needed before, and of a connection


def descriptors(daemon):
    """How many of each kind."""
    kinds = Counter()
    for fd in os.listdir(f'/proc/{daemon.pid}/fd'):
        with contextlib.suppress(OSError):
            kinds[re.sub(r'\[?[0-9]+\]?', '', os.readlink(f'/proc/{daemon.pid}/fd/{fd}'))] += 1
    return kinds


def settled(daemon):
    """The same when nothing is being made ahead any more."""
    now, since = descriptors(daemon), time.monotonic()
    while time.monotonic() - since < 2:
        time.sleep(0.1)
        if (new := descriptors(daemon)) != now:
            now, since = new, time.monotonic()
    return now


def one_life(api, seed):
    """A hostile session from its birth to its end; whatever the daemon answers is fine if it answers."""
    dice = random.Random(seed)
    answer = api.post('/v1/sessions', json={'limits': {'processes': PROCESSES, 'memory_bytes': MEMORY}, 'keep_checkpoints': 2})
    assert answer.status_code == 201, answer.text
    path = f'/v1/sessions/{answer.json()["id"]}'
    ends = [path]
    api.put(f'{path}/tools', json={'tools': [TOOL]}).raise_for_status()
    code = f'SEED, SANE = {seed}, {dice.choice([5, 8, 9])}\n'
    api.post(f'{path}/execute', json={'code': CODE + code + MODEL, 'timeout_s': 5})
    for _ in range(dice.randrange(2, 12)):
        what = dice.randrange(8)
        where = dice.choice(ends)
        if what < 3:
            api.post(f'{where}/execute', json={'code': 'x', 'timeout_s': 1, 'transaction': bool(dice.randrange(2))})
        elif what == 3:
            api.post(f'{where}/checkpoints', json={'name': 'k'})
        elif what == 4:
            api.post(f'{where}/rollback', json=dice.choice([{'checkpoint': 'k'}, {'undo': True}]))
        elif what == 5:
            made = api.post(f'{where}/fork', json={'count': dice.choice([1, 1, 3])})
            ends += [f'/v1/sessions/{s["id"]}' for s in made.json().get('sessions', [])] if made.status_code == 201 else []
        elif what == 6:
            api.post(f'{where}/interrupt', json={})
        else:
            api.get(f'{where}/checkpoints')
    dice.shuffle(ends)
    for where in ends:
        api.http.delete(api.url + where, timeout=gb.PATIENCE)


class Client(threading.Thread):
    def __init__(self, daemon, number, until):
        super().__init__()
        self.daemon_under_test, self.number, self.until = daemon, number, until
        self.lives, self.wrong = 0, None

    def run(self):
        seed = None
        try:
            with self.daemon_under_test.api() as api:
                while time.monotonic() < self.until:
                    seed = SEED * 1000003 + self.number * 10007 + self.lives
                    one_life(api, seed)
                    self.lives += 1
        except (AssertionError, requests.RequestException, ValueError, KeyError) as e:
            self.wrong = f'life {seed}: {e!r}'


def check_neighbour(api, neighbour):
    start = time.monotonic()
    assert neighbour.execute('count += 1; count').ok().text
    assert api.get('/readyz').status_code == 200
    fresh = api.session()
    assert fresh.execute('6 * 7').ok().text == '42'
    fresh.delete()
    return time.monotonic() - start


@pytest.mark.parametrize('landlock', [True, False], ids=['landlock', 'no landlock'])
def test_model(landlock):
    extra = {} if landlock else {'before': [gb.PYTHON, '-c', WITHOUT_LANDLOCK]}
    args = ['--preload', 'json', '--ready', '2', '--grace', '0.5'] + ([] if landlock else ['--waive', 'landlock'])
    print(f'GLOVEBOX_MODEL_SEED={SEED}')
    with gb.running_daemon(*args, **extra) as daemon, daemon.api() as api:
        if api.get('/version').json()['layers']['cgroup'] == 'waived':
            pytest.skip('no control groups on this machine')
        neighbour = api.session()
        neighbour.execute('count = 0').ok()
        before, rss = settled(daemon), daemon.rss()
        clients = [Client(daemon, i, time.monotonic() + SECONDS / 2) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        waits = []
        while any(client.is_alive() for client in clients):
            waits.append(check_neighbour(api, neighbour))
            assert homeless(daemon) == []
            time.sleep(0.3)
        assert [client.wrong for client in clients if client.wrong] == [], f'GLOVEBOX_MODEL_SEED={SEED}'
        assert sum(client.lives for client in clients) >= CLIENTS
        assert sorted(waits)[len(waits) // 2] < 5, waits
        assert neighbour.execute('count').ok().text == str(len(waits))
        neighbour.delete()
        assert [s for s in api.get('/v1/sessions').json()['sessions']] == []
        gb.wait_until(lambda: not {g for g in groups(daemon) if g.startswith('f')}, 'no group of a family is left')
        after = settled(daemon)
        more = {kind: (before[kind], n) for kind, n in after.items() if n > before[kind]}
        assert after.total() <= before.total() + MOVER, more
        assert daemon.rss() < rss + (256 << 20)
        print(sum(client.lives for client in clients), 'lives', len(waits), 'looks, the longest', round(max(waits), 2), 's')
