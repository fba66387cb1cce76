"""Sessions with packages: the first, the second, a hundred at once; beside a start that runs pip each time."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.client import Refused, request_bytes
from harness.daemon import ROOT, Daemon
from harness.sandboxes import Docker, Podman, run
from harness.stats import Section

sys.path.insert(0, str(ROOT / 'tests/e2e'))
import package_index  # noqa: E402  the tests' index serves here as well

CROWD = 100
PAUSE = 0.04
PYTHON = '/usr/bin/python3'


def create_and_run(connection, packages, code, expected):
    """Milliseconds from asking for a session to its first answer."""
    began = time.perf_counter()
    status, body = connection.ask(request_bytes('POST', '/v1/sessions', {'packages': packages} if packages else {}))
    if status != 201:
        raise Refused(f'{status} {body[:300]!r}')
    session = json.loads(body)['id']
    status, body = connection.ask(request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': code}))
    took = (time.perf_counter() - began) * 1e3
    answer = json.loads(body)
    connection.delete(session)
    if status != 200 or answer['status'] != 'ok' or answer['result']['text/plain'] != expected:
        raise Refused(f'{status} {body[:300]!r}')
    return took


def pip_and_python(index):
    """What an entrypoint does that installs at every start: pip into a fresh place, then python3."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        env = {**os.environ, 'PIP_CONFIG_FILE': '/dev/null', 'PYTHONPATH': place}
        pip = [PYTHON, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--index-url', index.url, '--target', place, 'gbdep']
        subprocess.run(pip, check=True, capture_output=True, env=env)
        said = subprocess.run([PYTHON, '-c', 'import gbdep; print(gbdep.seen)'], check=True, capture_output=True, env=env).stdout
    if said != b'1.1\n':
        raise Refused(repr(said))
    return (time.perf_counter() - began) * 1e3


def container_with_pip(contender, index):
    """The same as the entrypoint of a container that is new each time."""
    site = '/tmp/site'
    pip = f'{PYTHON} -m pip install -q --disable-pip-version-check --root-user-action ignore --index-url {index.url} --target {site} gbdep'
    entrypoint = f'{pip} && PYTHONPATH={site} exec {PYTHON} -c "import gbdep; print(gbdep.seen)"'
    return run(contender.start(['/bin/sh', '-c', entrypoint], network='host'), '1.1')


def containers(stack, index, section):
    """Those of podman and docker that work here."""
    for contender in Podman(), Docker():
        why = contender.missing()
        try:
            if not why:
                stack.enter_context(contender)
                container_with_pip(contender, index)
                yield contender
        except Exception as e:
            why = str(e).strip()
        if why:
            section.fact(f'not measured: {contender.name} ({why[-200:]})')


def crowd(daemon, row):
    """All ask for a set that nobody has; milliseconds of each."""
    body = request_bytes('POST', '/v1/run', {'code': 'import gbold', 'packages': ['gbold']})
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(CROWD):
            selector.register(stack.enter_context(contextlib.closing(daemon.connect())), selectors.EVENT_READ)
        began = time.perf_counter()
        waiting = [key.fileobj for key in list(selector.get_map().values())]
        for connection in waiting:
            connection.send(body)
        left = len(waiting)
        while left and (ready := selector.select(60)):
            for key, _ in ready:
                status, answer = key.fileobj.receive()
                selector.unregister(key.fileobj)
                left -= 1
                if status == 200 and json.loads(answer)['status'] == 'ok':
                    row.add((time.perf_counter() - began) * 1e3)
                else:
                    row.failures.append(f'{status} {answer[:200]!r}')
        row.failures += ['no answer within 60 s'] * left


def packages(effort):
    """sessions with packages on demand, beside running pip at every start"""
    section = Section(
        'packages',
        'Sessions with packages',
        'Create a session, run a cell, wait for its answer; with a package that has a dependency, or none. The index is on loopback, so that pip’s own time is what counts. '
        '`pip install --target` and `python3 -c` is what a container does whose entrypoint installs at every start; once without the container, then in one.',
    )
    each = section.row('pip install, then python3 -c', 'ms')
    none = section.row('a session without packages', 'ms', each)
    first = section.row('the first session with them', 'ms', each)
    second = section.row('the second and later ones', 'ms', none)
    used = section.row('… and the import', 'ms', none)
    warm = section.row('… from a template that has it imported', 'ms', none)
    many = section.row(f'{CROWD} at once for a new set', 'ms', each)
    with package_index.Index() as index, contextlib.ExitStack() as engines:
        flags = '--packages-index', index.url
        boxes = [(c, section.row(f'{c.name}, with pip as its entrypoint', 'ms', second)) for c in containers(engines, index, section)]
        for _ in range(effort(4, 2)):
            each.attempt(pip_and_python, index)
            for contender, row in boxes:
                row.attempt(container_with_pip, contender, index)
            with Daemon(*flags) as fresh, contextlib.closing(fresh.connect()) as connection:
                first.attempt(create_and_run, connection, ['gbdep'], 'import gbdep; gbdep.seen', "'1.1'")
        with Daemon(*flags, '--packages-template-after', '0') as plain, Daemon(*flags, '--packages-warm', 'gbdep') as kept, contextlib.ExitStack() as stack:
            near, far = (stack.enter_context(contextlib.closing(d.connect())) for d in (plain, kept))
            create_and_run(near, ['gbdep'], 'import gbdep; gbdep.seen', "'1.1'")
            while b'is warm' not in Path(kept.log).read_bytes():
                time.sleep(0.1)
            for _ in range(effort(120, 20)):
                none.attempt(create_and_run, near, None, '"1.1"', "'1.1'")
                time.sleep(PAUSE)
                second.attempt(create_and_run, near, ['gbdep'], '"1.1"', "'1.1'")
                time.sleep(PAUSE)
                used.attempt(create_and_run, near, ['gbdep'], 'import gbdep; gbdep.seen', "'1.1'")
                time.sleep(PAUSE)
                warm.attempt(create_and_run, far, ['gbdep'], 'import gbdep; gbdep.seen', "'1.1'")
                time.sleep(PAUSE)
            crowd(plain, many)
            figures = near.ask(request_bytes('GET', '/metrics'))[1].decode()
            installed = next(float(line.split()[1]) for line in figures.splitlines() if line.startswith('glovebox_packages_installed_total '))
    section.target('second session with a set, against one with none', second.median / none.median, 2, 'x')
    section.target(f'installations for {CROWD} requests of a new set at once', installed - 1, 1, '')
    return section
