"""What executor profiles cost: the same code under `python`, `restricted` and `smolagents`, and the check before a cell runs."""

import contextlib
import json

from harness.daemon import Daemon
from harness.peers import Worker
from harness.stats import Section

TURNS = 15
PROFILES = {'python': 'python', 'restricted': 'restricted', 'smolagents': {'base': 'smolagents', 'max_operations': 10**15}}

# Name: code of work(), the limit of `restricted` and of `smolagents` against `python`; None where the profile refuses it or nothing is promised.
PROGRAMS = {
    'additions': ('    s = 0\n    for i in range(1_000_000):\n        s += i\n    return s', 1.1, 2.0),
    'strings': (
        '    words = []\n    for i in range(50_000):\n        words.append(f"{i:05d}".replace("0", "o").upper() + "%d %s" % (i, "x".center(3)))\n'
        '    return len(",".join(words).split(","))',
        1.5,
        2.0,
    ),
    'attributes': ('    p = Point()\n    for i in range(200_000):\n        p.x = p.y + i\n        p.total()\n    return p.x', 1.5, 2.0),
    'calls': ('    def fib(n):\n        return n if n < 2 else fib(n - 1) + fib(n - 2)\n    return fib(20)', 1.5, 2.0),
    'comprehension': ('    return sum([x * 2 for x in range(300_000) if x % 3])', 1.5, 2.0),
    'module functions': ('    import math\n    s = 0\n    for i in range(200_000):\n        s = s + math.sqrt(i)\n    return s', 1.5, 2.0),
    'getattr()': ('    p = Point()\n    for i in range(200_000):\n        getattr(p, "x")', None, 2.0),
    'print()': ('    for i in range(20_000):\n        print(i, "x")', None, 2.0),
    'private attributes': (
        '    class Box:\n        def __init__(self):\n            self._n = 0\n        def step(self):\n            self._n = self._n + 1\n'
        '            return self._n\n    box = Box()\n    for i in range(100_000):\n        box.step()\n    return box.step()',
        None,  # refused
        2.0,
    ),
}
CLASS = 'class Point:\n    def __init__(self):\n        self.x = 0\n        self.y = 1\n    def total(self):\n        return self.x + self.y\n'
TIMED = 'import time\n{definitions}\ndef work():\n{body}\nbegan = time.process_time()\nwork()\nanswer = time.process_time() - began\nanswer'

# A hundred lines as models write them: never run, only looked at.
BLOCK = (
    'def name_{n}(values, limit=10):\n    total = 0\n    for i, v in enumerate(values):\n        if v > limit and i % 2 == 0:\n'
    '            total += v * 2 - len(str(v))\n        elif v is None:\n            continue\n    result = {{"n": {n}, "total": total, "values": [x for x in values if x]}}\n'
    '    print(f"{{result}} of {{limit:>5}}")\n    return result.get("total", 0), sorted(values, key=lambda x: -x)\n'
)
# The semicolon has it compiled by way of a tree under python too, which the others need for the check: what differs is the check.
HUNDRED_LINES = ''.join(BLOCK.format(n=n) for n in range(10)) + '0;\n'


# The same under Debian's RestrictedPython, with the guards its documentation gives; compiled before the time is taken. Where that
# version cannot compile a program for this Python, `answer` says why.
PEER = '''
import time
try:
    from RestrictedPython import compile_restricted, safe_builtins
    from RestrictedPython.Eval import default_guarded_getitem
    from RestrictedPython.Guards import full_write_guard
    space = {{
        '__builtins__': dict(safe_builtins, sum=sum), '__name__': 'cell', '__metaclass__': type, '_getiter_': iter, '_getattr_': getattr,
        '_getitem_': default_guarded_getitem, '_write_': full_write_guard, '_inplacevar_': lambda op, x, y: x + y,
    }}
    exec(compile_restricted({code!r}, '<bench>', 'exec'), space)
    began = time.process_time()
    space['work']()
    answer = time.process_time() - began
except Exception as e:
    answer = repr(e)
'''


class _Session:
    def __init__(self, daemon, profile):
        self.connection = daemon.connect()
        self.session = self.connection.create(profile=profile)['id']

    def run(self, code):
        observation = self.connection.cell(self.session, code)
        if observation['status'] != 'ok':
            raise RuntimeError(observation['error']['message'])
        return observation

    def seconds(self, code):
        return json.loads(self.run(code)['result']['text/plain'])

    def close(self):
        self.connection.delete(self.session)
        self.connection.close()


def _number(answer):
    if isinstance(answer, str):
        raise RuntimeError(f'RestrictedPython: {answer}')
    return answer


def profiles(effort):
    """loops, strings, attributes and calls under each executor profile"""
    section = Section(
        'profiles',
        'Speed under executor profiles',
        'CPU time of the same function in sessions of three profiles, alternately, and the CPU time of a cell of a hundred lines that only '
        'defines functions, parsed under each profile: the time beyond that of the profile python is the check.',
    )
    rows, peers, lines = {}, {}, {}
    for name, (_, *limits) in PROGRAMS.items():
        plain = section.row(f'{name}: python', 'ms')
        if limits[0]:
            peers[name] = section.row(f"{name}: RestrictedPython (Debian's)", 'ms', plain)
        held = [p for p, limit in zip(list(PROFILES)[1:], limits) if limit]
        rows[name] = {'python': plain} | {p: section.row(f'{name}: {p}', 'ms', plain) for p in held}
    plain = section.row('100 lines: python', 'ms')
    lines = {'python': plain} | {p: section.row(f'100 lines: {p}', 'ms', plain) for p in list(PROFILES)[1:]}
    with Daemon() as daemon, Worker() as worker, contextlib.ExitStack() as stack:
        sessions = {p: stack.enter_context(contextlib.closing(_Session(daemon, how))) for p, how in PROFILES.items()}
        for turn in range(effort(TURNS, 3)):
            order = list(sessions) if turn % 2 else list(sessions)[::-1]
            for name, (body, _, _) in PROGRAMS.items():
                code = TIMED.format(definitions=CLASS, body=body)
                for p in order:
                    if p in rows[name]:
                        rows[name][p].attempt(lambda: sessions[p].seconds(code) * 1e3)
                if name not in peers:
                    continue
                peer = PEER.format(code=f'{CLASS if "Point" in body else ""}\ndef work():\n{body}\n')
                peers[name].attempt(lambda: _number(worker.run(peer)[1]) * 1e3)
            for p in order:
                lines[p].attempt(lambda: sessions[p].run(HUNDRED_LINES)['usage']['cpu_ms'])
    for name, (_, restricted, smolagents) in PROGRAMS.items():
        for p, limit in (('restricted', restricted), ('smolagents', smolagents)):
            if limit is None:
                continue
            section.target(f'{name} under {p} against python, best against best', rows[name][p].best / rows[name]['python'].best, limit, '×')
    for p in ('restricted', 'smolagents'):
        section.target(f'the check of 100 lines under {p}', lines[p].best - lines['python'].best, 2, 'ms')
    return section
