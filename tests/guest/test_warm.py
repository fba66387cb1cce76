"""preload(), warm_up(), reseed()."""

import json
import os

import pytest

TEMPLATE = [
    'json',
    're',
    'datetime',
    'collections',
    'dataclasses',
    'decimal',
    'inspect',
    'random',
    'asyncio',
    'numpy',
    'pandas',
    'matplotlib.pyplot',
    'PIL.Image',
]

TYPICAL = """
import pandas as pd, numpy as np, matplotlib.pyplot as plt, io
df = pd.read_csv(io.StringIO('city,day,t\\nParis,2024-01-01,3.5\\nRome,2024-01-02,9.1\\nParis,2024-01-03,4.0\\n'), parse_dates=['day'])
print(df.groupby('city')['t'].agg(['mean', 'max']))
print(df.describe(), df.dtypes, np.linalg.norm(df['t']))
fig, ax = plt.subplots()
ax.plot(df['day'], df['t'], label='t')
ax.legend(); ax.set_title('Temperature')
df
"""


def test_preload_reports(guest, tmp_path):
    (tmp_path / 'loud.py').write_text(
        'import warnings, sys\nprint("hello")\nwarnings.warn("w")\nsys.stderr.write("err")'
    )
    (tmp_path / 'exits.py').write_text('import sys\nsys.exit("no\\nway")')
    (tmp_path / 'filters.py').write_text('import warnings\nwarnings.filterwarnings("ignore", message="mine")')
    env = {'PYTHONPATH': str(tmp_path)}
    outcome = guest(
        'import sys, warnings\nwarnings.warn("mine")\nsorted({"loud", "json.tool", "exits"} & set(sys.modules))',
        preload=['loud', 'no_such_module', 'exits', 'json.tool', '', 'filters'],
        env=env,
    )
    assert guest.report['preload'][:2] == [
        "no_such_module: ModuleNotFoundError: No module named 'no_such_module'",
        'exits: SystemExit: no way',
    ]
    assert guest.report['preload'][2].startswith(': ValueError') and len(guest.report['preload']) == 3
    assert guest.output == '' and outcome.stderr == ''
    assert outcome.result[0][2] == "['json.tool', 'loud']"


def need_template():
    for name in ('numpy', 'pandas', 'matplotlib', 'PIL'):
        pytest.importorskip(name)


def test_warm_up_imports_what_a_first_cell_needs(guest):
    need_template()
    outcome = guest(
        TYPICAL, 'import sys, json\nprint(json.dumps(sorted(sys.modules)))', preload=TEMPLATE, warm=True
    )
    assert guest.report['preload'] == [] and guest.report['warm'] == []
    assert guest.cells[0].error is None, guest.cells[0].error[2]
    new = set(json.loads(outcome.stdout)) - set(guest.report['modules'])
    assert new == set()


def test_warm_up_leaves_nothing_behind(guest, tmp_path):
    need_template()
    before = 'import random, numpy as np, threading, os, linecache\nrandom.seed(1); np.random.seed(1)\nexpected = random.random(), np.random.rand()'
    outcome = guest(
        before,
        'import _glovebox, sys, matplotlib.pyplot as plt\nrandom.seed(1); np.random.seed(1)\nfds = os.listdir("/proc/self/fd")\n'
        'out = sys.stdout, sys.stderr\nfailed = _glovebox.warm_up()',
        '[failed, (random.random(), np.random.rand()) == expected, plt.get_fignums(), threading.active_count(),'
        ' set(os.listdir("/proc/self/fd")) ^ set(fds), [n for n in linecache.cache if "warm" in n], os.listdir()]',
        preload=TEMPLATE,
    )
    assert outcome.error is None, outcome.error[2]
    assert outcome.result[0][2] == '[[], True, [], 1, set(), [], []]'
    assert [(cell.stdout, cell.stderr, cell.displays) for cell in guest.cells] == [('', '', [])] * 3
    assert os.listdir(tmp_path) == []


def test_warm_up_reports_and_goes_on(guest):
    outcome = guest('import _glovebox, re\nre.findall = None\n_glovebox.warm_up()')
    assert outcome.result[0][2] == '["standard library: TypeError: \'NoneType\' object is not callable"]'


DRAW = 'import random\nfrom random import random as r\nnumbers = [r(), random.randint(0, 10**9)]\n'
DRAW_NUMPY = (
    DRAW + 'import numpy as np\nnumbers += [float(np.random.rand()), int(np.random.randint(1 << 30))]\n'
)


@pytest.mark.parametrize('preload', [[], ['random'], ['random', 'numpy']])
def test_reseed(guest, preload):
    pytest.importorskip('numpy')

    def draw(**options):
        return guest(DRAW_NUMPY + 'numbers', preload=preload, **options).result[0][2]

    assert draw(seed=42) == draw(seed=42) != draw(seed=43)
    assert draw(seed=None) != draw(seed=None)
    assert draw(seed=2**64 - 1) == draw(seed=2**64 - 1) != draw(seed=2**32 - 1)
    same = guest(
        'import random, numpy\nrandom.seed(42); numpy.random.seed(42)\n' + DRAW_NUMPY + 'numbers',
        preload=preload,
    ).result[0][2]
    assert draw(seed=42) == same


def test_reseed_from_bytes(gb):
    import random

    state = random.getstate()
    try:
        gb.reseed(b'\x2a')
        a = random.random()
        random.seed(42)
        assert random.random() == a
    finally:
        random.setstate(state)


def test_forked_children_differ(guest):
    pytest.importorskip('numpy')
    outcome = guest(
        'import os, random, numpy as np, _glovebox\ndraws = []\nfor i in range(3):\n    r, w = os.pipe()\n    if os.fork() == 0:\n'
        '        _glovebox.reseed(None)\n        os.write(w, repr((random.random(), np.random.rand())).encode())\n        os._exit(0)\n'
        '    os.wait()\n    draws.append(eval(os.read(r, 999)))\nlen({d[0] for d in draws}), len({d[1] for d in draws})'
    )
    assert outcome.result[0][2] == '(3, 3)'
