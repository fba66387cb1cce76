"""Five servers behind stock HAProxy, with the configuration that `glovebox fleet haproxy` prints: routing, failures, upgrades."""

import concurrent.futures
import random
import signal
import threading
import uuid

import pytest
import requests

import fleet as fleets
import gb

ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
# Small nodes, and one in which 200 more sessions have room.
ARGS = {'a': ('--max-sessions', '12'), 'b2c3': ('--max-sessions', '12'), 'host-c': ('--max-sessions', '12'), 'd.example': ('--max-sessions', '12'), 'e': ('--max-sessions', '212')}  # fmt: skip


@pytest.fixture(scope='module')
def fleet(tmp_path_factory):
    made = fleets.Fleet(tmp_path_factory.mktemp('fleet'), ARGS)
    yield made
    crashed = made.crashed()
    made.remove()
    assert not crashed


@pytest.fixture
def api(fleet):
    with fleet.router.api() as api:
        yield api


def on(name):
    return {'Glovebox-Node': name}


def session_on(api, name):
    answer = api.post('/v1/sessions', json={}, headers=on(name))
    assert answer.status_code == 201, answer.text
    return api.adopt(answer.json())


def exists_on(fleet, name, id):
    with fleet.nodes[name].daemon.api() as direct:
        return direct.get(f'/v1/sessions/{id}').status_code == 200


# ---- routing ---------------------------------------------------------------------------------


@pytest.fixture(params=ARGS)
def home(request):
    return request.param


def test_sessions(fleet, api, home):
    session = session_on(api, home)
    assert fleet.name_of(session.id) == home and exists_on(fleet, home, session.id)
    assert session.value('x = 6 * 7\nx') == '42'
    assert [event for event, _ in session.events('print(x)')][-1] == 'done'
    with session.socket() as ws:
        assert any('43' in str(message) for message in ws.execute('x + 1'))
    data = bytes(range(256)) * 12288
    assert session.put_file('large', data).status_code == 201 and session.get_file('large').content == data

    checkpoint = api.post(f'{session.path}/checkpoints', json={}).json()['checkpoint']['id']
    for start in (session.id, checkpoint):
        other = api.adopt(api.post('/v1/sessions', json={'name': 'more', 'from': start}).json())
        assert fleet.name_of(other.id) == home and other.value('x') == '42'
    child = api.adopt(api.post(f'{session.path}/fork', json={}).json()['sessions'][0])
    assert fleet.name_of(child.id) == home and child.value('x') == '42'
    listed = api.get('/v1/sessions', headers=on(home)).json()['sessions']
    assert session.id in {s['id'] for s in listed} and {fleet.name_of(s['id']) for s in listed} == {home}


def test_links_and_ports(fleet, api, home):
    made = api.post('/v1/sessions', json={'display': True, 'network': 'loopback'}, headers=on(home))
    session = api.adopt(made.json())
    link = api.post(f'{session.path}/live', json={}).json()['url']
    page = requests.get(fleet.router.url + link[link.index('/v1/') :])
    assert page.status_code == 200 and 'text/html' in page.headers['Content-Type']
    key = api.post(f'{session.path}/share', json={}).json()['key']
    shared = requests.get(f'{fleet.router.url}{session.path}/cells', headers={'Authorization': f'Share {key}'})
    assert shared.status_code == 200, shared.text
    with requests.get(f'{fleet.router.url}/v1/events', params={'session': session.id}, headers={'Authorization': f'Share {key}'}, stream=True) as events:
        assert events.status_code == 200, events.text

    session.execute(
        'import http.server, threading\n'
        'class H(http.server.BaseHTTPRequestHandler):\n'
        '    def do_GET(self):\n'
        '        self.send_response(200); self.end_headers(); self.wfile.write(b"inside " + self.path.encode())\n'
        'server = http.server.ThreadingHTTPServer(("127.0.0.1", 8123), H)\n'
        'threading.Thread(target=server.serve_forever, daemon=True).start()'
    ).ok()
    assert api.get(f'{session.path}/ports/8123/by/path').text == 'inside /by/path'
    by_name = requests.get(fleet.router.url + '/v1/sessions/by-name', headers={'Host': f'8123-{session.id[2:]}.fleet.example'})
    assert by_name.text == 'inside /v1/sessions/by-name'


