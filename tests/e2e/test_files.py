"""Files of a session over HTTP: both ways, within /workspace, whatever the code in it does."""

import concurrent.futures
import hashlib
import json
import os
import threading

import pytest

import gb


def test_put_get_delete(session):
    answer = session.put_file('data/in.csv', b'a,b\n1,2\n')
    assert answer.status_code == 201
    assert answer.json() == {'path': 'data/in.csv', 'size': 8, 'change': 'created'}
    assert session.value('open("/workspace/data/in.csv").read()') == r"'a,b\n1,2\n'"
    got = session.get_file('data/in.csv')
    assert got.content == b'a,b\n1,2\n' and got.headers['Content-Type'] == 'application/octet-stream'
    assert got.headers['Content-Disposition'] == 'attachment; filename="in.csv"'
    answer = session.put_file('data/in.csv', b'new')
    assert answer.status_code == 200 and answer.json()['change'] == 'modified'
    assert session.get_file('data/in.csv').content == b'new'
    assert session.delete_file('data/in.csv').status_code == 204
    gb.assert_problem(session.get_file('data/in.csv'), 404, 'file_not_found', 'data/in.csv')
    gb.assert_problem(session.delete_file('data/in.csv'), 404, 'file_not_found')


def test_files_of_the_code_can_be_read(session):
    session.execute(
        'import os\nos.makedirs("out/deep")\nopen("out/deep/r.bin", "wb").write(bytes(range(256)) * 100)'
    ).ok()
    assert session.get_file('out/deep/r.bin').content == bytes(range(256)) * 100
    session.execute('open("empty", "w").close()').ok()
    got = session.get_file('empty')
    assert got.status_code == 200 and got.content == b'' and got.headers['Content-Length'] == '0'


def test_code_may_change_and_remove_what_was_put(session):
    session.put_file('f', b'1')
    session.put_file('d/g', b'2')
    assert (
        session.value('open("f", "a").write("x"); import os; os.remove("d/g"); os.rmdir("d"); open("f").read()')
        == "'1x'"
    )


def test_put_before_the_first_cell_and_at_once(api):
    for _ in range(5):
        session = api.session()
        assert session.put_file('x', b'early').status_code == 201
        assert session.value('open("x").read()') == "'early'"


def test_put_files_are_not_claimed_by_the_next_cell(session):
    session.execute('1').ok()
    session.put_file('from-outside', b'x')
    seen = session.execute('open("from-inside", "w").write("x")').ok()
    assert [f['path'] for f in seen.files] == ['from-inside']
    session.delete_file('from-outside')
    assert session.execute('1').files == []


def test_list(session):
    session.execute(
        'import os\nos.makedirs("d/e")\nopen("b", "w").write("12")\nopen("d/c", "w").write("123")\n'
        'os.symlink("/etc/passwd", "link")\nos.mkfifo("fifo")'
    ).ok()
    top = {f['path']: (f['type'], f['size']) for f in session.files()}
    assert top == {'b': ('file', 2), 'd': ('directory', 0), 'link': ('symlink', 0), 'fifo': ('other', 0)}
    every = [f['path'] for f in session.files(recursive='true')]
    assert every == sorted(every) == ['b', 'd', 'd/c', 'd/e', 'fifo', 'link']
    assert [f['path'] for f in session.files(path='d')] == ['d/c', 'd/e']
    assert session.files()[0]['modified'].endswith('Z')
    answer = session.api.get(f'{session.path}/files?limit=2').json()
    assert len(answer['files']) == 2 and answer['truncated'] is True
    gb.assert_problem(session.api.get(f'{session.path}/files?path=b'), 409, 'not_a_directory')
    gb.assert_problem(session.api.get(f'{session.path}/files?path=nosuch'), 404, 'file_not_found')
    gb.assert_problem(session.api.get(f'{session.path}/files?path=../etc'), 400, 'invalid_path')


