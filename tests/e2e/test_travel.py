"""Random walks through time: cells, deaths, checkpoints, rollbacks, undos, forks of forks; every state must be what a replay from the start makes.

GLOVEBOX_TRAVEL_SEED and GLOVEBOX_TRAVEL_OPERATIONS choose another walk and a longer one.
"""

import os
import random

SEED = int(os.environ.get('GLOVEBOX_TRAVEL_SEED', '20261116'))
OPERATIONS = int(os.environ.get('GLOVEBOX_TRAVEL_OPERATIONS', '160'))
FAMILY = 6  # sessions alive at once

START = """
import os, random, collections, functools, sqlite3
random.seed(7)
s, d, l, q = 1, {}, [], collections.deque(maxlen=5)
class Node:
    def __init__(self, v, next=None): self.v, self.next = v, next
    def __repr__(self): return f'{self.v}->{self.next!r}'
head = None
def count():
    n = 0
    while True:
        n += yield n
counter = count(); next(counter)
total = functools.reduce
base = sqlite3.connect(':memory:'); _ = base.execute('create table t(x)')
log = open('log', 'a+')
"""
# What a cell may do; {n} is a number. Each depends on what was before, so that a cell too many or too few shows.
CELLS = [
    's = (s * 31 + {n}) % 10007',
    'd[{n} % 7] = d.get({n} % 7, 0) + s',
    'l = [s] * ({n} % 9); l.append(list(l))',
    's = (s + random.randrange(1000)) % 10007',
    'q.append((s, {n}))',
    'head = Node({n}, head)',
    's += counter.send({n})',
    '_ = base.execute("insert into t values(?)", (s,))',
    '_ = log.write(str(s) + ",")',
    'log.flush()',
    'with open("f{n}"[:2], "a") as f: _ = f.write(str(s) + ",")',
    'os.makedirs("d{n}"[:2], exist_ok=True)',
    'os.path.lexists("link") and os.unlink("link"); os.symlink(str(s), "link")',
    'for p in sorted(os.listdir())[:1]:\n    if p[0] == "f" and len(p) == 2: os.unlink(p)',
    'for p in sorted(os.listdir()):\n    if p[0] == "d" and os.path.isdir(p): os.rename(p, p + "x"); break',
    'with open("mode", "w") as f: _ = f.write("{n}")\nos.chmod("mode", 0o600 + {n} % 64)',
    'add = (lambda k: lambda x: x + k)({n}); s = add(s) % 10007',
    'del l[:1]\nif {n} % 4 == 0: 1 / 0',
    'globals()["v{n}"[:2]] = bytes([{n} % 256]) * ({n} * 100)',
]
DEATHS = ['import os; os._exit(1)', 'import os; os.kill(os.getpid(), 9)', 'import ctypes; ctypes.string_at(0)']
# The whole namespace and every file, as one text.
LOOK = """
def _look():
    names = {}
    for name, v in sorted(globals().items()):
        if not name.startswith('_') and type(v).__name__ not in ('module', 'function', 'type', 'generator', 'Connection', 'builtin_function_or_method'):
            names[name] = v.tell() if name == 'log' else repr(v) if not isinstance(v, bytes) else (len(v), v[:1])
    files = {}
    for root, dirs, found in os.walk('.'):
        for name in sorted(dirs + found):
            path = os.path.join(root, name)
            mode = oct(os.lstat(path).st_mode)
            files[path] = (mode, os.readlink(path) if os.path.islink(path) else open(path).read() if os.path.isfile(path) else '')
    rows = [x for x, in base.execute('select x from t')]
    return str((names, sorted(files.items()), rows, counter.send(0), os.getcwd(), random.random()))
_look()
"""


