"""The live view: what its page is sent."""

import io
import struct

import pytest
import websockets
from PIL import Image

import gb
from screens import RED_WINDOW as WINDOW


class View(gb.Socket):
    """A page that shows what it is sent."""

    def __init__(self, session):
        super().__init__(f'{session.api.url}{session.path}/live/ws'.replace('http:', 'ws:'))
        self.canvas = None
        self.parts = []

    def ask(self):
        self.send_text('next')
        return self._wait(self.ws.recv())

    def next(self):
        data = self.ask()
        x, y, width, height, full_width, full_height = struct.unpack_from('<6H', data)
        self.canvas = self.canvas or Image.new('RGB', (full_width, full_height))
        part = Image.open(io.BytesIO(data[12:])).convert('RGB')
        assert part.size == (width, height)
        self.canvas.paste(part, (x, y))
        self.parts.append((x, y, width, height))

    def until(self, colour):
        while self.canvas is None or self.canvas.getpixel((200, 100)) != colour:
            self.next()


def test_frames_bring_what_changed(api):
    session = api.session(display=True)
    session.execute(WINDOW).ok()
    view = View(session)
    view.until((255, 0, 0))
    assert view.parts[0] == (0, 0, 1024, 768)
    cell = session.in_background("frame['bg'] = '#00ff00'\nroot.update()")
    view.until((0, 255, 0))
    cell.result().ok()
    assert view.parts[-1] == (100, 50, 200, 100)
    picture = Image.open(io.BytesIO(api.get(f'{session.path}/screenshot').content)).convert('RGB')
    assert picture.tobytes() == view.canvas.tobytes()
    view.close()


def test_view_ends_with_its_session(api):
    session = api.session(display=True)
    session.execute(WINDOW).ok()
    view = View(session)
    view.next()
    session.delete()
    with pytest.raises(websockets.ConnectionClosed) as closed:
        view.ask()
    assert closed.value.rcvd.code == 4404
    view.close()


def test_page(api, session):
    screen = api.session(display=True)
    page = api.get(f'{screen.path}/live?control=1')
    assert page.status_code == 200 and page.headers['Content-Type'].startswith('text/html')
    assert "default-src 'none'" in page.headers['Content-Security-Policy']
    assert '<canvas' in page.text and 'http' not in page.text.replace('^http', '')
    assert api.get(f'{screen.path}/live/ws').status_code == 426
    assert api.get(f'{session.path}/live').json()['code'] == 'no_display'


def test_links_open_one_view_and_nothing_else():
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--token', 'a-token-of-the-tests', token='a-token-of-the-tests') as daemon:
        with daemon.api() as api, gb.Api(daemon.url) as stranger:
            session, other = api.session(display=True), api.session(display=True)
            session.execute(WINDOW).ok()
            assert stranger.get(f'{session.path}/live').status_code == 401
            shown = api.post(f'{session.path}/live', json={}).json()
            key = shown['url'].partition('?')[2]
            assert stranger.get(shown['url']).status_code == 200
            assert stranger.get(f'{session.path}/live/ws?{key}').status_code == 426, 'it could be a WebSocket'
            click = {'action': 'left_click', 'coordinate': [1, 1]}
            gb.assert_problem(stranger.post(f'{session.path}/input?{key}', json=click), 403, 'view_only', 'control')
            gb.assert_problem(stranger.get(f'{shown["url"]}&control=1'), 403, 'view_only', 'control')
            for path in (f'{other.path}/live?{key}', f'{session.path}/live?key=nonsense'):
                gb.assert_problem(stranger.get(path), 403, 'link_expired', 'POST')
            assert stranger.get(f'{session.path}?{key}').status_code == 401, 'the view alone'
            assert stranger.post(f'{session.path}/live?{key}', json={}).status_code == 401, 'no link makes another'
            taken = api.post(f'{session.path}/live', json={'control': True}).json()
            key = taken['url'].partition('?')[2].partition('&')[0]
            assert stranger.get(taken['url']).status_code == 200
            assert stranger.post(f'{session.path}/input?{key}', json=click).status_code == 200
            short = api.post(f'{session.path}/live', json={'ttl_s': 1}).json()
            gb.wait_until(lambda: stranger.get(short['url']).status_code == 403, 'the link has expired')
            assert 'key=' in daemon.log() and key.partition('=')[2] not in daemon.log()


def test_server_whose_views_only_show():
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--no-live-control') as daemon, daemon.api() as api:
        session = api.session(display=True)
        assert api.get(f'{session.path}/live').status_code == 200
        gb.assert_problem(api.get(f'{session.path}/live?control=1'), 403, 'view_only', '--live-control')
        gb.assert_problem(api.post(f'{session.path}/live', json={'control': True}), 403, 'view_only', '--live-control')


def test_a_view_ends_when_its_link_expires():
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--token', 'a-token-of-the-tests', token='a-token-of-the-tests') as daemon:
        with daemon.api() as api:
            session = api.session(display=True)
            session.execute(WINDOW).ok()
            for ttl in (2, 3600):
                link = api.post(f'{session.path}/live', json={'ttl_s': ttl}).json()
                key = link['url'].partition('?')[2]
                with gb.Socket(f'{daemon.url}{session.path}/live/ws?{key}'.replace('http:', 'ws:')) as view:
                    view.send_text('next')
                    assert view._wait(view.ws.recv())
                    if ttl == 2:
                        with pytest.raises(websockets.ConnectionClosed) as closed:
                            view._wait(view.ws.recv())
                        assert closed.value.rcvd.code == 4403


def test_links_of_one_token_leave_those_of_others():
    tokens = ['a-token-of-the-tests', 'b-token-of-the-tests']
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--token', tokens[0], '--token', tokens[1], token=tokens[0]) as daemon:
        with daemon.api() as api, gb.Api(daemon.url, token=tokens[1]) as other, gb.Api(daemon.url) as stranger:
            mine, theirs = api.session(display=True), other.session(display=True)
            kept = api.post(f'{mine.path}/live', json={'ttl_s': 600}).json()['url']
            links = [other.post(f'{theirs.path}/live', json={}).json()['url'] for _ in range(300)]
            assert stranger.get(kept).status_code == 200
            assert stranger.get(links[-1]).status_code == 200
            assert sum(stranger.get(url).status_code == 200 for url in links) == 64