@pytest.mark.parametrize(
    'path',
    [
        '..%2f..%2fetc%2fpasswd',
        '%2e%2e/etc/passwd',
        'a/..%2f..%2fb',
        '%2fetc%2fpasswd',
        'a%2f%2fb',
        'a%2f',
        '.',
        '%2e',
        '..',
        'a%00b',
        '%ff%fe',
        'a/./b',
        'x' * 256,
        '/'.join(['d'] * 40),
        '%c0%ae%c0%ae/x',
    ],
)
@pytest.mark.parametrize('method', ['GET', 'PUT', 'DELETE'])
def test_paths_that_are_none(daemon, session, path, method):
    """Sent as they are: clients tidy such addresses up before they send them."""
    with gb.Wire(daemon) as wire:
        length = 'Content-Length: 1\r\n\r\nx' if method == 'PUT' else '\r\n'
        wire.send(f'{method} {session.path}/files/{path} HTTP/1.1\r\nHost: localhost\r\n{length}')
        status, headers, body = wire.answer()
    assert status in (400, 404, 403), body
    assert json.loads(body)['code'] in ('invalid_path', 'path_refused', 'file_not_found', 'route_not_found')
    assert session.files(recursive='true') == []


def test_links_do_not_lead_outside(session):
    session.execute(
        'import os\nos.symlink("/etc/passwd", "file")\nos.symlink("/etc", "dir")\nos.symlink("/workspace/real", "inside")\n'
        'os.symlink("..", "up")\nos.symlink("loop", "loop")\nos.symlink("/proc/self/root", "magic")\nopen("real", "w").write("r")'
    ).ok()
    for path in ('file', 'dir/passwd', 'inside', 'up/etc/passwd', 'loop', 'magic/etc/passwd', 'dir/new'):
        assert session.get_file(path).status_code in (403, 404), path
    for path in ('dir/new', 'up/tmp/new', 'magic/tmp/new', 'dir/deeper/new'):
        assert session.put_file(path, b'x').status_code == 403, path
        assert session.delete_file(path).status_code in (403, 404), path
    # A link itself may be replaced or removed; what it points to stays.
    assert session.put_file('inside', b'instead').status_code == 200
    assert session.value('os.path.islink("inside"), open("real").read()') == "(False, 'r')"
    assert session.delete_file('file').status_code == 204
    assert session.value('os.path.lexists("file"), os.path.exists("/etc/passwd")') in (
        "(False, True)",
        "(False, False)",
    )


def test_things_that_are_no_files(session):
    session.execute(
        'import os, socket\nos.mkdir("d")\nopen("d/x", "w").close()\nos.mkfifo("fifo")\n'
        's = socket.socket(socket.AF_UNIX); s.bind("sock")'
    ).ok()
    gb.assert_problem(session.get_file('d'), 409, 'is_a_directory')
    gb.assert_problem(session.get_file('fifo'), 409, 'not_a_file')
    assert session.get_file('sock').status_code == 409
    gb.assert_problem(session.put_file('d', b'x'), 409, 'is_a_directory')
    gb.assert_problem(session.delete_file('d'), 409, 'directory_not_empty')
    gb.assert_problem(session.get_file('d/x/y'), 409, 'not_a_directory')
    assert session.put_file('fifo', b'now a file').status_code == 200
    assert session.get_file('fifo').content == b'now a file'
    session.delete_file('d/x')
    assert session.delete_file('d').status_code == 204


def test_devices_are_not_opened(session):
    seen = session.execute('import os; os.mknod("null", 0o600 | 0o020000, os.makedev(1, 3))')
    assert seen.status == 'error' and session.get_file('null').status_code == 404


def test_unreadable_files(session):
    session.execute(
        'import os\nopen("secret", "w").write("x"); os.chmod("secret", 0)\nos.mkdir("closed"); os.chmod("closed", 0)'
    ).ok()
    assert session.get_file('secret').status_code in (200, 403)
    assert session.files(recursive='true')


