"""Before forking: imports and typical first calls, so that children neither import nor write what they could share.
After it: new random numbers."""

import io
import time


class _Quiet:
    """Nothing of what runs inside is seen. Warnings are not shown rather than filtered: filters that modules add when
    they are imported must stay."""

    def __enter__(self):
        import warnings

        self.kept = sys.stdout, sys.stderr, warnings, warnings.showwarning
        sys.stdout = sys.stderr = io.StringIO()
        warnings.showwarning = lambda *args, **kwargs: None

    def __exit__(self, *exc):
        sys.stdout, sys.stderr, warnings, warnings.showwarning = self.kept


def preload(names):
    """Imports modules; returns 'name: why' for each that could not be."""
    from importlib import import_module

    failed = []
    for name in names:
        try:
            with _Quiet(), _Keeping():
                import_module(name)
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            failed.append(f'{name}: {_brief(e)}')
    return failed


def warm_up():
    """Makes the typical first calls of what is imported; returns 'name: why' for each part that failed."""
    failed = []
    has_tk()
    for name, module, part in _PARTS:
        if module not in sys.modules:
            continue
        try:
            with _Quiet(), _Keeping():
                _adapt(part)
        except Exception as e:
            failed.append(f'{name}: {_brief(e)}')
    _forget_the_host()
    _finish_template()
    return failed


def _forget_the_host():
    """What modules keep of the machine they were imported on: its name, and the address of its network card."""
    platform, uuid = sys.modules.get('platform'), sys.modules.get('uuid')
    known = getattr(platform, '_uname_cache', None)
    if known is not None:
        platform._uname_cache = type(known)(known.system, 'sandbox', known.release, known.version, known.machine)
    if getattr(uuid, '_node', None) is not None:
        uuid._node = None


def _adapt(part):
    """Often enough that the interpreter has adapted the code it runs: until then it writes to it, and every child would
    do so in pages of its own. What is slow is not worth the wait."""
    end = time.monotonic() + 0.3
    for _ in range(16):
        part()
        if time.monotonic() > end:
            break


def _warm_language():
    source = 'import sys\ndef f(x):\n    return 1 / x\nf(0)\n'
    register_source('<warm>', source)
    try:
        exec(compile(source, '<warm>', 'exec'), {'__name__': '__main__'})
    except ZeroDivisionError as e:
        format_error(e, '<warm>')
    for text in ('x =', 'for x in y:\n  pass', 'pritn'):
        try:
            eval(compile(text, '<warm>', 'exec'), {})
        except Exception as e:
            format_error(e, '<warm>')
    forget_source('<warm>')
    bundle([1, 2.5, 'x', None, {'a': (True,)}])
    bundle(sys)
    '{:>20,.2f} {!r:^5}'.format(1234567.891, 'x')
    is_complete('def f():')


def _warm_modules():
    module = sys.modules.get
    if 'json' in sys.modules:
        json.loads(json.dumps({'a': [1, 2.5, None, 'é']}, indent=1))
    if 're' in sys.modules:
        re = module('re')
        re.findall(r'(\w+)@(\d+)', 'a@1 b@2')
        re.sub(r'\s+', ' ', 'a  b')
    if 'datetime' in sys.modules:
        datetime = module('datetime')
        datetime.datetime.strptime('2024-02-29 12:00', '%Y-%m-%d %H:%M').strftime('%A %d %B')
        datetime.datetime.now(datetime.timezone.utc).isoformat()
    if 'collections' in sys.modules:
        module('collections').Counter('abracadabra').most_common(2)
    if 'dataclasses' in sys.modules:
        repr(module('dataclasses').make_dataclass('Point', ['x', 'y'])(1, 2))
    if 'decimal' in sys.modules:
        str(module('decimal').Decimal('1') / 3)
    if 'inspect' in sys.modules:
        module('inspect').signature(preload)


def _warm_asyncio():
    """Without a loop that stays: its descriptors would be shared by all children."""
    import asyncio

    async def nothing():
        await asyncio.sleep(0)
        return await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(nothing())
    finally:
        loop.close()


def _warm_numpy():
    import numpy as np

    a = np.arange(12.0).reshape(3, 4)
    b = a @ a.T + np.eye(3)
    np.linalg.solve(b, np.ones(3))
    np.linalg.inv(b), np.linalg.svd(a), np.linalg.eigh(b), np.linalg.det(b)
    repr(a), str(np.array(['x', 'y'])), a.mean(axis=0), a.std(), np.sort(a), a[a > 3], np.where(a > 1, a, 0)
    np.concatenate([a, a]), np.percentile(a, 50), np.histogram(a), np.unique(a), np.fft.fft(a)
    rng = np.random.default_rng(0)
    rng.normal(size=3), rng.integers(0, 9, 3), rng.choice(3), rng.permutation(3)
    repr(np.random.RandomState(0).randn(2, 2))