class Walker:
    """A session and the cells that made its state; `saved` are those of its checkpoints, by id."""

    def __init__(self, session, way):
        self.session, self.way, self.saved = session, way, {}

    def post(self, path, **body):
        return self.session.api.post(f'{self.session.path}/{path}', json=body)

    def cell(self, code):
        seen = self.session.execute(code)
        assert seen.status in ('ok', 'error') and not seen.state_lost, seen
        self.way = (*self.way, code)

    def die(self, code):
        seen = self.session.execute('s = -1; d.clear(); open("f0", "w").write("!"); log.write("!"); log.flush()\n' + code)
        assert seen.rolled_back and seen.files_rolled_back, seen

    def checkpoint(self):
        answer = self.post('checkpoints')
        assert answer.status_code == 201, answer.text
        self.saved[answer.json()['checkpoint']['id']] = self.way
        for gone in answer.json()['evicted']:
            del self.saved[gone]

    def rollback(self, id):
        assert self.post('rollback', checkpoint=id).status_code == 200
        self.way = self.saved[id]

    def undo(self):
        answer = self.post('rollback', undo=True)
        assert answer.status_code == 200 or answer.json()['code'] == 'nothing_to_undo', answer.text
        if answer.status_code == 200:
            self.way = self.way[:-1]

    def fork(self, count, at=None):
        answer = self.post('fork', count=count, reseed=False, **({'at': at} if at else {}))
        assert answer.status_code == 201, answer.text
        return [Walker(self.session.api.adopt(s), self.saved[at] if at else self.way) for s in answer.json()['sessions']]


class Walk:
    def __init__(self, api, chance):
        self.api, self.chance, self.replays, self.trace = api, chance, {}, []
        self.family = [self.start()]

    def start(self):
        first = Walker(self.api.session(keep_checkpoints=self.chance.randrange(4)), ())
        first.cell(START)
        return first

    def replay(self, way):
        if way not in self.replays:
            fresh = self.api.session(transactions=False)
            for code in way:
                fresh.execute(code)
            self.replays[way] = fresh.execute(LOOK).ok().text
            fresh.delete()
        return self.replays[way]

    def compare(self, walker, at=None):
        """By way of a fork, so that looking changes nothing."""
        (copy,) = walker.fork(1, at)
        seen = copy.session.execute(LOOK).ok().text
        copy.session.delete()
        assert seen == self.replay(copy.way), f'seed {SEED}, after {self.trace[-12:]}'

    def step(self):
        chance, w = self.chance, self.chance.choice(self.family)
        what = chance.choices(['cell', 'die', 'checkpoint', 'rollback', 'undo', 'fork', 'compare', 'end'], [50, 6, 8, 8, 8, 8, 4, 3])[0]
        self.trace.append((what, len(w.way)))
        if what == 'cell':
            w.cell(chance.choice(CELLS).format(n=chance.randrange(100)))
        elif what == 'die':
            w.die(chance.choice(DEATHS))
        elif what == 'checkpoint':
            w.checkpoint()
        elif what == 'rollback' and w.saved:
            w.rollback(chance.choice(list(w.saved)))
        elif what == 'undo' and len(w.way) > 1:
            w.undo()
        elif what == 'fork' and len(self.family) < FAMILY:
            self.family += w.fork(chance.randint(1, FAMILY - len(self.family)), chance.choice([None, *w.saved]))
        elif what == 'compare':
            self.compare(w, chance.choice([None, *w.saved]))
        elif what == 'end' and len(self.family) > 1:
            w.session.delete()
            self.family.remove(w)

    def end(self):
        for w in self.family:
            self.compare(w)
            for id in list(w.saved)[:3]:
                self.compare(w, id)
        for w in self.family:
            w.session.delete()


def test_every_state_is_what_a_replay_makes(api):
    print(f'seed {SEED}, {OPERATIONS} operations')
    chance = random.Random(SEED)
    left = OPERATIONS
    while left > 0:
        walk = Walk(api, chance)
        for _ in range(min(left, 80)):
            walk.step()
        walk.end()
        left -= 80