@pytest.mark.parametrize(
    'name',
    [
        'ä ö.txt',
        '名前.csv',
        '😀',
        "a'b\"c",
        'semi;colon',
        'per%cent',
        'plus+plus',
        '-dash',
        ' space',
        'new\nline',
        'q?x=1',
        '#frag',
        '.hidden',
        '...',
        'a\\b',
        'tab\t',
    ],
)
def test_names_of_every_kind(session, name):
    from urllib.parse import quote

    assert session.put_file(quote(name, safe=''), b'content').status_code == 201
    assert session.value('import os; os.listdir("/workspace")') == repr([name])
    assert [f['path'] for f in session.files()] == [name]
    got = session.get_file(quote(name, safe=''))
    assert got.content == b'content'
    assert '\n' not in got.headers['Content-Disposition']
    assert session.delete_file(quote(name, safe='')).status_code == 204


def test_large_files_stream_both_ways(session, daemon):
    size = 100 << 20
    piece = os.urandom(1 << 20)
    session.execute('1').ok()
    before = daemon.rss()
    answer = session.put_file('big', (piece for _ in range(size >> 20)))  # chunked, of unknown length
    assert answer.status_code == 201 and answer.json()['size'] == size
    assert session.value('import hashlib; hashlib.sha256(open("big", "rb").read()).hexdigest()') == repr(
        hashlib.sha256(piece * (size >> 20)).hexdigest()
    )
    digest = hashlib.sha256()
    got = session.get_file('big', stream=True)
    assert got.headers['Content-Length'] == str(size)
    for data in got.iter_content(1 << 16):
        digest.update(data)
        assert daemon.rss() - before < 32 << 20
    assert digest.hexdigest() == hashlib.sha256(piece * (size >> 20)).hexdigest()


def test_disk_of_the_session_is_the_limit(api):
    session = api.session(limits={'disk_bytes': 4 << 20})
    gb.assert_problem(session.put_file('big', b'x' * (6 << 20)), 507, 'no_space', 'disk')
    assert session.files() == [], 'a part of a file does not stay'
    assert session.put_file('small', b'x' * 1000).status_code == 201


def test_upload_limit_of_the_server():
    with gb.running_daemon('--preload', 'none', '--max-upload', '1M', '--ready', '1') as daemon, daemon.api() as api:
        session = api.session()
        assert session.put_file('ok', b'x' * (1 << 20)).status_code == 201
        gb.assert_problem(session.put_file('no', b'x' * ((1 << 20) + 1)), 413, 'file_too_large')
        answer = session.put_file('no', (b'x' * 65536 for _ in range(40)))
        assert answer.status_code == 413
        assert [f['path'] for f in session.files()] == ['ok']


def test_broken_upload_leaves_nothing(daemon, session):
    session.put_file('f', b'old')
    with gb.Wire(daemon) as wire:
        wire.send(f'PUT {session.path}/files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\npart')
        gb.wait_until(lambda: len(session.files()) == 2, 'the upload has begun')
    gb.wait_until(lambda: [f['path'] for f in session.files()] == ['f'], 'it is undone')
    assert session.get_file('f').content == b'old'


def test_upload_to_a_session_that_ends_meanwhile(daemon, api):
    session = api.session()
    session.execute('1').ok()
    with gb.Wire(daemon) as wire:
        wire.send(f'PUT {session.path}/files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\npart')
        gb.wait_until(lambda: session.files(), 'the upload has begun')
        session.delete()
        wire.send(b'more')
        status, _, body = wire.answer()
    assert status == 410 and json.loads(body)['code'] == 'session_gone'


def test_concurrent_uploads_of_one_file(session):
    contents = [bytes([65 + i]) * 500_000 for i in range(6)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda c: gb.Session(session.api, session.info).put_file('same', c), contents))
    assert all(a.status_code in (200, 201) for a in answers)
    assert session.get_file('same').content in contents, 'one of them, whole'
    assert [f['path'] for f in session.files()] == ['same']


