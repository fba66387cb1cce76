"""coding_env's settings: its backends, its imports, and what is said of wrong ones. Everywhere by the same names."""

import json
import sys

import gb
import package_index
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import CodeAction, CodingEnv, Glovebox, GloveboxError  # noqa: E402

AUGMENTED = 'class A: pass\na = A()\na.x = 1\na.x += 1\nprint(a.x)'
LISTED = 'python, smolagents, restricted, restrictedpython, tinyagent'


def step(api, code, **reset):
    """One step over HTTP, in an environment of its own when the reset says something."""
    headers = {'X-Session-Id': 'one'} if reset else {}
    if reset:
        assert api.post('/reset', json=reset, headers=headers).status_code == 200
    seen = api.post('/step', json={'action': {'code': code}}, headers=headers).json()['observation']
    if reset:
        api.post('/close', headers=headers)
    return seen


# ---- executor_backend ----------------------------------------------------------------------


def test_executor_backend_is_the_profile(api, daemon):
    assert api.run(AUGMENTED, executor_backend='restricted').status == 'refused'
    assert api.run(AUGMENTED, executor_backend='restrictedpython').ok().stdout == '2\n'
    assert api.session(executor_backend='smolagents').info['profile'] == 'smolagents'
    assert 'Augmented' in step(api, AUGMENTED, executor_backend='restricted')['stderr']
    assert step(api, AUGMENTED, executor_backend='restrictedpython')['stdout'] == '2\n'
    with CodingEnv(daemon.url, executor_backend='restricted') as env:
        env.reset()
        assert 'Augmented' in env.step(CodeAction(AUGMENTED)).observation.stderr
        env.reset(executor_backend='python')
        assert env.step(CodeAction('import os\nprint(os.sep)')).observation.stdout == '/\n'
    with Glovebox(daemon.url) as box, box.session(executor_backend='restricted') as session:
        assert session.run(AUGMENTED).status == 'refused'
    done = gb.cli('run', '--executor-backend', 'restricted', '-c', AUGMENTED)
    assert done.returncode == 1 and 'Augmented' in done.stderr
    listed = api.get('/openapi.json').json()['components']['schemas']['SessionRequest']['properties']
    assert 'executor_backend' in listed


def test_unknown_backends_are_refused_with_the_list(api, daemon):
    answer = api.post('/v1/sessions', json={'executor_backend': 'nonsense'})
    assert answer.status_code == 400 and answer.json()['code'] == 'unknown_profile' and LISTED in answer.json()['remediation']
    for name in ('profile', 'executor_backend'):
        answer = api.post('/reset', json={name: 'nonsense'})
        (said,) = answer.json()['detail']
        assert answer.status_code == 422 and said['loc'] == ['body', name] and LISTED in said['msg']
    with CodingEnv(daemon.url, executor_backend='nonsense') as env, pytest.raises(RuntimeError, match=LISTED):
        env.reset()
    done = gb.cli('run', '--profile', 'nonsense', '-c', '1')
    assert done.returncode == 125 and LISTED in done.stderr
    both = api.post('/v1/run', json={'code': '1', 'executor_backend': 'python', 'profile': 'python'})
    assert both.status_code == 400 and 'another name' in both.json()['detail']


def test_an_unknown_backend_costs_no_episode(daemon):
    with CodingEnv(daemon.url) as env:
        env.reset()
        env.step(CodeAction('x = 1'))
        with pytest.raises(RuntimeError):
            env.reset(executor_backend='nonsense')
        assert env.step(CodeAction('print(x)')).observation.stdout == '1\n'


def test_unknown_reset_fields_are_refused_with_the_list(api, daemon):
    answer = api.post('/reset', json={'seed': 1, 'additional_import': ['numpy']})
    (said,) = answer.json()['detail']
    assert (answer.status_code, said['type'], said['loc']) == (422, 'extra_forbidden', ['body', 'additional_import'])
    for name in ('seed', 'episode_id', 'executor_backend', 'additional_imports', 'display'):
        assert name in said['msg']
    with CodingEnv(daemon.url, addtional_imports=['numpy']) as env, pytest.raises(RuntimeError, match='addtional_imports'):
        env.reset()


