"""A program that imports no package runs in a guest without the packages of the default template; nothing else is different."""

import os
import re
import signal

import gb
import pytest

# names in two halves: a text with the whole name gets the whole template
HAS_PACKAGES = 'import sys\nprint("num" + "py" in sys.modules)'
NAMES_NUMPY = HAS_PACKAGES + '\n# numpy'
SEEDED = 'm = __import__("num" + "py")\nprint(m.random.rand())'
PLOT = 'plt = __import__("mat" + "plotlib.py" + "plot", fromlist=["x"])\nplt.plot([1, 2])\nplt.show()'


def light(api, code=HAS_PACKAGES, **fields):
    return api.run(code, **fields).ok().stdout == 'False\n'


@pytest.fixture(scope='module')
def own():
    with gb.running_daemon('--ready', '1') as daemon:
        with daemon.api() as api:
            gb.wait_until(lambda: light(api), 'the template without packages is warm')
        yield daemon


@pytest.fixture
def api(own):
    with own.api() as api:
        gb.wait_until(lambda: light(api), 'the template without packages is warm')
        yield api


def test_a_run_gets_the_template_that_its_text_asks_for(api):
    assert light(api) and light(api, 'import json, re, collections\n' + HAS_PACKAGES)
    assert not light(api, NAMES_NUMPY) and not light(api, 'import pandas\n' + HAS_PACKAGES)
    assert not light(api, 'try:\n  import some_package\nexcept ImportError: pass\n' + HAS_PACKAGES)
    assert api.session().execute(HAS_PACKAGES).ok().stdout == 'True\n'


def test_the_files_of_a_run_count(api):
    assert light(api, 'import mine\n' + HAS_PACKAGES, files={'mine.py': 'import math'})
    assert not light(api, 'import mine\n' + HAS_PACKAGES, files={'mine.py': 'import pandas'})


@pytest.mark.parametrize('fields', [{'seed': 1}, {'preload': ['json']}, {'profile': 'smolagents', 'additional_imports': ['*']}, {'display': True}])
def test_a_run_that_asks_for_more_gets_the_whole_template(api, fields):
    before = api.metrics()
    api.run('1', **fields).ok()
    grown = {name for name, value in api.metrics().items() if name.startswith('glovebox_cells_total') and value != before.get(name)}
    assert len(grown) == 1 and 'template="default"' in grown.pop()


def test_a_wrong_guess_is_correct(api):
    assert api.run('m = __import__("num" + "py")\nm.arange(5).sum().item()').ok().text == '10'
    assert [d for d in api.run(PLOT).ok().displays if 'image/png' in d]
    first, second = (api.run(SEEDED, seed=7).ok().stdout for _ in range(2))
    assert first == second != api.run(SEEDED).ok().stdout


def test_random_numbers_differ_between_runs(api):
    code = 'import random, uuid\nprint(random.random(), uuid.uuid4())'
    assert len({api.run(code).ok().stdout for _ in range(8)}) == 8


def test_the_interpreter_is_the_same_otherwise(api):
    """Outside sys.modules, what packages add when they are imported (an importer of six), and the size of what it starts with."""
    code = """
import os, sys, gc, signal, threading, locale, resource
print(sorted(os.environ.items()), sys.path, sys.argv, sys.flags, os.getcwd(), os.getpid(), os.getuid(), sorted(globals()))
print(gc.isenabled(), gc.get_threshold(), sys.getrecursionlimit(), sys.getswitchinterval(), threading.active_count())
print(signal.getsignal(signal.SIGINT), locale.setlocale(locale.LC_ALL), sys.stdout.encoding, sorted(os.listdir("/proc/self/fd")))
print(sys.path_hooks, sys.excepthook, sys.displayhook, [resource.getrlimit(i) for i in range(10) if i != resource.RLIMIT_DATA])
"""
    plain = api.run(code).ok().stdout
    assert plain and hide_addresses(plain) == hide_addresses(api.run(code + '# numpy').ok().stdout)


def hide_addresses(text):
    return re.sub(r'0x[0-9a-f]+', '0x', text)


def test_batches_and_dialects_run_so_too(api):
    answer = api.post('/run_code', json={'code': HAS_PACKAGES, 'language': 'python'}).json()
    assert answer['run_result']['stdout'] == 'False\n'
    answer = api.post('/v1/batch', json={'items': [{'code': HAS_PACKAGES}, {'code': NAMES_NUMPY}]})
    assert '"stdout":"False\\n"' in answer.text and '"stdout":"True\\n"' in answer.text, answer.text


def test_the_template_dies(own, api):
    """Its zygote is started again; meanwhile programs run from the whole template."""
    before = set(own.children('glovebox-zygote'))
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'the server is ready again')
    assert api.run('6 * 7').ok().text == '42'
    gb.wait_until(lambda: light(api), 'the template without packages is warm again')


def test_a_list_of_modules_is_kept():
    """Modules that somebody asked for may be there for their effects: such a server has one template."""
    with gb.running_daemon('--preload', 'sqlite3', '--ready', '1', '--no-heap-placement') as daemon, daemon.api() as api:
        code = 'import sys\nprint("sql" + "ite3" in sys.modules)'
        assert {api.run(code).ok().stdout for _ in range(4)} == {'True\n'}
        assert len(daemon.children('glovebox-zygote')) == 1
        assert not [name for name in api.metrics() if 'template="plain"' in name]


def test_the_template_is_renewed():
    """With the other one; guests of another zygote have another hash seed."""
    code = HAS_PACKAGES + '\nprint(hash("glovebox"))'
    warm = 'the template plain is warm'
    with gb.running_daemon('--ready', '1', '--renew', '1') as daemon, daemon.api() as api:
        api.run('1').ok()
        gb.wait_until(lambda: warm in daemon.log(), 'the template without packages is warm')
        light, first = api.run(code).ok().stdout.split()
        for _ in range(4):  # it is used: nothing is renewed otherwise
            api.run(NAMES_NUMPY).ok()
        gb.wait_until(lambda: daemon.log().count(warm) == 2, 'it is renewed')
        again, second = api.run(code).ok().stdout.split()
        assert light == again == 'False' and first != second
        assert 'the zygote of the template plain ended' not in daemon.log()
