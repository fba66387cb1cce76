"""Packages on demand, against a real index on loopback."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import gb
import package_index
import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """An installation starts pip three times: on a loaded machine that takes longer than anything else here."""
    monkeypatch.setattr(gb.Api.request, '__defaults__', (240,))
    monkeypatch.setitem(gb.cli.__kwdefaults__, 'timeout', 240)


@pytest.fixture(scope='module')
def index():
    with package_index.Index() as index:
        yield index


@pytest.fixture(scope='module')
def daemon(index):
    with gb.running_daemon('--packages-index', index.url, '--packages-deny', 'gbbad*,evil') as daemon:
        yield daemon


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


def names(report, kind):
    return [one if isinstance(one, str) else one.get('name', one.get('from')) for one in report[kind]]


def store(daemon):
    return daemon.dir / 'state' / 'packages'


# ---- having packages ---------------------------------------------------------------------


def test_a_package_and_what_it_needs_are_installed(api):
    session = api.session(packages=['gbdep'])
    report = session.info['packages']
    assert sorted(names(report, 'installed')) == ['gbdep', 'gbpure']
    assert {one['name']: one['requested'] for one in report['installed']} == {'gbdep': True, 'gbpure': False}
    assert session.value('import gbdep; gbdep.seen') == "'1.1'"
    assert session.value('gbdep.__file__').startswith("'/packages/")


def test_the_second_time_nothing_is_asked_of_the_index(api, index):
    first = api.session(packages=['gbpure==1.0'])
    before = sum(index.fetched.values())
    second = api.session(packages=['gbpure==1.0'])
    assert sum(index.fetched.values()) == before
    assert second.info['packages']['cached'] and not first.info['packages']['cached']
    assert second.info['packages']['set'] == first.info['packages']['set']
    assert second.info['warm'] and second.info['template'] == 'default'
    assert second.value('import gbpure; gbpure.version') == "'1.0'"


def test_the_order_of_the_names_is_no_difference(api):
    api.session(packages=['gbdep', 'gbpure<1.1'])
    assert api.session(packages=['gbpure<1.1', 'gbdep']).info['packages']['cached']


def test_a_run_has_packages_and_tells(api):
    observation = api.run('import gbpure; gbpure.version', packages=['gbpure>=1.1']).ok()
    assert observation.text == "'1.1'"
    assert names(observation.packages, 'installed') == ['gbpure']


def test_subprocesses_find_them_too(api):
    code = 'import subprocess, sys\nsubprocess.run([sys.executable, "-c", "import gbpure; print(gbpure.version)"], capture_output=True, text=True).stdout'
    assert api.run(code, packages=['gbpure>=1.1'], exec='system').ok().text == "'1.1\\n'"


def test_a_session_without_packages_has_none(api):
    api.session(packages=['gbpure>=1.1'])
    assert api.session().execute('import gbpure').error['type'] == 'ModuleNotFoundError'


def test_packages_of_the_system_and_the_standard_library_need_no_installation(api):
    report = api.session(packages=['numpy', 'dataclasses']).info['packages']
    assert report['set'] is None and names(report, 'present') == ['numpy'] and report['stdlib'] == ['dataclasses']


def test_another_version_than_the_systems(api):
    """The default template has six imported already (dateutil needs it): such a session must not come from it."""
    session = api.session(packages=['six>=99'])
    assert session.value('import six; six.__version__') == "'99.0'"
    assert session.info['template'] == 'plain'
    assert api.session().value('import six; six.__version__') != "'99.0'"


def test_packages_that_came_after_a_snapshot_are_there_again(api):
    """In the state of before they were not: it is rolled back, recovered and forked with them."""
    session = api.session()
    session.execute('x = 1').ok()
    assert api.post(f'{session.path}/checkpoints', json={'name': 'before'}).status_code == 201
    assert api.post(f'{session.path}/packages', json={'packages': ['gbpure>=1.1']}).status_code == 200
    version = 'import gbpure; gbpure.version'
    assert api.post(f'{session.path}/rollback', json={'checkpoint': 'before'}).status_code == 200
    assert session.value(version) == "'1.1'"
    assert session.execute('import os; os._exit(1)').rolled_back and session.value(version) == "'1.1'"
    fork = api.post(f'{session.path}/fork', json={'at': 'before'}).json()['sessions'][0]
    assert api.adopt(fork).value(version) == "'1.1'"


def test_a_live_session_gets_more(api):
    session = api.session()
    session.execute('x = 5')
    answer = api.post(f'{session.path}/packages', json={'packages': ['gbnew']})
    assert answer.status_code == 200 and 'gbnew' in names(answer.json(), 'installed')
    assert session.value('import gbnew; x') == '5'
    session.reset()
    assert session.execute('import gbnew').ok()
    refused = api.post(f'{session.path}/packages', json={'packages': ['six>=99']})
    assert refused.status_code == 409 and refused.json()['code'] == 'package_in_use'
    assert 'new session' in refused.json()['remediation']


# ---- names -----------------------------------------------------------------------------------


def test_a_session_of_mcp_gets_more(daemon, api):
    def run(**arguments):
        message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': arguments}}
        answer = api.post('/mcp', json=message, headers={'Accept': 'application/json, text/event-stream'})
        assert answer.status_code == 200, answer.text
        return answer.text

    session = api.session()
    for _ in range(3):  # the code of the request is replaced: its memory belongs to the request
        assert '1.1' in run(session_id=session.id, code='import gbpure; gbpure.version', packages=['gbpure'])


def test_imports_are_found_corrected_or_explained(api):
    session = api.session(additional_imports=['PIL', 'dataclass', 'tkinter', 'gbpure.sub', 'numpay', 'nosuchmodule'])
    report = session.info['packages']
    assert sorted(report['stdlib']) == ['dataclasses', 'tkinter']
    assert {one['module']: one['name'] for one in report['present']} == {'PIL': 'pillow'}
    assert report['corrected'] == [{'from': 'dataclass', 'to': 'dataclasses'}]
    assert report['installed'] == [{'name': 'gbpure', 'version': '1.1', 'requested': True, 'module': 'gbpure'}]
    failed = {one['name']: one for one in report['failed']}
    assert failed['numpay']['suggestion'] == 'numpy' and 'did you mean numpy?' in failed['numpay']['reason']
    assert 'no package nosuchmodule' in failed['nosuchmodule']['reason']


def test_a_corrected_import_is_allowed_by_the_profile(api):
    session = api.session(profile='smolagents', additional_imports=['dataclass'])
    assert session.execute('import dataclasses\ndataclasses.dataclass').ok()


def test_a_modules_name_where_its_package_was_meant(api):
    report = api.session(packages=['yaml']).info['packages']
    assert report['corrected'] == [{'from': 'yaml', 'to': 'pyyaml'}] and names(report, 'present') == ['pyyaml']


def test_the_servers_own_imports(index):
    with gb.running_daemon('--packages-index', index.url, env={'ADDITIONAL_IMPORTS': 'gbpure,dataclass'}) as daemon:
        with daemon.api() as api:
            assert api.session().value('import gbpure; gbpure.version') == "'1.1'"
            assert api.session(packages=['gbpure<1.1']).value('import gbpure; gbpure.version') == "'1.0'"


@pytest.mark.parametrize(
    'name, why',
    [
        ('--index-url=http://x/', 'options'),
        ('gbpure @ http://127.0.0.1/x.whl', 'addresses'),
        ('git+https://host/x', 'addresses'),
        ('../wheels/x.whl', 'addresses'),
        ('gbpure\n--pre', 'one line'),
        ('gbpure>', 'versions'),
        ('gbpure[', 'extras'),
        ('', 'empty'),
        ('<3', 'no name'),
    ],
)
def test_only_names_and_versions_pass(api, name, why):
    answer = api.post('/v1/sessions', json={'packages': [name]})
    assert answer.status_code == 400, answer.text
    assert answer.json()['code'] in ('invalid_package', 'invalid_field') and why in answer.json()['detail']


# ---- what cannot be had --------------------------------------------------------------------------


def problem(api, status, **fields):
    answer = api.post('/v1/sessions', json=fields)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_missing_package_comes_with_a_suggestion(api):
    said = problem(api, 422, packages=['requets'])
    assert said['code'] == 'package_not_found' and 'did you mean requests?' in said['detail']
    assert said['packages']['failed'][0]['suggestion'] == 'requests'


def test_a_version_that_is_not_there(api):
    said = problem(api, 422, packages=['gbpure==7'])
    assert said['code'] == 'package_not_found' and '1.0, 1.1' in said['detail']


def test_versions_that_exclude_each_other(api):
    said = problem(api, 422, packages=['gbold', 'gbnew'])
    assert said['code'] == 'package_conflict' and 'gbold' in said['detail'] and 'gbnew' in said['detail']
    assert any('gbpure' in line for line in said['log'])


def test_source_packages_need_the_servers_consent(api):
    said = problem(api, 422, packages=['gbext'])
    assert said['code'] == 'package_not_found' and '--packages-build' in said['remediation']


def test_what_the_policy_denies(api, index):
    said = problem(api, 403, packages=['GbBad_thing'])
    assert said['code'] == 'package_refused' and 'gbbad-thing' in said['detail']
    index.add(package_index.wheel('gbinnocent', '1.0', {'gbinnocent.py': ''}, ['evil']), package_index.wheel('evil', '1.0', {'evil.py': ''}))
    said = problem(api, 403, packages=['gbinnocent'])
    assert said['code'] == 'package_refused' and 'evil' in said['detail']


def test_an_index_that_is_down(index):
    gone = package_index.Index()
    gone.close()
    with gb.running_daemon('--packages-index', gone.url) as daemon, daemon.api() as api:
        said = problem(api, 502, packages=['gbpure'])
        assert said['code'] == 'index_unreachable' and gone.url in said['detail']
        report = api.session(additional_imports=['gbpure', 'math']).info['packages']
        assert report['stdlib'] == ['math'] and 'cannot be reached' in report['failed'][0]['reason']


# ---- source packages --------------------------------------------------------------------------------


# What a package tries when its code runs: `found` says what came of it.
PROBES = """
import ctypes, glob, os, socket
found = {}
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try:
        found[name] = repr(act())[:300]
    except BaseException as e:
        found[name] = 'refused: ' + type(e).__name__
