"""The cells that a session ran, kept by the server: listed, looked at, exported; and changes of a session."""

import ast
import base64
import json

import gb


LARGE = """class Large:
    def _repr_html_(self):
        return 'x' * {}
display(Large())"""


def cells(session, **query):
    answer = session.api.get(f'{session.path}/cells', params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_page_opened_later_shows_what_happened(session):
    session.execute('print("hello"); 6 * 7').ok()
    session.execute('import sys; open("f.txt", "w").write("x"); print("bad", file=sys.stderr); 1 / 0')
    page = cells(session)
    first, second = page['cells']
    assert page['next'] is None and page['total'] == 2 and page['dropped'] == 0
    assert first['code'] == 'print("hello"); 6 * 7' and first['dialect'] == 'native'
    assert first['kind'] == 'cell' and first['done'] and first['status'] == 'ok' and first['cell'] == 1
    assert first['stdout'] == 'hello\n' and first['result']['data']['text/plain'] == '42'
    assert first['usage']['wall_ms'] > 0
    assert second['status'] == 'error' and second['error']['type'] == 'ZeroDivisionError'
    assert second['stderr'] == 'bad\n' and second['error']['line'] == 1
    assert second['files'] == [{'path': 'f.txt', 'size': 1, 'change': 'created'}]


def test_pages(session):
    for i in range(5):
        session.execute(str(i)).ok()
    first = cells(session, limit=2)
    assert [c['code'] for c in first['cells']] == ['0', '1'] and first['next'] == 2
    assert [c['code'] for c in cells(session, after=first['next'])['cells']] == ['2', '3', '4']
    assert [c['code'] for c in cells(session, last=2)['cells']] == ['3', '4']
    assert cells(session, after=5)['cells'] == []


def test_a_cell_that_runs(session):
    running = session.in_background('print("so far", flush=True)\n' + gb.HOLD)

    def seen():
        listed = cells(session)['cells']
        return listed and listed[0] if listed and listed[0]['stdout'] else None

    now = gb.wait_until(seen, 'the output of the running cell')
    assert now['stdout'] == 'so far\n' and not now['done'] and now['status'] == 'running'
    session.release()
    running.result()
    assert cells(session)['cells'][0]['done']


def test_values_by_reference(science):
    science.execute(
        'import matplotlib.pyplot as plt, pandas as pd\nplt.plot([1, 2])\nplt.show()\npd.DataFrame({"a": range(500)})'
    ).ok()
    cell = cells(science)['cells'][0]
    (picture,) = cell['displays']
    assert 'image/png' in picture['types'] and 'image/png' not in picture['data']
    forms = science.api.get(picture['href']).json()
    assert base64.b64decode(forms['image/png']).startswith(b'\x89PNG')
    assert science.api.get(cell['result']['href']).json()['text/plain'].startswith('       a')
    for wrong in ('99', '1/displays/1', '1/displays/x', '1/nothing', 'x', '-1', '1x'):
        answer = science.api.get(f'{science.path}/cells/{wrong}')
        assert answer.status_code == 404 and answer.json()['code'] == 'cell_not_found', wrong
    assert science.api.get(f'{science.path}/cells/1').json() == cell


def test_much_output_is_cut_and_counted(session):
    session.execute('print("é" * 200_000 + "end")').ok()
    cell = cells(session)['cells'][0]
    assert len(cell['stdout'].encode()) < 70_000 and cell['stdout'].endswith('end\n')
    kept = len(cell['stdout'].encode())
    assert cell['truncated']['stdout'] > 300_000 and '�' not in cell['stdout']
    assert kept + cell['truncated']['stdout'] >= 400_004


def test_a_session_keeps_the_last_ones(session):
    for _ in range(4):
        session.execute(LARGE.format(6_000_000)).ok()
    page = cells(session)
    assert page['total'] == 4 and page['dropped'] == 2 and [c['number'] for c in page['cells']] == [3, 4]


def test_a_value_that_is_too_large_is_left_out(session):
    session.execute('print("kept")\n' + LARGE.format(9_000_000)).ok()
    cell = cells(session)['cells'][0]
    assert cell['stdout'] == 'kept\n' and cell['displays'] == [] and cell['truncated']['displays'] == 1


def test_marks(session):
    session.execute('x = 1').ok()
    session.api.post(f'{session.path}/checkpoints', json={'name': 'clean'})
    session.execute('x = 2').ok()
    session.api.post(f'{session.path}/rollback', json={'checkpoint': 'clean'})
    session.reset()
    kinds = [(c['kind'], c.get('name'), c.get('back_to')) for c in cells(session)['cells']]
    assert kinds == [
        ('cell', None, None),
        ('checkpoint', 'clean', None),
        ('cell', None, None),
        ('rollback', 'clean', 1),
        ('reset', '', None),
    ]


def test_dialects_are_named(session):
    answer = session.api.post(
        '/mcp',
        json={
            'jsonrpc': '2.0',
            'id': 1,
            'method': 'tools/call',
            'params': {'name': 'run_python', 'arguments': {'code': '1', 'session_id': session.id}},
        },
        headers={'MCP-Protocol-Version': '2025-06-18', 'Accept': 'application/json, text/event-stream'},
    )
    assert answer.status_code == 200 and '"isError":false' in answer.text.replace(' ', ''), answer.text
    with session.socket() as socket:
        socket.execute('2')
    listed = {c['code']: c['dialect'] for c in cells(session)['cells']}
    assert listed == {'1': 'mcp', '2': 'native'}


def test_export_as_a_notebook(science):
    science.execute('print("out")\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\n6 * 7').ok()
    science.execute('1 / 0')
    science.api.post(f'{science.path}/checkpoints', json={'name': 'here'})
    answer = science.api.get(f'{science.path}/export')
    assert answer.headers['Content-Disposition'] == 'attachment; filename="session.ipynb"'
    book = answer.json()
    assert book['nbformat'] == 4 and book['metadata']['kernelspec']['language'] == 'python'
    first, second, mark = book['cells']
    assert [o['output_type'] for o in first['outputs']] == ['stream', 'display_data', 'execute_result']
    assert first['outputs'][2]['data']['text/plain'] == '42' and first['execution_count'] == 1
    assert second['outputs'][0]['ename'] == 'ZeroDivisionError'
    assert mark['cell_type'] == 'markdown' and 'here' in mark['source']


def test_export_as_a_program(session):
    session.execute('x = 1').ok()
    session.execute('def f():\n    return x\n').ok()
    text = session.api.get(f'{session.path}/export', params={'format': 'py'}).text
    assert '# %% [1] ok\nx = 1\n' in text
    ast.parse(text)


def test_change_a_session(api):
    session = api.session(name='before', metadata={'a': 1})

    def patch(**fields):
        return api.request('PATCH', session.path, json=fields)

    changed = patch(name='<b>after</b>', metadata={'b': [2]}, ttl_s=5000, idle_timeout_s=600).json()
    assert changed['name'] == '<b>after</b>' and changed['metadata'] == {'b': [2]}
    assert changed['ttl_s'] == 5000 and changed['idle_timeout_s'] == 600 and changed['expires_in_s'] < 601
    assert patch(name='').json()['name'] is None
    assert patch().json()['metadata'] == {'b': [2]}
    wrong = patch(ttl=5)
    assert wrong.status_code == 400 and 'ttl_s' in json.dumps(wrong.json())
