"""Ordinary Python, a snippet per feature. Under a profile each must print what /usr/bin/python3 prints.

A name in REFUSED_BY_RESTRICTED is of a kind that RestrictedPython's rules refuse."""

SNIPPETS = {
    'decorator': '''
def twice(f):
    def inner(*a, **k):
        return f(*a, **k) * 2
    return inner
@twice
def g(x):
    return x + 1
print(g(3))
''',
    'decorator_with_arguments': '''
import functools
def repeat(n):
    def wrap(f):
        @functools.wraps(f)
        def inner(*a):
            return [f(*a) for i in range(n)]
        return inner
    return wrap
@repeat(3)
def hello(name):
    "says hello"
    return 'hello ' + name
print(hello('x'))
''',
    'class_decorator': '''
def register(cls):
    cls.tag = 'registered'
    return cls
@register
class A:
    pass
print(A.tag)
''',
    'dataclass': '''
from dataclasses import dataclass, field
@dataclass(order=True)
class P:
    x: int
    y: int = 2
    tags: list = field(default_factory=list)
print(P(1), P(1) == P(1), P(1) < P(2), P(3, tags=['a']).tags)
''',
    'dataclass_frozen': '''
from dataclasses import dataclass, replace, asdict
@dataclass(frozen=True)
class Q:
    a: int
    b: str = 'x'
q = Q(1)
try:
    q.a = 5
except Exception as e:
    print('frozen', e)
print(replace(q, a=9), asdict(q))
''',
    'enum': '''
from enum import Enum, auto
class Color(Enum):
    RED = 1
    GREEN = auto()
print(Color.RED, Color['GREEN'].value, [c.name for c in Color], Color(1) is Color.RED)
''',
    'namedtuple': '''
from collections import namedtuple
P = namedtuple('P', 'x y')
p = P(1, y=2)
a, b = p
print(p, p.x + p.y, a, b)
''',
    'property': '''
class T:
    def __init__(self, c):
        self.c = c
    @property
    def f(self):
        return self.c * 9 / 5 + 32
    @f.setter
    def f(self, v):
        self.c = (v - 32) * 5 / 9
t = T(100)
print(t.f)
t.f = 32
print(t.c)
''',
    'static_and_class_methods': '''
class A:
    n = 3
    @staticmethod
    def s(x):
        return x * 2
    @classmethod
    def c(cls):
        return cls.n
print(A.s(4), A.c(), A().c())
''',
    'metaclass': '''
class Meta(type):
    def __new__(mcs, name, bases, ns):
        ns['extra'] = name.lower()
        return super().__new__(mcs, name, bases, ns)
class Thing(metaclass=Meta):
    pass
print(Thing.extra)
''',
    'init_subclass': '''
class Base:
    found = []
    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Base.found.append(cls.__name__)
class A(Base): pass
class B(Base): pass
print(Base.found)
''',
    'inheritance_super': '''
class A:
    def __init__(self, x):
        self.x = x
    def show(self):
        return 'A%d' % self.x
class B(A):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y
    def show(self):
        return super().show() + 'B%d' % self.y
print(B(1, 2).show())
''',
    'multiple_inheritance': '''
class A:
    def who(self): return ['A']
class B(A):
    def who(self): return ['B'] + super().who()
class C(A):
    def who(self): return ['C'] + super().who()
class D(B, C):
    def who(self): return ['D'] + super().who()
print(D().who())
''',
    'abstract_class': '''
from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self): ...
class Sq(Shape):
    def area(self): return 4
try:
    Shape()
except TypeError as e:
    print('abstract')
print(Sq().area())
''',
    'operators': '''
class V:
    def __init__(self, x): self.x = x
    def __add__(self, o): return V(self.x + o.x)
    def __eq__(self, o): return self.x == o.x
    def __repr__(self): return 'V(%d)' % self.x
    def __len__(self): return self.x
    def __getitem__(self, i): return i * self.x
    def __bool__(self): return self.x != 0
    def __call__(self, y): return self.x + y
print(V(1) + V(2), V(1) == V(1), len(V(5)), V(3)[4], bool(V(0)), V(2)(3))
''',
    'generator': '''
def count(n):
    i = 0
    while i < n:
        yield i
        i += 1
print(list(count(4)), sum(count(5)))
''',
    'generator_send': '''
def acc():
    total = 0
    while True:
        x = yield total
        if x is None:
            return
        total += x
g = acc()
next(g)
print(g.send(3), g.send(4))
g.close()
''',
    'yield_from': '''
def inner():
    yield 1
    yield 2
    return 'done'
def outer():
    r = yield from inner()
    yield r
print(list(outer()))
''',
    'generator_expression': 'print(sum(x * x for x in range(10) if x % 2), list(map(lambda x: x + 1, (y for y in [1, 2]))))',
    'async_await': '''
import asyncio
async def f(x):
    await asyncio.sleep(0)
    return x * 2
async def main():
    return await asyncio.gather(f(1), f(2), f(3))
print(asyncio.run(main()))
''',
    'async_generator': '''
import asyncio
async def gen():
    for i in range(3):
        yield i
        await asyncio.sleep(0)
async def main():
    print([x async for x in gen()])
    async for y in gen():
        print(y)
asyncio.run(main())
''',
    'async_with': '''
import asyncio
class CM:
    async def __aenter__(self):
        return 'in'
    async def __aexit__(self, *a):
        print('out')
async def main():
    async with CM() as x:
        print(x)
asyncio.run(main())
''',
    'match_values': '''
def f(x):
    match x:
        case 0: return 'zero'
        case 1 | 2: return 'few'
        case int(): return 'int'
        case str() as s: return 'str ' + s
        case [a, b, *rest]: return a, b, rest
        case {'k': v, **others}: return v, others
        case None: return 'none'
        case _: return 'other'
print([f(v) for v in (0, 2, 7, 'q', [1, 2, 3, 4], {'k': 5, 'z': 6}, None, 2.5)])
''',
    'match_class': '''
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int
def where(p):
    match p:
        case P(x=0, y=0): return 'origin'
        case P(x, 0): return 'x axis %d' % x
        case P(x=a, y=b) if a == b: return 'diagonal'
        case P(): return 'somewhere'
print(where(P(0, 0)), where(P(3, 0)), where(P(2, 2)), where(P(1, 2)))
''',
    'walrus': '''
data = [1, 5, 9]
if (n := len(data)) > 2:
    print(n)
print([y for x in data if (y := x * 2) > 5])
''',
    'star_args': '''
def f(a, *args, k=1, **kw):
    return a, args, k, sorted(kw.items())
print(f(1, 2, 3, k=4, z=5))
print(f(*[1, 2], **{'q': 3}))
first, *mid, last = range(5)
print(first, mid, last)
''',
    'keyword_and_positional_only': '''
def f(a, /, b, *, c=3):
    return a, b, c
print(f(1, 2), f(1, b=5, c=6))
try:
    f(a=1, b=2)
except TypeError as e:
    print('TypeError')
''',
    'default_arguments': '''
def f(x, acc=[]):
    acc.append(x)
    return acc
print(f(1), f(2))
fs = [lambda x, i=i: x + i for i in range(3)]
print([g(10) for g in fs])
''',
    'try_return_finally': '''
def f(x):
    try:
        return 10 / x
    except ZeroDivisionError:
        return 'zero'
    else:
        return 'never'
    finally:
        print('finally', x)
print(f(2))
print(f(0))
''',
    'try_else': '''
for v in ('1', 'x'):
    try:
        n = int(v)
    except ValueError as e:
        print('bad', e)
    else:
        print('good', n)
    finally:
        print('end')
''',
    'exception_chain': '''
class MyError(Exception):
    pass
try:
    try:
        {}['k']
    except KeyError as e:
        raise MyError('wrapped') from e
except MyError as e:
    print(e, isinstance(e, MyError))
''',
    'exception_hierarchy': '''
def f(e):
    try:
        raise e
    except (ValueError, TypeError) as x:
        return 'vt'
    except LookupError:
        return 'lookup'
    except Exception:
        return 'other'
print([f(e) for e in (ValueError(), TypeError(), KeyError(), IndexError(), RuntimeError())])
''',
    'nested_finally_loop': '''
def f():
    for i in range(5):
        try:
            if i == 1: continue
            if i == 3: break
            print(i)
        finally:
            print('f', i)
    return 'x'
print(f())
''',
    'context_manager_class': '''
class CM:
    def __enter__(self):
        print('enter')
        return self
    def __exit__(self, t, v, tb):
        print('exit', t is ValueError)
        return True
with CM() as c:
    raise ValueError('swallowed')
print('after')
''',
    'contextmanager': '''
from contextlib import contextmanager
@contextmanager
def tag(name):
    print('<', name)
    yield name.upper()
    print('>', name)
with tag('a') as a, tag('b') as b:
    print(a, b)
''',
    'closure': '''
def counter():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    return inc
c = counter()
print(c(), c(), counter()())
''',
    'closure_cells': '''
def make():
    fs = []
    for i in range(3):
        fs.append(lambda: i)
    return [f() for f in fs]
print(make())
''',
    'global': '''
n = 0
def bump():
    global n
    n = n + 1
bump(); bump()
print(n)
''',
    'fstrings': '''
x, y = 3.14159, 'hi'
print(f'{x:.2f} {y!r:>8} {x=} {"nested " + f"{y}"} {1000000:,} {{literal}} {y:^{10}}|')
''',
    'format_method': "print('{} {1} {name}'.replace('{}', '{0}').format(1, 2, name='n'), '{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c'), '{0[1]}'.format([1, 2]))",
    'percent_format': "print('%d %s %.2f %05d %x %%' % (1, 'a', 2.5, 42, 255))",
    'string_methods': "s = ' Hello, World '; print(s.strip().lower().split(', '), s.replace('l', 'L'), 'a,b'.partition(','), '-'.join('abc'), 'abc'.find('c'), s.isupper(), 'x'.zfill(3))",
    'bytes': "b = 'héllo'.encode(); print(b, len(b), b.decode(), bytes([1, 2]), bytearray(b'ab') + b'c', b[0], b'abc'.hex())",
    'list_comprehension': 'print([(x, y) for x in range(3) for y in range(3) if x != y])',
    'dict_and_set_comprehension': 'print({k: v for k, v in zip("abc", range(3))}, sorted({x % 3 for x in range(10)}))',
    'nested_comprehension': 'm = [[1, 2], [3, 4]]; print([[r[i] for r in m] for i in range(2)], [x for r in m for x in r])',
    'slices': 'a = list(range(10)); print(a[2:5], a[::-1], a[-3:], a[1:8:3]); a[2:4] = [20, 30, 40]; del a[0]; print(a)',
    'dict_methods': "d = {'a': 1}; d.update(b=2); d.setdefault('c', []).append(3); print(d, d.get('z', 0), d.pop('a'), list(d.items()), {**d, 'x': 1} | {'y': 2})",
    'set_operations': 'a, b = {1, 2, 3}, {2, 3, 4}; print(sorted(a | b), sorted(a & b), sorted(a - b), sorted(a ^ b), a <= b, frozenset(a) == a)',
    'sorting': "w = ['pear', 'fig', 'apple']; print(sorted(w, key=len), sorted(w, reverse=True), max(w, key=len), sorted({'b': 1, 'a': 2}.items(), key=lambda kv: kv[1]))",
    'unpacking': '(a, b), [c, *d] = (1, 2), [3, 4, 5]; print(a, b, c, d); a, b = b, a; print(a, b); print(*[1, 2], sep="-")',
    'lambda_map_filter_reduce': 'from functools import reduce\nprint(list(map(lambda x: x * 2, filter(lambda x: x % 2, range(6)))), reduce(lambda a, b: a * b, [1, 2, 3, 4]))',
    'recursion': 'def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint([fib(i) for i in range(12)])',
    'memoize': '''
from functools import lru_cache
@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(60), fib.cache_info().misses)
''',
    'partial': 'from functools import partial\nprint(partial(int, base=2)("1011"), partial(pow, 2)(5))',
    'while_else': '''
n = 0
while n < 3:
    n += 1
else:
    print('done', n)
while True:
    n -= 1
    if n == 1:
        break
else:
    print('never')
print(n)
''',
    'for_else': '''
for n in range(2, 8):
    for d in range(2, n):
        if n % d == 0:
            break
    else:
        print(n, end=' ')
print()
''',
    'while_else_break_outer': '''
for i in range(3):
    j = 0
    while j < i:
        j += 1
    else:
        if i == 2:
            break
        continue
    print('never')
print(i, j)
''',
    'augmented_assignment': 'x = 5\nx += 2; x *= 3; x //= 2; x **= 2; x %= 7; x <<= 2; x |= 1\nprint(x)\nl = [1]; m = l; l += [2]; print(m)',
    'augmented_items': 'd = {"a": 1}; d["a"] += 5\nclass C: pass\nc = C(); c.n = 1; c.n += 2\nprint(d, c.n)',
    'chained_comparison': 'x = 5; print(1 < x < 10, 1 < x > 7, x == 5 == 5.0, not x, x is not None, 3 in [1, 2, 3])',
    'conditional_and_boolean': 'print("a" if [] else "b", 0 or "x", [] and 1, None or 0 or {}, all([]), any([0, 1]))',
    'numbers': 'print(7 // 2, -7 // 2, 7 % -3, 2 ** 100, 1e3, 0x1f, 0b11, 1_000, round(2.5), divmod(17, 5), abs(-3), complex(1, 2) * 2, int("ff", 16), 10 / 4)',
    'iterators': '''
class Count:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n
print(list(Count(3)), next(iter([7])), next(iter([]), 'none'), list(zip('ab', Count(2))), list(enumerate('xy', 1)), list(reversed([1, 2])))
''',
    'itertools': 'import itertools as it\nprint(list(it.chain([1], [2])), list(it.permutations("ab")), list(it.islice(it.count(3), 3)), [list(g) for k, g in it.groupby("aab")])',
    'collections': 'from collections import Counter, defaultdict, deque, OrderedDict\nd = defaultdict(list); d["a"].append(1)\nq = deque([1, 2], maxlen=2); q.append(3)\nprint(Counter("hello").most_common(1), dict(d), list(q), OrderedDict(a=1))',
    'datetime': 'from datetime import datetime, timedelta, date\nd = datetime(2024, 2, 28) + timedelta(days=2)\nprint(d.strftime("%Y-%m-%d"), date(2024, 1, 1).weekday(), (date(2024, 3, 1) - date(2024, 2, 1)).days)',
    'regular_expressions': 'import re\nprint(re.findall(r"\\d+", "a1b22"), re.sub(r"(\\w)(\\d)", r"\\2\\1", "a1"), re.match(r"(?P<k>\\w+)=", "key=1").group("k"), re.split(r"[,;]", "a,b;c"))',
    'math_random_statistics': 'import math, random, statistics\nrandom.seed(1)\nprint(math.factorial(5), math.gcd(12, 18), round(math.pi, 3), random.randint(1, 100), statistics.mean([1, 2, 3]), statistics.stdev([1, 2, 3]))',
    'annotations': 'x: int = 3\ny: "list[int]"\ndef f(a: int, b: str = "q") -> bool:\n    return a > len(b)\nprint(x, f(2))\n',
    'typing': 'from typing import List, Optional, Dict, Union, Callable\ndef f(xs: List[int], k: Optional[str] = None) -> Dict[str, Union[int, str]]:\n    return {"n": len(xs), "k": k or ""}\nprint(f([1, 2]))',
    'generic_class': '''
from typing import Generic, TypeVar
T = TypeVar('T')
class Box(Generic[T]):
    def __init__(self, v: T): self.v = v
    def get(self) -> T: return self.v
print(Box[int](3).get())
''',
    'slots': '''
class S:
    __slots__ = ('a',)
    def __init__(self): self.a = 1
s = S()
try:
    s.b = 2
except AttributeError:
    print('no b', s.a)
''',
    'descriptor': '''
class Positive:
    def __set_name__(self, owner, name): self.name = '_' + name
    def __get__(self, obj, owner=None): return getattr(obj, self.name)
    def __set__(self, obj, v):
        if v < 0: raise ValueError('negative')
        setattr(obj, self.name, v)
class A:
    n = Positive()
a = A(); a.n = 3
try:
    a.n = -1
except ValueError as e:
    print(a.n, e)
''',
    'private_attributes': '''
class A:
    def __init__(self):
        self._x = 1
        self.__y = 2
    def both(self):
        return self._x, self.__y
a = A()
print(a.both(), a._x, hasattr(a, '__y'))
''',
    'class_name': '''
class Animal:
    def __repr__(self):
        return f'{self.__class__.__name__}()'
print(Animal(), type(Animal()).__name__, Animal.__name__)
''',
    'getattr_hook': '''
class Lazy:
    def __getattr__(self, name):
        if name.startswith('z'):
            raise AttributeError(name)
        return name.upper()
print(Lazy().abc, hasattr(Lazy(), 'zz'), getattr(Lazy(), 'zz', 'none'))
''',
    'dynamic_attributes': 'class A: pass\na = A(); setattr(a, "n", 4); print(getattr(a, "n"), hasattr(a, "m"), getattr(a, "m", 0)); delattr(a, "n"); print(hasattr(a, "n"))',
    'singleton_new': '''
class One:
    made = None
    def __new__(cls):
        if cls.made is None:
            cls.made = super().__new__(cls)
        return cls.made
print(One() is One())
''',
    'class_variables': 'class A:\n    items = []\n    def add(self, x): self.items.append(x)\nA().add(1); A().add(2); print(A.items, isinstance(A(), A), issubclass(bool, int), type(3) is int)',
    'cached_property': '''
from functools import cached_property
class A:
    calls = 0
    @cached_property
    def v(self):
        A.calls = A.calls + 1
        return 42
a = A()
print(a.v, a.v, A.calls)
''',
    'singledispatch': '''
from functools import singledispatch
@singledispatch
def show(x): return 'other'
@show.register(int)
def show_int(x): return 'int'
@show.register(list)
def show_list(x): return 'list'
print(show(1), show([]), show('s'))
''',
    'exception_group': '''
try:
    raise ExceptionGroup('g', [ValueError(1), TypeError(2)])
except ExceptionGroup as e:
    print(len(e.exceptions), e.message)
''',
    'assertions': 'try:\n    assert 1 > 2, "no"\nexcept AssertionError as e:\n    print("assert", e)',
    'delete_and_scope': 'x = 1\ndel x\ntry:\n    x\nexcept NameError as e:\n    print("gone")\ndef f():\n    y = 2\n    del y\n    return "ok"\nprint(f())',
    'print_options': 'print("a", "b", sep="", end="!\\n"); print(); print(None, True, [1, "x"], {"k": (1,)}, {1})',
    'unicode': 'print("naïve", len("日本"), "ß".upper(), "\\u00e9" == "é", ord("a"), chr(8364), "a\\tb".expandtabs(4))',
    'multiline_and_escape': 'print("""a\n  b""", r"\\n", "x" "y", "tab\\t|")',
    'matrix_without_numpy': 'a = [[1, 2], [3, 4]]\nprint([[sum(x * y for x, y in zip(r, c)) for c in zip(*a)] for r in a])',
    'sieve': 'def primes(n):\n    s = [True] * (n + 1)\n    for i in range(2, int(n ** 0.5) + 1):\n        if s[i]:\n            for j in range(i * i, n + 1, i):\n                s[j] = False\n    return [i for i in range(2, n + 1) if s[i]]\nprint(primes(40))',
    'heap_and_bisect_by_hand': 'def search(a, x):\n    lo, hi = 0, len(a)\n    while lo < hi:\n        mid = (lo + hi) // 2\n        if a[mid] < x:\n            lo = mid + 1\n        else:\n            hi = mid\n    return lo\nprint(search([1, 3, 5, 7], 5))',
}

# Kinds that RestrictedPython's rules refuse: names with underscores, async, nonlocal, metaclasses, augmented items.
REFUSED_BY_RESTRICTED = {
    'metaclass', 'init_subclass', 'inheritance_super', 'operators', 'async_await', 'async_generator', 'async_with',
    'context_manager_class', 'closure', 'augmented_items', 'iterators', 'slots', 'descriptor', 'private_attributes',
    'class_name', 'getattr_hook', 'singleton_new', 'format_method',
}  # fmt: skip