def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)
    return 'done'
attempt('passwords', lambda: open('/etc/shadow').read())
attempt('a file of the host', lambda: open('CANARY_FILE').read())
attempt('files of the host', lambda: [p for d in ('/', '/tmp', '/var/tmp', '/root', '/home', '/workspace') for p in glob.glob(d + '/glovebox-canary-*')] or 1 / 0)
attempt('the store', lambda: os.listdir('/packages'))
attempt('writing to the store', lambda: [open(d + '/x', 'w') for d in ['/packages', *glob.glob('/packages/*')]])
attempt('writing beside itself', lambda: open(os.path.dirname(os.path.abspath(__file__)) + '/x', 'w') if '/packages/' in __file__ else 1 / 0)
attempt('writing to the system', lambda: open('/usr/lib/python3/dist-packages/gbprobe_was_here.py', 'w'))
attempt('writing to wheels', lambda: [open(os.path.join(d, 'x'), 'w') for d in glob.glob('/wheels*')] or 1 / 0)
attempt('a port of the host', lambda: socket.create_connection(('127.0.0.1', CANARY_PORT), 3))
attempt('the network', lambda: socket.create_connection(('192.0.2.1', 80), 3))
attempt('sockets of the host', lambda: [p for p in glob.glob('/run/**', recursive=True) if os.path.exists(p) and os.stat(p).st_mode & 0o170000 == 0o140000] or 1 / 0)
attempt('processes of the host', lambda: [p for p in os.listdir('/proc') if p.isdigit() and b'glovebox' in open(f'/proc/{p}/cmdline', 'rb').read()] or 1 / 0)
attempt('being root', lambda: os.setuid(0))
attempt('killing the init', lambda: os.kill(1, 9))
attempt('looking into the init', lambda: open('/proc/1/mem', 'rb'))
attempt('the root of the init', lambda: os.listdir('/proc/1/root/'))
attempt('tracing', lambda: call('ptrace', 16, 1, 0, 0))
attempt('mounting', lambda: call('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, None))
attempt('a namespace', lambda: call('unshare', 0x10000000))
attempt('a device', lambda: os.mknod('/tmp/device', 0o020600, os.makedev(1, 1)))
if os.fork() == 0:  # a daemon, which must not outlive what it came with
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):  # pip waits for the end of what the build prints
            os.close(fd)
        os.execv('/bin/sleep', ['gbprobe-daemon', '600'])
    os._exit(0)
os.wait()
"""
PROBE_SETUP = """
with open('gbprobe.py', 'w') as f:
    f.write('found = ' + repr(found))
from setuptools import setup
setup(name='gbprobe', version='1.0', py_modules=['gbprobe'])
"""


def left_behind():
    """Processes that PROBES started and that still run, anywhere on the machine."""
    found = []
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            found += [path.parent.name] if path.read_bytes().startswith(b'gbprobe-daemon') else []
        except OSError:
            pass
    return found


@pytest.fixture
def probes():
    """The text of PROBES, with a port and a file of the host's that they must not reach."""
    canary, canary_file = socket_listener(), Path(f'/tmp/glovebox-canary-{os.getpid()}')
    canary_file.write_text('secret')
    try:
        yield PROBES.replace('CANARY_PORT', str(canary.getsockname()[1])).replace('CANARY_FILE', str(canary_file))
    finally:
        canary_file.unlink()
        canary.close()


def got_through(found):
    return {name: what for name, what in found.items() if not what.startswith('refused')}


def found_in(session):
    return json.loads(session.execute('import gbprobe, json; print(json.dumps(gbprobe.found))').ok().stdout)


def test_builds_in_a_jail(index, probes):
    """A C extension; one that breaks, with the end of its log; and one that looks around while it is built."""
    index.add(package_index.sdist('gbprobe', '1.0', {'setup.py': probes + PROBE_SETUP}))
    with gb.running_daemon('--packages-index', index.url, '--packages-build', '--no-packages-isolate') as daemon, daemon.api() as api:
        assert api.session(packages=['gbext']).value('import gbext; gbext.answer()') == '42'
        said = problem(api, 422, packages=['gbbroken'])
        assert said['code'] == 'package_build_failed'
        assert any('the flux is missing' in line for line in said['log']) and 'building gbbroken failed' in said['detail']
        found = found_in(api.session(packages=['gbprobe']))
    assert len(found) == 20 and got_through(found) == {}
    assert not left_behind()


def test_code_that_looks_around_when_it_is_imported(probes):
    """In a session, and in a template whose copies sessions are: neither reaches more than the session's own jail."""
    files = [package_index.wheel('gbprobe', '1.0', {'gbprobe.py': probes})]
    with package_index.Index(files) as own:
        with gb.running_daemon('--packages-index', own.url, '--packages-warm', 'gbprobe', '--preload', 'none') as daemon, daemon.api() as api:
            gb.wait_until(lambda: 'is warm' in daemon.log(), 'the template is warm', 240)
            gb.wait_until(lambda: not left_behind(), 'what it left running was ended')
            one, other = api.session(packages=['gbprobe']), api.session(packages=['gbprobe'])
            assert one.info['template'] == one.info['packages']['set'] and one.info['warm']
            assert one.value('import sys; "gbprobe" in sys.modules') == 'True'
            assert got_through(found_in(one)) == {}
            one.execute('import os\nopen("/workspace/mine", "w").write("x"); open("/tmp/mine", "w").write("x"); os.environ["MINE"] = "x"').ok()
            seen = 'import os\nos.listdir("/workspace") + os.listdir("/tmp") + [k for k in os.environ if k == "MINE"]'
            assert other.execute(seen).ok().text == '[]'
            assert other.value('[p for p in os.listdir("/proc") if p.isdigit()] == [str(os.getpid())]') == 'True'
            assert one.value('import random; random.random()') != other.value('import random; random.random()')
            plain = api.session(packages=['gbprobe'], exec='any')  # a filter cannot be widened: this one cannot be a copy
            assert plain.info['template'] == 'default'
            assert got_through(found_in(plain)) == {}
            shown = api.session(packages=['gbprobe'], display=True)
            assert shown.info['template'] == one.info['template'] and shown.execute('import tkinter; tkinter.Tk().update()').ok()
            one.reset()
            assert got_through(found_in(one)) == {}
        gb.wait_until(lambda: not left_behind(), 'and what sessions left running')


def test_modules_that_cannot_be_a_template(index):
    """One that runs a thread, one that never ends its import, one that ends its process: their sessions do without."""
    own = [
        package_index.wheel('gbthread', '1.0', {'gbthread.py': 'import threading, time\nt = threading.Thread(target=time.sleep, args=(600,), daemon=True)\nt.start()\n'}),
        package_index.wheel('gbstuck', '1.0', {'gbstuck.py': 'import sys\nwhile "gbgo" not in sys.modules:\n    pass\n'}),
        package_index.wheel('gbexit', '1.0', {'gbexit.py': 'import os, sys\n"gbgo" in sys.modules or os._exit(3)\n'}),
    ]
    names = [name.partition('-')[0] for name, _ in own]
    with package_index.Index(own) as served:
        flags = [word for name in names for word in ('--packages-warm', name)]
        with gb.running_daemon('--packages-index', served.url, *flags, '--preload', 'none') as daemon, daemon.api() as api:
            for name in names:
                session = api.session(packages=[name])
                assert session.value(f'import sys; sys.modules["gbgo"] = sys; import {name}; 5') == '5'
                assert session.info['template'] == 'default'
            gb.wait_until(lambda: ' running beside the ' in daemon.log(), 'the thread is told of')
            gb.wait_until(lambda: 'importing ended its interpreter (exit code 3)' in daemon.log(), 'the exit is told of')
            assert 'is warm' not in daemon.log()


def socket_listener():
    import socket

    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen()
    return listener


def test_packages_cannot_touch_the_store_or_other_sets_when_imported(api, daemon):
    private = api.session(packages=['gbpure==1.0']).info['packages']['set']
    session = api.session(packages=['gbnew'])
    code = """
import os, sys
mine = [p for p in sys.path if p.startswith('/packages/')][0]
tries = {}
def attempt(name, act):
    try:
        tries[name] = repr(act())
    except OSError as e:
        tries[name] = 'refused'
attempt('list', lambda: os.listdir('/packages'))
attempt('write', lambda: open(mine + '/gbnew.py', 'w'))
attempt('append', lambda: open(mine + '/gbnew.py', 'a'))
attempt('create', lambda: open(mine + '/new.py', 'w'))
attempt('unlink', lambda: os.unlink(mine + '/gbnew.py'))
attempt('chmod', lambda: os.chmod('/packages', 0o755))
attempt('link', lambda: os.link(mine + '/gbnew.py', '/workspace/gbnew.py'))
attempt('exec', lambda: os.execv(mine + '/gbnew.py', ['x']))
{name: what for name, what in tries.items() if what != 'refused'}
"""
    assert session.execute(code).ok().text == '{}'
    assert private not in session.execute('import os\nprint(sorted(os.environ.items()), open("/proc/self/mountinfo").read())').ok().stdout


# ---- cells that ask themselves -------------------------------------------------------------------------


def test_pip_install_in_a_cell(api):
    session = api.session()
    observation = session.execute('before = 1\n%pip install gbdep\nimport gbdep\ngbdep.seen').ok()
    assert observation.text == "'1.1'" and 'Successfully installed' in observation.stdout
    assert names(observation.packages, 'installed') == ['gbdep', 'gbpure']
    assert session.execute('!pip install -q dataclass numpy').ok().stdout.splitlines() == [
        'dataclasses is part of the standard library',
        f'Requirement already satisfied: numpy {session.value("import numpy; numpy.__version__")[1:-1]}',
    ]
    assert session.execute('!python3 -m pip install gbold\nimport gbold').ok()
    assert session.value('before') == '1'


def test_pip_in_a_cell_that_cannot_be(api):
    session = api.session()
    error = session.execute('x = 1\n!pip install nosuchpackage').error
    assert error['type'] == 'PackageError' and 'no package nosuchpackage' in error['message']
    assert session.execute('x').error['type'] == 'NameError'  # nothing of the cell ran
    assert 'setting of the server' in session.execute('%pip install -i http://x/ y').error['message']
    assert '`pip freeze` is not possible' in session.execute('!pip freeze').error['message']
    assert session.execute('!pip install gbbad').error['type'] == 'PackageError'
    assert session.execute('text = """\n!pip install nosuchpackage\n"""\nlen(text)').ok().text == '28'
    session.execute('!ls').ok()
    assert session.execute('%pip install gbpure\nx = = 1').error['type'] == 'SyntaxError'


def test_interrupting_a_cell_that_waits_for_packages(index):
    with package_index.Index() as slow, gb.running_daemon('--packages-index', slow.url) as daemon, daemon.api() as api:
        slow.go.clear()
        session = api.session()
        cell = session.in_background('%pip install gbpure')
        assert slow.asked.wait(240)
        assert session.interrupt()
        assert cell.result(240).status == 'interrupted'
        assert session.value('1 + 1') == '2'
        slow.go.set()
        assert session.execute('%pip install gbpure\nimport gbpure').ok()


# ---- together and in trouble ---------------------------------------------------------------------------


def test_many_ask_at_once_and_one_installation_runs(index):
    with package_index.Index() as own, gb.running_daemon('--packages-index', own.url, '--preload', 'none') as daemon:
        own.go.clear()

        def ask(_):
            with daemon.api() as api:
                return api.run('import gbdep; gbdep.seen', packages=['gbdep'])

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            results = [pool.submit(ask, i) for i in range(20)]
            assert own.asked.wait(240)
            own.go.set()
            assert {r.result(240).text for r in results} == {"'1.1'"}
        with daemon.api() as api:
            assert api.metric('glovebox_packages_installed_total') == 1
        assert own.fetched['gbdep-2.0-py3-none-any.whl'] <= 2  # pip looks, and fetches


def test_progress_as_events(index):
    with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon, daemon.api() as api:
        headers = {'Accept': 'text/event-stream'}
        with api.post('/v1/sessions', json={'packages': ['gbdep']}, headers=headers, stream=True) as answer:
            events = list(gb.sse_events(answer))
        kinds = [event for event, _ in events]
        assert set(kinds[:-1]) == {'packages'} and kinds[-1] == 'session'
        phases = [data['phase'] for event, data in events if event == 'packages']
        assert [p for i, p in enumerate(phases) if p not in phases[:i]] == ['resolving', 'downloading', 'storing']
        with api.post('/v1/run', json={'code': '1', 'packages': ['nosuchpackage']}, headers=headers, stream=True) as answer:
            events = list(gb.sse_events(answer))
        assert events[-1][0] == 'error' and events[-1][1]['code'] == 'package_not_found'
        with api.post('/v1/run', json={'code': 'print(7)', 'packages': ['gbnew']}, headers=headers, stream=True) as answer:
            kinds = [event for event, _ in gb.sse_events(answer)]
        assert kinds[0] == 'packages' and kinds[-3:] == ['started', 'stdout', 'done']


def installers(daemon):
    """Pids of installer processes, by what they were started as."""
    found = []
    for pid in [p for p, (parent, _, _) in gb.processes().items() if parent == daemon.pid]:
        try:
            words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
        except OSError:
            continue
        if b'installer' in words:
            found.append(pid)
    return found


def test_an_installer_that_is_killed_leaves_nothing(index):
    with package_index.Index() as own, gb.running_daemon('--packages-index', own.url, '--preload', 'none') as daemon:
        own.go.clear()
        with daemon.api() as api, concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(api.post, '/v1/sessions', json={'packages': ['gbdep']})
            assert own.asked.wait(240)
            (pid,) = installers(daemon)
            family = gb.descendants(pid)
            os.kill(pid, signal.SIGKILL)
            answer = asked.result(240)
            assert answer.status_code == 422 and answer.json()['code'] == 'package_failed'
            gb.wait_until(lambda: not gb.still_there(family), 'its jail ends with it')
            own.go.set()
            assert not list((store(daemon) / 'sets').iterdir())
            assert api.session(packages=['gbdep']).value('import gbdep; gbdep.seen') == "'1.1'"
            assert not list((store(daemon) / 'staging').iterdir())


def test_a_half_written_or_damaged_store_is_repaired(index):
    with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon, daemon.api() as api:
        first = api.session(packages=['gbpure==1.0'])
        set_id, path = first.info['packages']['set'], store(daemon)
        first.delete()
        (path / 'staging' / 'leftover').mkdir()
        (path / 'sets' / ('a' * 26 + '.new')).write_text('')
        target = path / 'tree' / set_id / 'gbpure' / '__init__.py'
        os.chmod(target, 0o644)
        target.write_text('version = "0.0"\n')
        assert gb.cli('packages', 'check', '--state-dir', daemon.dir / 'state').returncode == 1
        again = api.session(packages=['gbpure==1.0'])
        assert again.info['packages']['set'] != set_id and not again.info['packages']['cached']
        assert again.value('import gbpure; gbpure.version') == "'1.0'"
        assert not (path / 'tree' / set_id).exists()
        assert not list((path / 'staging').iterdir()) and not list((path / 'sets').glob('*.new'))
        checked = gb.cli('packages', 'check', '--deep', '--state-dir', daemon.dir / 'state')
        assert checked.returncode == 0 and '0 damaged' in checked.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason='a small file system of its own needs root to mount it')
