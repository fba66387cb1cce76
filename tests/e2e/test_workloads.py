"""Small real programs. Each checks its own result, and prints the same in a session as under python3."""

import subprocess

import pytest

import gb

PLAIN = {
    'primes': '''
def primes(n):
    sieve = bytearray([1]) * (n + 1)
    sieve[:2] = b'\\0\\0'
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, n + 1, i)))
    return [i for i, p in enumerate(sieve) if p]
found = primes(10_000)
assert len(found) == 1229 and found[-1] == 9973
print(found[:10], sum(found))
''',
    'queens': '''
def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    total = 0
    for c in range(n):
        bit = 1 << c
        if not (columns & bit or left & (1 << (row + c)) or right & (1 << (row - c + n))):
            total += queens(n, row + 1, columns | bit, left | 1 << (row + c), right | 1 << (row - c + n))
    return total
assert queens(7) == 40
print([queens(n) for n in range(1, 8)])
''',
    'shortest paths': '''
import heapq
roads = {'a': {'b': 7, 'c': 9, 'f': 14}, 'b': {'c': 10, 'd': 15}, 'c': {'d': 11, 'f': 2}, 'd': {'e': 6}, 'f': {'e': 9}, 'e': {}}
def distances(start):
    best, heap = {}, [(0, start)]
    while heap:
        d, here = heapq.heappop(heap)
        if here in best:
            continue
        best[here] = d
        for there, length in roads[here].items():
            heapq.heappush(heap, (d + length, there))
    return best
assert distances('a')['e'] == 20
print(sorted(distances('a').items()))
''',
    'edit distance': '''
from functools import lru_cache
@lru_cache(None)
def distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))
assert distance('kitten', 'sitting') == 3
print(distance('intention', 'execution'), distance.cache_info().hits > 0)
''',
    'matrix chain': '''
import itertools
def cost(dims):
    n = len(dims) - 1
    best = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best[i][j] = min(best[i][k] + best[k + 1][j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j))
    return best[0][-1]
assert cost([40, 20, 30, 10, 30]) == 26000
print(cost([10, 30, 5, 60]), list(itertools.accumulate([10, 30, 5, 60])))
''',
    'binary tree': '''
class Node:
    __slots__ = ('key', 'left', 'right')
    def __init__(self, key): self.key, self.left, self.right = key, None, None
    def insert(self, key):
        side = 'left' if key < self.key else 'right'
        child = getattr(self, side)
        child.insert(key) if child else setattr(self, side, Node(key))
    def __iter__(self):
        if self.left: yield from self.left
        yield self.key
        if self.right: yield from self.right
root = Node(50)
for k in (17, 76, 9, 23, 54, 14, 19, 72, 12, 67): root.insert(k)
assert list(root) == sorted(list(root))
print(list(root))
''',
    'expression parser': '''
import re, operator
OPS = {'+': (1, operator.add), '-': (1, operator.sub), '*': (2, operator.mul), '/': (2, operator.truediv)}
def evaluate(text):
    tokens = re.findall(r'\\d+\\.?\\d*|[-+*/()]', text)
    def expression(level=0):
        value = atom()
        while tokens and tokens[0] in OPS and OPS[tokens[0]][0] > level:
            rank, op = OPS[tokens.pop(0)]
            value = op(value, expression(rank))
        return value
    def atom():
        token = tokens.pop(0)
        if token == '(':
            value = expression()
            tokens.pop(0)
            return value
        if token == '-':
            return -atom()
        return float(token)
    return expression()
assert evaluate('2 * (3 + 4) - -6 / 4') == 15.5
print(evaluate('1+2*3-4/2'), evaluate('((2))*(1+1)'))
''',
    'life': '''
def step(alive):
    from collections import Counter
    around = Counter((x + dx, y + dy) for x, y in alive for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy)
    return {c for c, n in around.items() if n == 3 or n == 2 and c in alive}
glider = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
world = glider
for _ in range(4): world = step(world)
assert world == {(x + 1, y + 1) for x, y in glider}
print(sorted(world))
''',
    'roman numerals': '''
def roman(n):
    out = ''
    for value, sign in zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), 'M CM D CD C XC L XL X IX V IV I'.split()):
        out += sign * (n // value)
        n %= value
    return out
assert roman(1994) == 'MCMXCIV'
print([roman(n) for n in (4, 9, 2024, 3999)])
''',
    'word count': '''
import re, textwrap
from collections import Counter
text = 'The quick brown fox. The lazy dog! the fox, again: THE END?'
words = Counter(re.findall(r'[a-z]+', text.lower()))
assert words['the'] == 4
print(words.most_common(3)); print(textwrap.fill(text, 20))
''',
    'unicode': '''
import unicodedata
s = 'Ångström 北京 😀 e\\u0301'
assert unicodedata.normalize('NFC', 'e\\u0301') == 'é'
print(s.upper(), len(s), s.encode('utf-8')[:6], [unicodedata.name(c) for c in 'ß北'], 'ß'.casefold(), sorted('zäöa'))
''',
    'formatting': '''
from datetime import date, timedelta
rows = [('tea', 2.5, 3), ('coffee', 3.25, 12)]
for name, price, n in rows: print(f'{name:<10}|{price:>8.2f}|{n:^5}|{price * n:+,.3f}')
print(f'{255:#x} {255:08b} {1e10:g} {0.1 + 0.2!r} {10**20:_} {-7 // 2} {-7 % 3}')
assert date(2024, 2, 28) + timedelta(2) == date(2024, 3, 1)
print(f'{date(2024, 2, 29):%A %d %B %Y}', date(2024, 12, 30).isocalendar().week)
''',
    'dataclasses': '''
from dataclasses import dataclass, field, replace, asdict
from typing import ClassVar
@dataclass(order=True)
class Item:
    sort: float = field(init=False, repr=False)
    name: str
    price: float = 1.0
    tags: list[str] = field(default_factory=list, compare=False)
    count: ClassVar[int] = 0
    def __post_init__(self):
        self.sort = self.price
        type(self).count += 1
a, b = Item('b', 2.0), Item('a', 3.0, ['x'])
assert a < b and Item.count == 2
print(a, replace(b, name='c'), asdict(b), sorted([b, a])[0].name)
''',
    'enums and matching': '''
from enum import Enum, Flag, auto
class Color(Enum):
    RED = auto(); GREEN = auto()
    @property
    def nice(self): return self.name.title()
class Perm(Flag):
    R = auto(); W = auto()
def what(x):
    match x:
        case {'kind': 'point', 'at': [x, y]}: return f'point {x},{y}'
        case [Color.RED, *rest]: return f'red and {len(rest)}'
        case str() | bytes(): return 'text'
        case int(n) if n > 5: return 'large'
        case _: return 'other'
assert what([Color.RED, 1, 2]) == 'red and 2'
print([what(v) for v in ({'kind': 'point', 'at': [1, 2]}, 'x', 9, 3)], Color.GREEN.nice, Perm.R | Perm.W, list(Color))
''',
    'generators': '''
def fib():
    a, b = 0, 1
    while True:
        got = yield a
        if got: a, b = got
        a, b = b, a + b
from itertools import islice, takewhile, groupby, pairwise
g = fib()
assert list(islice(g, 10))[-1] == 34
print(g.send((100, 200)), next(g)); g.close()
print(list(takewhile(lambda n: n < 50, fib())), [(k, len(list(v))) for k, v in groupby('aabbb')], list(pairwise('abc')))
def outer():
    result = yield from inner()
    print('returned', result)
def inner():
    try: yield 1
    finally: print('cleanup')
    return 'value'
print(list(outer()))
''',
    'decorators and closures': '''
import functools, time
def retry(times):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **kw):
            for i in range(times):
                try: return f(*args, attempt=i, **kw)
                except ValueError as e: last = e
            raise last
        return inner
    return wrap
@retry(3)
def flaky(x, attempt):
    """doc"""
    if attempt < 2: raise ValueError(attempt)
    return x * 2
assert flaky(4) == 8 and flaky.__doc__ == 'doc'
counters = [(lambda n: lambda: n * 10)(i) for i in range(3)]
print([c() for c in counters], flaky.__name__, functools.reduce(lambda a, b: a * b, range(1, 6)))
''',
    'metaclasses and descriptors': '''
class Registry(type):
    known = {}
    def __new__(m, name, bases, space, **kw):
        kind = kw.pop('kind')
        cls = super().__new__(m, name, bases, space, **kw)
        m.known[name] = (cls, kind)
        return cls
    def __init__(cls, *args, **kw): pass
class Positive:
    def __set_name__(self, owner, name): self.name = '_' + name
    def __get__(self, o, t=None): return getattr(o, self.name, 0)
    def __set__(self, o, v):
        if v < 0: raise ValueError(f'{self.name[1:]} must not be negative')
        setattr(o, self.name, v)
class Account(metaclass=Registry, kind='bank'):
    balance = Positive()
    def __init_subclass__(cls, /, rate=0, **kw): cls.rate = rate
class Savings(Account, rate=3, kind='save'): pass
a = Savings(); a.balance = 5
try: a.balance = -1
except ValueError as e: print(e)
assert a.balance == 5 and Savings.rate == 3
print({k: v[1] for k, v in Registry.known.items()}, [c.__name__ for c in Savings.__mro__])
''',
    'context managers': '''
import contextlib, io
events = []
@contextlib.contextmanager
def step(name):
    events.append(f'+{name}')
    try: yield name
    except KeyError as e: events.append(f'!{e}')
    finally: events.append(f'-{name}')
with step('a'), step('b') as b: raise KeyError(b)
with contextlib.ExitStack() as stack:
    for n in 'xyz': stack.enter_context(step(n))
    stack.callback(events.append, 'callback')
out = io.StringIO()
with contextlib.redirect_stdout(out): print('captured')
assert out.getvalue() == 'captured\\n'
with contextlib.suppress(ZeroDivisionError): 1 / 0
print(events)
''',
    'exceptions': '''
class Failed(Exception):
    def __init__(self, n): super().__init__(n); self.n = n
def f(n):
    try:
        if n == 0: raise Failed(n)
        if n == 1: return 'return'
        if n == 2: raise KeyError('k') from ValueError('v')
    except Failed as e: return f'failed {e.n}'
    else: return 'else'
    finally: seen.append(n)
seen = []
out = [f(0), f(1)]
try: f(2)
except KeyError as e: out.append(repr(e.__cause__))
try: raise ExceptionGroup('g', [ValueError(1), TypeError(2), ExceptionGroup('h', [ValueError(3)])])
except* ValueError as g: out.append(len(g.exceptions))
except* TypeError as g: out.append('type')
assert seen == [0, 1, 2]
print(out)
''',
    'numbers': '''
from decimal import Decimal, getcontext, ROUND_HALF_EVEN
from fractions import Fraction
import math, statistics, cmath
getcontext().prec = 30
assert Fraction(1, 3) + Fraction(1, 6) == Fraction(1, 2)
print(Decimal(2).sqrt(), Decimal('2.675').quantize(Decimal('.01'), ROUND_HALF_EVEN), Fraction('0.125'), math.comb(50, 6), math.isqrt(10**20), pow(3, 1000, 1007))
print(statistics.mean([1, 2, 3, 4]), statistics.stdev([2, 4, 4, 5]), round(cmath.exp(1j * math.pi).real), (0.1).as_integer_ratio(), 7 .bit_length(), math.gcd(84, 36))
''',
    'random with a seed': '''
import random
r = random.Random(42)
deck = list(range(10)); r.shuffle(deck)
assert r.randint(1, 6) in range(1, 7)
print(deck, r.random(), r.choices('abc', k=5), r.gauss(0, 1), r.sample(range(100), 3))
''',
    'json csv and ini': '''
import json, csv, io, configparser
data = {'name': 'Ünï', 'n': [1, 2.5, None, True], 'deep': {'a': {'b': []}}}
assert json.loads(json.dumps(data)) == data
print(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False))
out = io.StringIO(); w = csv.DictWriter(out, ['a', 'b']); w.writeheader(); w.writerow({'a': 'x,"y"', 'b': 1})
print(repr(out.getvalue()), list(csv.reader(io.StringIO(out.getvalue()))))
c = configparser.ConfigParser(); c.read_string('[s]\\nk = v\\n'); print(dict(c['s']))
''',
    'xml and html': '''
import xml.etree.ElementTree as ET, html
from html.parser import HTMLParser
root = ET.fromstring('<r><i n="1">a</i><i n="2">b<c/></i></r>')
assert [e.get('n') for e in root.iter('i')] == ['1', '2']
root.find('i').text = '<&>'
print(ET.tostring(root).decode(), html.unescape('&eacute;&lt;'))
class P(HTMLParser):
    def handle_starttag(self, tag, attrs): print(tag, attrs)
P().feed('<a href="x?y&amp;z">t</a><br/>')
''',
    'sqlite': '''
import sqlite3
db = sqlite3.connect('shop.db')
db.execute('create table t (id integer primary key, name text, price real)')
with db: db.executemany('insert into t (name, price) values (?, ?)', [('tea', 2.5), ('café', 3.0), ('milk', 1.2)])
try:
    with db:
        db.execute('insert into t (name) values ("x")'.replace('"', "'"))
        raise RuntimeError
except RuntimeError: pass
assert db.execute('select count(*) from t').fetchone() == (3,)
db.create_function('twice', 1, lambda n: n * 2)
print(db.execute('select name, twice(price) from t where price > ? order by price desc', (1.5,)).fetchall())
db.close()
''',
    'files and paths': '''
import os, tempfile, shutil, glob
from pathlib import Path
with tempfile.TemporaryDirectory() as d:
    p = Path(d)
    (p / 'a/b').mkdir(parents=True)
    (p / 'a/b/x.txt').write_text('zeile 1\\nzeile 2\\n', encoding='utf-8')
    shutil.copytree(p / 'a', p / 'copy'); os.symlink('x.txt', p / 'a/b/link')
    assert (p / 'a/b/link').read_text().count('zeile') == 2
    print(sorted(str(f.relative_to(p)) for f in p.rglob('*')), len(glob.glob(f'{d}/**/*.txt', recursive=True)))
    with open(p / 'bin', 'wb+') as f:
        f.write(bytes(range(256))); f.seek(-3, 2); print(f.read(), f.tell())
assert not os.path.exists(d)
print(os.path.splitext('a/b.tar.gz'), Path('/a/../b/./c').resolve(), Path('x/y.py').with_suffix('.txt').name)
''',
    'archives': '''
import zipfile, tarfile, gzip, bz2, lzma, zlib, io, hashlib
data = b'abc' * 10000
with zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('d/x.txt', data); z.writestr('y', 'ü')
with zipfile.ZipFile('a.zip') as z: assert z.testzip() is None; print(z.namelist(), z.getinfo('d/x.txt').compress_size < 500, z.read('y').decode())
with tarfile.open('a.tgz', 'w:gz') as t: t.add('a.zip', 'inside.zip')
with tarfile.open('a.tgz') as t: print(t.getnames(), len(t.extractfile('inside.zip').read()) > 100)
for m in (gzip, bz2, lzma, zlib): assert m.decompress(m.compress(data)) == data
print(hashlib.sha256(data).hexdigest()[:16], zlib.crc32(data), hashlib.blake2b(data, digest_size=8).hexdigest())
''',
    'struct and bytes': '''
import struct, base64, binascii, array, codecs
packed = struct.pack('<IhB3sq', 7, -2, 255, b'abc', -1)
assert struct.unpack('<IhB3sq', packed) == (7, -2, 255, b'abc', -1)
print(packed.hex(), base64.b64encode(packed).decode(), binascii.crc32(packed), array.array('d', [1.5, 2]).tobytes().hex(), codecs.encode('Hello', 'rot13'))
m = memoryview(bytearray(b'hello')); m[1:3] = b'EL'; print(bytes(m), int.from_bytes(b'\\x01\\x00', 'big'), (1000).to_bytes(3, 'little'))
''',
    'regular expressions': '''
import re
log = '2024-01-05 ERROR disk full\\n2024-01-06 INFO ok\\n2024-02-01 ERROR net down'
found = re.findall(r'^(?P<day>[\\d-]+) ERROR (.+)$', log, re.M)
assert len(found) == 2
print(found, re.sub(r'(\\d+)-(\\d+)-(\\d+)', r'\\3.\\2.\\1', log).splitlines()[0], re.split(r'[,;]\\s*', 'a, b;c'))
print(re.fullmatch(r'(?i)(?:ab)+', 'aBAB').span(), [m.group('k') for m in re.finditer(r'(?P<k>\\w+)(?==)', 'a=1 bc=2')], re.sub(r'\\b(\\w)', lambda m: m[1].upper(), 'make title'))
''',
    'threads': '''
import threading, queue
from concurrent.futures import ThreadPoolExecutor
work, done, lock, total = queue.Queue(), [], threading.Lock(), 0
def run():
    global total
    while (n := work.get()) is not None:
        with lock: total += n
        done.append(n)
threads = [threading.Thread(target=run) for _ in range(4)]
for t in threads: t.start()
for n in range(200): work.put(n)
for _ in threads: work.put(None)
for t in threads: t.join()
assert total == sum(range(200)) and len(done) == 200
with ThreadPoolExecutor(4) as ex: print(list(ex.map(lambda n: n ** 2, range(6))), total)
local = threading.local(); local.x = 1
threading.Thread(target=lambda: print(hasattr(local, 'x'))).start()
''',
    'asyncio': '''
import asyncio
async def worker(name, q, out):
    while True:
        n = await q.get()
        await asyncio.sleep(0.001)
        out.append((n, n * n)); q.task_done()
async def main():
    q, out = asyncio.Queue(), []
    tasks = [asyncio.create_task(worker(i, q, out)) for i in range(3)]
    for n in range(9): q.put_nowait(n)
    await q.join()
    for t in tasks: t.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    try:
        async with asyncio.timeout(0.01): await asyncio.sleep(10)
    except TimeoutError: out.append('timeout')
    async with asyncio.TaskGroup() as g: t = g.create_task(asyncio.sleep(0, 'grouped'))
    p = await asyncio.create_subprocess_exec('echo', 'from a child', stdout=asyncio.subprocess.PIPE)
    return sorted(map(str, out)), t.result(), (await p.communicate())[0]
result = asyncio.run(main())
assert len(result[0]) == 10
print(result)
''',
    'subprocesses': '''
import subprocess, sys, os
r = subprocess.run([sys.executable, '-c', 'import sys; print(sys.stdin.read().upper()); sys.exit(3)'], input='text', capture_output=True, text=True)
assert (r.returncode, r.stdout) == (3, 'TEXT\\n')
print(subprocess.check_output('printf "%s-" a b | tr a-z A-Z', shell=True), os.popen('echo popen').read())
p = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(p.communicate(b'piped')[0], p.returncode)
try: subprocess.run(['sleep', '5'], timeout=0.1)
except subprocess.TimeoutExpired as e: print(type(e).__name__, e.cmd)
try: subprocess.run(['false'], check=True)
except subprocess.CalledProcessError as e: print(e.returncode)
''',
    'processes': '''
import multiprocessing as mp, os
def work(n): return n * n, os.getpid() != parent
parent = os.getpid()
ctx = mp.get_context('fork')
with ctx.Pool(2) as pool: results = pool.map(work, range(5))
assert all(other for _, other in results)
v = ctx.Value('i', 0); a = ctx.Array('d', 3)
def bump(i):
    with v.get_lock(): v.value += i
    a[i] = i / 2
ps = [ctx.Process(target=bump, args=(i,)) for i in range(3)]
[p.start() for p in ps]; [p.join() for p in ps]
print([r for r, _ in results], v.value, list(a), [p.exitcode for p in ps])
here, there = ctx.Pipe()
p = ctx.Process(target=lambda: there.send({'x': [1, 2]})); p.start(); print(here.recv()); p.join()
''',
    'pickling and copying': '''
import pickle, copy
class P:
    def __init__(self, x): self.x = x; self.me = self
    def __getstate__(self): return {'x': self.x}
    def __setstate__(self, s): self.__dict__.update(s, restored=True)
q = pickle.loads(pickle.dumps(P([1, 2])))
assert q.x == [1, 2] and q.restored
d = {'a': [1]}; d['self'] = d
c = copy.deepcopy(d)
assert c['self'] is c and c['a'] is not d['a']
print(type(q).__module__, copy.copy([1, [2]]), pickle.loads(pickle.dumps((1, 'x', b'y', {3}, 2 + 3j, range(3)))))
''',
    'typing and inspection': '''
import inspect, typing
from typing import Generic, TypeVar, Protocol, NamedTuple, get_type_hints, runtime_checkable
T = TypeVar('T')
class Box(Generic[T]):
    def __init__(self, item: T) -> None: self.item = item
class Point(NamedTuple):
    x: int
    y: int = 0
@runtime_checkable
class Sized2(Protocol):
    def __len__(self) -> int: ...
def f(a, /, b: int, *args, c='x', **kw) -> list[str]: return []
assert isinstance([], Sized2) and Point(1)._asdict() == {'x': 1, 'y': 0}
print(inspect.signature(f), get_type_hints(f), Box[int], Point(1)._replace(y=5), inspect.getdoc(len)[:20])
print(inspect.getsource(f).strip())
''',
    'collections': '''
from collections import Counter, defaultdict, deque, OrderedDict, ChainMap, namedtuple, UserDict
import bisect, operator
d = deque(maxlen=3); d.extend(range(5)); d.rotate(1)
groups = defaultdict(list)
for w in 'apple avocado bean banana cherry'.split(): groups[w[0]].append(w)
assert groups['b'] == ['bean', 'banana']
class Lower(UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)
o = OrderedDict(a=1, b=2); o.move_to_end('a')
print(d, dict(groups), Counter('aab') + Counter('b'), list(o), ChainMap({'a': 1}, {'a': 2, 'b': 3})['b'], Lower(A=1), bisect.bisect([1, 3, 5], 4))
print(sorted([{'n': 2}, {'n': 1}], key=operator.itemgetter('n')), {**{'a': 1}, 'b': 2} | {'c': 3}, [*range(3), *'ab'])
''',
    'logging and warnings': '''
import logging, warnings, io, sys
out = io.StringIO()
logger = logging.getLogger('shop'); logger.setLevel(logging.DEBUG); logger.propagate = False
h = logging.StreamHandler(out); h.setFormatter(logging.Formatter('%(levelname)s:%(name)s:%(message)s')); logger.addHandler(h)
logger.info('n=%d', 5)
try: 1 / 0
except ZeroDivisionError: logger.exception('failed')
assert 'ZeroDivisionError' in out.getvalue()
print(out.getvalue().splitlines()[0])
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter('always'); warnings.warn('old', DeprecationWarning); print(len(w), w[0].category.__name__)
''',
    'unittest and doctest': '''
import unittest, doctest, io
def double(n):
    """
    >>> double(4)
    8
    """
    return n * 2
class T(unittest.TestCase):
    def test_ok(self): self.assertEqual(double(2), 4)
    def test_bad(self):
        with self.assertRaises(TypeError): double()
    @unittest.expectedFailure
    def test_expected(self): self.fail()
result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
assert result.wasSuccessful()
print(result.testsRun, len(result.expectedFailures), doctest.run_docstring_examples(double, {'double': double}))
''',
    'argparse and exits': '''
import argparse, sys
p = argparse.ArgumentParser(prog='tool'); p.add_argument('n', type=int); p.add_argument('--flag', action='store_true'); p.add_argument('-o', choices=['a', 'b'])
print(p.parse_args(['5', '--flag', '-o', 'b']))
try: p.parse_args(['x'])
except SystemExit as e: print('exit', e.code)
assert p.parse_args(['1']).n == 1
print(p.format_usage())
''',
    'weak references and garbage': '''
import weakref, gc
class N:
    def __init__(self): self.other = None
a, b = N(), N(); a.other, b.other = b, a
gone = []
weakref.finalize(a, gone.append, 'a'); r = weakref.ref(b)
del a, b
gc.collect()
assert r() is None and gone == ['a']
cache = weakref.WeakValueDictionary(); n = N(); cache['n'] = n
print(gone, len(cache)); del n; gc.collect(); print(len(cache))
''',
    'dates and zones': '''
from datetime import datetime, timezone, timedelta
from zoneinfo import ZoneInfo
import calendar, time
t = datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc)
berlin = t.astimezone(ZoneInfo('Europe/Berlin'))
assert (berlin + timedelta(0)).utcoffset() == timedelta(hours=1)
print(berlin.isoformat(), datetime.fromisoformat('2024-02-29T12:00:00+02:00').timestamp(), calendar.monthrange(2024, 2), time.strftime('%Y', time.gmtime(0)))
print(datetime.strptime('5 Mar 21', '%d %b %y').date(), (datetime(2024, 1, 1) - datetime(2023, 1, 1)).days, calendar.month(2024, 2).splitlines()[2])
''',
    'imports and packages': '''
import os, sys, importlib
os.makedirs('pkg/sub', exist_ok=True)
open('pkg/__init__.py', 'w').write('from .a import x\\n__all__ = ["x"]\\n')
open('pkg/a.py', 'w').write('x = 1\\n'); open('pkg/sub/__init__.py', 'w').write('from .. import a\\ny = a.x + 1\\n')
sys.path.insert(0, os.getcwd()); importlib.invalidate_caches()
import pkg, pkg.sub
assert pkg.sub.y == 2
open('pkg/a.py', 'w').write('x = 50  # longer\\n'); importlib.invalidate_caches(); importlib.reload(pkg.a)
print(pkg.a.x, pkg.__name__, importlib.import_module('pkg.sub').__package__)
try: import pkg.missing
except ModuleNotFoundError as e: print(e)
''',
}

