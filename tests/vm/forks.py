"""In the virtual machine: a server, a session, forks of it, and a session that answers for its copies itself. Prints what it found."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

URL = 'http://127.0.0.1:8155'


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {'Content-Type': 'application/json'}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.loads(answer.read() or b'null')
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read() or b'null')


def groups():
    return sorted(path for path, _, _ in os.walk('/sys/fs/cgroup') if '/glovebox-' in path and '/f' in path.partition('/glovebox-')[2])


server = subprocess.Popen(
    ['/g/glovebox', 'serve', '--listen', '127.0.0.1:8155', '--state-dir', '/tmp/state', '--preload', 'json', '--ready', '1', *sys.argv[1:]],
    stdout=subprocess.DEVNULL, stderr=open('/tmp/log', 'w'),
)
for _ in range(600):
    try:
        if call('GET', '/readyz')[0] == 200:
            break
    except OSError:
        pass
    time.sleep(0.2)
print('layers', call('GET', '/version')[1]['layers'])
status, session = call('POST', '/v1/sessions', {})
path = f'/v1/sessions/{session["id"]}'
print('cell', call('POST', f'{path}/execute', {'code': 'x = 41; open("f", "w").write("y" * 100)', 'timeout_s': 60})[1]['status'])
status, made = call('POST', f'{path}/fork', {'count': 3})
print('fork', status, made.get('detail', ''))
for child in made.get('sessions', []):
    at = f'/v1/sessions/{child["id"]}'
    told = call('POST', f'{at}/execute', {'code': 'assert (x, len(open("f").read())) == (41, 100)', 'timeout_s': 60})[1]
    pid = call('GET', at)[1]['pid']
    print('child', told['status'], open(f'/proc/{pid}/cgroup').read().strip().rpartition('/glovebox-')[2])
print('family', len(groups()), 'limits', [open(g + '/memory.max').read().strip() for g in groups()])
for child in made.get('sessions', []):
    call('DELETE', f'/v1/sessions/{child["id"]}')

code = open('/g/forged.py').read()
status, hostile = call('POST', '/v1/sessions', {'limits': {'memory_bytes': 192 << 20}})
path = f'/v1/sessions/{hostile["id"]}'
print('hostile cell', call('POST', f'{path}/execute', {'code': code, 'timeout_s': 60})[1]['status'])
for _ in range(2):
    status, said = call('POST', f'{path}/fork', {})
    print('forged fork', status, said.get('detail', ''))
status, other = call('POST', '/v1/sessions', {})
print('a neighbour', call('POST', f'/v1/sessions/{other["id"]}/execute', {'code': 'assert 6 * 7 == 42', 'timeout_s': 60})[1]['status'])
print('ready', call('GET', '/readyz')[0])
for s in call('GET', '/v1/sessions')[1]['sessions']:
    call('DELETE', f'/v1/sessions/{s["id"]}')
time.sleep(5)
print('groups of families left:', groups())
server.terminate()
print('exit code', server.wait())
print('\n'.join(line for line in open('/tmp/log').read().splitlines() if ' warning ' in line or ' error ' in line))
