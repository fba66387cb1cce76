"""MCP: a tool call over HTTP and stdio, and how long `glovebox mcp` takes to its first answer."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from harness.client import Refused, request_bytes
from harness.daemon import Daemon, build_dir
from harness.stats import Section
from parts.cell import timed_cell

CODE = 'x = 1 + 1'
CHUNK = 50
MODERN = '2026-07-28'
META = 'io.modelcontextprotocol/'


def call(code, session=None, meta=None):
    arguments = {'code': code, **({'session_id': session} if session else {})}
    params = {'name': 'run_python', 'arguments': arguments, **({'_meta': meta} if meta else {})}
    return {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': params}


def http_call(message, modern=False):
    """The bytes of POST /mcp; the headers of MCP are put behind those that all requests have."""
    extra = b'Accept: application/json, text/event-stream\r\n'
    if modern:
        extra += f'MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: run_python\r\n'.encode()
    head, _, rest = request_bytes('POST', '/mcp', message).partition(b'Content-Length')
    return head + extra + b'Content-Length' + rest


def check(answer):
    result = json.loads(answer)['result']
    if result['isError']:
        raise Refused(repr(answer[:300]))
    return result['structuredContent']


def timed_http(connection, request):
    began = time.perf_counter()
    status, body = connection.ask(request)
    took = time.perf_counter() - began
    if status != 200:
        raise Refused(f'{status} {body[:300]!r}')
    check(body)
    return took * 1e3


class Stdio:
    """`glovebox mcp` as a host starts it."""

    def __init__(self, home, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith('GLOVEBOX_')}
        env.update(HOME=home, XDG_STATE_HOME=str(Path(home) / 'state'))
        self.process = subprocess.Popen(
            [build_dir() / 'glovebox', 'mcp', *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b'\n')
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def first_answer(home, *args):
    """Milliseconds from the start of the program to the answer of its first tool call, behind a handshake."""
    hello = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'bench', 'version': '1'}}
    began = time.perf_counter()
    with contextlib.closing(Stdio(home, *args)) as host:
        host.ask({'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': hello})
        answer = host.ask(call('6 * 7'))
        took = time.perf_counter() - began
        if check(answer)['result'] != '42':
            raise Refused(repr(answer[:300]))
    return took * 1e3


def timed_stdio(host, message):
    began = time.perf_counter()
    answer = host.ask(message)
    took = time.perf_counter() - began
    check(answer)
    return took * 1e3


def mcp(effort):
    """MCP: run_python over HTTP and stdio beside the native API; the first answer of glovebox mcp"""
    section = Section('mcp', 'MCP', f'Calls of `run_python` with `{CODE}`, over one kept-alive connection, in the session that the native call uses too.')
    native = section.row('our own API: a cell over HTTP', 'ms')
    legacy = section.row('run_python over POST /mcp, 2025-11-25', 'ms', native)
    modern = section.row('run_python over POST /mcp, 2026-07-28', 'ms', native)
    stdio = section.row('run_python over glovebox mcp', 'ms', native)
    attached = section.row('glovebox mcp to its first tool answer, a server runs', 'ms')
    cold = section.row('glovebox mcp to its first tool answer, with a private server', 'ms')
    with Daemon() as daemon, tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        url = f'http://127.0.0.1:{daemon.port}'
        connection, other = (stack.enter_context(contextlib.closing(daemon.connect())) for _ in range(2))
        host = stack.enter_context(contextlib.closing(Stdio(home, '--url', url)))
        session = connection.create()['id']
        cell = request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': CODE})
        old = http_call(call(CODE, session))
        new = http_call(call(CODE, session, {META + 'protocolVersion': MODERN, META + 'clientCapabilities': {}}), modern=True)
        for _ in range(effort(12)):
            for _ in range(CHUNK):
                native.attempt(lambda: timed_cell(connection, cell, 'ok') / 1e3)
                legacy.attempt(timed_http, other, old)
                modern.attempt(timed_http, other, new)
                stdio.attempt(timed_stdio, host, call(CODE, session))
        for _ in range(effort(20, 4)):
            attached.attempt(first_answer, home, '--url', url)
        for _ in range(effort(10, 2)):
            cold.attempt(first_answer, home, '--private')
    section.target('run_python against the native call, medians', legacy.median / native.median, 1.5, 'x')
    section.target('the first tool answer with a private server, median', cold.median, 1000, 'ms')
    section.target('the first tool answer when a server runs, median', attached.median, 100, 'ms')
    return section