SCIENCE = {
    'numpy arrays': '''
import numpy as np
a = np.arange(24).reshape(2, 3, 4)
assert a.sum(axis=(0, 2)).tolist() == [60, 92, 124]
print(a[:, ::2, -1], a.T.shape, np.where(a % 5 == 0, a, -1).max(), (a[0] @ a[1].T).trace())
print(np.linalg.solve([[3., 1.], [1., 2.]], [9., 8.]).round(6), np.einsum('ijk->j', a), np.cumsum([1, 2, 3]), a.dtype)
''',
    'numpy statistics': '''
import numpy as np
rng = np.random.default_rng(7)
x = rng.normal(5, 2, 10_000)
assert abs(x.mean() - 5) < 0.1
print(x[:3], np.percentile(x, [5, 50, 95]).round(4), np.histogram(x, bins=4)[0], np.corrcoef(x, x * 2 + 1)[0, 1].round(6))
np.random.seed(3); print(np.random.rand(2), np.random.randint(0, 10, 5), np.random.permutation(4))
''',
    'numpy io and fft': '''
import numpy as np
t = np.linspace(0, 1, 256, endpoint=False)
s = np.sin(2 * np.pi * 13 * t)
assert int(np.abs(np.fft.rfft(s)).argmax()) == 13
np.save('s.npy', s); np.savez('z.npz', a=s, b=t); np.savetxt('s.csv', s[:3], fmt='%.3f')
print(np.load('s.npy').shape, sorted(np.load('z.npz').files), open('s.csv').read().split(), np.array([(1, 'x')], dtype=[('n', 'i4'), ('s', 'U3')])['s'])
''',
    'pandas tables': '''
import pandas as pd, io
df = pd.read_csv(io.StringIO('city,day,temp\\nRome,2024-01-01,11\\nOslo,2024-01-01,-4\\nRome,2024-01-02,13\\nOslo,2024-01-02,\\n'), parse_dates=['day'])
assert df['temp'].isna().sum() == 1
print(df.groupby('city')['temp'].agg(['mean', 'count'])); print(df.pivot(index='day', columns='city', values='temp').ffill())
print(df.dropna().sort_values('temp').to_dict('records')[0]['city'], df['day'].dt.day_name().unique(), df.describe().loc['mean', 'temp'].round(3))
''',
    'pandas joins and time': '''
import pandas as pd
a = pd.DataFrame({'k': [1, 2, 3], 'x': list('abc')}); b = pd.DataFrame({'k': [2, 3, 4], 'y': [True, False, True]})
m = a.merge(b, on='k', how='outer', indicator=True)
assert m['_merge'].value_counts()['both'] == 2
print(m); s = pd.Series(range(48), index=pd.date_range('2024-01-01', periods=48, freq='h'))
print(s.resample('12h').sum().tolist(), s.rolling(3).mean().iloc[2], s.between_time('01:00', '02:00').tolist())
a.assign(z=a.k ** 2).query('z > 1').to_csv('o.csv', index=False); print(open('o.csv').read())
''',
    'matplotlib': '''
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt, numpy as np, os
fig, axes = plt.subplots(2, 2, figsize=(6, 4))
x = np.linspace(0, 6, 50)
axes[0, 0].plot(x, np.sin(x), label='sin'); axes[0, 0].legend(); axes[0, 1].bar(list('abc'), [3, 1, 2]); axes[1, 0].hist(np.sin(x), bins=8); axes[1, 1].imshow(np.outer(x, x))
fig.suptitle('Ünï $\\\\alpha^2$'); fig.tight_layout()
for kind in ('png', 'svg', 'pdf'): fig.savefig(f'f.{kind}')
plt.close('all')
assert open('f.png', 'rb').read(4) == b'\\x89PNG' and os.path.getsize('f.pdf') > 5000
print(len(axes[0, 1].patches), axes[0, 0].get_lines()[0].get_label(), open('f.svg').read(5))
''',
    'pillow': '''
from PIL import Image, ImageDraw, ImageFilter, ImageOps
im = Image.new('RGB', (64, 48), 'white'); d = ImageDraw.Draw(im)
d.ellipse((8, 8, 40, 40), fill=(200, 30, 30)); d.text((2, 2), 'hi', fill='black')
im.rotate(90, expand=True).save('r.png'); ImageOps.grayscale(im).filter(ImageFilter.BLUR).save('g.jpg')
assert Image.open('r.png').size == (48, 64)
print(im.getpixel((24, 24)), Image.open('g.jpg').mode, len(im.getcolors(10000)) > 2, im.resize((8, 6)).tobytes()[:6].hex())
''',
    'least squares by hand': '''
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
df = pd.DataFrame({'x': rng.uniform(0, 10, 200)}); df['y'] = 3 * df.x - 2 + rng.normal(0, 0.5, 200)
A = np.c_[df.x, np.ones(len(df))]
(slope, offset), residual, rank, _ = np.linalg.lstsq(A, df.y, rcond=None)
assert abs(slope - 3) < 0.05
print(round(slope, 6), round(offset, 6), rank, df.corr().round(6).values.tolist(), pd.cut(df.x, 3).value_counts(sort=False).tolist())
''',
}


