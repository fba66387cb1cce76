"""Ways out of the language profiles (ways.py): none may get through under `restricted`, `restrictedpython` or `smolagents`, with numpy, pandas, matplotlib and tkinter allowed,
by their names and with all that is below them. The control runs the same code in python3, where each must get through."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import gb
import pytest
from ways import WAYS

LIBRARIES = ['numpy', 'pandas', 'matplotlib', 'tkinter']
IMPORTS = {
    'named': [*LIBRARIES, 'matplotlib.pyplot', 'json', 'operator', 'string', 'copy'],
    'below': [*(f'{name}.*' for name in LIBRARIES), 'json', 'operator', 'string', 'copy'],
    # Modules that hand out others: what they hand out is looked at.
    'keys': ['operator', 'importlib', 'sys'],
    'system': ['os'],  # its dangerous functions stay out of reach as values
}

_CONTROL = """
import contextlib, io, json, sys
through = []
for name, code in json.load(sys.stdin).items():
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, 'exec'), {'__name__': '__main__'})
    except BaseException:
        pass
    if any(line.startswith('ESCAPED') for line in out.getvalue().splitlines()):
        through.append(name)
print(json.dumps(through))
"""


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--preload', 'json,numpy,pandas,matplotlib.pyplot,tkinter,jinja2', '--ready', '2', '--grace', '1') as d:
        yield d


@pytest.fixture(scope='module')
def through_in_python(tmp_path_factory):
    done = subprocess.run(
        [gb.PYTHON, '-c', _CONTROL],
        input=json.dumps(WAYS),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp('control'),
        timeout=100,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize('name', WAYS)
def test_control(through_in_python, name):
    assert name in through_in_python


# What is below the libraries matters to the ways that go through them.
FIRST = {'real': 'keys', 'os': 'system'}
CASES = [(name, FIRST.get(name.split('_')[0], 'named')) for name in WAYS]
CASES += [(name, 'below') for name in WAYS if name.startswith(('np_', 'pd_', 'mpl_', 'tk_', 'array_'))]


@pytest.fixture(scope='module')
def seen(daemon, request):
    """What came of every case that was chosen, several at a time."""
    chosen = [i.callspec.params for i in request.session.items if getattr(i, 'function', None) is test_contained]

    def run(case):
        with daemon.api() as api:
            return api.run(WAYS[case['name']], profile=case['profile'], additional_imports=IMPORTS[case['imports']], timeout_s=60)

    with ThreadPoolExecutor(4) as pool:
        return {(c['name'], c['imports'], c['profile']): o for c, o in zip(chosen, pool.map(run, chosen))}


@pytest.mark.parametrize('profile', ['restricted', 'restrictedpython', 'smolagents'])
@pytest.mark.parametrize('name, imports', CASES)
def test_contained(seen, name, profile, imports):
    outcome = seen[name, imports, profile]
    assert not [line for line in outcome.stdout.splitlines() if line.startswith('ESCAPED')], outcome.stdout
    assert outcome.status in ('refused', 'error', 'ok') and outcome.state_lost is False, outcome.error


@pytest.mark.parametrize('profile', ['restricted', 'restrictedpython', 'smolagents'])
def test_libraries_work(daemon, profile):
    """A profile that contained everything by refusing everything would pass the rest."""
    code = (
        'import numpy as np, pandas as pd, tkinter\n'
        'import matplotlib.pyplot as plt\n'
        'df = pd.DataFrame({"a": np.arange(4), "b": list("xyxy")})\n'
        'limit = 0\n'
        'df.to_csv("t.csv", index=False)\n'
        'plt.plot(df.a)\nplt.savefig("t.png")\nplt.close()\n'
        'print(df.query("a > @limit").groupby("b").a.sum().to_dict(), pd.read_csv("t.csv").shape, tkinter.Tcl().eval("expr 6*7"))'
    )
    with daemon.api() as api:
        seen = api.run(code, profile=profile, additional_imports=IMPORTS['named'], timeout_s=60).ok()
    assert seen.stdout == "{'x': 2, 'y': 4} (4, 2) 42\n"


@pytest.mark.parametrize('profile', ['restricted', 'restrictedpython', 'smolagents'])
def test_arrays_change_their_size(daemon, profile):
    """What is made harmless still works: resize() in place, iterators that are closed, and pandas' own growing arrays."""
    code = (
        'import numpy as np, pandas as pd\n'
        'a = np.arange(6)\na.resize((2, 4))\nprint(a.tolist(), a.flags["OWNDATA"])\n'
        'o = np.array([[], {}], dtype=object)\no.resize(3)\nprint(o.tolist())\n'
        'x = np.arange(3.0)\n'
        'with np.nditer(x, op_flags=["readwrite"]) as it:\n    for y in it:\n        y[...] = 2 * y\n'
        'v = a[:1]\n'
        'try:\n    a.resize(9)\nexcept ValueError as e:\n    print("ValueError", str(e)[:44])\n'
        'try:\n    v.resize(9)\nexcept ValueError as e:\n    print("ValueError", e)\n'
        'print(x.tolist(), len(pd.Series(np.arange(100000) % 50021).unique()))'
    )
    with daemon.api() as api:
        seen = api.run(code, profile=profile, additional_imports=IMPORTS['named'], timeout_s=60).ok()
    assert seen.stdout.splitlines() == [
        '[[0, 1, 2, 3], [4, 5, 0, 0]] True',
        '[[], {}, 0]',
        'ValueError cannot resize an array that references or is',
        'ValueError cannot resize this array: it does not own its data',
        '[0.0, 2.0, 4.0] 50021',
    ]