def test_a_full_disk(index, tmp_path):
    big = os.urandom(6 << 20).hex()
    with package_index.Index([package_index.wheel('gbbig', '1.0', {'gbbig.py': f'data = "{big}"\n'}), *package_index.standard()]) as own:
        place = tmp_path / 'small'
        place.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', place], check=True)
        try:
            common = ['--state-dir', place, '--index', own.url]
            failed = gb.cli('packages', 'add', *common, 'gbbig')
            assert failed.returncode == 1 and 'No space left' in failed.stderr and 'packages gc' in failed.stderr
            assert not list((place / 'packages' / 'sets').iterdir()) and not list((place / 'packages' / 'staging').iterdir())
            gb.cli('packages', 'gc', '--state-dir', place)
            assert gb.cli('packages', 'add', *common, 'gbpure').returncode == 0
        finally:
            subprocess.run(['umount', '-l', place], check=True)


def test_limits_of_time_and_size():
    big = package_index.wheel('gbbig', '1.0', {'gbbig.py': 'data = "' + 'x' * (3 << 20) + '"\n'})
    with package_index.Index([big]) as own:
        with gb.running_daemon('--packages-index', own.url, '--packages-max-size', '2M', '--preload', 'none') as daemon, daemon.api() as api:
            said = problem(api, 422, packages=['gbbig'])
            assert said['code'] == 'packages_too_large' and '--packages-max-size' in said['remediation']
        own.go.clear()  # however slow the machine is: this never comes to an end by itself
        with gb.running_daemon('--packages-index', own.url, '--packages-timeout', '3', '--preload', 'none') as daemon, daemon.api() as api:
            said = problem(api, 504, packages=['gbbig'])
            assert said['code'] == 'package_timeout' and '--packages-timeout' in said['remediation']
        own.go.set()


