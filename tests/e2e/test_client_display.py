"""A session's display by the Python client: pictures, windows, input, recordings, the live view."""

import asyncio
import base64
import copy
import io
import json
import pickle
import sys
import urllib.request

import gb
import pytest
from PIL import Image

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import AsyncGlovebox, CodeAction, CodingEnv, Glovebox, NotFound  # noqa: E402

FORM = """
import tkinter as tk
root = tk.Tk()
root.title('Form')
root.geometry('300x200+20+30')
root.configure(bg='#ff0000')
entry = tk.Entry(root)
entry.place(x=10, y=10, width=200, height=30)
root.mainloop()
"""
INSIDE = [150, 55]  # of the entry
RED = 255, 0, 0
WEBM = b'\x1a\x45\xdf\xa3'


@pytest.fixture
def s(daemon):
    with Glovebox(daemon.url) as box, box.session(display={'width': 400, 'height': 300}) as session:
        yield session


def pixel(screenshot):
    """One below the entry."""
    return screenshot.image.convert('RGB').getpixel((40, 200))


def frames_of(data):
    with Image.open(io.BytesIO(data)) as film:
        return film.n_frames


def test_picture_windows_and_input(s):
    o = s.run(FORM, screenshot=True, on_block='leave')
    assert o.status == 'running' and o.screenshot.error is None
    window = s.windows()[0]
    assert (window.title, window.x, window.y, window.width, window.height, window.focused) == ('Form', 20, 30, 300, 200, True)
    assert o.screenshot.windows[0].id == window.id and o.screenshot.since_paint_ms > 0
    assert s.screenshot(window=window.id).image.size == (300, 200)
    assert s.screenshot(scale=0.5, format='jpeg', settle=True).image.size == (200, 150)
    done = s.send_input(actions=[{'action': 'left_click', 'coordinate': INSIDE}, {'action': 'type', 'text': 'Grüße 世界'}], screenshot=True)
    assert len(done.results) == 2 and pixel(done.screenshot) == RED
    gb.wait_until(lambda: s.run('entry.get()').value == 'Grüße 世界', 'the text is typed')
    zoomed = s.send_input('zoom', region=[20, 30, 120, 80])
    assert zoomed.results[0]['screenshot'].image.size == (100, 50)
    closed = s.run('root.destroy()', screenshot={'end': True})
    assert closed.ok and closed.screenshot.end is not None


def test_recordings(s, tmp_path):
    o = s.run(FORM, on_block='leave', record={'fps': 60})
    assert o.status == 'running' and o.recording == 1
    running = s.start_recording(fps=60, max_seconds=600, format='gif')
    assert running.state == 'recording' and running.format == 'gif'
    for count, colour in enumerate(('#00ff00', '#0000ff'), 1):
        s.run(f'root.configure(bg={colour!r})\nroot.update()')
        gb.wait_until(lambda: s.recordings()[-1].frames >= count, f'frame {count} is there')
    stopped = s.stop_recording(running)
    assert stopped.state == 'done' and stopped.frames > 1 and (stopped.width, stopped.height) == (400, 300)
    assert [r.id for r in s.recordings()] == [1, 2] and s.recordings()[1].state == 'done'
    assert frames_of(s.fetch_recording(2, 'apng')) == stopped.frames and s.fetch_recording(stopped).startswith(b'GIF89a')
    s.download_recording(stopped, tmp_path / 'film.png')
    assert frames_of((tmp_path / 'film.png').read_bytes()) == stopped.frames
    s.download_recording(stopped, tmp_path / 'film.webm')
    assert (tmp_path / 'film.webm').read_bytes().startswith(WEBM)
    with pytest.raises(ValueError, match='.webm'):
        s.download_recording(1, tmp_path / 'film')
    s.delete_recording(1)
    assert [r.id for r in s.recordings()] == [2]
    with pytest.raises(NotFound):
        s.fetch_recording(1)


def test_film_of_a_run(daemon, tmp_path):
    with Glovebox(daemon.url) as box:
        o = box.run(FORM, screenshot=True, record=True)
        assert o.ok and o.recording is None and o.film.error is None and o.film.frames > 0
        o.film.save(tmp_path / 'film.png')
        assert frames_of((tmp_path / 'film.png').read_bytes()) == o.film.frames
        assert box.run('1', capture_screenshot=False).film is None


