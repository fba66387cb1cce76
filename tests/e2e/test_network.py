"""What sessions reach: nothing, their own loopback, or exactly what they were allowed, through the proxy."""

import contextlib
import json
import os
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gb
import pytest

PROXY = "('127.77.0.1', 3128)"


class Host:
    """A real server on the machine's own loopback: says what it was asked."""

    def __init__(self, address='127.0.0.1'):
        seen = self.seen = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                seen.append((self.path, dict(self.headers)))
                body = f'host says {self.path}'.encode()
                if self.path.startswith('/big'):
                    body = b'x' * (8 << 20)
                self.send_response(200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                data = self.rfile.read(int(self.headers['Content-Length']))
                seen.append((self.path, dict(self.headers)))
                body = str(sum(data)).encode()
                self.send_response(200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        server = type('Server', (ThreadingHTTPServer,), {'address_family': family, 'daemon_threads': True})
        self.http = server((address, 0), Handler)
        self.port = self.http.server_address[1]
        self.rule = f'[{address}]:{self.port}' if ':' in address else f'{address}:{self.port}'
        self.url = f'http://{self.rule}'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture(scope='module')
def host():
    server = Host()
    yield server
    server.close()


@pytest.fixture(scope='module')
def hidden():
    """Another server, which nobody is allowed to reach."""
    server = Host()
    yield server
    assert not server.seen
    server.close()


def allow(*rules):
    return {'allow': list(rules)}


# ---- none --------------------------------------------------------------------------------


def test_none_names_the_setting(api, session):
    assert session.get()['network'] == 'none'
    o = session.execute('import socket; socket.socket()')
    assert o.error['type'] == 'PermissionError' and 'the network of this session is "none"' in o.error['message']
    assert o.error['code'] == 'network_not_allowed' and '"network": "loopback"' in o.error['remediation']
    o = session.execute('import urllib.request; urllib.request.urlopen("https://example.org/")')
    assert 'network of this session is "none"' in o.error['message'] and '"allow": ["example.org:443"]' in o.error['remediation']
    assert '<glovebox>' not in o.error['traceback']
    for code in (
        'import http.client; http.client.HTTPConnection("example.org").request("GET", "/")',
        'import asyncio; asyncio.run(asyncio.open_connection("example.org", 80))',
        'import asyncio; asyncio.run(asyncio.open_connection("192.0.2.1", 80))',
        'import requests; requests.get("http://example.org/")',
        'import socket; socket.gethostbyname("example.org")',
        'import socket; socket.create_server(("127.0.0.1", 0))',
    ):
        o = session.execute(code)
        assert 'network of this session is "none"' in o.error['message'], (code, o.error['message'])
        assert o.error['code'] == 'network_not_allowed' and 'network' in o.error['remediation'], code
    # what has nothing to do with it is as it was
    o = session.execute('import socket; a, b = socket.socketpair(); a.sendall(b"x"); print(b.recv(1), socket.socket.__init__.__name__)').ok()
    assert o.stdout == "b'x' __init__\n"
    assert session.execute('open("/etc/shadow")').error['code'] is None
    assert session.execute('socket.getaddrinfo("localhost", 80)[0][4][1]').ok().text == '80'


def test_attempts_are_listed(api, host):
    refused_url = 'http://refused.invalid:81/'
    session = api.session(network=allow(host.rule))
    session.execute(f'import urllib.request; urllib.request.urlopen("{host.url}/listed").read()').ok()
    session.execute(f'urllib.request.urlopen("{refused_url}")')
    listed = gb.wait_until(lambda: [c for c in [api.get(f'/v1/sessions/{session.id}/network').json()] if not any(a['open'] for a in c['connections'])], 'the connection ends')[0]
    assert [(c['target'], c['verdict']) for c in listed['connections']] == [(host.rule, 'allowed'), ('refused.invalid:81', 'not_allowed')]
    reached, refused = listed['connections']
    assert reached['received_bytes'] > 0 and reached['sent_bytes'] > 0 and 'network.allow' in refused['detail']
    assert listed['total'] == 2 and refused['number'] == 2
    # the oldest ones go first
    session.execute(f'for i in range(120):\n    try: urllib.request.urlopen("{refused_url}")\n    except OSError: pass').ok()
    listed = api.get(f'/v1/sessions/{session.id}/network').json()
    assert listed['total'] == 122 and [c['number'] for c in listed['connections']] == list(range(23, 123))
    assert api.get(f'/v1/sessions/{api.session().id}/network').json() == {'connections': [], 'total': 0}


# ---- loopback ----------------------------------------------------------------------------

LOOPBACK = {
    'http.server': '''
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
open("f.txt", "w").write("served")
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/f.txt").read().decode())
server.shutdown()
''',
    'asyncio': '''
import asyncio
async def serve(reader, writer):
    writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"served\\n")
    print((await reader.read()).decode().lower().strip())
asyncio.run(main())
''',
    'socketserver and UDP': '''
import socket, socketserver, threading
class Handler(socketserver.BaseRequestHandler):
    def handle(self): self.request[1].sendto(self.request[0][::-1], self.client_address)
server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
c.settimeout(30)
c.sendto(b"devres", server.server_address)
print(c.recv(10).decode())
server.shutdown()
''',
    'IPv6': '''
import socket, threading
s = socket.create_server(("::1", 0), family=socket.AF_INET6)
c = socket.create_connection(s.getsockname()[:2])
a, _ = s.accept()
a.sendall(b"served"); a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); a.close()
print(c.recv(10).decode())
''',
    'managers': '''
from multiprocessing.managers import BaseManager
class M(BaseManager): pass
M.register("word", callable=lambda: ["served"])
with M(address=("127.0.0.1", 0), authkey=b"k") as m:
    print(m.word().copy()[0])
''',
    'xmlrpc': '''
import threading, xmlrpc.client, xmlrpc.server
server = xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
server.register_function(lambda: "served", "word")
threading.Thread(target=server.serve_forever, daemon=True).start()
print(xmlrpc.client.ServerProxy("http://127.0.0.1:%d" % server.server_address[1]).word())
server.shutdown()
''',
    'a program of the system': '''
import subprocess, sys, urllib.request, time
p = subprocess.Popen([sys.executable, "-c", """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"served")
s = http.server.HTTPServer(("127.0.0.1", 0), H); print(s.server_port, flush=True); s.serve_forever()
"""], stdout=subprocess.PIPE, text=True)
port = int(p.stdout.readline())
print(urllib.request.urlopen(f"http://127.0.0.1:{port}").read().decode())
p.kill(); p.wait()
''',
}


@pytest.mark.parametrize('name', LOOPBACK)
def test_loopback(api, name):
    o = api.run(LOOPBACK[name], network='loopback', timeout_s=60).ok()
    assert o.stdout == 'served\n'


def test_loopback_is_private(api, host):
    first, second = api.session(network='loopback'), api.session(network='loopback')
    assert first.get()['network'] == 'loopback'
    port = int(first.value('import socket; s = socket.create_server(("127.0.0.1", 0)); s.getsockname()[1]'))
    for target in (port, host.port):
        o = second.execute(f'import socket; socket.create_connection(("127.0.0.1", {target}))')
        assert o.error['type'] == 'ConnectionRefusedError'
    o = second.execute('socket.create_connection(("192.0.2.1", 80))')
    assert 'the network of this session is "loopback"' in o.error['message'] and '"allow": ["192.0.2.1:80"]' in o.error['remediation']
    o = second.execute('socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))')
    assert 'no UDP leaves a session' in o.error['message']
    o = second.execute('socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)')
    assert o.error['type'] == 'PermissionError' and 'TCP and UDP only' in o.error['message']


def test_a_replaced_interpreter_keeps_its_network(api, host):
    session = api.session(network=allow(host.rule))
    assert session.execute('import os; os._exit(1)').status == 'killed'
    assert session.value(f'import urllib.request; urllib.request.urlopen("{host.url}/again").read()') == "b'host says /again'"
    session.reset()
    assert session.value(f'import urllib.request; urllib.request.urlopen("{host.url}/reset").read()') == "b'host says /reset'"


# ---- allow -------------------------------------------------------------------------------


def test_allowed_by_every_client(api, host, hidden):
    session = api.session(network=allow(host.rule))
    assert session.get()['network'] == allow(host.rule)
    session.execute(f'url, port = "{host.url}", {host.port}').ok()
    for code in (
        'import urllib.request; urllib.request.urlopen(url + "/x").read().decode()',
        'import requests; requests.get(url + "/x").text',
        'import requests; requests.get(url + "/x", proxies={"http": "http://127.77.0.1:3128"}).text',
        'import http.client; c = http.client.HTTPConnection("127.0.0.1", port); c.request("GET", "/x"); c.getresponse().read().decode()',
        'import subprocess; subprocess.run(["curl", "-sS", url + "/x"], capture_output=True, text=True, check=True).stdout',
        'subprocess.run(["curl", "-sS", "--noproxy", "", url + "/x"], capture_output=True, text=True, check=True).stdout',
        'subprocess.run(["curl", "-sS", "--noproxy", "", "-p", url + "/x"], capture_output=True, text=True, check=True).stdout',
        'subprocess.run(["curl", "-sS", "--noproxy", "", "--socks5-hostname", "127.77.0.1:3128", url + "/x"], '
        'capture_output=True, text=True, check=True).stdout',
        'subprocess.run(["/usr/bin/python3", "-c", f"import urllib.request; print(urllib.request.urlopen(\'{url}/x\').read().decode(), end=\'\')"], '
        'capture_output=True, text=True, check=True).stdout',
        'import socket; c = socket.create_connection(("127.0.0.1", port)); c.sendall(b"GET /x HTTP/1.0\\r\\n\\r\\n"); '
        'c.makefile().read().rpartition("\\n")[2]',
        'import asyncio\nr, w = await asyncio.open_connection("127.0.0.1", port)\nw.write(b"GET /x HTTP/1.0\\r\\n\\r\\n")\n'
        '(await r.read()).decode().rpartition("\\n")[2]',
    ):
        assert session.value(code) == "'host says /x'", code


def test_everything_else_is_refused(api, host, hidden):
    session = api.session(network=allow(host.rule, 'nobody.invalid:443'))
    for url in ('http://example.org/', f'http://127.0.0.2:{host.port}/', 'https://example.org/'):
        o = session.execute(f'import urllib.request; urllib.request.urlopen({url!r})')
        assert 'is not in network.allow of this session' in o.error['message'] and o.error['code'] == 'network_not_allowed', o.error
        assert '"allow": ["' in o.error['remediation']
    o = session.execute(f'import socket; socket.create_connection(("127.0.0.1", {hidden.port}))')
    assert o.error['type'] == 'ConnectionRefusedError'  # its own loopback, where nobody listens
    for where in ('("example.org", 443)', '("192.0.2.1", 80)', '("2001:db8::1", 80)'):
        o = session.execute(f'import socket; socket.create_connection({where})')
        assert o.error['type'] == 'PermissionError' and 'is not in network.allow' in o.error['message'], o.error
        assert o.error['code'] == 'network_not_allowed'
        assert session.value(f'socket.socket(socket.AF_INET6 if ":" in {where}[0] else socket.AF_INET).connect_ex({where})') == '1'
    o = session.execute('import asyncio; await asyncio.open_connection("example.org", 443)')
    assert o.error['type'] == 'PermissionError' and 'example.org:443 is not in network.allow' in o.error['message']
    o = session.execute('import subprocess; subprocess.run(["curl", "-sSf", "https://example.org"], capture_output=True, text=True).stderr')
    assert '403' in o.text
    # allowed, but not there
    o = session.execute('import urllib.request; urllib.request.urlopen("https://nobody.invalid/")')
    assert 'nobody.invalid' in o.error['message'] and 'resolved' in o.error['message']


def raw(target, request):
    """A cell that says bytes to the proxy and shows the whole answer."""
    return f'import socket\nc = socket.create_connection({PROXY})\nc.settimeout(60)\nc.sendall({request!r})\nb"".join(iter(lambda: c.recv(65536), b""))'


def test_names_that_lead_inside(api, host, hidden):
    """A name is resolved outside; where it leads to must be public, or allowed by its number."""
    request = f'CONNECT localhost:{host.port} HTTP/1.1\r\n\r\nGET /named HTTP/1.0\r\n\r\n'.encode()
    answer = api.run(raw('localhost', request), network=allow(f'localhost:{host.port}')).ok().text
    assert "b'HTTP/1.1 403 localhost is at " in answer and 'a loopback address: that must be in network.allow as well' in answer
    both = allow(f'*:{host.port}', f'127.0.0.1:{host.port}', f'[::1]:{host.port}')
    answer = api.run(raw('localhost', request), network=both).ok().text
    assert '200 Connection established' in answer and 'host says /named' in answer
    request = f'CONNECT 127.0.0.1:{hidden.port} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n'.encode()
    assert '403 ' in api.run(raw('', request), network=allow('*:*', f'localhost:{hidden.port}')).ok().text


def with_hosts(tmp_path, lines, *command):
    """Runs a command that sees another /etc/hosts."""
    hosts = tmp_path / 'hosts'
    hosts.write_text(f'127.0.0.1 localhost\n{lines}\n')
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    return subprocess.run(['unshare', '--mount', 'sh', '-c', script, hosts, *map(str, command)], capture_output=True, text=True,
                          timeout=gb.PATIENCE, stdin=subprocess.DEVNULL, env=gb.clean_env())


def test_host_names(host, tmp_path):
    """Exact names are in the session's /etc/hosts, for every program; those of wider rules in Python's socket module."""
    if os.geteuid() != 0:
        pytest.skip('needs root for another /etc/hosts')
    code = f'''
import asyncio, socket, subprocess, urllib.request
def ask(c): c.sendall(b"GET /x HTTP/1.0\\r\\n\\r\\n"); return c.makefile().read().rpartition("\\n")[2]
port = {host.port}
print(ask(socket.create_connection(("exact.test", port))))
print(ask(socket.create_connection(("a.wild.test", port))))
c = socket.socket(); c.connect(("b.wild.test", port)); print(ask(c))
c = socket.socket(socket.AF_INET6); c.connect(socket.getaddrinfo("b.wild.test", port, socket.AF_INET6)[0][4]); print(ask(c))
print(urllib.request.urlopen(f"http://a.wild.test:{{port}}/x").read().decode())
async def main():
    r, w = await asyncio.open_connection("a.wild.test", port)
    w.write(b"GET /x HTTP/1.0\\r\\n\\r\\n")
    print((await r.read()).decode().rpartition("\\n")[2])
asyncio.run(main())
for name in ("exact.test", "a.wild.test"):
    print(subprocess.run(["curl", "-sS", f"http://{{name}}:{{port}}/x"], capture_output=True, text=True).stdout)
print(subprocess.run(["curl", "-sS", "--noproxy", "*", f"http://exact.test:{{port}}/x"], capture_output=True, text=True).stdout)
try: socket.create_connection(("wild.test", port))
except PermissionError as e: print("refused" if "wild.test:" in str(e) and "network.allow" in str(e) else e)
'''
    (tmp_path / 'code.py').write_text(code)
    rules = f'exact.test:{host.port},*.wild.test:{host.port},{host.rule}'
    names = '127.0.0.1 exact.test a.wild.test b.wild.test wild.test'
    r = with_hosts(tmp_path, names, gb.PROGRAM, 'run', '--allow', rules, tmp_path / 'code.py')
    assert r.stdout.splitlines() == ['host says /x'] * 9 + ['refused'], r.stdout + r.stderr


def test_plain_requests_are_for_one_host(api, host, hidden):
    """What stands behind a request goes where the request goes; Host and other tricks lead nowhere else."""
    session = api.session(network=allow(host.rule))
    before = len(host.seen)
    tricks = [
        f'GET {host.url}/1 HTTP/1.1\r\nHost: 127.0.0.1:{hidden.port}\r\n\r\nGET http://127.0.0.1:{hidden.port}/ HTTP/1.1\r\nHost: x\r\n\r\n',
        f'CONNECT {host.rule} HTTP/1.1\r\nHost: 127.0.0.1:{hidden.port}\r\n\r\nCONNECT 127.0.0.1:{hidden.port} HTTP/1.1\r\n\r\n',
        f'GET http://127.0.0.1:{host.port}@127.0.0.1:{hidden.port}/ HTTP/1.1\r\n\r\n',
        f'GET http://127.0.0.1:{hidden.port}/ HTTP/1.1\r\nHost: {host.rule}\r\n\r\n',
        f'GET http://2130706433:{hidden.port}/ HTTP/1.1\r\n\r\n',
        f'GET http://127.1:{hidden.port}/ HTTP/1.1\r\n\r\n',
        f'CONNECT [::ffff:127.0.0.1]:{hidden.port} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n',
        f'CONNECT 0.0.0.0:{hidden.port} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n',
        f'CONNECT {host.rule}\r\nX: y HTTP/1.1\r\n\r\n',
    ]
    for trick in tricks:
        session.execute(raw('', trick.encode())).ok()
    assert not hidden.seen
    first = host.seen[before]
    assert first[0] == '/1' and first[1]['Host'] == host.rule and first[1]['Connection'] == 'close'


def test_of_another_session(api, host, hidden):
    """The way out belongs to the session it was made for."""
    api.session(network=allow(host.rule)).execute('0').ok()
    for network in ('loopback', allow('example.org:443')):
        other = api.session(network=network)
        o = other.execute(f'import urllib.request; urllib.request.urlopen("{host.url}/stolen")')
        assert o.status == 'error'
        o = other.execute(raw('', f'CONNECT {host.rule} HTTP/1.1\r\n\r\nGET /stolen HTTP/1.0\r\n\r\n'.encode()))
        assert o.status == 'error' or '403 ' in o.text
    assert not [path for path, _ in host.seen if path == '/stolen']


def test_much_data_both_ways(api, host):
    session = api.session(network=allow(host.rule))
    assert session.value(f'import urllib.request; len(urllib.request.urlopen("{host.url}/big").read())') == str(8 << 20)
    session.execute('http = {"http": "http://127.77.0.1:3128"}; import requests').ok()
    assert session.value(f'len(requests.get("{host.url}/big", proxies=http).content)') == str(8 << 20)
    assert session.value(f'requests.post("{host.url}/sum", data=b"\\1" * (8 << 20), proxies=http).text') == f"'{8 << 20}'"
    many = f'''
import concurrent.futures
def one(i): return requests.get("{host.url}/" + str(i), proxies=http).text
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(sum(text == "host says /" + str(i) for i, text in enumerate(pool.map(one, range(200)))))
'''
    assert session.execute(many, timeout_s=100).ok().stdout == '200\n'


def test_ipv6(api):
    try:
        server = Host('::1')
    except OSError:
        pytest.skip('this machine has no IPv6')
    try:
        session = api.session(network=allow(server.rule))
        assert session.value(f'import urllib.request; urllib.request.urlopen("{server.url}/six").read()') == "b'host says /six'"
    finally:
        server.close()


# ---- what the daemon sees and says ----------------------------------------------------------


def test_attempts_are_logged_and_counted(host, hidden):
    with gb.running_daemon('--preload', 'none', '--ready', '1') as daemon, daemon.api() as api:
        assert not daemon.children('glovebox-proxy')
        session = api.session(network=allow(host.rule))
        session.execute(f'import urllib.request; urllib.request.urlopen("{host.url}/logged").read()').ok()
        session.execute('urllib.request.urlopen("http://example.org/")')
        gb.wait_until(lambda: 'received' in daemon.log(), 'the end is logged')
        log = daemon.log()
        assert f'network: session {session.id} {host.rule} allowed: 127.0.0.1' in log
        assert f'network: session {session.id} {host.rule} ended after' in log and 'bytes sent' in log
        assert f'network: session {session.id} example.org:80 not_allowed' in log
        assert api.metric('glovebox_network_attempts_total{verdict="allowed"}') == 1
        assert api.metric('glovebox_network_attempts_total{verdict="not_allowed"}') == 1
        assert api.metric('glovebox_network_bytes_total{direction="received"}') > 20
        [proxy] = daemon.children('glovebox-proxy')
        status = dict(line.split(':\t', 1) for line in open(f'/proc/{proxy}/status').read().splitlines() if ':\t' in line)
        assert status['Seccomp'] == '2' and status['NoNewPrivs'] == '1' and status['CapEff'] == '0' * 16
        if os.geteuid() == 0:
            assert '0' not in status['Uid'].split()
        # a proxy that dies takes its connections with it, and nothing else
        os.kill(proxy, 9)
        gb.wait_until(lambda: [p for p in daemon.children('glovebox-proxy') if p != proxy], 'there is a new one')
        session.execute(f'urllib.request.urlopen("{host.url}/after").read()').ok()
        fds = len(os.listdir(f'/proc/{daemon.children("glovebox-proxy")[0]}/fd')) if os.geteuid() == 0 else 0
        session.delete()
        if fds:
            gb.wait_until(lambda: len(os.listdir(f'/proc/{daemon.children("glovebox-proxy")[0]}/fd')) < fds, 'its sockets are closed')


def refused(api, network, **fields):
    answer = api.post('/v1/sessions', json={'network': network, **fields})
    return answer.status_code, answer.json()


def test_the_most_a_server_gives(host):
    with gb.running_daemon('--preload', 'none', '--ready', '0', '--network', f'*.example.org:443,{host.rule}',
                           '--default-network', 'loopback') as daemon, daemon.api() as api:
        assert api.session().get()['network'] == 'loopback'
        assert api.session(network='none').get()['network'] == 'none'
        assert api.session(network=allow('www.example.org:443', host.rule)).get()['network'] == allow('www.example.org:443', host.rule)
        for rule in ('example.org:443', 'www.example.org:80', '*:443', '127.0.0.1:*', '10.0.0.0/8:443'):
            status, problem = refused(api, allow(rule))
            assert status == 403 and problem['code'] == 'network_not_allowed' and rule in problem['detail'], problem
            assert '--network' in problem['remediation']
        assert api.post('/v1/run', json={'code': '1', 'network': allow('a.org:1')}).status_code == 403
    with gb.running_daemon('--preload', 'none', '--ready', '0', '--network', 'none') as daemon, daemon.api() as api:
        assert refused(api, 'loopback')[0] == 403
        assert api.session().get()['network'] == 'none'
    token = 'a-token-of-some-length'
    with gb.running_daemon('--preload', 'none', '--ready', '0', '--token', token, token=token) as daemon, daemon.api() as api:
        assert api.session(network=allow('example.org:443')).get()['network'] == allow('example.org:443')
        for rule in (host.rule, '169.254.169.254:80', '[::1]:*', '192.168.0.0/16:80'):
            assert refused(api, allow(rule))[0] == 403, rule


@pytest.mark.parametrize('network', ['wide', 7, [], {}, {'allow': 'a:1'}, {'allow': [1]}, {'allow': ['a']}, {'allow': ['a:0']},
                                     {'allow': ['a:1'], 'deny': []}, {'allow': ['a.org:1'] * 65}, {'allow': ['http://a.org:1']}, True])
def test_wrong_networks(api, network):
    status, problem = refused(api, network)
    assert status == 400 and problem['code'] == 'invalid_field' and problem['detail'].startswith('$.network'), problem
    assert problem['remediation']


def test_command_line(host, tmp_path):
    code = f'import urllib.request; print(urllib.request.urlopen("{host.url}/cli").read().decode())'
    r = gb.cli('run', '--allow', host.rule, '-c', code)
    assert r.stdout == 'host says /cli\n' and r.stderr == '', r.stderr
    r = gb.cli('run', '--network', 'loopback', '-c', 'import socket; s = socket.create_server(("", 0)); print(socket.create_connection(("127.0.0.1", s.getsockname()[1])).getpeername()[0])')
    assert r.stdout == '127.0.0.1\n', r.stderr
    r = gb.cli('run', '-c', code)
    assert r.returncode == 1 and 'the network of this session is "none"' in r.stderr and '--allow' in r.stderr
    r = gb.cli('run', '--allow', 'host', '-c', '1')
    assert r.returncode != 0 and '--allow: "host" has no port' in r.stderr, r.stderr
    r = gb.cli('run', '--network', 'wide', '-c', '1')
    assert r.returncode != 0 and "--network: 'wide': unknown network" in r.stderr
    for value in ('a.org', 'any:thing:1'):
        r = gb.cli('serve', '--check', '--network', value, '--state-dir', tmp_path)
        assert r.returncode != 0 and 'network' in r.stderr, value
    assert gb.cli('serve', '--check', '--network', 'loopback,*.example.org:443', '--default-network', 'loopback', '--state-dir', tmp_path).returncode == 0


def test_ordinary_sessions_stay_quick(daemon, api):
    """Sessions with a network come from elsewhere: those in stock are for the others."""
    gb.wait_until(lambda: api.metric('glovebox_guests_ready') >= 4, 'the stock is full')
    for _ in range(4):
        api.session(network='loopback').execute('0').ok()
    assert api.metric('glovebox_guests_ready') >= 4
    assert api.session().get()['warm']
