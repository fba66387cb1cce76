"""A layer of the wall that this machine lacks: the server does not start, says which one, and starts when it is waived by name.

What is missing is taken away for real, around the server only: by a filter that answers as an older kernel does, by a mount, by a
user namespace without room for more, by another user."""

import json
import os
import re
import subprocess

import gb
import pytest

NOBODY = 65534

# Answers the given system calls with an errno and starts the rest of the command line.
WITHOUT = """
import ctypes, os, struct, sys
numbers, errno = [int(n) for n in sys.argv[1].split(',')], int(sys.argv[2])
code = [struct.pack('HBBI', 0x20, 0, 0, 0)]
for n in numbers:
    code += [struct.pack('HBBI', 0x15, 0, 1, n), struct.pack('HBBI', 0x06, 0, 0, 0x00050000 | errno)]
code.append(struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(b''.join(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack('HxxxxxxP', len(code), ctypes.addressof(program)), 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""

NUMBERS = {'x86_64': {'seccomp': 317, 'landlock': 444}, 'aarch64': {'seccomp': 277, 'landlock': 444}}[os.uname().machine]
GONE = {
    'landlock': [gb.PYTHON, '-c', WITHOUT, str(NUMBERS['landlock']), '38'],
    'seccomp': [gb.PYTHON, '-c', WITHOUT, str(NUMBERS['seccomp']), '22'],
    'cgroup': ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', '-'],
    'namespaces': ['unshare', '-Ur', 'sh', '-c', 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', '-'],
}
WORDS = {
    'landlock': ['only the mounts', '--waive landlock', 'lsm='],
    'seccomp': ['CONFIG_SECCOMP_FILTER'],
    'namespaces': ['no jail', 'max_user_namespaces'],
}


def serve(before, *args, state):
    """(exit code, what it said) of a server that ends by itself."""
    command = [*before, str(gb.PROGRAM), 'serve', '--listen', '127.0.0.1:0', '--state-dir', str(state), *args]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=gb.PATIENCE, env=gb.clean_env())
    return done.returncode, done.stderr


@pytest.mark.parametrize('layer', WORDS)
def test_missing(layer, tmp_path):
    code, said = serve(GONE[layer], state=tmp_path)
    assert code == 1 and f'the layer "{layer}" is missing' in said, said
    for word in WORDS[layer]:
        assert word in said, said
    assert 'listening' not in said


@pytest.mark.parametrize('layer', ['landlock', 'cgroup'])
def test_waived(layer):
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--waive', layer, before=GONE[layer]) as daemon, daemon.api() as api:
        assert f'without the layer {layer}' in daemon.log()
        assert api.get('/version').json()['layers'][layer] == 'waived'
        assert api.run('6 * 7').ok().text == '42'


def test_control_groups_are_not_needed():
    """Nor need they be waived; root in a container has none."""
    with gb.running_daemon('--preload', 'json', '--ready', '1', before=GONE['cgroup']) as daemon, daemon.api() as api:
        said = [line for line in daemon.log().splitlines() if 'control groups' in line]
        assert len(said) == 1 and 'Read-only' in said[0], said
        assert api.get('/version').json()['layers']['cgroup'] == 'none'
        session = api.session()
        session.execute('import os; x = 1').ok()
        assert session.execute('os._exit(1)').rolled_back
        answer = api.post(f'{session.path}/fork', json={'count': 2})
        assert answer.status_code == 201, answer.text
        assert [api.adopt(s).value('x') for s in answer.json()['sessions']] == ['1', '1']


def test_an_ordinary_user_without_control_groups():
    with gb.running_daemon('--preload', 'json', '--ready', '1', user=NOBODY) as daemon, daemon.api() as api:
        assert api.run('6 * 7').ok().text == '42'
        o = api.run('x = bytearray(1 << 30)', limits={'memory_bytes': 64 << 20})
        assert o.status == 'out_of_memory'
        o = api.session(limits={'cpu_s': 0.3}).execute('while True: pass', timeout_s=60)
        assert o.error['code'] == 'cpu_limit', 'counted without control groups too'


@pytest.mark.parametrize('name', ['seccomp', 'namespaces', 'mounts', 'apparmor'])
def test_what_cannot_be_waived(name, tmp_path):
    code, said = serve([], '--waive', name, state=tmp_path)
    assert code == 1 and name in said and 'landlock and cgroup' in said


def test_version_tells(daemon, api):
    layers = api.get('/version').json()['layers']
    assert set(layers) == {'namespaces', 'mounts', 'seccomp', 'landlock', 'cgroup'}
    assert layers['cgroup'] in ('v1', 'v2') and re.fullmatch(r'version \d+', layers['landlock'])


@pytest.mark.parametrize('layer', GONE)
def test_doctor(layer):
    done = subprocess.run([*GONE[layer], str(gb.PROGRAM), 'doctor', '--quick', '--json'], capture_output=True, text=True, timeout=gb.PATIENCE)
    found = {c['name']: c for c in json.loads(done.stdout)['checks']}
    fatal = layer in ('seccomp', 'namespaces')
    assert found[layer]['status'] == ('fail' if fatal else 'warn') and found[layer]['remedy']
    assert done.returncode == (1 if fatal else 0)
    table = subprocess.run([*GONE[layer], str(gb.PROGRAM), 'doctor', '--quick'], capture_output=True, text=True, timeout=gb.PATIENCE).stdout
    assert re.search(rf'^{"fail" if fatal else "warn"} +{layer}', table, re.M)


def test_with_control_groups_all_limits_are_kept(api):
    assert api.get('/version').json()['limits_not_enforced'] == []
    assert api.session(limits={'cpus': 0.5}).info['limits_not_enforced'] == []
