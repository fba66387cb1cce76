"""Installations that hang: the server ends nevertheless, and what nobody waits for does not go on."""

import concurrent.futures
import json
import os
import signal
import socket
from pathlib import Path

import gb
import package_index


def installers(daemon):
    """Pids of installer processes, by what they were started as."""
    found = []
    for pid in [p for p, (parent, _, _) in gb.processes().items() if parent == daemon.pid]:
        try:
            words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
        except OSError:
            continue
        if b'installer' in words:
            found.append(pid)
    return found


def ask_and_leave(daemon, name):
    """A client that asks for a package and closes its connection once the installation runs."""
    before = installers(daemon)
    body = json.dumps({'code': '1', 'packages': [name]})
    host, port = daemon.url.split('//')[1].split(':')
    with socket.create_connection((host, int(port))) as client:
        head = f'POST /v1/run HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n'
        client.sendall((head + body).encode())
        return gb.wait_until(lambda: set(installers(daemon)) - set(before), 'its installer runs')


def test_the_server_ends_while_an_installation_hangs():
    """Of a set that is to be kept ready, which no request waits for."""
    with package_index.Index() as index:
        index.go.clear()
        with gb.running_daemon('--packages-index', index.url, '--packages-warm', 'gbpure', '--preload', 'none') as daemon:
            assert index.asked.wait(gb.PATIENCE)
            family = gb.descendants(daemon.pid)
            os.kill(daemon.pid, signal.SIGTERM)
            assert daemon.process.wait(gb.PATIENCE) == 0
            gb.wait_until(lambda: not gb.still_there(family), 'nothing of it is left')


def test_the_server_ends_while_a_request_waits_for_an_installation():
    with package_index.Index() as index:
        index.go.clear()
        with gb.running_daemon('--packages-index', index.url, '--drain', '1', '--preload', 'none') as daemon:
            with daemon.api() as api, concurrent.futures.ThreadPoolExecutor(1) as pool:
                asked = pool.submit(api.post, '/v1/run', json={'code': '1', 'packages': ['gbpure']})
                assert index.asked.wait(gb.PATIENCE)
                os.kill(daemon.pid, signal.SIGTERM)
                assert daemon.process.wait(gb.PATIENCE) == 0
                try:
                    assert asked.result(gb.PATIENCE).status_code == 503
                except OSError:
                    pass  # it was cut


def test_an_installation_that_nobody_waits_for_ends():
    with package_index.Index() as index:
        index.go.clear()
        with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon:
            (pid,) = ask_and_leave(daemon, 'gbpure')
            family = gb.descendants(pid)
            gb.wait_until(lambda: not installers(daemon), 'it ends')
            gb.wait_until(lambda: not gb.still_there(family), 'its jail ends with it')


def test_abandoned_installations_give_their_places_to_others():
    with package_index.Index() as index:
        index.go.clear()
        with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon, daemon.api() as api:
            left = ask_and_leave(daemon, 'gbpure==1.0') | ask_and_leave(daemon, 'gbpure==1.1')
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                asked = pool.submit(api.post, '/v1/run', json={'code': 'import gbnew', 'packages': ['gbnew']})
                gb.wait_until(lambda: set(installers(daemon)) - left, 'the third one runs')
                index.go.set()
                assert asked.result(gb.PATIENCE).status_code == 200