# ---- settings -----------------------------------------------------------------------------------------


def test_without_an_index_with_a_folder_of_wheels(tmp_path):
    links = tmp_path / 'wheels'
    links.mkdir()
    for name, data in package_index.standard():
        (links / name).write_bytes(data)
    with gb.running_daemon('--packages-offline', '--packages-find-links', links, '--preload', 'none') as daemon, daemon.api() as api:
        assert api.session(packages=['gbdep']).value('import gbdep; gbdep.seen') == "'1.1'"
        said = problem(api, 422, packages=['gbelsewhere'])
        assert said['code'] == 'package_not_found'


def test_constraints_hashes_and_an_allow_list(index, tmp_path):
    constraints = tmp_path / 'constraints.txt'
    constraints.write_text('gbpure<1.1\n')
    data = index.files['gbpure-1.0-py3-none-any.whl']
    good, bad = hashlib.sha256(data).hexdigest(), '0' * 64
    with gb.running_daemon('--packages-index', index.url, '--packages-constraints', constraints, '--packages-allow', 'gb*', '--preload', 'none') as daemon:
        with daemon.api() as api:
            assert api.session(packages=['gbpure']).value('import gbpure; gbpure.version') == "'1.0'"
            assert problem(api, 403, packages=['requests-oauth'])['code'] == 'package_refused'
            hashed = f'gbpure==1.0 --hash=sha256:{good}'
            assert api.session(packages=[hashed]).value('import gbpure; gbpure.version') == "'1.0'"
            assert problem(api, 422, packages=[f'gbpure==1.0 --hash=sha256:{bad}'])['code'] == 'package_hash_mismatch'
    with gb.running_daemon('--packages-index', index.url, '--packages-require-hashes', '--preload', 'none') as daemon, daemon.api() as api:
        assert 'by hash only' in problem(api, 403, packages=['gbpure'])['detail']
        assert api.session(packages=[f'gbpure==1.0 --hash=sha256:{good}']).execute('import gbpure').ok()