def test_files_while_a_cell_runs(session):
    running = session.in_background(
        'import time, os\nwhile not os.path.exists("go"): time.sleep(0.02)\nopen("went", "w").write("1")'
    )
    session.wait_busy()
    assert session.put_file('go', b'').status_code == 201
    running.result().ok()
    assert session.get_file('went').content == b'1'


def test_code_that_moves_things_under_a_reader(session):
    """Directories turned into links while they are read and written: nothing of the host's is touched."""
    session.execute(
        'import os, threading\nos.mkdir("a"); open("a/passwd", "w").write("mine")\nstop = False\ndef swap():\n'
        '  while not stop:\n    os.rename("a", "b"); os.symlink("/etc", "a"); os.remove("a"); os.rename("b", "a")\n'
        't = threading.Thread(target=swap, daemon=True); t.start()'
    ).ok()
    done = threading.Event()

    def attack(_):
        seen = set()
        own = gb.Session(gb.Api(session.api.url), session.info)
        for i in range(120):
            got = own.get_file('a/passwd')
            seen.add(got.content if got.status_code == 200 else got.status_code)
            seen.add(own.put_file(f'a/new{i}', b'x').status_code)
        own.api.http.close()
        return seen

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        seen = set().union(*pool.map(attack, range(2)))
    done.set()
    assert seen <= {b'mine', 403, 404, 409, 200, 201}
    assert not [n for n in os.listdir('/etc') if n.startswith('new')]
    session.execute('stop = True; t.join()').ok()


def test_reading_a_file_that_shrinks(daemon, session):
    session.execute('open("f", "wb").write(b"x" * (64 << 20))').ok()
    with gb.Wire(daemon) as wire:
        wire.send(f'GET {session.path}/files/f HTTP/1.1\r\nHost: localhost\r\n\r\n')
        while b'\r\n\r\n' not in wire.buffer:
            wire._more()
        session.execute('import os; os.truncate("f", 10)').ok()
        with pytest.raises((EOFError, ConnectionResetError)):
            wire.answer()
    assert session.value('1') == '1'


def test_many_files(session):
    session.execute('import os\nos.mkdir("m")\nfor i in range(3000): open(f"m/{i:05}", "w").close()').ok()
    answer = session.api.get(f'{session.path}/files?recursive=true&limit=10000').json()
    assert len(answer['files']) == 3001 and answer['truncated'] is False


def test_a_long_list_is_made_in_parts(api):
    """More entries than are looked at in one turn, in order and each once; others are served meanwhile."""
    session = api.session(limits={'inodes': 100_000})
    session.execute(
        "import os\nfor d in range(60):\n    os.mkdir(f'd{d:02}')\n    for f in range(150): open(f'd{d:02}/f{f:03}', 'w').close()"
    ).ok()
    answer = api.get(f'{session.path}/files?recursive=true&limit=10000').json()
    paths = [entry['path'] for entry in answer['files']]
    assert len(paths) == 60 * 151 and paths == sorted(set(paths)) and answer['truncated'] is False
    answer = api.get(f'{session.path}/files?recursive=true&limit=1000').json()
    assert [entry['path'] for entry in answer['files']] == paths[:1000] and answer['truncated'] is True


def test_a_list_whose_client_leaves_and_one_whose_session_ends(api, daemon):
    session = api.session()
    session.execute("for f in range(5000): open(f'f{f:04}', 'w').close()").ok()
    for _ in range(5):
        with gb.Wire(daemon) as wire:
            wire.send(f'GET {session.path}/files?limit=5000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    with gb.Wire(daemon) as wire:
        wire.send(f'GET {session.path}/files?limit=5000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
        session.delete()
        assert wire.answer()[0] in (200, 404, 410)