def test_live_view(s):
    s.run(FORM, on_block='leave')
    link, more = s.live_link(), s.live_link(control=True, ttl=60)
    assert not link.control and more.control and link.expires > more.expires
    with urllib.request.urlopen(link.url, timeout=gb.PATIENCE) as page:
        assert page.headers['Content-Type'].startswith('text/html')
    frames = s.live()
    first = next(frames)
    assert (first.x, first.y, first.width, first.height) == (0, 0, 400, 300) and first.png.startswith(b'\x89PNG')
    s.run("root.configure(bg='#0000ff')\nroot.update()")
    changed = next(frames)
    assert (changed.screen_width, changed.screen_height) == (400, 300)
    assert Image.open(io.BytesIO(changed.png)).size == (changed.width, changed.height) and changed.width <= 300
    frames.close()


def test_all_of_it_on_an_event_loop(daemon, tmp_path):
    async def main():
        async with AsyncGlovebox(daemon.url) as box, box.session(display={'width': 400, 'height': 300}) as s:
            running = await s.start_recording()
            o = await s.run(FORM, screenshot=True, on_block='leave')
            assert o.status == 'running' and (await s.windows())[0].title == 'Form'
            assert pixel(await s.screenshot(settle=True)) == RED
            done = await s.send_input('left_click', coordinate=INSIDE, screenshot=True)
            assert pixel(done.screenshot) == RED
            await s.send_input('type', text='ü')
            while (await s.run('entry.get()')).value != 'ü':
                await asyncio.sleep(0.05)
            async for frame in s.live():
                assert frame.width == 400
                break
            assert (await s.live_link(control=True)).control
            film = await s.stop_recording(running)
            assert film.frames > 0 and [r.id for r in await s.recordings()] == [film.id]
            await s.download_recording(film, tmp_path / 'film.apng')
            assert frames_of((tmp_path / 'film.apng').read_bytes()) == film.frames
            await s.delete_recording(film)
            assert await s.recordings() == []
            again = await s.run('root.destroy()', record=True)
            assert again.recording == film.id + 1

    asyncio.run(main())


# ---- CodingEnv -----------------------------------------------------------------------------

LABEL = "import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text='Hello', padx=40, pady=40, bg='#ff0000').pack()"


def test_a_picture_is_text_with_attributes(daemon):
    with CodingEnv(daemon.url) as env:
        env.reset()
        env.step('x = 1')
        seen = env.step(CodeAction(LABEL, capture_screenshot=True, render_timeout=2)).observation
        picture = seen.screenshot
        assert isinstance(picture, str) and base64.b64decode(picture) == picture.data and picture.data.startswith(b'\x89PNG')
        assert picture.settled and picture.format == 'png' and picture.width == 1024 and picture.note is None
        assert json.loads(json.dumps({'screenshot': picture}))['screenshot'] == picture
        again = pickle.loads(pickle.dumps(picture))
        assert again == picture and again.windows[0].title == picture.windows[0].title == 'tk' and copy.deepcopy(picture).data == picture.data
        assert (255, 0, 0) in {colour for _, colour in picture.image.convert('RGB').getcolors(1 << 24)}
        assert seen.metadata == {}


def test_what_the_server_says_beside_the_observation(daemon):
    with CodingEnv(daemon.url) as env:
        env.reset()
        empty = env.step(CodeAction('1', True)).observation
        assert 'No window' in empty.metadata['screenshot_note'] and 'No window' in empty.screenshot.note
        assert env.step('final_answer(42)').observation.metadata['final_answer'] == 42
        env.reset(display=False)
        without = env.step(CodeAction('1', True)).observation
        assert without.screenshot is None and 'display' in without.metadata['screenshot_error']


def test_a_session_says_why_there_is_no_picture(s):
    o = s.run('1', screenshot={'window': 99})
    assert not o.screenshot and o.screenshot == '' and o.screenshot.error['code'] == 'window_not_found' and o.screenshot.data == b''