def expected(code, folder):
    """What python3 prints; from a file, because some programs ask for their own source."""
    path = folder / 'program.py'
    path.write_text(code)
    said = subprocess.run([gb.PYTHON, '-I', '-B', '-u', path], capture_output=True, text=True, timeout=120, cwd=folder)
    assert said.returncode == 0, said.stderr
    return said.stdout


@pytest.mark.parametrize('name', PLAIN)
def test_program(session, tmp_path, name):
    seen = session.execute(PLAIN[name], timeout_s=60).ok()
    assert seen.stdout == expected(PLAIN[name], tmp_path)


@pytest.mark.parametrize('name', SCIENCE)
def test_science_program(science, tmp_path, name):
    seen = science.execute(SCIENCE[name], timeout_s=60).ok()
    assert seen.stdout == expected(SCIENCE[name], tmp_path)


def test_all_in_one_session(api):
    """One after another in one interpreter, as an agent uses it; none spoils the next."""
    session = api.session()
    for name, code in PLAIN.items():
        if name != 'sqlite':  # makes its table once
            session.execute(code, timeout_s=60).ok()
    assert session.value('1 + 1') == '2'


def test_programs_split_into_cells(session):
    """State, functions and classes over many cells; redefinition; generators that live on."""
    cells = [
        ('import math', None),
        (
            'class Account:\n    def __init__(self): self.total = 0\n    def add(self, n):\n        self.total += n\n        return self',
            None,
        ),
        ('a = Account().add(5)', None),
        ('a.total', '5'),
        ('Account.double = lambda self: self.total * 2\na.double()', '10'),
        ('def gen():\n    for i in range(10): yield i\ng = gen()\nnext(g)', '0'),
        ('next(g), next(g)', '(1, 2)'),
        ('def gen(): return "redefined"\nsum(g), gen()', "(42, 'redefined')"),
        ('x = [1, 2, 3]\ny = x', None),
        ('y.append(4)\nx', '[1, 2, 3, 4]'),
        (
            'from functools import cache\n@cache\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(80)',
            '23416728348467685',
        ),
        (
            'global_count = 0\ndef bump():\n    global global_count\n    global_count += 1\n    return global_count',
            None,
        ),
        ('bump(), bump()', '(1, 2)'),
        ('del a\n"a" in globals()', 'False'),
        ('try:\n    nothing\nexcept NameError as e:\n    kept = str(e)\nkept', '"name \'nothing\' is not defined"'),
        ('f"{math.pi:.3f}"', "'3.142'"),
    ]
    for code, text in cells:
        assert session.execute(code).ok().text == text, code