# Does by pip what is asked of uv, in uv's words, and leaves a module that has what it was called with.
UV = """#!/usr/bin/python3 -I
import json, re, subprocess, sys
verb, args, calls = sys.argv[2], sys.argv[3:], '/tmp/calls.json'
with open(calls, 'a') as f:
    f.write(json.dumps([verb, *args]) + chr(10))
index = ['--index-url', args[args.index('--index-url') + 1]]
pip = [sys.executable, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *index]
if verb == 'install' and '--dry-run' in args:
    wanted = [a for a in args if a.startswith('gb')]
    subprocess.run([*pip, '--dry-run', '--break-system-packages', '--only-binary', ':all:', '--report', '/workspace/uv.json', *wanted], check=True)
    for one in json.load(open('/workspace/uv.json'))['install']:
        print(' + {name}=={version}'.format(**one['metadata']))
elif verb == 'compile':
    with open(args[args.index('-o') + 1], 'w') as lock:
        for one in json.load(open('/workspace/uv.json'))['install']:
            lock.write('{name}=={version} BACKSLASH NEWLINE    --hash=sha256:'.replace(' NEWLINE', chr(10)).replace('BACKSLASH', chr(92)).format(**one['metadata']))
            lock.write(one['download_info']['archive_info']['hash'][7:] + chr(10))
else:
    target = args[args.index('--target') + 1]
    subprocess.run([*pip, '--target', target, '--no-deps', '--require-hashes', '-r', args[args.index('-r') + 1]], check=True)
    with open(target + '/gbcalls.py', 'w') as f:
        f.write('calls = ' + repr([json.loads(line) for line in open(calls)]))
"""