def test_a_server_of_a_backend():
    with gb.running_daemon(env={'EXECUTOR_BACKEND': 'restrictedpython'}) as daemon, daemon.api() as api:
        assert step(api, AUGMENTED)['stdout'] == '2\n'
        assert 'Import of os is not allowed' in step(api, 'import os')['stderr']
    for variable in ('EXECUTOR_BACKEND', 'GLOVEBOX_OPENENV_PROFILE', 'GLOVEBOX_EXECUTOR_BACKEND'):
        done = gb.cli('serve', '--listen', '127.0.0.1:0', env=gb.clean_env(**{variable: 'nonsense'}))
        assert done.returncode == 1 and "there is no profile 'nonsense'" in done.stderr


# ---- the command line ------------------------------------------------------------------------


def test_run_honours_the_variables(tmp_path):
    def run(code, **variables):
        return gb.cli('run', '-c', code, env=gb.clean_env(**variables))

    assert 'Import of os is not allowed' in run('import os', EXECUTOR_BACKEND='restrictedpython').stderr
    assert run(AUGMENTED, EXECUTOR_BACKEND='restrictedpython').stdout == '2\n'
    assert gb.cli('run', '--profile', 'python', '-c', 'import os; print(os.sep)', env=gb.clean_env(EXECUTOR_BACKEND='smolagents')).stdout == '/\n'
    code = 'import json, textwrap\nfrom dataclasses import dataclass\nprint(json.dumps(1), textwrap.dedent(" x"))'
    assert run(code, EXECUTOR_BACKEND='smolagents').returncode == 1
    assert run(code, EXECUTOR_BACKEND='smolagents', ADDITIONAL_IMPORTS='json, textwrap,dataclass').stdout == '1 x\n'
    told = run('import os', EXECUTOR_BACKEND='smolagents', ADDITIONAL_IMPORTS='dataclass')
    assert "'dataclasses'" in told.stderr and "'dataclass'" not in told.stderr
    lost = run('print(1)', ADDITIONAL_IMPORTS='no_such_module_at_all', GLOVEBOX_PACKAGES_OFFLINE='yes', GLOVEBOX_PACKAGES_FIND_LINKS=tmp_path)
    assert lost.stdout == '1\n' and 'no_such_module_at_all cannot be installed' in lost.stderr


@pytest.mark.parametrize('backend', ['smolagents', 'restrictedpython'])
def test_the_variables_bring_the_imports_of_environments(backend):
    """Without a server they mean what they mean to one of coding_env."""
    def run(code, *flags, **variables):
        return gb.cli('run', *flags, '-c', code, env=gb.clean_env(**variables))

    windows = 'import tkinter.ttk\nimport matplotlib.pyplot as plt\nprint(plt.plot([1])[0].get_alpha())'
    assert run(windows, EXECUTOR_BACKEND=backend).stdout == 'None\n'
    assert run('import numpy as np\nprint(np.random.rand() < 1)', EXECUTOR_BACKEND=backend, ADDITIONAL_IMPORTS='numpy').stdout == 'True\n'
    assert run(windows, '--profile', backend).returncode == 1, 'the flag alone leaves the profile as it is'
    for hidden in ('import matplotlib.sphinxext', 'import tkinter.sys', 'import os'):
        assert run(hidden, EXECUTOR_BACKEND=backend).returncode == 1, hidden


def test_shell_honours_the_variables():
    done = gb.cli('shell', input='import os\n', env=gb.clean_env(EXECUTOR_BACKEND='smolagents'))
    assert 'Import of os is not allowed' in done.stderr + done.stdout


# ---- imports ------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def extended():
    with gb.running_daemon(env={'ADDITIONAL_IMPORTS': 'dataclass, numpy ,json,httplib'}) as daemon:
        yield daemon


@pytest.mark.parametrize('backend', ['smolagents', 'restrictedpython'])
def test_environments_may_import_what_windows_need(api, backend):
    code = 'import tkinter as tk\nfrom tkinter import ttk\nimport matplotlib\nimport matplotlib.pyplot as plt\nprint(tk.TkVersion > 8, callable(plt.plot))'
    assert step(api, code, executor_backend=backend) == {'stdout': 'True True\n', 'stderr': '', 'exit_code': 0}
    assert step(api, code, executor_backend=backend, additional_imports=['json'])['stdout'] == 'True True\n', 'also when others are named'
    assert step(api, code)['stdout'] == 'True True\n', 'without a reset'