def test_jupyter(fleet, api, home):
    kernel = api.post('/api/kernels', json={}, headers=on(home)).json()['id']
    number = uuid.UUID(kernel).int >> 108
    assert ''.join(ALPHABET[number >> 5 * i & 31] for i in range(3, -1, -1)) == fleet.letters(home)
    assert api.get(f'/api/kernels/{kernel}').json()['id'] == kernel
    with gb.Socket(f'{fleet.router.url}/api/kernels/{kernel}/channels'.replace('http:', 'ws:')) as ws:
        ws.send_text(
            '{"channel": "shell", "header": {"msg_id": "1", "msg_type": "execute_request", "session": "s", "username": "u", "version": "5.3"},'
            ' "parent_header": {}, "metadata": {}, "content": {"code": "print(6 * 7)", "silent": false}}'
        )
        while ws.receive()['content'].get('text') != '42\n':
            pass
    assert api.delete(f'/api/kernels/{kernel}').status_code == 204


def test_e2b(fleet, api, home):
    made = api.post('/v2/sandboxes', json={'templateID': 'base'}, headers=on(home)).json()
    id = made['sandboxID']
    assert fleet.name_of(id) == home and api.get(f'/sandboxes/{id}').json()['sandboxID'] == id
    head = {'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '49999', 'X-Access-Token': made['envdAccessToken']}
    ran = requests.post(fleet.router.url + '/execute', json={'code': 'print(6 * 7)'}, headers=head)
    assert ran.status_code == 200 and '42' in ran.text, ran.text
    snapshot = api.post(f'/sandboxes/{id}/snapshots', json={}).json()['snapshotID']
    copy = api.post('/sandboxes', json={'templateID': snapshot}).json()['sandboxID']
    assert fleet.name_of(snapshot) == home and fleet.name_of(copy) == home
    assert api.delete(f'/templates/{snapshot}').status_code == 204
    for one in (id, copy):
        assert api.delete(f'/sandboxes/{one}').status_code == 204


def rpc(api, method, params, **headers):
    headers = {'Accept': 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-06-18', **headers}
    return api.post('/mcp', json={'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}, headers=headers)


def test_mcp(fleet, api, home):
    hello = {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}
    client = rpc(api, 'initialize', hello, **on(home)).headers['Mcp-Session-Id']
    assert client[:4] == fleet.letters(home)
    for _ in range(3):
        made = rpc(api, 'tools/call', {'name': 'run_python', 'arguments': {'code': 'x = 6 * 7\nx'}}, **{'Mcp-Session-Id': client}).json()['result']
        id = made['structuredContent']['session_id']
        assert fleet.name_of(id) == home

    # Without the header, the id in the body leads to the node.
    again = rpc(api, 'tools/call', {'name': 'run_python', 'arguments': {'code': 'x + 1', 'session_id': id}}).json()['result']
    assert not again.get('isError') and again['structuredContent']['session_id'] == id and '43' in str(again)
    gb.Session(api, {'id': id}).put_file('note', b'here')
    read = rpc(api, 'resources/read', {'uri': f'glovebox://{id}/note'}).json()
    assert 'here' in str(read['result']), read
    assert api.delete('/mcp', headers={'Mcp-Session-Id': client}).status_code == 204
    api.delete(f'/v1/sessions/{id}')


def test_openenv(fleet, api, home):
    made = api.post('/reset?session=new', json={}, headers=on(home))
    name = made.headers['X-Session-Id']
    assert name[:4] == fleet.letters(home)
    api.http.cookies.clear()
    step = api.post('/step', json={'action': {'code': 'print(6 * 7)'}}, headers={'X-Session-Id': name}).json()
    assert '42' in step['observation']['stdout']
    assert api.get(f'/state?session={name}').json()['step_count'] == 1
    assert api.post(f'/close?session_id={name}').status_code == 200


def test_names_of_clients(fleet, api):
    """Names that clients choose find their node again, and different names are on different nodes."""
    nodes = set()
    for name in [f'run-{i}' for i in range(20)]:
        head = {'X-Session-Id': name}
        assert api.post('/reset', json={}, headers=head).status_code == 200
        api.post('/step', json={'action': {'code': f'mine = {name!r}'}}, headers=head)
        shown = api.post('/step', json={'action': {'code': 'print(mine)'}}, headers={'X-OpenEnv-Session-Id': name}).json()
        assert shown['observation']['stdout'] == f'{name}\n'
        with fleet.router.api() as fresh:
            assert fresh.get(f'/state?session={name}').json()['step_count'] == 2
        nodes |= {n for n in fleet.nodes if name in str(api.get('/v1/sessions', headers=on(n)).json())}
        assert api.post('/close', headers=head).status_code == 200
        first = api.post('/execute', json={'generated_code': 'y = 7', 'timeout': 10, 'language': 'ipython'}, headers={'X-Session-ID': name})
        assert first.status_code == 200, first.text
        second = api.post('/execute', json={'generated_code': 'print(y * 6)', 'timeout': 10, 'language': 'ipython'}, headers={'X-Session-ID': name}).json()
        assert second['stdout'] == '42\n', second
        assert api.delete(f'/sessions/{name}').status_code == 200
    assert len(nodes) > 1


def test_programs_and_files_of_others(fleet, api):
    assert api.run('print(6 * 7)').stdout == '42\n'
    outcome = api.post('/v1/batch', json={'items': [{'code': f'print({i})'} for i in range(8)]})
    assert outcome.status_code == 200 and all(str(i) in outcome.text for i in range(8))
    assert api.post('/run_code', json={'code': 'print(6 * 7)', 'language': 'python'}).json()['run_result']['stdout'] == '42\n'
    for _ in range(5):
        up = api.post('/v1/upload', files={'file': ('in.txt', b'42')}).json()
        session, file = up['session_id'], up['files'][0]['fileId']
        reference = [{'id': file, 'session_id': session, 'name': 'in.txt'}]
        ran = api.post('/v1/exec', json={'lang': 'py', 'code': "print(open('in.txt').read())", 'files': reference}).json()
        assert '42' in ran['stdout'], ran
        assert api.get(f'/v1/download/{session}/{file}').content == b'42'


def test_a_key_finds_its_node_again(fleet, api):
    for _ in range(20):
        key = {'Idempotency-Key': str(uuid.uuid4())}
        first, second = (api.post('/v1/sessions', json={}, headers=key).json()['id'] for _ in range(2))
        assert first == second
        api.delete(f'/v1/sessions/{first}')


def test_what_concerns_one_node_says_so(fleet, api):
    for method, path in (('GET', '/v1/sessions'), ('GET', '/v1/node'), ('GET', '/metrics'), ('GET', '/v1/events'), ('POST', '/v1/node/drain'), ('DELETE', '/v1/node/drain')):
        gb.assert_problem(api.request(method, path, json={} if method == 'POST' else None), 400, 'node_needed', 'Glovebox-Node', 'host-c')
    gb.assert_problem(api.get('/v1/node', headers=on('nobody')), 404, 'session_not_found')
    large = {'name': 'x', 'metadata': {'k': 'v' * 70000}}
    gb.assert_problem(api.post('/v1/sessions', json=large), 413, 'body_too_large_to_route', 'Glovebox-Node')
    assert api.get('/health').status_code == 200 and api.get('/readyz').status_code == 200


def test_commands_through_the_router(fleet, api):
    id = session_on(api, 'b2c3').id
    seen = gb.cli('exec', '--url', api.url, id, '--', 'echo', 'hi')
    assert (seen.returncode, seen.stdout) == (0, 'hi\n'), seen.stderr
    for words in (['ps'], ['exec', 'a-name', '--', 'true']):
        seen = gb.cli(words[0], '--url', api.url, *words[1:])
        assert seen.returncode != 0 and 'the id of a session instead of its name' in seen.stderr, seen
    api.delete(f'/v1/sessions/{id}')


def test_forged_ids_reach_no_other_node(fleet, api):
    chance = random.Random(22)
    letters = {fleet.letters(name): name for name in fleet.nodes}
    forged = []
    for i in range(1000):
        head = chance.choice(list(letters)) if i % 4 == 0 else ''.join(chance.choices(ALPHABET + '0189-_.%', k=4))
        id = head + ''.join(chance.choices(ALPHABET, k=22))
        forged.append(id)
        assert api.get(f'/v1/sessions/s_{id}').status_code in (400, 404, 410)
        assert api.get(f'/sandboxes/{id}').status_code in (400, 404, 410)
    logs = {name: node.daemon.log() for name, node in fleet.nodes.items()}
    gb.wait_until(lambda: forged[996] in fleet.nodes[letters[forged[996][:4]]].daemon.log(), 'the last id is in a log')
    for id in forged:
        assert {name for name, log in logs.items() if id[4:] in log} <= {letters.get(id[:4])}, id


# ---- failures ------------------------------------------------------------------------------


class Load(threading.Thread):
    """Makes a session, runs cells in it and ends it, again and again; what went wrong is in `failed`."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.failed, self.rounds, self.stopped = fleet, [], 0, threading.Event()
        self.start()

    def run(self):
        with self.fleet.router.api() as api:
            while not self.stopped.is_set():
                try:
                    self.round(api)
                except Exception as e:
                    self.failed.append(repr(e))

    def round(self, api):
        made = api.post('/v1/sessions', json={})
        if made.status_code != 201:
            self.failed.append(('create', made.status_code, made.text))
            return
        id = made.json()['id']
        for i in range(4):
            ran = api.post(f'/v1/sessions/{id}/execute', json={'code': f'x = {i}' if i == 0 else 'x += 1\nx'})
            if ran.status_code != 200 or (i and ran.json()['result']['text/plain'] != str(i)):
                self.failed.append((self.fleet.name_of(id), ran.status_code, ran.text))
        api.delete(f'/v1/sessions/{id}')
        self.rounds += 1

    def stop(self):
        self.stopped.set()
        self.join(gb.PATIENCE)
        return self.failed


def ask(session):
    """By a connection of its own: on one that was used before, HAProxy says 502 by closing it."""
    return requests.post(f'{session.api.url}{session.path}/execute', json={'code': 'mine'}, timeout=gb.PATIENCE)


def settled(fleet):
    gb.wait_until(lambda: fleet.open_nodes() == set(fleet.nodes), 'the router uses all nodes')


def test_kill(fleet, api):
    """A node dies: its sessions get definite errors at once and for ever, and nobody else notices."""
    victim = fleet.nodes['host-c']
    sessions = {name: [session_on(api, name) for _ in range(4)] for name in fleet.nodes}
    for name, own in sessions.items():
        for session in own:
            session.value(f'mine = {session.id!r}')
    running = sessions['host-c'][0].in_background('import time\nprint("begun", flush=True)\ntime.sleep(600)')
    sessions['host-c'][0].wait_busy()
    load = Load(fleet)
    gb.wait_until(lambda: load.rounds > 3, 'there is load')
    victim.daemon.kill()

    gb.assert_problem(running.response(), 502, 'answer_lost')
    for session in sessions['host-c'][1:]:
        gb.assert_problem(session.post_code('mine'), 503, 'node_unreachable', 'did not run')
    rounds = load.rounds
    gb.wait_until(lambda: load.rounds > rounds + 10, 'the others go on')
    for name, own in sessions.items():
        for session in own if name != 'host-c' else ():
            assert session.value('mine') == repr(session.id)

    victim.start()
    gb.wait_until(victim.ready, 'the node is back')
    gb.wait_until(lambda: sessions['host-c'][1].post_code('mine').status_code != 503, 'the router sees it')
    for session in sessions['host-c']:
        gb.assert_problem(session.post_code('mine'), 410, 'node_restarted')
    settled(fleet)
    # What was on its way to the node may be lost: that is said, or the connection is closed if it was used before.
    for failure in load.stop():
        lost = 'answer_lost' in str(failure) or 'RemoteDisconnected' in str(failure)
        assert lost or ('host-c' in failure and 'node_' in str(failure)), failure


def test_link_down(fleet, api):
    """A node that cannot be reached is not declared dead: when the link is back, its sessions are there."""
    victim = fleet.nodes['b2c3']
    session, busy = session_on(api, 'b2c3'), session_on(api, 'b2c3')
    session.value('mine = 42')
    running = busy.in_background('import time\ntime.sleep(600)')
    busy.wait_busy()
    answers = []
    victim.link('down')
    try:
        gb.assert_problem(running.response(), 502, 'answer_lost')
        gb.wait_until(lambda: len(answers) > 5 and answers[-1].status_code == 503 or answers.append(ask(session)), 'an error')
        assert 'b2c3' not in fleet.open_nodes()
    finally:
        victim.link('up')
    gb.wait_until(lambda: answers.append(ask(session)) or answers[-1].status_code == 200, 'the session answers again')
    assert answers[-1].json()['result']['text/plain'] == '42'
    assert {a.json().get('code') for a in answers[:-1]} <= {'node_unreachable', 'answer_lost'}
    settled(fleet)


def test_full_nodes(fleet, api):
    """Creates find the one node that has room, also before the router has heard that the others are full."""
    for name in fleet.nodes:
        for left in api.get('/v1/sessions', headers=on(name)).json()['sessions']:
            api.delete(f'/v1/sessions/{left["id"]}')
    full = [name for name in fleet.nodes if name != 'e']
    ids = [api.post('/v1/sessions', json={}, headers=on(name)).json()['id'] for name in full for _ in range(12)]
    gb.assert_problem(api.post('/v1/sessions', json={}, headers=on('a')), 503, 'server_full')

    def create(_):
        return requests.post(fleet.router.url + '/v1/sessions', json={})

    try:
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            made = list(pool.map(create, range(200)))
            assert [m.text for m in made if m.status_code != 201] == []
            ids += [m.json()['id'] for m in made]
            ids += [api.post('/v1/sessions', json={}).json()['id'] for _ in range(12)]
        assert {fleet.name_of(id) for id in ids[48:]} == {'e'}
        for _ in range(3):
            refused = api.post('/v1/sessions', json={})
            gb.assert_problem(refused, 503, 'no_node')
            assert refused.headers['Retry-After'] == '1'
        gb.wait_until(lambda: api.get('/readyz').status_code == 503, 'the router says so')
        gb.wait_until(lambda: api.post('/v1/run', json={'code': '1'}).json().get('code') == 'no_node', 'programs are refused by the router')
    finally:
        for id in ids:
            api.delete(f'/v1/sessions/{id}')
    settled(fleet)


# ---- operation -----------------------------------------------------------------------------


def test_drain(fleet, api):
    """A node that drains makes no new sessions and serves the others; SIGTERM lets a cell end."""
    session = session_on(api, 'd.example')
    session.value('mine = 42')
    running = session.hold('print(mine)')
    assert api.post('/v1/node/drain', json={}, headers=on('d.example')).json()['state'] == 'draining'
    assert 'd.example' not in fleet.open_nodes()
    session.release()
    assert running.result().stdout == '42\n' and session.value('mine') == '42'
    assert api.delete('/v1/node/drain', headers=on('d.example')).json()['state'] == 'serving'
    settled(fleet)

    cell = session.hold('print("over")')
    fleet.nodes['d.example'].daemon.process.send_signal(signal.SIGTERM)
    gb.wait_until(lambda: 'd.example' not in fleet.open_nodes(), 'no new sessions')
    session.release()
    assert cell.result().stdout == 'over\n'
    assert fleet.nodes['d.example'].daemon.process.wait(gb.PATIENCE) == 0
    fleet.nodes['d.example'].daemon.remove()
    fleet.nodes['d.example'].start()
    gb.wait_until(fleet.nodes['d.example'].ready, 'the node is back')
    settled(fleet)


def test_rolling_upgrade(fleet, api):
    """All nodes are drained and started anew, one after another, under load: no cell and no create fails."""
    load = [Load(fleet) for _ in range(4)]
    for node in fleet.nodes.values():
        assert gb.cli('drain', '--url', node.daemon.url, '--wait').returncode == 0
        assert node.daemon.terminate() == 0
        node.daemon.remove()
        node.start()
        gb.wait_until(node.ready, f'{node.name} is back')
        settled(fleet)
    assert [one for l in load for one in l.stop()] == []
    assert sum(l.rounds for l in load) > 20


def test_a_second_router_serves_the_same_sessions(fleet, api, tmp_path):
    second = fleets.Router(tmp_path, *fleet.words())
    try:
        session = api.session()
        session.value('x = 42')
        with second.api() as other:
            assert gb.Session(other, session.info).value('x') == '42'
    finally:
        second.stop()


def test_the_example_is_what_the_program_prints():
    example = (gb.ROOT / 'deploy/haproxy/haproxy.cfg').read_text()
    assert example == fleets.configuration('--listen', ':8080', 'a=10.0.0.1:8000', 'b=10.0.0.2:8000', 'c=10.0.0.3:8000')


def test_wrong_arguments():
    for words in ((), ('nginx', 'a=10.0.0.1:80'), ('haproxy',), ('haproxy', 'a'), ('haproxy', 'a=10.0.0.1:80', 'a=10.0.0.2:80'), ('haproxy', '--dns', 'x', 'a=10.0.0.1:80')):
        done = gb.cli('fleet', *words)
        assert done.returncode != 0 and done.stderr.startswith('glovebox fleet: ') and not done.stdout, words
