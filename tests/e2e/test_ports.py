"""Servers inside sessions: <port>-<id>.localhost and /v1/sessions/{id}/ports/{port}/, HTTP and WebSocket."""

import contextlib
import hashlib
import http.client
import http.server
import socket
import sys
import threading

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))
SERVER = (gb.ROOT / 'tests/e2e/guest_server.py').read_bytes()
TOKENS = ('first-' + 'a' * 20, 'second-' + 'b' * 20)


def serve(session, address='127.0.0.1', port=7000):
    session.put_file('guest_server.py', SERVER)
    answer = session.api.post(f'{session.path}/processes', json={'cmd': f'python3 guest_server.py {address} {port}', 'background': True})
    assert answer.status_code == 201, answer.text
    gb.wait_until(lambda: port in [p['port'] for p in listed(session)['ports']], 'the server listens')


def listed(session):
    return session.api.get(f'{session.path}/ports').json()


@pytest.fixture(scope='module')
def daemon():
    with gb.running_daemon('--ready', '2', '--preload', 'none') as d:
        yield d


@pytest.fixture(scope='module')
def session(daemon):
    with daemon.api() as api:
        s = api.session(network='loopback')
        serve(s)
        yield s


class Client:
    """Asks by the name of the port, or by the path."""

    def __init__(self, daemon, session, form, port=7000):
        self.port, self.form = daemon.port, form
        self.host = f'{port}-{session.id[2:]}.localhost:{daemon.port}' if form == 'host' else f'localhost:{daemon.port}'
        self.prefix = '' if form == 'host' else f'/v1/sessions/{session.id}/ports/{port}'

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=gb.PATIENCE)

    def ask(self, path, method='GET', body=None, headers=()):
        connection = self.connect()
        headers = {'Host': self.host, **{n: v.encode() for n, v in dict(headers).items()}}
        connection.request(method, self.prefix + path, body, headers)
        return connection.getresponse()

    def read(self, path, **kwargs):
        with contextlib.closing(self.ask(path, **kwargs)) as answer:
            return answer.status, answer.read()

    def socket(self, head):
        s = socket.create_connection(('127.0.0.1', self.port), gb.PATIENCE)
        s.sendall(head.replace('PREFIX', self.prefix).replace('HOST', self.host).encode())
        return s


@pytest.fixture(params=['host', 'path'])
def client(daemon, session, request):
    return Client(daemon, session, request.param)


def test_ports_are_listed_with_their_addresses(daemon, session):
    told = listed(session)
    [port] = [p for p in told['ports'] if p['port'] == 7000]
    assert port['url'] == f'http://7000-{session.id[2:]}.localhost:{daemon.port}/'
    assert port['path'] == f'/v1/sessions/{session.id}/ports/7000/'
    assert told['url'].replace('{port}', '7000') == port['url']


def test_requests_reach_the_server_as_they_are(client):
    status, body = client.read('/a%20b/?x=1&y=%2F', method='DELETE', headers={'X-Mine': 'ü', 'TE': 'trailers'})
    lines = body.decode().split('\n')
    assert status == 200
    assert lines[:2] == ['DELETE', '/a%20b/?x=1&y=%2F']
    assert 'x-mine: ü' in lines
    assert not [line for line in lines if line.startswith('te:')]


def test_credentials_for_the_api_do_not_reach_a_server_below_it(daemon, session):
    headers = {'Authorization': 'Bearer x', 'Cookie': 'a=b', 'X-API-Key': 'k'}
    _, body = Client(daemon, session, 'path').read('/', headers=headers)
    assert not [n for n in ('authorization', 'cookie', 'x-api-key') if f'\n{n}:'.encode() in body]
    _, body = Client(daemon, session, 'host').read('/', headers=headers)
    assert b'\nauthorization: Bearer x' in body and b'\ncookie: a=b' in body


