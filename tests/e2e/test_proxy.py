"""The configurations of deploy/proxy, with real proxies and TLS: streams, WebSockets and uploads pass."""

import contextlib
import shutil
import socket
import ssl
import subprocess

import gb
import pytest

TOKEN = 'a-token-of-sixteen-letters'


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


@pytest.fixture(scope='module')
def tls(tmp_path_factory):
    """A certificate for localhost, under the names that the configurations use."""
    where = tmp_path_factory.mktemp('tls')
    cert, key = where / 'glovebox.pem', where / 'glovebox.key'
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
         '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
        check=True, capture_output=True, timeout=gb.PATIENCE,
    )  # fmt: skip
    (where / 'glovebox.both.pem').write_text(cert.read_text() + key.read_text())
    return where


@pytest.fixture(scope='module')
def server():
    with gb.running_daemon('--preload', 'none', '--token', TOKEN, '--allow-origin', 'https://glovebox.example', token=TOKEN) as daemon:
        yield daemon


def nginx(text, where):
    (where / 'logs').mkdir()
    whole = f'daemon off; pid {where}/pid; error_log stderr; events {{}} http {{ access_log off; client_body_temp_path {where}/body; '
    for kind in ('proxy', 'fastcgi', 'uwsgi', 'scgi'):
        whole += f'{kind}_temp_path {where}/{kind}; '
    (where / 'nginx.conf').write_text(f'{whole}\n{text}\n}}\n')
    return ['nginx', '-p', where, '-c', where / 'nginx.conf', '-e', 'stderr']


def haproxy(text, where):
    (where / 'haproxy.cfg').write_text(text)
    return ['haproxy', '-db', '-f', where / 'haproxy.cfg']


PROXIES = {'nginx': ('nginx.conf', nginx), 'haproxy': ('haproxy.cfg', haproxy)}


@pytest.fixture(params=PROXIES)
def proxy(request, server, tls, tmp_path):
    """An Api through the proxy."""
    file, command_of = PROXIES[request.param]
    assert shutil.which(request.param, path='/usr/sbin:/usr/bin:/sbin:/bin'), f'{request.param} is not installed: scripts/install-deps --test'
    port, text = free_port(), (gb.ROOT / 'deploy/proxy' / file).read_text()
    text = text.replace('glovebox.example', 'localhost').replace('127.0.0.1:8000', f'127.0.0.1:{server.port}')
    command = command_of(text, tmp_path)
    config = tmp_path / file
    settings = config.read_text().replace('/etc/glovebox/tls', str(tls))
    config.write_text(settings.replace('listen 443', f'listen 127.0.0.1:{port}').replace('bind :443', f'bind 127.0.0.1:{port}'))
    env = gb.clean_env(PATH='/usr/sbin:/usr/bin:/sbin:/bin', HOME=tmp_path)
    process = subprocess.Popen([str(w) for w in command], stdin=subprocess.DEVNULL, stdout=open(tmp_path / 'log', 'wb'), stderr=subprocess.STDOUT, env=env)
    api = gb.Api(f'https://localhost:{port}', TOKEN)
    api.http.verify = str(tls / 'glovebox.pem')

    def answers():
        assert process.poll() is None, (tmp_path / 'log').read_text()
        with contextlib.suppress(OSError):
            return api.get('/readyz').status_code == 200
        return False

    try:
        gb.wait_until(answers, 'the proxy answers')
        with api:
            yield api
    finally:
        process.terminate()
        process.wait(gb.PATIENCE)


def test_streams_sockets_and_uploads_pass(proxy, tls):
    session = proxy.session()
    assert proxy.http.get(f'{proxy.url}/v1/sessions', headers={'Authorization': 'Bearer wrong-token-of-letters'}).status_code == 401

    # The cell waits for a file that is written only after its first output has come through the proxy.
    code = 'import os, time\nprint("first", flush=True)\nwhile not os.path.exists("go"): time.sleep(0.02)\nprint("second")'
    seen = []
    for event, data in session.events(code, timeout_s=gb.PATIENCE):
        seen.append((event, data))
        if event == 'stdout' and 'first' in data.get('text', ''):
            assert session.put_file('go', b'').status_code in (200, 201)
    assert seen[-1][0] == 'done' and seen[-1][1]['stdout'] == 'first\nsecond\n'

    data = bytes(range(256)) * (12 << 12)
    assert session.put_file('large', data).status_code in (200, 201)
    assert session.get_file('large').content == data

    trust = ssl.create_default_context(cafile=tls / 'glovebox.pem')
    url = f'{proxy.url}{session.path}/ws'.replace('https:', 'wss:')
    with gb.Socket(url, headers={'Authorization': f'Bearer {TOKEN}'}, ssl=trust) as ws:
        id = ws.send('execute', code='6 * 7')
        assert any('42' in str(message) for message in ws.until_done(id))
