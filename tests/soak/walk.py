"""A walk of random cells over sessions, beside a model of what their variables and files must be.

Every answer either leaves the model right, or says what was lost, put back or run again. A difference that no answer told is a lie.
"""

import copy
import json
import random
import threading
import time

import requests
from beside import BESIDE, Beside

PATIENCE = 150  # seconds until a request counts as unanswered: longer than all deadlines of the server that follow each other
FILES = ['/workspace/w', '/tmp/t', '/dev/shm/s']

LOOK = f"""
import json as _json, os as _os
_json.dumps([{{k: globals().get(k) for k in ('n', 'items', 'seen')}}, {{p: open(p).read() for p in {FILES!r} if _os.path.exists(p)}}])
"""


class Lie(AssertionError):
    """The session is not what its answers said."""


class Truth:
    """Variables and files."""

    def __init__(self):
        self.variables, self.files = {}, {}
        self.shell = None  # a variable of %%shell cells; None when an answer said that it may be lost

    def copy(self):
        return copy.deepcopy(self)

    def __eq__(self, other):
        return (self.variables, self.files) == (other.variables, other.files)


def begin(t, _):
    t.variables.update(n=0, items=[], seen={})


def add(amount):
    def effect(t, _):
        t.variables['n'] += amount

    return f'n += {amount}\nn', effect


def collect(value):
    def effect(t, _):
        t.variables['items'].append(value)

    return f'items.append({value})\nlen(items)', effect


def write(path, text):
    def effect(t, _):
        t.files[path] = t.files.get(path, '') + text

    return f'with open({path!r}, "a") as f: f.write({text!r})', effect


def note(name, expression):
    """Something that is never the same twice: the answer says what it was."""

    def effect(t, value):
        t.variables['seen'][name] = value

    return f'seen[{name!r}] = {expression}\nseen[{name!r}]', effect


def nothing(code):
    return code, lambda t, _: None


NOTES = {
    'uuid': "__import__('uuid').uuid4().hex",
    'time': "__import__('time').time()",
    'random': "__import__('random').random()",
    'urandom': "__import__('os').urandom(4).hex()",
    'numpy': "float(__import__('numpy').random.default_rng().random())",
    'program': "__import__('subprocess').run(['date', '+%s%N'], capture_output=True, text=True).stdout",
    'folder': "__import__('tempfile').mkdtemp()",
    'entropy': "hash(object()) % 1000003",
}
# They end their interpreter, or try to; n must be as before.
CRASHES = [
    'n += 1000\nimport os\nos._exit(1)',
    'items.clear()\nimport ctypes\nctypes.string_at(0)',
    'n += 1000\nopen("/workspace/w", "a").write("crash")\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)',
    'open("/tmp/t", "a").write("crash")\nimport os\nos.abort()',
]
# The interpreter dies a little later, when no cell runs, or under the next one.
LATE = [
    'import os, threading\nthreading.Timer(0.03, os._exit, (3,)).start()',
    'import os, subprocess\nsubprocess.run(["sh", "-c", f"(sleep 0.05; kill -9 {os.getpid()}) >/dev/null 2>&1 &"])\nNone',
]
BOMBS = [
    'def bomb():\n    held = []\n    while True:\n        held.append(bytearray(5_000_000))\nbomb()',
    'bytes(1 << 45)',
    'import os\nchildren = []\ntry:\n    for _ in range(400):\n        pid = os.fork()\n        if not pid:\n            os._exit(0)\n        children.append(pid)\n'
    'except OSError:\n    pass\nfor pid in children:\n    os.waitpid(pid, 0)\ndel children, pid\nNone',
]
STUCK = 'n += 7\nwhile True:\n    pass'