def test_bodies_pass_in_both_directions_at_the_same_time(client):
    s = client.socket('POST PREFIX/upload HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n')
    seen = b''

    def hear(text):
        nonlocal seen
        while text not in seen:
            piece = s.recv(65536)
            assert piece, seen
            seen += piece

    with contextlib.closing(s):
        s.sendall(b'3\r\nabc\r\n')
        hear(b'ABC')
        s.sendall(b'2\r\nde\r\n0\r\n\r\n')
        hear(b'DE')
        hear(b'0\r\n\r\n')


def test_large_bodies_arrive_whole(client):
    data = bytes(range(256)) * 40_000
    assert client.read('/digest', method='POST', body=data) == (200, hashlib.sha256(data).hexdigest().encode())
    assert client.read('/large') == (200, b'0123456789' * 1_000_000)
    assert client.read('/close') == (200, b'until the end')
    assert client.read('/interim') == (200, b'ok')
    assert client.read('/two') == (200, b'ok')


def test_websockets_pass(daemon, session, client):
    with gb.Socket(f'ws://{client.host}{client.prefix}/ws', host='127.0.0.1', port=daemon.port) as ws:
        for text in ('hello', 'ü' * 500):
            ws.send_text(text)
            assert ws._wait(ws.ws.recv()) == text


def test_answers_of_hostile_servers_are_refused(client):
    for path in ('/nonsense', '/long', '/many', '/both', '/switch', '/none'):
        assert client.read(path)[0] == 502, path
    with pytest.raises(http.client.IncompleteRead):
        client.read('/short')


