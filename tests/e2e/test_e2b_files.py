"""Files over E2B's addresses, without their SDK: none is ever cut, whatever its size and place."""

import hashlib
import os

import gb
import pytest

MIB = 1 << 20


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '1', '--preload', 'none', '--memory', '320M') as d:
        yield d


class Box:
    def __init__(self, api):
        made = api.post('/v2/sandboxes', json={'templateID': 'base'})
        assert made.status_code == 201, made.text
        self.api, self.id = api, made.json()['sandboxID']
        self.headers = {'E2b-Sandbox-Id': self.id, 'X-Access-Token': made.json()['envdAccessToken']}

    def cell(self, code):
        answer = self.api.post(f'/v1/sessions/s_{self.id}/execute', json={'code': code}).json()
        assert answer['status'] == 'ok', answer
        return answer['stdout'].strip()

    def read(self, path):
        return self.api.get('/files', params={'path': path}, headers=self.headers)

    def write(self, path, data):
        return self.api.post('/files', params={'path': path}, data=data,
            headers={**self.headers, 'Content-Type': 'application/octet-stream'})

    def write_parts(self, *files):
        return self.api.post('/files', files=[('file', f) for f in files], headers=self.headers)


@pytest.fixture
def box(daemon):
    with daemon.api() as api:
        b = Box(api)
        yield b
        api.delete(f'/sandboxes/{b.id}')


def sha(data):
    return hashlib.sha256(data).hexdigest()


def sha_inside(box, path):
    return box.cell(f'import hashlib; print(hashlib.sha256(open({path!r}, "rb").read()).hexdigest())')


def test_a_large_file_is_read_whole(box):
    box.cell('open("large", "wb").write(b"0123456789abcdef" * (3 << 20))')
    answer = box.read('large')
    assert answer.status_code == 200
    assert sha(answer.content) == sha(b'0123456789abcdef' * (3 << 20))


def test_a_large_file_elsewhere_is_refused_not_cut(box):
    box.cell(f'open("/tmp/fits", "wb").write(b"x" * {15 * MIB}); open("/tmp/large", "wb").write(b"x" * {17 * MIB})')
    assert len(box.read('/tmp/fits').content) == 15 * MIB
    answer = box.read('/tmp/large')
    assert answer.status_code == 413, answer.status_code
    assert '/home/user' in answer.json()['message']


@pytest.mark.parametrize('path', ['up/load', '/tmp/up/load'])
def test_100_mb_are_written_whole(box, path):
    data = os.urandom(MIB) * 100
    answer = box.write(path, data)
    assert answer.status_code == 200, answer.text
    assert sha_inside(box, path) == sha(data)
    assert box.cell('import os; print([n for n in os.listdir("/workspace") if n.startswith(".upload")])') == '[]'


def test_100_mb_in_parts_are_written_whole(box):
    first, second = os.urandom(MIB) * 60, b'\r\n--' + os.urandom(MIB) * 40 + b'\r\n--'
    answer = box.write_parts(('a/first', first), ('/tmp/second', second), ('/home/user/empty', b''))
    assert answer.status_code == 200, answer.text
    assert [e['path'] for e in answer.json()] == ['/home/user/a/first', '/tmp/second', '/home/user/empty']
    assert sha_inside(box, 'a/first') == sha(first)
    assert sha_inside(box, '/tmp/second') == sha(second)
    assert sha_inside(box, 'empty') == sha(b'')


def test_links_are_followed_as_the_user_would(box):
    box.cell('import os; os.mkdir("/tmp/there"); os.symlink("/tmp/there", "link")')
    assert box.write('link/f', b'through').status_code == 200
    assert box.cell('print(open("/tmp/there/f").read())') == 'through'
    assert box.read('link/f').content == b'through'


def test_what_does_not_fit_is_refused(box):
    assert box.write('/', b'x').status_code == 400
    assert box.write('', b'x').status_code == 400
    assert box.write('/workspace', b'x').status_code == 400
    assert box.read('none').status_code == 404
    assert box.read('.').status_code == 400
    assert box.write('/usr/x', b'x').status_code in (403, 500)
    broken = box.api.post('/files', data=b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\ncut',
        headers={**box.headers, 'Content-Type': 'multipart/form-data; boundary=b'})
    assert broken.status_code == 400
    assert box.read('f').status_code == 404


def test_uploads_count_as_memory_of_the_sandbox(box):
    box.cell(f'kept = b"x" * {260 * MIB}')
    answer = box.write('too-much', b'x' * (80 * MIB))
    assert answer.status_code == 507, answer.text
    assert box.read('too-much').status_code == 404


def test_metrics_are_those_of_the_sandbox(box):
    box.cell(f'open("held", "wb").write(bytes({20 * MIB})); kept = b"x" * {50 * MIB}\nfor _ in range(5_000_000): pass')
    m, = box.api.get(f'/sandboxes/{box.id}/metrics').json()
    assert m['cpuCount'] >= 1 and m['cpuUsedPct'] > 0
    assert 50 * MIB < m['memUsed'] <= m['memTotal'] == 320 * MIB
    assert 20 * MIB <= m['diskUsed'] <= m['diskTotal']
    assert m['memCache'] >= 0


def test_directories_are_watched_by_asking(box):
    def ask(method, **fields):
        return box.api.post(f'/filesystem.Filesystem/{method}', json=fields, headers=box.headers)

    watcher = ask('CreateWatcher', path='/home/user').json()['watcherId']
    box.cell('open("asked", "w").write("1")')
    seen = []

    def told():
        seen.extend((e['type'], e['name']) for e in ask('GetWatcherEvents', watcherId=watcher).json()['events'])
        return ('EVENT_TYPE_WRITE', 'asked') in seen

    gb.wait_until(told, 'the change is told')
    assert seen[0] == ('EVENT_TYPE_CREATE', 'asked')
    assert ask('RemoveWatcher', watcherId=watcher).status_code == 200
    assert ask('GetWatcherEvents', watcherId=watcher).status_code == 404
    assert ask('CreateWatcher', path='nope').json()['code'] == 'not_found'