@pytest.mark.parametrize('backend', ['smolagents', 'restrictedpython'])
def test_additional_imports_allow_what_is_safe_below(extended, backend):
    with extended.api() as api:
        code = 'import numpy as np\nimport numpy.linalg\nprint(np.random.default_rng(1).integers(1), np.linalg.norm([3, 4]))'
        assert step(api, code, executor_backend=backend)['stdout'] == '0 5.0\n'
        assert step(api, 'import matplotlib.pyplot\nprint(1)', executor_backend=backend)['stdout'] == '1\n'
        for name in ('numpy.f2py', 'numpy.testing', 'numpy.ctypeslib'):
            assert f'{name} is not allowed' in step(api, f'import {name}', executor_backend=backend)['stderr']
        for code in ('import tkinter\ntkinter.sys', 'import matplotlib\nmatplotlib.os', 'import matplotlib\nmatplotlib.subprocess', 'import os', 'import subprocess'):
            assert step(api, code, executor_backend=backend)['exit_code'] == 1
        own = api.run('import numpy as np\nnp.random', profile=backend)
        assert own.status == 'error' and 'numpy.random' in own.error['message'], 'our own API takes the names as they are'


def test_a_typo_is_authorised_under_its_right_name(extended, api):
    with extended.api() as other:
        words = step(other, 'import os')['stderr']
        assert "'dataclass'" not in words and 'http.client' in words and 'httplib' not in words
        assert step(other, 'import http.client\nprint(1)')['stdout'] == '1\n'
    session = api.session(profile='smolagents', additional_imports=['dataclass', 'urllib2'])
    assert session.info['packages']['corrected'] == [{'from': 'dataclass', 'to': 'dataclasses'}, {'from': 'urllib2', 'to': 'urllib.request'}]
    words = session.execute('import os').error['message']
    assert "'dataclasses'" in words and "'dataclass'" not in words and "'urllib.request'" in words


STDLIB = """
dataclasses dataclass typing types collections functools itertools operator copy pickle json csv xml html os sys pathlib subprocess shutil tempfile
glob fnmatch io time datetime calendar math cmath decimal fractions random statistics string re textwrap unicodedata codecs array queue heapq bisect
weakref enum urllib http httplib email mimetypes base64 binascii threading multiprocessing concurrent asyncio unittest doctest pdb trace traceback
warnings argparse logging abc contextlib importlib tkinter turtle
"""
PYTHON_2 = 'ConfigParser Queue StringIO cPickle urllib2 urlparse Tkinter tkMessageBox HTMLParser SocketServer xmlrpclib __builtin__ UserDict md5 ttk'


def test_standard_library_names_are_never_asked_of_an_index(api):
    names = [*STDLIB.split(), *PYTHON_2.split(), 'distutils', 'imp', 'asyncore', 'telnetlib']
    report = api.session(additional_imports=names).info['packages']
    told = json.dumps(report)
    assert report['installed'] == [] and 'index' not in told and 'resolv' not in told, told
    corrected = {c['from']: c['to'] for c in report['corrected']}
    assert corrected['httplib'] == 'http.client' and corrected['StringIO'] == 'io' and set(PYTHON_2.split()) <= set(corrected)
    assert all(f['reason'].startswith('it belongs to the standard library') for f in report['failed'])


# ---- modules that are installed when the server starts --------------------------------------------


@pytest.fixture
def index():
    with package_index.Index() as index:
        yield index


def test_a_server_is_ready_when_its_modules_are(index):
    index.go.clear()
    daemon = gb.Daemon('--packages-index', index.url, env={'ADDITIONAL_IMPORTS': 'gbpure,dataclass'}, wait=False)
    try:
        with daemon.api() as api:
            assert index.asked.wait(240)
            health, ready = api.get('/health'), api.get('/readyz')
            assert (health.status_code, health.json()) == (503, {'status': 'installing'})
            assert ready.status_code == 503 and 'installed' in ready.json()['detail']
            env = CodingEnv(daemon.url)
            with pytest.raises(GloveboxError, match='did not become ready within 0.2 s'):
                env.wait_for_ready(0.2)
            index.go.set()
            env.wait_for_ready(120)
            assert api.get('/health').json() == {'status': 'healthy'} and 'packages_failed' not in api.get('/readyz').json()
            assert step(api, 'import gbpure\nprint(gbpure.version)')['stdout'] == '1.1\n'
    finally:
        index.go.set()
        daemon.terminate()
        daemon.remove()


