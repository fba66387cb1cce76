"""Ids that name the node and its incarnation, and the end of a server behind a router."""

import re
import signal
import threading
import uuid

import requests

import gb

ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'


def new_ids(url):
    """One id of each kind, with the letters that name its node as a router reads them."""
    with gb.Api(url) as api:
        s = api.session()
        assert re.fullmatch('s_[a-z2-7]{26}', s.id)
        yield s.id[2:]
        s.value('x = 1')
        yield api.post(f'{s.path}/fork', json={}).json()['sessions'][0]['id'][2:]
        yield api.post(f'{s.path}/checkpoints', json={}).json()['checkpoint']['id'][2:]
        number = uuid.UUID(api.post('/api/kernels', json={}).json()['id']).int >> 98
        yield ''.join(ALPHABET[number >> 5 * i & 31] for i in range(5, -1, -1))
        yield api.post('/v2/sandboxes', json={'templateID': 'base'}).json()['sandboxID']
        yield api.post('/reset?session=new', json={}).headers['X-Session-Id']
        yield api.post('/mcp', json={'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {}}).headers['Mcp-Session-Id']


def test_ids_name_the_node_and_its_incarnation(tmp_path):
    state = tmp_path / 'state'
    seen = []
    for name, letters in (('ab27', 'ab27'), ('ab27', 'ab27')):
        with gb.running_daemon('--preload', 'none', '--node', name, '--state-dir', state) as daemon, daemon.api() as api:
            node = api.get('/v1/node').json()
            assert node['node'] == letters and len(node['incarnation']) == 2
            ids = list(new_ids(daemon.url))
            assert len(ids) == 7 and len({i[6:] for i in ids}) == 7
            assert {i[:6] for i in ids} == {letters + node['incarnation']}, ids
            for old in seen:
                gone = api.post(f'/v1/sessions/s_{old}/execute', json={'code': '1'})
                gb.assert_problem(gone, 410, 'node_restarted', 'started anew')
            gb.assert_problem(api.get(f'/v1/sessions/s_{"ab26" + ids[0][4:]}'), 404, 'session_not_found')
            gb.assert_problem(api.get(f'/v1/sessions/s_{ids[0][:6] + "a" * 20}'), 404, 'session_not_found')
            seen = ids[:1]


def test_without_a_node_nothing_is_recognised():
    with gb.running_daemon('--preload', 'none') as daemon, daemon.api() as api:
        first, second = api.session().id, api.session().id
        assert first[2:8] != second[2:8]
        gb.assert_problem(api.get(f'/v1/sessions/{first[:6]}aa{first[8:]}'), 404, 'session_not_found')


def test_names():
    for wrong in ('a b', '', 'x' * 64, 'ä'):
        done = gb.cli('serve', '--node', wrong, '--listen', '127.0.0.1:0')
        assert done.returncode != 0 and '--node' in done.stderr, done
    with gb.running_daemon('--preload', 'none', '--node', 'host-17.example') as daemon, daemon.api() as api:
        letters = api.get('/v1/node').json()['node']
        assert re.fullmatch('[a-z2-7]{4}', letters) and api.session().id[2:6] == letters


def test_sigterm_answers_until_the_last_cell_is_over():
    """A router looks at /health: when nobody listened, it would cut the connection of the cell."""
    with gb.running_daemon('--preload', 'none', '--node', 'aaaa') as daemon, daemon.api() as api:
        session, answers = api.session(), []
        gate = "import time, os\nprint('begun', flush=True)\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)\nprint('over')"
        cell = threading.Thread(target=lambda: answers.append(session.execute(gate)))
        cell.start()
        gb.wait_until(lambda: 'begun' in requests.get(f'{daemon.url}{session.path}/logs').text, 'the cell runs')
        daemon.process.send_signal(signal.SIGTERM)
        gb.wait_until(lambda: requests.get(daemon.url + '/readyz').status_code == 503, 'it drains')
        for _ in range(3):
            health = requests.get(daemon.url + '/health')
            assert health.status_code == 200 and health.headers['Connection'] == 'close'
            assert requests.post(daemon.url + '/v1/sessions', json={}).status_code == 503
        done = requests.put(f'{daemon.url}{session.path}/files/go', data=b'')
        assert done.status_code in (200, 201, 204), done.text
        cell.join(gb.PATIENCE)
        assert answers[0].stdout.endswith('over\n')
        assert daemon.process.wait(gb.PATIENCE) == 0
        daemon.ended = True