def test_uv_where_there_is_one(index, tmp_path):
    """A stand-in: whether the real one takes these options is not what is seen here."""
    program = tmp_path / 'bin' / 'uv'
    program.parent.mkdir()
    program.write_text(UV)
    program.chmod(0o755)
    with gb.running_daemon('--packages-index', index.url, '--packages-uv', program, '--preload', 'none') as daemon, daemon.api() as api:
        session = api.session(packages=['gbdep'])
        assert {p['name']: (p['version'], p['requested']) for p in session.info['packages']['installed']} == {'gbdep': ('2.0', True), 'gbpure': ('1.1', False)}
        calls = json.loads(session.execute('import gbdep, gbcalls, json\nassert gbdep.seen == "1.1"\nprint(json.dumps(gbcalls.calls))').ok().stdout)
        assert [call[0] for call in calls] == ['install', 'compile', 'install']
        for call in calls:
            assert call[call.index('--index-url') + 1] == index.url and call[call.index('--only-binary') + 1] == ':all:'
        assert calls[0][-1] == 'gbdep' and '--generate-hashes' in calls[1] and '--require-hashes' in calls[2]
        (kept,) = json.loads(gb.cli('packages', 'list', '--state-dir', daemon.dir / 'state', '--json').stdout)
        hashes = {hashlib.sha256(index.files[f'{name}-py3-none-any.whl']).hexdigest() for name in ('gbdep-2.0', 'gbpure-1.1')}
        assert {p['sha256'] for p in kept['packages']} == hashes
        said = problem(api, 422, packages=['gbpure==7'])  # then pip is asked, and its words are told
        assert said['code'] == 'package_not_found' and '1.0, 1.1' in said['detail']