@pytest.mark.parametrize('body', ['Content-Length: 100\r\n\r\nabc', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'])
def test_a_switch_of_protocols_within_a_body_is_refused(client, body):
    head = 'POST PREFIX/switch HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
    with contextlib.closing(client.socket(head + body)) as s:
        assert s.makefile('rb').readline() == b'HTTP/1.1 400 Bad Request\r\n'
    assert client.read('/close') == (200, b'until the end')


def test_headers_of_the_server_do_not_concern_the_api(daemon, session):
    by_path = Client(daemon, session, 'path').ask('/headers')
    assert by_path.getheader('Set-Cookie') is None and by_path.getheader('X-Kept') == 'Ã¼'
    assert by_path.getheader('Content-Security-Policy').startswith('sandbox ')
    assert 'allow-same-origin' not in by_path.getheader('Content-Security-Policy')
    assert by_path.getheader('Location') == f'/v1/sessions/{session.id}/ports/7000/there'
    by_host = Client(daemon, session, 'host').ask('/headers')
    assert by_host.headers.get_all('Set-Cookie') == ['mine=1']
    for answer in (by_path, by_host):
        assert not [n for n in ('Strict-Transport-Security', 'X-Hop', 'Connection') if answer.getheader(n)]


def test_a_missing_server_and_a_missing_session_are_told(daemon, session):
    assert Client(daemon, session, 'path', 7999).read('/')[0] == 502
    assert Client(daemon, session, 'host', 7999).read('/')[0] == 502
    with daemon.api() as api:
        other = api.session(network='loopback')
        plain = api.session()
        refused = api.get(f'{plain.path}/ports/7000/')
        assert (refused.status_code, refused.json()['code']) == (409, 'no_loopback')
        assert api.get(f'{other.path}/ports/0/').status_code == 404
        assert api.get(f'{other.path}/ports/x/').status_code == 404
        assert Client(daemon, other, 'host').read('/')[0] == 502
        other.delete()
        assert Client(daemon, other, 'host').read('/v1/sessions')[0] == 502


def test_ipv6_servers_are_reached(daemon):
    with daemon.api() as api:
        s = api.session(network='loopback')
        serve(s, '::1', 7100)
        assert Client(daemon, s, 'host', 7100).read('/close')[1] == b'until the end'


def test_clients_that_vanish_leave_nothing_behind(daemon, session, client):
    before = daemon.settled_fds()
    for path, mark in (('/endless', 'streaming'), ('/silent', 'silent')):
        s = client.socket(f'GET PREFIX{path} HTTP/1.1\r\nHost: HOST\r\n\r\n')
        gb.wait_until(lambda mark=mark: session.get_file(mark).status_code == 200, 'the server answers')
        s.close()
        gb.wait_until(lambda mark=mark: session.get_file(mark).status_code == 404, 'the server is told')
    gb.wait_until(lambda: daemon.settled_fds() <= before, 'no descriptor is left')


def test_the_end_of_a_session_ends_its_connections(daemon):
    before = daemon.settled_fds()
    with daemon.api() as api:
        s = api.session(network='loopback')
        serve(s)
        answers = []
        threads = [threading.Thread(target=lambda f=f: answers.append(Client(daemon, s, f).read('/silent')[0])) for f in ('host', 'path')]
        for t in threads:
            t.start()
        gb.wait_until(lambda: s.get_file('silent').status_code == 200, 'the server waits')
        with gb.Socket(f'ws://{Client(daemon, s, "host").host}/ws', host='127.0.0.1', port=daemon.port) as ws:
            s.delete()
            for t in threads:
                t.join(gb.PATIENCE)
            assert answers == [502, 502]
            ws._wait(ws.ws.wait_closed())
    gb.wait_until(lambda: daemon.settled_fds() <= before, 'no descriptor is left')


def test_kill_of_everything_inside_ends_the_answer(daemon):
    with daemon.api() as api:
        s = api.session(network='loopback')
        serve(s)
        connection = Client(daemon, s, 'host').ask('/endless')
        s.execute('import os, signal\nos.kill(-1, signal.SIGKILL)')
        [process] = api.get(f'{s.path}/processes').json()['processes']
        api.delete(f'{s.path}/processes/{process["id"]}')
        with contextlib.suppress(http.client.HTTPException, OSError):
            while connection.read(1 << 20):
                pass
        assert Client(daemon, s, 'host').read('/')[0] == 502


class TestTokens:
    @pytest.fixture(scope='class')
    def daemon(self):
        with gb.running_daemon('--token', TOKENS[0], '--token', TOKENS[1], '--ready', '1', '--preload', 'none', token=TOKENS[0]) as d:
            yield d

    @pytest.fixture(scope='class')
    def session(self, daemon):
        with daemon.api() as api:
            s = api.session(network='loopback')
            serve(s)
            yield s

    def test_a_key_or_a_token_is_needed(self, daemon, session):
        host, path = Client(daemon, session, 'host'), Client(daemon, session, 'path')
        bearer = [{'Authorization': f'Bearer {t}'} for t in TOKENS]
        assert host.read('/')[0] == 401 and path.read('/')[0] == 401
        assert host.read('/', headers={'E2B-Traffic-Access-Token': 'wrong'})[0] == 401
        status, body = host.read('/', headers=bearer[0])
        assert status == 200 and b'authorization' not in body
        assert host.read('/', headers=bearer[1])[0] == 401
        assert path.read('/', headers=bearer[0])[0] == 200
        assert path.read('/', headers=bearer[1])[0] == 404

    def test_a_browser_gets_a_cookie_for_the_key(self, daemon, session):
        url = next(p['url'] for p in listed(session)['ports'])
        host = Client(daemon, session, 'host')
        query = url.partition('?')[2]
        answer = host.ask(f'/app?a=1&{query}&b=2')
        assert (answer.status, answer.getheader('Location')) == (303, '/app?a=1&b=2')
        cookie = answer.getheader('Set-Cookie').partition(';')[0]
        status, body = host.read('/app?a=1', headers={'Cookie': f'x=1; {cookie}; y=2'})
        assert status == 200 and b'\ncookie: x=1; y=2' in body
        assert query.partition('=')[2] not in daemon.log()
        assert host.ask(f'//evil.example/?{query}').getheader('Location') == '/evil.example/'


    def test_tokens_and_cookies_of_the_server_are_not_passed_on(self, daemon, session):
        key = listed(session)['url'].partition('=')[2]
        cookies = f'glovebox_port_key={key}; a=1; glovebox_login=6162; _xsrf={"0a" * 16}; _xsrf=2|12|34; glovebox_login2=b'

        def seen(**headers):
            status, body = Client(daemon, session, 'host').read('/', headers={'Cookie': cookies, **{n.replace('_', '-'): v for n, v in headers.items()}})
            assert status == 200
            return dict(line.split(': ', 1) for line in body.decode().split('\n')[2:])

        for token in TOKENS:
            assert 'authorization' not in seen(Authorization=f'Bearer {token}')
            told = seen(Authorization='Basic app', X_API_Key=token)
            assert told['authorization'] == 'Basic app' and 'x-api-key' not in told
            told = seen(Authorization=f'token {token}', X_API_Key='app')
            assert told['x-api-key'] == 'app' and 'authorization' not in told
        assert told['cookie'] == 'a=1; _xsrf=2|12|34; glovebox_login2=b'

    def test_each_header_gives_access_by_itself(self, daemon, session):
        host = Client(daemon, session, 'host')
        assert host.read('/', headers={'Authorization': 'Basic app', 'X-API-Key': TOKENS[0]})[0] == 200
        assert host.read('/', headers={'Authorization': 'Basic app', 'X-API-Key': TOKENS[1]})[0] == 401

    def test_secrets_are_not_logged(self, daemon):
        host = http.client.HTTPConnection('127.0.0.1', daemon.port, timeout=gb.PATIENCE)
        host.request('GET', '/v1/none?xtoken=shown1&token=secret1&key=secret2&%74oken=secret3&a=shown2&glovebox_key=secret4&token=secret5')
        assert host.getresponse().status in (401, 404)
        gb.wait_until(lambda: 'shown1' in daemon.log(), 'the request is logged')
        line = next(line for line in daemon.log().split('\n') if 'shown1' in line)
        assert 'shown2' in line and 'secret' not in line


class HostService(http.server.BaseHTTPRequestHandler):
    """A server on the machine's own loopback, which the session may reach and its visitors may not."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'of the host')

    def log_message(self, *args):
        pass


def test_a_port_does_not_lead_to_the_machine(daemon):
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), HostService) as service, daemon.api() as api:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        s = api.session(network={'allow': [f'127.0.0.1:{service.server_port}']})
        serve(s)
        inside = f'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:{service.server_port}/").read())'
        assert 'of the host' in s.execute(inside).ok().stdout
        assert [p['port'] for p in listed(s)['ports']] == [7000]
        refused = api.get(f'{s.path}/ports/{service.server_port}/')
        assert (refused.status_code, refused.json()['code']) == (403, 'port_leads_out')
        assert Client(daemon, s, 'host', service.server_port).read('/')[0] == 403
        assert Client(daemon, s, 'host').read('/close')[1] == b'until the end'
        service.shutdown()


def test_private_ports_need_a_key_without_tokens(daemon):
    with daemon.api() as api:
        s = api.session(network='loopback', private_ports=True)
        serve(s)
        host = Client(daemon, s, 'host')
        assert host.read('/')[0] == 401
        key = listed(s)['url'].partition('=')[2]
        assert host.read('/', headers={'E2B-Traffic-Access-Token': key})[0] == 200


def test_client_and_command_line(daemon, session):
    from glovebox import Glovebox

    with Glovebox(daemon.url) as box:
        s = box.attach(session.id)
        url = f'http://7000-{session.id[2:]}.localhost:{daemon.port}/'
        assert [p['url'] for p in s.ports() if p['port'] == 7000] == [url]
        assert s.port_url(7000) == url
    assert gb.cli('ports', '--url', daemon.url, session.id).stdout == f' 7000  {url}\n'