class Walk(Beside):
    """One session after another, or the forks of one, and the model beside it."""

    def __init__(self, url, seed, kinds=None):
        self.url, self.chance, self.http = url, random.Random(seed), requests.Session()
        self.trail, self.counts, self.path, self.told_at_look = [], {}, None, False
        self.strange = False
        self.unsure = set()  # checkpoints since the last observation, which says whether the interpreter had died before them
        self.kinds = kinds or KINDS

    # ---- asking ------------------------------------------------------------------------

    def ask(self, method, path, **body):
        """The answer, with its status; one that does not come at all is an error."""
        answer = self.http.request(method, self.url + path, timeout=PATIENCE, **({'json': body} if method == 'POST' else {}))
        found = answer.json() if answer.content and 'json' in answer.headers.get('Content-Type', '') else {}
        self.count(f'{method} {path.rpartition("/")[2] if path.count("/") > 3 else "session"} {answer.status_code}')
        return answer.status_code, found

    lie = Lie

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def note(self, *what):
        self.trail.append(what)
        del self.trail[:-40]

    # ---- a session ------------------------------------------------------------------------

    def create(self):
        status, made = self.ask('POST', '/v1/sessions', limits={'memory_bytes': 300 << 20, 'processes': 64})
        if status != 201:
            self.note('no session', status, made.get('code'))
            time.sleep(0.1)
            return
        self.adopt(f'/v1/sessions/{made["id"]}', Truth(), {})
        self.cell('n, items, seen = 0, [], {}', begin)

    def adopt(self, path, truth, kept):
        self.path, self.truth, self.kept = path, truth, kept
        self.after, self.number, self.before = {0: Truth()}, 0, None
        self.forget_beside()
        self.note('session', path[-8:])

    def gone(self, status, answer):
        """The session is no more, and the server says so."""
        self.note('gone', status, answer.get('code'), answer.get('detail'))
        self.path = None

    def resync(self, why):
        """An answer told that something may be lost or different: the session itself says what it has now."""
        self.count(f'told: {why}')
        self.truth = self.look() or self.truth

    # ---- cells -------------------------------------------------------------------------------

    def cell(self, code, effect, statuses=('ok',), maybe=False, **fields):
        """Runs it and changes the model as the answer says. `maybe`: the code was stopped at a moment that nobody knows."""
        status, seen = self.ask('POST', f'{self.path}/execute', code=code, timeout_s=fields.pop('timeout_s', 100), **fields)
        self.note(code[:70], status, seen.get('status'), {k: seen[k] for k in TOLD if seen.get(k)})
        if status in (404, 410):
            return self.gone(status, seen)
        if status != 200:  # refused, or its interpreter could not be had: whether it ran is not told
            return self.resync(f'{status}')

        self.number, before, self.strange = seen['cell'], self.truth.copy(), False
        self.take_death(seen)
        self.take_outcome(seen, effect, statuses, maybe)
        self.before = before if seen['status'] == 'ok' and not seen.get('interpreter_died') else None
        if self.path:
            self.after[self.number] = self.truth.copy()
        return seen

    def take_unsure(self, seen):
        for name in self.unsure if seen.get('interpreter_died') else ():
            self.kept.pop(name, None)
        self.unsure.clear()

    def take_death(self, seen):
        """The interpreter died before this cell."""
        died = seen.get('interpreter_died')
        self.take_unsure(seen)
        if not died:
            return
        self.count('told: death between cells')
        back = died.get('rolled_back_to') if seen.get('rolled_back') else None
        if back is not None and back in self.after:
            self.truth = self.after[back].copy()
        elif seen.get('state_lost'):
            self.truth.variables = {}
        elif back is not None:
            self.strange = True  # something wrote to files since, or it is a state that no answer showed
        if seen.get('files_lost'):
            self.truth.files = {}

    def take_outcome(self, seen, effect, statuses, maybe):
        died, status = seen.get('interpreter_died'), seen['status']
        lost = not died and (seen.get('state_lost') or seen.get('files_lost'))
        if seen.get('may_differ') or lost or (seen.get('rolled_back') and not seen.get('files_rolled_back')):
            return self.resync('lost' if lost else 'may differ' if seen.get('may_differ') else 'files stayed')
        if seen.get('rolled_back') and not died:
            self.count('told: rolled back')
            return  # as before the cell
        if died and (seen.get('state_lost') or seen.get('files_lost') or self.strange):
            return self.resync('lost between cells')
        if died and status != 'ok':
            return self.resync('death, and an error after it')
        if maybe:
            return self.either(effect)
        if status not in statuses:
            raise Lie(f'status {status}, not one of {statuses}: {seen.get("error")}')
        if status == 'ok':
            effect(self.truth, (seen.get('result') or {}).get('application/json'))

    def either(self, effect):
        """It ran, or not: nothing in between."""
        changed, self.told_at_look = self.truth.copy(), False
        effect(changed, None)
        found = self.look()
        if found is None:
            return
        if found not in (self.truth, changed) and not self.told_at_look:
            raise Lie(f'neither before nor after: {vars(found)}, {vars(self.truth)}')
        self.truth = found

    def look(self):
        """What the session has, or None when it is gone. Ends no model: a death before it is told by its answer, and taken."""
        for _ in range(20):
            status, seen = self.ask('POST', f'{self.path}/execute', code=LOOK, timeout_s=100)
            self.note('look', status, seen.get('status'), {k: seen[k] for k in TOLD if seen.get(k)})
            if status in (404, 410):
                return self.gone(status, seen)
            if status == 200:
                self.take_unsure(seen)
            if any(seen.get(k) for k in ('interpreter_died', 'may_differ', 'state_lost', 'files_lost')) or status >= 500:
                self.count('told: at a look')
                self.told_at_look = True
            if seen.get('rolled_back') and not seen.get('files_rolled_back'):
                self.told_at_look = True
            if status == 200 and seen['status'] == 'ok':
                self.number = seen['cell']
                variables, files = json.loads(seen['result']['application/json'])
                truth = Truth()
                truth.variables = {k: v for k, v in variables.items() if v is not None}
                truth.files = files
                self.after[self.number] = truth.copy()
                self.before = None
                return truth
        raise Lie('a look at the session failed 20 times')

    def check(self):
        """The session is what the model says, or its answer says why not."""
        self.told_at_look = False
        found = self.look()
        if found is None or self.told_at_look:
            self.truth = found or self.truth
        elif found != self.truth:
            raise Lie(f'it has {vars(found)}, and must have {vars(self.truth)}')

    # ---- the steps of a walk ----------------------------------------------------------------------

    def step(self):
        if not self.path:
            return self.create()
        if not self.truth.variables.keys() >= {'n', 'items', 'seen'}:
            self.cell('n, items, seen = 0, [], {}', begin)
            return
        kinds, weights = zip(*self.kinds.items())
        getattr(self, self.chance.choices(kinds, weights)[0])()

    def compute(self):
        self.cell(*self.chance.choice([add(self.chance.randrange(100)), collect(self.chance.randrange(100))]))

    def back_to_back(self):
        """No pause in which a snapshot could be taken."""
        for _ in range(self.chance.randrange(2, 8)):
            if self.path and self.truth.variables:
                self.chance.choice([self.compute, self.compute, self.wonder, self.write])()

    def write(self):
        self.cell(*write(self.chance.choice(FILES), self.chance.choice('abc')))

    def wonder(self):
        self.cell(*note(*self.chance.choice(list(NOTES.items()))))

    def fail(self):
        self.cell('n += 5\n1 / 0', add(5)[1], ('error',), maybe=True)

    def crash(self):
        self.cell(*nothing(self.chance.choice(CRASHES)), ('killed',))

    def crash_late(self):
        self.cell(*nothing(self.chance.choice(LATE)))
        time.sleep(self.chance.choice([0, 0.04, 0.2]))
        if self.path and self.truth.variables:
            self.compute()

    def bomb(self):
        self.cell(*nothing(self.chance.choice(BOMBS)), ('ok', 'out_of_memory', 'error', 'killed'))

    def stick(self):
        self.cell(STUCK, add(7)[1], ('timeout',), maybe=True, timeout_s=0.5)

    def interrupt(self):
        timer = threading.Timer(0.2, lambda: requests.post(f'{self.url}{self.path}/interrupt', timeout=PATIENCE))
        timer.start()
        self.cell(STUCK, add(7)[1], ('interrupted', 'timeout'), maybe=True, timeout_s=30)
        timer.join()

    def pause(self):
        time.sleep(self.chance.choice([0.003, 0.06]))

    def undo(self):
        if self.before is None:
            self.compute()
        if not self.path or self.before is None:
            return
        status, seen = self.ask('POST', f'{self.path}/rollback', undo=True)
        self.note('undo', status, seen)
        if status in (404, 410):
            return self.gone(status, seen) if seen.get('code') in ('session_gone', 'session_not_found') else None
        if status >= 400:
            return self.resync('no undo') if status >= 500 or seen.get('code') == 'interpreter_died' else None
        self.truth, self.before = self.before, None
        if seen.get('may_differ'):
            self.resync('may differ')

    def checkpoint(self):
        name = self.chance.choice('xyz')
        status, seen = self.ask('POST', f'{self.path}/checkpoints', name=name)
        self.note('checkpoint', name, status, seen.get('code'))
        if status in (404, 410):
            return self.gone(status, seen)
        if status == 201:
            self.kept[name] = self.truth.copy()
            self.unsure.add(name)
        for entry in seen.get('evicted') or ():
            self.kept.clear()
            self.note('evicted', entry)

    def rollback(self):
        if not self.kept:
            return
        name = self.chance.choice(sorted(self.kept))
        status, seen = self.ask('POST', f'{self.path}/rollback', checkpoint=name)
        self.note('rollback', name, status, seen.get('code'), seen.get('may_differ'))
        if status in (404, 410):
            if seen.get('code') in ('session_gone', 'session_not_found'):
                return self.gone(status, seen)
            self.kept.pop(name)
            return
        if status >= 400:
            return self.resync('no rollback') if status >= 500 else None
        self.truth, self.before = self.kept[name].copy(), None

    def fork(self):
        status, seen = self.ask('POST', f'{self.path}/fork', count=self.chance.choice([1, 2]))
        self.note('fork', status, seen.get('code'), seen.get('detail'))
        if status in (404, 410):
            return self.gone(status, seen)
        if status != 201:
            return None
        kept, truth, after = self.path, self.truth.copy(), self.after
        paths = [f'/v1/sessions/{fork["id"]}' for fork in seen['sessions']]
        for path in paths[:-1] + [kept]:
            self.ask('DELETE', path)
        self.adopt(paths[-1], truth, {})
        self.after = after  # cells of forks are counted on from those of their source, and so are the states that a death leads back to

    def leave(self):
        self.ask('DELETE', self.path)
        self.path = None

    def run(self, cells):
        for _ in range(cells):
            self.step()
            if self.path and self.chance.random() < 0.15:
                self.check()
        if self.path:
            self.check()
        if self.path:
            self.leave()


TOLD = ('rolled_back', 'files_rolled_back', 'state_lost', 'files_lost', 'replayed', 'may_differ', 'interpreter_died', 'checkpoints_evicted')
KINDS = {
    'compute': 10, 'back_to_back': 8, 'write': 5, 'wonder': 8, 'fail': 2, 'crash': 6, 'crash_late': 3, 'bomb': 3, 'stick': 1, 'interrupt': 1,
    'pause': 6, 'undo': 4, 'checkpoint': 3, 'rollback': 3, 'fork': 2, 'check': 5, **BESIDE,
}  # fmt: skip
