"""MCP under load and bad manners: thousands of calls at once, cancellations, clients that vanish, and every row of the contract."""

import asyncio
import json
import random
import socket

import pytest
import requests

import gb

META = 'io.modelcontextprotocol/'
BOTH = 'application/json, text/event-stream'
MODERN = {META + 'protocolVersion': '2026-07-28', META + 'clientCapabilities': {}}


@pytest.fixture(scope='module')
def server():
    with gb.running_daemon() as d:
        yield d


def request_bytes(message, **headers):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    lines = {'Host': 'localhost', 'Accept': BOTH, 'Content-Type': 'application/json', 'Content-Length': len(body), **headers}
    return b'POST /mcp HTTP/1.1\r\n' + ''.join(f'{k}: {v}\r\n' for k, v in lines.items()).encode() + b'\r\n' + body


def tool(name, id=1, **arguments):
    return {'jsonrpc': '2.0', 'id': id, 'method': 'tools/call', 'params': {'name': name, 'arguments': arguments}}


def post(server, message, **headers):
    body = message if isinstance(message, (bytes, str)) else json.dumps(message)
    return requests.post(f'{server.url}/mcp', data=body, headers={'Accept': BOTH, 'Content-Type': 'application/json', **headers}, timeout=gb.PATIENCE)


async def answer(reader):
    head = (await reader.readuntil(b'\r\n\r\n')).decode().lower()
    assert 'content-length' in head, head
    length = int(head.split('content-length:')[1].split()[0])
    return json.loads(await reader.readexactly(length))


async def storm(server, sessions, calls, rng):
    """One client: calls one after another; some are left before their answer."""
    told = left = 0
    reader = writer = None
    for _ in range(calls):
        if writer is None:
            reader, writer = await asyncio.open_connection('127.0.0.1', server.port)
        if rng.random() < 0.15:
            writer.write(request_bytes(tool('run_python', code='import time\ntime.sleep(30)', session_id=rng.choice(sessions))))
            await asyncio.sleep(rng.random() * 0.05)
            writer.close()
            writer, left = None, left + 1
            continue
        writer.write(request_bytes(tool('run_python', code='6 * 7', session_id=rng.choice(sessions))))
        result = (await answer(reader))['result']
        if result['isError']:  # the queue of a session has a limit, and says so
            assert 'wait' in result['content'][0]['text'].lower(), result
        else:
            assert result['structuredContent']['result'] == '42', result
        told += 1
    if writer:
        writer.close()
    return told, left


def test_thousands_of_calls_with_cancellations(server):
    sessions = [post(server, tool('run_python', code='kept = 1')).json()['result']['structuredContent']['session_id'] for _ in range(20)]

    async def all_clients():
        return await asyncio.gather(*(storm(server, sessions, 40, random.Random(i)) for i in range(60)))

    outcomes = asyncio.run(asyncio.wait_for(all_clients(), 240))
    assert sum(told for told, _ in outcomes) + sum(left for _, left in outcomes) == 2400
    for s in sessions:
        gb.wait_until(lambda: requests.get(f'{server.url}/v1/sessions/{s}', timeout=gb.PATIENCE).json()['state'] == 'idle', 'the interrupts')
        assert post(server, tool('run_python', code='kept', session_id=s)).json()['result']['structuredContent']['result'] == '1'


def test_clients_that_vanish(server):
    whole = request_bytes(tool('run_python', code='1'))
    for cut in (1, 40, len(whole) // 2, len(whole) - 1, len(whole)):
        for _ in range(20):
            with socket.create_connection(('127.0.0.1', server.port)) as s:
                s.sendall(whole[:cut])
    assert post(server, tool('run_python', code='1 + 1')).json()['result']['structuredContent']['result'] == '2'


def test_equal_ids_at_the_same_time(server):
    client = post(server, {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {}}).headers['Mcp-Session-Id']

    async def both():
        pairs = [await asyncio.open_connection('127.0.0.1', server.port) for _ in range(8)]
        for i, (_, writer) in enumerate(pairs):
            writer.write(request_bytes(tool('run_python', id=7, code=f'import time\ntime.sleep(0.2)\n{i}'), **{'Mcp-Session-Id': client}))
        return [await answer(reader) for reader, _ in pairs]

    answers = asyncio.run(both())
    assert [a['id'] for a in answers] == [7] * 8
    assert [a['result']['structuredContent']['result'] for a in answers] == [str(i) for i in range(8)]


def test_a_message_beyond_the_limit_is_answered(server):
    refused = post(server, tool('run_python', code='#' * (40 << 20)))
    assert refused.status_code == 413 and refused.json()['error']['code'] == -32600
    headers = {'Accept': 'application/json, text/event-stream', 'Content-Type': 'application/json', 'Content-Encoding': 'gzip'}
    packed = requests.post(f'{server.url}/mcp', data=b'x', headers=headers, timeout=gb.PATIENCE)
    assert packed.status_code == 415 and packed.json()['error']['code'] == -32600
    long = post(server, tool('run_python', code='#' * (9 << 20))).json()['result']
    assert long['isError'] is True and '$.code' in long['content'][0]['text']


def test_a_missing_capability_has_its_code(server):
    message = tool('run_python', code='1', detach=True)
    message['params']['_meta'] = MODERN
    refused = post(server, message, **{'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_python'})
    assert refused.status_code == 400 and refused.json()['error']['code'] == -32021
    assert refused.json()['error']['data'] == {'requiredCapabilities': {'extensions': {META + 'tasks': {}}}}


@pytest.mark.parametrize(
    'body,status,code',
    [
        (b'', 400, -32700),
        (b'[' * 5000 + b']' * 5000, 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":["ping"]}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":5}}', 200, -32002),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}', 200, -32601),
    ],
)
def test_bad_messages(server, body, status, code):
    refused = post(server, body)
    assert (refused.status_code, refused.json()['error']['code']) == (status, code), refused.text


@pytest.mark.parametrize('arguments,words', [([1], 'must be an object'), ('x', 'must be an object'), (None, '$.session_id'), ({'session_id': 5, 'action': []}, '$.session_id: must be a string')])
def test_arguments_of_wrong_types(server, arguments, words):
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'computer', 'arguments': arguments}}
    result = post(server, message).json()['result']
    assert result['isError'] is True and words in result['content'][0]['text']


def test_responses_and_notifications_are_taken_in_silence(server):
    for message in ({'jsonrpc': '2.0', 'id': 1, 'result': {}}, {'jsonrpc': '2.0', 'id': 1, 'error': {'code': 1, 'message': 'x'}}, {'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': {}}):
        taken = post(server, message)
        assert (taken.status_code, taken.content) == (202, b''), taken.text
    assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, Origin='https://evil.example').status_code == 403
    assert post(server, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}, Host='evil.example').status_code == 421
    for method in ('GET', 'DELETE', 'PUT', 'PATCH'):
        assert requests.request(method, f'{server.url}/mcp', timeout=gb.PATIENCE).status_code == 405