def _warm_pandas():
    import numpy as np
    import pandas as pd

    df = pd.DataFrame({'g': ['x', 'y', 'x', 'y'], 'n': [1, 2, 3, 4], 'v': [0.5, 1.5, np.nan, 2.5]})
    repr(df), df.to_html(), df._repr_html_(), repr(df.dtypes), repr(df.describe()), df.info(), df.head(2)
    repr(df.groupby('g').agg({'n': 'sum', 'v': 'mean'})), df.groupby('g')['v'].mean(), df['g'].value_counts()
    df['w'] = df['n'] * 2
    df.loc[df['n'] > 1, ['n', 'v']], df.sort_values('v'), df.fillna(0), df.isna().sum(), df.drop(columns='w')
    df.merge(df[['g', 'n']], on='g'), pd.concat([df, df]), df.pivot_table(index='g', values='n'), df[
        ['n', 'v']
    ].corr()
    df.apply(lambda row: row['n'], axis=1), df['n'].rolling(2).mean(), df['g'].str.upper(), df.iloc[0], repr(
        df['n']
    )
    read = pd.read_csv(io.StringIO('day,n\n2024-01-01,1\n2024-01-02,2\n'), parse_dates=['day'])
    read.set_index('day').resample('D').sum(), read[
        'day'
    ].dt.month, read.to_csv(), read.to_json(), read.to_dict('records')
    pd.date_range('2024-01-01', periods=3), pd.to_datetime(['2024-01-01']), pd.Timestamp('2024-01-01 12:00')


def _warm_pyplot():
    import matplotlib.pyplot as plt

    try:
        figure, axes = plt.subplots(figsize=(4, 3))
        axes.plot([1, 2, 3], [1, 4, 9], 'o-', label='line')
        axes.bar([1, 2], [3, 4]), axes.scatter([1, 2], [2, 1]), axes.hist([1, 2, 2, 3])
        axes.set_title('Title'), axes.set_xlabel('x'), axes.set_ylabel('$y^2$'), axes.legend(), axes.grid(
            True
        )
        axes.text(1, 1, 'text')
        if 'pandas' in sys.modules:
            sys.modules['pandas'].DataFrame({'a': [1, 2], 'b': [2, 3]}).plot(ax=axes)
        figure.tight_layout()
        bundle(figure)
        figure.savefig(io.BytesIO())
        plt.subplots(2, 2)
        plt.imshow([[0, 1], [1, 0]]), plt.colorbar()
        bundle(plt.gcf())
    finally:
        plt.close('all')
        _close_fonts()


def _close_fonts():
    """matplotlib's caches keep font files open; children that read through one shared descriptor would disturb each
    other."""
    import gc

    for module, name in (
        ('matplotlib.font_manager', '_get_font'),
        ('matplotlib.mathtext', 'MathTextParser._parse_cached'),
    ):
        cached = sys.modules.get(module)
        for part in name.split('.'):
            cached = getattr(cached, part, None)
        if hasattr(cached, 'cache_clear'):
            cached.cache_clear()
    gc.collect()  # fonts and files hold each other


def _warm_pillow():
    from PIL import Image, ImageDraw

    image = Image.new('RGB', (16, 16), 'white')
    ImageDraw.Draw(image).line((0, 0, 15, 15), fill='red')
    for kind in ('PNG', 'JPEG'):
        data = io.BytesIO()
        image.resize((8, 8)).save(data, kind)
        Image.open(io.BytesIO(data.getvalue())).load()
    bundle(image)


_PARTS = (
    ('language', 'sys', _warm_language),
    ('standard library', 'sys', _warm_modules),
    ('asyncio', 'asyncio', _warm_asyncio),
    ('numpy', 'numpy', _warm_numpy),
    ('pandas', 'pandas', _warm_pandas),
    ('matplotlib', 'matplotlib.pyplot', _warm_pyplot),
    ('pillow', 'PIL.Image', _warm_pillow),
)


# ---- random numbers ----------------------------------------------------


def reseed(seed=None):
    """After a fork: new random numbers, or those that random.seed(seed) and numpy.random.seed(seed) give (an int, or
    bytes as a little-endian one)."""
    if isinstance(seed, (bytes, bytearray)):
        seed = int.from_bytes(seed, 'little')
    for name, reseed_module in (('random', _reseed_random), ('numpy.random', _reseed_numpy)):
        if name in sys.modules:
            reseed_module(sys.modules[name], seed)
        elif seed is not None:
            _on_import(name, lambda module, reseed_module=reseed_module: reseed_module(module, seed))


def _reseed_random(random, seed):
    random.seed(seed)


def _reseed_numpy(numpy_random, seed):
    if seed is None:
        import os

        seed = int.from_bytes(os.urandom(32), 'little')
    if seed >= 1 << 32:
        seed = [seed >> shift & 0xFFFFFFFF for shift in range(0, seed.bit_length(), 32)]
    numpy_random.seed(seed)