def test_modules_that_could_not_be_had_are_told(index):
    with gb.running_daemon('--packages-index', index.url, env={'ADDITIONAL_IMPORTS': 'gbpure,gbmissing'}) as daemon, daemon.api() as api:
        for answer in (api.get('/health'), api.get('/readyz')):
            assert answer.status_code == 200 and [f['name'] for f in answer.json()['packages_failed']] == ['gbmissing']
        assert 'warning additional-imports: gbmissing cannot be installed: ' in daemon.log()
        assert step(api, 'import gbpure\nprint(1)')['stdout'] == '1\n', 'the others are there'
        assert 'ModuleNotFoundError' in step(api, 'import gbmissing')['stderr']


def test_a_strict_server_does_not_start_without_its_modules(index):
    env = gb.clean_env(ADDITIONAL_IMPORTS='gbmissing,gbnone')
    done = gb.cli('serve', '--listen', '127.0.0.1:0', '--packages-strict', '--packages-index', index.url, env=env)
    assert done.returncode == 1
    assert 'error Non-installed authorized modules: gbmissing, gbnone. Please install these modules or remove them from the authorized imports list.' in done.stderr
    with gb.running_daemon('--packages-strict', '--packages-index', index.url, env={'ADDITIONAL_IMPORTS': 'gbpure,math'}) as daemon, daemon.api() as api:
        assert step(api, 'import gbpure\nprint(1)')['stdout'] == '1\n'


def test_a_reset_tells_of_modules_that_could_not_be_had(index):
    with gb.running_daemon('--packages-index', index.url) as daemon, daemon.api() as api:
        headers = {'X-Session-Id': 'one'}
        first = api.post('/reset', json={'additional_imports': ['gbpure', 'gbmissing']}, headers=headers).json()
        assert [f['name'] for f in first['metadata']['packages']['failed']] == ['gbmissing']
        first = api.post('/reset', json={'additional_imports': ['gbpure']}, headers=headers).json()
        assert 'metadata' not in first


def test_screenshots_are_counted(api):
    def taken(profile, outcome):
        return api.metrics()[f'glovebox_screenshots_total{{profile="{profile}",outcome="{outcome}"}}']

    def timed():
        return api.metric('glovebox_screenshot_seconds_count')

    def settled(profile):
        return api.metric(f'glovebox_screenshots_settled_total{{profile="{profile}"}}')

    window = 'import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text="x").pack()\nroot.update()'
    for profile in ('smolagents', 'restrictedpython'):
        session = api.session(profile=profile, display=True, additional_imports=['tkinter'])
        before = taken(profile, 'taken'), taken(profile, 'empty')
        times, at_rest = timed(), settled(profile)
        session.execute('1 + 1', capture_screenshot=True)
        session.execute(window, capture_screenshot=True).ok()
        assert (taken(profile, 'taken'), taken(profile, 'empty')) == (before[0] + 1, before[1] + 1)
        assert timed() == times + 2 and at_rest <= settled(profile) <= at_rest + 2


@pytest.mark.parametrize('profile', ['python', 'smolagents', 'restrictedpython', 'tinyagent'])
def test_printed_final_answers_when_asked_for(api, profile):
    for code, answer in [
        ('print("thinking")\nprint("final_answer: 14  ")', '14'),
        ('print("FINAL_ANSWER:a b\\nmore")', 'a b'),
        ('print("Answer: yes")', 'yes'),
        ('print("final_answer: 1")\nprint("x" * 3000000)\nprint("final_answer: é2")', 'é2'),
        ('print("final_answer: 1")\nfinal_answer(2)', 2),
    ]:
        seen = api.run(code, profile=profile, printed_final_answer=True).ok()
        assert (seen.is_final_answer, seen.final_answer) == (True, answer), code
    for code in ('print("The Answer: 1")', 'print(1)', ''):
        assert not api.run(code, profile=profile, printed_final_answer=True).ok().is_final_answer
    assert not api.run('print("final_answer: 1")', profile=profile).ok().is_final_answer, 'only when asked for'
    assert not api.run('print("final_answer: 1")\n1 / 0', profile=profile, printed_final_answer=True).is_final_answer


def test_a_printed_final_answer_ends_an_episode(api):
    def step(**more):
        return api.post('/step', json={'action': {'code': 'print("final_answer: 7")', **more}}).json()

    done = step(printed_final_answer=True)
    assert done['done'] is True and done['metadata']['final_answer'] == '7'
    assert step()['done'] is False
