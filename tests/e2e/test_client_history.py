"""The Python client's view of what happened in a session."""

import asyncio
import json
import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import AsyncGlovebox, Glovebox  # noqa: E402


@pytest.fixture
def box(daemon):
    with Glovebox(daemon.url) as box:
        yield box


def test_cells_variables_and_changes(box, tmp_path):
    with box.session(name='a') as session:
        session.run('x = 41')
        session.run('print("out"); x + 1')
        assert [c['code'] for c in session.cells()] == ['x = 41', 'print("out"); x + 1']
        (last,) = session.cells(last=1)
        assert last['stdout'] == 'out\n' and session.value_of(last['result'])['text/plain'] == '42'
        assert {v['name']: v['repr'] for v in session.variables()} == {'x': '41'}
        assert 'print' in [m['text'] for m in session.complete('prin')['matches']]
        assert session.inspect('len')['found']
        assert session.update(name='b', ttl_s=500)['name'] == 'b'
        session.export(tmp_path / 's.ipynb')
        session.export(tmp_path / 's.py')
        assert len(json.loads((tmp_path / 's.ipynb').read_text())['cells']) == 2
        assert 'x = 41' in (tmp_path / 's.py').read_text()


def test_events(box):
    stream = box.events()
    assert next(stream)['type'] == 'hello'
    with box.session() as session:
        session.run('print(1)')
    kinds = []
    for event in stream:
        kinds.append(event['type'])
        if event['type'] == 'ended':
            break
    stream.close()
    assert kinds == ['created', 'started', 'output', 'done', 'ended']


def test_the_same_with_an_event_loop(daemon, tmp_path):
    async def go():
        async with AsyncGlovebox(daemon.url) as box, box.session() as session:
            stream = box.events(session, output=False)
            assert (await stream.__anext__())['type'] == 'hello'
            await session.run('y = [1]')
            assert [(await stream.__anext__())['type'] for _ in range(2)] == ['started', 'done']
            await stream.aclose()
            assert (await session.variables())[0]['repr'] == '[1]'
            assert (await session.cells())[0]['code'] == 'y = [1]'
            assert (await session.complete('y.app'))['matches'][0]['text'] == 'append'
            assert (await session.inspect('y'))['type'] == 'list'
            assert (await session.update(name='n'))['name'] == 'n'
            await session.export(tmp_path / 's.py')

    asyncio.run(go())


def test_folders(box, tmp_path):
    (tmp_path / 'in/d').mkdir(parents=True)
    (tmp_path / 'in/d/a.txt').write_text('one')
    with box.session() as session:
        assert session.upload_folder(tmp_path / 'in', 'there')['files'] == 1
        session.run('open("there/d/b.txt", "w").write(open("there/d/a.txt").read() * 2)')
        session.download_folder(tmp_path / 'out', 'there')
    assert (tmp_path / 'out/d/b.txt').read_text() == 'oneone'
