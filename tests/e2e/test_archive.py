"""Folders of a session as tar archives, both ways."""

import io
import tarfile

import pytest


def unpack(session, data, **query):
    return session.api.request('PUT', f'{session.path}/archive', data=data, params=query)


def pack(entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=form) as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, tuple):
                info.type, info.linkname = content
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def fetch(session, **query):
    answer = session.api.get(f'{session.path}/archive', params=query)
    assert answer.status_code == 200, answer.text
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return {m.name: tar.extractfile(m).read() if m.isfile() else None for m in tar}


LONG = '/'.join(['a-directory-with-a-long-name'] * 8) + '/é.txt'


@pytest.mark.parametrize('form', [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_there_and_back(session, form):
    tree = {'d': None, 'd/e.txt': b'one', 'empty': b'', 'big.bin': bytes(range(256)) * 5000, 'd/empty-folder': None, LONG: b'deep'}
    answer = unpack(session, pack(tree, form))
    assert answer.status_code == 200, answer.text
    assert answer.json() == {'files': 4, 'directories': 2, 'bytes': 3 + 256 * 5000 + 4, 'skipped': 0}
    assert session.value('open("d/e.txt").read(), len(open("big.bin", "rb").read())') == "('one', 1280000)"
    session.execute('open("d/e.txt", "a").write("!")').ok()  # they are the session's own
    found = fetch(session)
    assert {k: v for k, v in found.items() if k in tree} == {**tree, 'd/e.txt': b'one!'}
    assert fetch(session, path='d') == {'e.txt': b'one!', 'empty-folder': None}


def test_into_a_folder(session):
    assert unpack(session, pack({'./a.txt': b'1', './b/': None}), path='in/here').json()['files'] == 1
    assert session.value('import os; sorted(os.listdir("in/here"))') == "['a.txt', 'b']"


def test_links_and_names_that_lead_out(session):
    answer = unpack(session, pack({'l': (tarfile.SYMTYPE, '/etc/passwd'), 'h': (tarfile.LNKTYPE, 'l'), 'ok': b'1'}))
    assert answer.json()['skipped'] == 2 and answer.json()['files'] == 1
    for name in ('../out', '/etc/out', 'a/../../out'):
        answer = unpack(session, pack({'before': b'1', name: b'x'}))
        assert answer.status_code == 400 and answer.json()['code'] == 'invalid_path', name
    session.execute('import os; os.symlink("/tmp", "away"); open("/tmp/secret", "w").write("s")').ok()
    assert unpack(session, pack({'away/x': b'1'})).status_code == 409 or unpack(session, pack({'away/x': b'1'})).status_code == 403
    assert 'away' not in fetch(session)


@pytest.mark.parametrize('body', [b'x' * 2000, pack({'a': b'1' * 3000})[:1500], b'\x1f\x8b' + b'0' * 600], ids=['text', 'cut off', 'gzip'])
def test_what_is_no_archive(session, body):
    answer = unpack(session, body)
    assert answer.status_code == 400 and answer.json()['code'] == 'invalid_archive'


def test_an_empty_session(session):
    assert fetch(session) == {}
    assert session.api.get(f'{session.path}/archive', params={'path': 'nothing'}).status_code == 404