def test_modes(index):
    with gb.running_daemon('--packages-index', index.url, '--packages', 'off', '--preload', 'none') as daemon, daemon.api() as api:
        assert problem(api, 403, packages=['gbpure'])['code'] == 'package_refused'
        assert api.session(additional_imports=['gbpure']).info['packages'] is None
    with gb.running_daemon('--packages-index', index.url, '--packages', 'store', '--preload', 'none') as daemon, daemon.api() as api:
        assert 'packages add' in problem(api, 403, packages=['gbpure'])['remediation']
        added = gb.cli('packages', 'add', '--state-dir', daemon.dir / 'state', '--index', index.url, 'gbpure')
        assert added.returncode == 0, added.stderr
        assert api.session(packages=['gbpure']).value('import gbpure; gbpure.version') == "'1.1'"


def test_a_set_that_is_kept_ready(index):
    with gb.running_daemon('--packages-index', index.url, '--packages-warm', 'gbdep gbpure<1.1') as daemon, daemon.api() as api:
        gb.wait_until(lambda: re.search(r'the template \w+ is warm', daemon.log()), 'the template is warm')
        session = api.session(packages=['gbpure<1.1', 'gbdep'])
        assert session.info['warm'] and session.info['template'] == session.info['packages']['set']
        assert session.value('import sys; [m in sys.modules for m in ("gbdep", "numpy")]') == '[True, True]'
        assert session.value('import gbdep; gbdep.seen, gbdep.__file__.startswith("/packages/")') == "('1.0', True)"
        assert api.session().info['template'] == 'default'
        for pid in daemon.children('python3'):  # guests, and what the template is copied from
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        good = lambda: api.session(packages=['gbpure<1.1', 'gbdep']).execute('import gbdep; gbdep.seen')['status'] == 'ok'
        gb.wait_until(lambda: good() and good() and good(), 'sessions do without, or come from the next one')


