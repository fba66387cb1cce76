"""The server's stream of events: what happens in sessions, as it happens, resumable."""

import contextlib
import json

import gb
import pytest
import requests


class Stream:
    """GET /v1/events, read event by event."""

    def __init__(self, api, headers=None, **query):
        self.answer = api.get('/v1/events', params=query, headers=headers or {}, stream=True)
        assert self.answer.status_code == 200, self.answer.text
        self.lines = self.answer.iter_lines(chunk_size=1, decode_unicode=True)
        self.hello = self.next() if not (headers or {}).get('Last-Event-ID') and 'after' not in query else None

    def next(self):
        fields = {}
        for line in self.lines:
            if not line and 'data' in fields:
                event = json.loads(fields['data'])
                assert event['type'] == fields['event'] and event['event_id'] == fields['id']
                return event
            name, _, value = line.partition(': ')
            if name:
                fields[name] = value
        raise EOFError

    def until(self, kind, **fields):
        """All events up to the first of that kind (and with those fields)."""
        seen = []
        while not seen or seen[-1]['type'] != kind or any(seen[-1].get(k) != v for k, v in fields.items()):
            seen.append(self.next())
        return seen

    def close(self):
        self.answer.close()


@pytest.fixture
def stream(api):
    with contextlib.closing(Stream(api)) as stream:
        yield stream


def test_the_life_of_a_session(api, stream):
    assert stream.hello['type'] == 'hello'
    session = api.session(name='<i>n</i>')
    session.execute('print("out")\nimport sys\nprint("err", file=sys.stderr)\ndisplay(1)').ok()
    session.execute('1/0')
    api.post(f'{session.path}/checkpoints', json={'name': 'c'})
    api.post(f'{session.path}/rollback', json={'checkpoint': 'c'})
    forks = api.post(f'{session.path}/fork', json={}).json()['sessions']
    session.reset()
    api.request('PATCH', session.path, json={'name': 'other'})
    api.delete(session.path)
    seen = [e for e in stream.until('ended', session=session.id) if e['session'] == session.id]
    kinds = [e['type'] for e in seen]
    text = {s: ''.join(e['text'] for e in seen if e.get('stream') == s) for s in ('stdout', 'stderr')}
    assert text == {'stdout': 'out\n', 'stderr': 'err\n'}
    order = [k for k in kinds if k not in ('output', 'display')]
    assert order == [
        'created', 'started', 'done', 'started', 'done', 'checkpoint', 'rollback', 'fork', 'reset', 'changed', 'ended',
    ]  # fmt: skip
    by = {e['type']: e for e in seen}
    assert seen[0]['name'] == '<i>n</i>' and by['changed']['name'] == 'other'
    assert by['fork']['fork'] == forks[0]['id'] and by['rollback']['back_to'] == 2
    failed = [e for e in seen if e['type'] == 'done'][1]
    assert failed['status'] == 'error' and failed['error'] == 'ZeroDivisionError: division by zero'
    assert failed['number'] == 2 and by['ended']['why'] == 'it was deleted'
    assert 'display' in kinds


def test_limits_are_told(api, stream):
    session = api.session()
    session.execute('while True: pass', timeout_s=0.3)
    seen = stream.until('done', session=session.id)
    assert [e['code'] for e in seen if e['type'] == 'limit'] == ['cell_timeout']
    assert seen[-1]['status'] == 'timeout'


def test_going_on_where_it_broke(api):
    first = Stream(api)
    session = api.session()
    session.execute('1').ok()
    seen = first.until('done', session=session.id)
    first.close()
    session.execute('2').ok()
    for how in ({'after': seen[1]['event_id']}, {'headers': {'Last-Event-ID': seen[1]['event_id']}}):
        with contextlib.closing(Stream(api, **how)) as again:
            assert again.next()['type'] == 'hello'
            later = again.until('done', cell=2)
            assert later[0]['event_id'] == seen[2]['event_id']
            assert [e['code'] for e in later if e['type'] == 'started'][-1] == '2'


@pytest.mark.parametrize('after', ['0-5', 'nonsense', 'ffff-999999999'])
def test_events_that_are_gone_are_lost(api, after):
    with contextlib.closing(Stream(api, after=after)) as stream:
        assert [stream.next()['type'], stream.next()['type']] == ['hello', 'lost']


def test_of_one_session_and_without_output(api):
    session, other = api.session(), api.session()
    with contextlib.closing(Stream(api, session=session.id, output='false')) as stream:
        other.execute('print(1)').ok()
        session.execute('print(2)').ok()
        assert [e['type'] for e in stream.until('done')] == ['started', 'done']
    assert api.get('/v1/events', params={'session': 's_nothing'}).status_code == 404


def test_over_a_websocket(daemon, api):
    with gb.Socket(daemon.url.replace('http', 'ws') + '/v1/events') as socket:
        assert socket.receive()['type'] == 'hello'
        session = api.session()
        session.execute('print(5)').ok()
        seen = [socket.receive()]
        while seen[-1]['type'] != 'done':
            seen.append(socket.receive())
        assert [e['type'] for e in seen if e['session'] == session.id] == ['created', 'started', 'output', 'done']


def test_empty_code_is_told_as_empty(api):
    """It was told as the bytes that lie behind it in the daemon's memory."""
    session = api.session()
    with contextlib.closing(Stream(api, session=session.id)) as stream:
        session.execute('', stdin='behind the code').ok()
        assert [e['code'] for e in stream.until('done') if e['type'] == 'started'] == ['']


def test_a_one_shot_is_told_too(api, stream):
    api.run('print(1)')
    seen = stream.until('ended')
    assert [e['type'] for e in seen] == ['created', 'started', 'output', 'done', 'ended']
    assert 'number' not in seen[1]  # no history is kept of it


def test_tokens_see_their_own_alone():
    tokens = ['a' * 32, 'b' * 32]
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--token', ','.join(tokens), token=tokens[0]) as daemon:
        with daemon.api() as ada, gb.Api(daemon.url, tokens[1]) as bob:
            assert gb.Api(daemon.url).get('/v1/events').status_code == 401
            with contextlib.closing(Stream(ada)) as mine, contextlib.closing(Stream(bob)) as theirs:
                session = ada.session(name='secret')
                session.execute('print(1)').ok()
                mine.until('done')
                other = bob.session()
                assert theirs.next()['session'] == other.id
            for path in ('cells', 'cells/1', 'export'):
                assert bob.get(f'{session.path}/{path}').status_code == 404
            assert bob.request('PATCH', session.path, json={'name': 'x'}).status_code == 404
            # a stream that is open does not keep the server from ending
            left_open = Stream(ada)
            daemon.terminate()
            with pytest.raises(EOFError):
                while True:
                    left_open.next()


def test_a_token_does_not_take_all_places():
    tokens = ['a' * 32, 'b' * 32]

    def follow(daemon, token, stack):
        answer = requests.get(f'{daemon.url}/v1/events', headers={'Authorization': f'Bearer {token}'}, stream=True)
        stack.enter_context(contextlib.closing(answer))
        return answer.status_code

    with gb.running_daemon('--ready', '1', '--token', ','.join(tokens), token=tokens[0]) as daemon, contextlib.ExitStack() as stack:
        assert {follow(daemon, tokens[0], stack) for _ in range(64)} == {200}
        assert follow(daemon, tokens[0], stack) == 503
        assert follow(daemon, tokens[1], stack) == 200
