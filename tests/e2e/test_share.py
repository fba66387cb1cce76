"""A link for reading: it shows one session, changes nothing, and expires."""

import gb
import pytest
import requests

TOKENS = ('a-token-of-the-owner', 'a-token-of-somebody-else')


@pytest.fixture(scope='module')
def owner():
    tokens = [part for token in TOKENS for part in ('--token', token)]
    with gb.running_daemon('--ready', '1', *tokens, token=TOKENS[0]) as daemon, gb.Api(daemon.url, TOKENS[0]) as api:
        yield api


def ask(server, share, method, path, **more):
    headers = {'Authorization': f'Share {share["key"]}'} if share else {}
    return requests.request(method, server.url + path, headers=headers, timeout=60, **more)


@pytest.fixture
def shared(owner):
    session = owner.session(name='shown')
    session.execute('x = 41\nopen("a.txt", "w").write("a")\nprint("seen")').ok()
    answer = owner.post(f'/v1/sessions/{session.id}/share', json={'ttl_s': 600})
    assert answer.status_code == 201, answer.text
    share = answer.json()
    assert share['url'] == f'/#/shared/{session.id}/{share["key"]}'
    yield session, share
    session.delete()


READABLE = ['', '/cells', '/cells/1', '/export', '/variables', '/files', '/files/a.txt', '/archive', '/logs', '/checkpoints', '/network']
CHANGES = [
    ('POST', '/execute', {'code': 'x = 0'}),
    ('PATCH', '', {'name': 'mine'}),
    ('DELETE', '', None),
    ('POST', '/fork', {}),
    ('POST', '/rollback', {'undo': True}),
    ('POST', '/reset', {}),
    ('POST', '/interrupt', {}),
    ('POST', '/checkpoints', {}),
    ('PUT', '/files/b.txt', {}),
    ('DELETE', '/files/a.txt', None),
    ('POST', '/share', {}),
    ('POST', '/live', {'control': True}),
    ('POST', '/complete', {'code': 'x'}),
    ('POST', '/processes', {'command': ['true']}),
]


def test_a_link_reads_its_session(owner, shared):
    session, share = shared
    for part in READABLE:
        answer = ask(owner, share, 'GET', f'/v1/sessions/{session.id}{part}')
        assert answer.status_code == 200, (part, answer.text)
    assert ask(owner, share, 'GET', f'/v1/sessions/{session.id}/cells').json()['cells'][0]['stdout'] == 'seen\n'


@pytest.mark.parametrize('server', ['owner', 'api'])
def test_a_link_changes_nothing(request, server):
    """Also where no token is asked for (api): who opens the link there must not be able to do more than the page offers."""
    server = request.getfixturevalue(server)
    session = server.session()
    share = server.post(f'/v1/sessions/{session.id}/share', json={}).json()
    for method, part, body in CHANGES:
        answer = ask(server, share, method, f'/v1/sessions/{session.id}{part}', json=body)
        assert answer.status_code == 403 and answer.json()['code'] == 'read_only', (method, part, answer.text)
    for path in ('/v1/sessions', '/v1/node', '/metrics'):
        assert ask(server, share, 'GET', path).status_code == 403, path
    assert ask(server, share, 'POST', '/v1/run', json={'code': '1'}).json()['code'] == 'read_only'
    assert ask(server, share, 'GET', f'/v1/sessions/{session.id}/files?watch=true').status_code == 403
    session.delete()


def test_a_link_is_for_one_session(owner, shared):
    session, share = shared
    other = owner.session()
    answer = ask(owner, share, 'GET', f'/v1/sessions/{other.id}')
    assert answer.status_code == 403 and answer.json()['code'] == 'link_expired'
    assert ask(owner, share, 'GET', f'/v1/events?session={other.id}').status_code == 403
    assert ask(owner, share, 'GET', '/v1/events').status_code == 403
    assert ask(owner, {'key': 'a' * 32}, 'GET', f'/v1/sessions/{session.id}').status_code == 403
    assert ask(owner, None, 'GET', f'/v1/sessions/{session.id}').status_code == 401
    stranger = requests.post(
        f'{owner.url}/v1/sessions/{session.id}/share', json={}, headers={'Authorization': f'Bearer {TOKENS[1]}'}, timeout=60
    )
    assert stranger.status_code == 404
    other.delete()


def test_a_live_link_does_not_read(owner):
    session = owner.session(display=True)
    link = owner.post(f'/v1/sessions/{session.id}/live', json={}).json()
    key = link['url'].partition('key=')[2]
    assert ask(owner, {'key': key}, 'GET', f'/v1/sessions/{session.id}/cells').status_code == 403
    share = owner.post(f'/v1/sessions/{session.id}/share', json={}).json()
    assert requests.get(f'{owner.url}/v1/sessions/{session.id}/live?key={share["key"]}', timeout=60).status_code == 200
    assert requests.get(f'{owner.url}/v1/sessions/{session.id}/live?control=1&key={share["key"]}', timeout=60).status_code == 403
    session.delete()


def test_events_of_the_session_alone(owner, shared):
    session, share = shared
    other = owner.session()
    # the link counts, not what else the query says
    stream = ask(owner, share, 'GET', f'/v1/events?session={session.id}&session={other.id}', stream=True)
    lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
    other.execute('print("of another")').ok()
    session.execute('print("of this one")').ok()
    seen = []
    for line in lines:
        seen.append(line)
        if '"type":"done"' in line.replace(' ', ''):
            break
    stream.close()
    assert any('of this one' in line for line in seen) and not any(other.id in line for line in seen)
    other.delete()


def test_a_link_expires(owner):
    session = owner.session()
    share = owner.post(f'/v1/sessions/{session.id}/share', json={'ttl_s': 1}).json()
    stream = ask(owner, share, 'GET', f'/v1/events?session={session.id}', stream=True)
    gb.wait_until(lambda: ask(owner, share, 'GET', f'/v1/sessions/{session.id}').status_code == 403, 'the link expires')
    session.execute('print("too late")').ok()
    text = stream.content  # to its end: the server closes the stream
    assert b'hello' in text and b'too late' not in text
    session.delete()