def test_a_set_that_many_ask_for_gets_a_template(index):
    args = ['--packages-index', index.url, '--packages-template-after', '2', '--packages-template-memory', '24M', '--preload', 'none']
    with gb.running_daemon(*args) as daemon, daemon.api() as api:
        kinds = [api.session(packages=['gbpure==1.0']).info['template'] for _ in range(3)]
        assert kinds == ['default'] * 3  # nobody waits for it
        gb.wait_until(lambda: 'is warm' in daemon.log(), 'its template is warm')
        session = api.session(packages=['gbpure==1.0'])
        assert session.info['template'] == session.info['packages']['set'] and session.info['warm']
        assert session.value('import sys; "gbpure" in sys.modules') == 'True'
        for _ in range(3):  # there is no room for two
            api.session(packages=['gbpure==1.1'])
        gb.wait_until(lambda: f'the template {session.info["template"]} is retired' in daemon.log(), 'the one that was used before is ended')
        assert session.value('import gbpure; gbpure.version') == "'1.0'"
        session.execute('import os; os._exit(1)')  # its next interpreter is not from there
        assert session.value('import gbpure; gbpure.version') == "'1.0'"


# ---- the command line --------------------------------------------------------------------------------------


def test_the_store_on_the_command_line(index, tmp_path):
    where = ['--state-dir', tmp_path / 'state']

    def packages(*args, code=0):
        done = gb.cli('packages', args[0], *where, *args[1:])
        assert done.returncode == code, done.stderr
        return done

    said = packages('add', '--index', index.url, 'gbdep')
    assert 'installed: gbdep 2.0' in said.stdout and 'packages: resolving' in said.stderr
    assert 'in the store: gbdep 2.0' in packages('add', '--index', index.url, 'gbdep').stdout
    packages('add', '--index', index.url, 'gbpure')
    sets = json.loads(packages('list', '--json').stdout)
    assert sorted(p['name'] for s in sets for p in s['packages']) == ['gbdep', 'gbpure', 'gbpure']
    trees = [tmp_path / 'state/packages/tree' / s['id'] / 'gbpure/big.txt' for s in sets]
    assert trees[0].stat().st_ino == trees[1].stat().st_ino  # sets that share a wheel share its files
    assert 'gbdep 2.0' in packages('list').stdout
    packages('remove', sets[0]['id'])
    assert len(json.loads(packages('list', '--json').stdout)) == 1 and trees[1].exists()
    assert 'no set' in packages('remove', 'nonsense', code=1).stderr
    assert 'names of packages' in packages('add', code=2).stderr
    assert 'is none of' in packages('frobnicate', code=2).stderr
    assert '1 sets removed' in packages('gc', '--older', '0.000001').stdout
    assert not list((tmp_path / 'state/packages/objects').glob('*/*'))


def test_garbage_collection_spares_what_is_in_use(index):
    with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon, daemon.api() as api:
        session = api.session(packages=['gbpure'])
        args = ('packages', 'gc', '--state-dir', daemon.dir / 'state', '--older', '0.000001', '--json')
        assert json.loads(gb.cli(*args).stdout)['in_use'] == 1
        assert session.value('import gbpure; gbpure.version') == "'1.1'"
        assert gb.cli('packages', 'remove', '--state-dir', daemon.dir / 'state', session.info['packages']['set']).returncode == 1
        session.delete()
        gb.wait_until(lambda: json.loads(gb.cli(*args).stdout)['sets'] == 1, 'it is removed when nobody uses it')
        assert api.session(packages=['gbpure']).value('import gbpure; gbpure.version') == "'1.1'"


def on_terminal(*args, env):
    """The exit code of a command, what it printed, and what it showed on the terminal that its standard error is."""
    master, slave = pty.openpty()
    process = subprocess.Popen([gb.PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, env=env)
    os.close(slave)
    shown = b''
    try:
        while part := os.read(master, 4096):
            shown += part
    except OSError:
        pass  # the other end is closed
    os.close(master)
    out = process.communicate(timeout=gb.PATIENCE)[0].decode()
    return process.returncode, out, shown.decode()


def test_run_and_shell_with_packages(index, tmp_path):
    env = gb.clean_env(GLOVEBOX_PACKAGES_INDEX=index.url, GLOVEBOX_STATE_DIR=tmp_path / 'state')
    code, out, shown = on_terminal('run', '--package', 'gbdep', '-c', 'import gbdep; print(gbdep.seen)', env=env)
    assert (code, out) == (0, '1.1\n')
    drawn = re.findall(r'\r\x1b\[K\[(#+)\.*\] (\w+) ', shown)
    bars, phases = [len(bar) for bar, _ in drawn], [phase for _, phase in drawn]
    assert bars == sorted(bars) and shown.endswith('\r\x1b[K')
    assert [p for i, p in enumerate(phases) if p not in phases[:i]] == ['resolving', 'downloading', 'storing']
    second = gb.cli('run', '--package', 'gbdep', '-c', 'import gbdep; print(gbdep.seen)', env=env)
    assert (second.returncode, second.stdout, second.stderr) == (0, '1.1\n', '')
    missing = gb.cli('run', '--package', 'requets', '-c', '1', env=env)
    assert missing.returncode == 125 and 'did you mean requests?' in missing.stderr
    shell = gb.cli('shell', '--package', 'gbdep', input='import gbdep\ngbdep.seen\n', env=env)
    assert '1.1' in shell.stdout
