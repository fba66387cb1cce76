"""Recordings of a session's screen, frame by frame."""

import base64
import io
import json
import subprocess

import pytest
from PIL import Image, ImageSequence

import gb
from screens import RED_WINDOW as WINDOW

# Each colour is there long enough to be a frame of its own: until the recording has it.
COLOURS = ['#ff0000', '#00ff00', '#0000ff', '#ffff00']


@pytest.fixture
def screen(api):
    return api.session(display=True)


def record(screen, **body):
    return screen.api.post(f'{screen.path}/recording', json=body)


def recordings(screen):
    return screen.api.get(f'{screen.path}/recording').json()['recordings']


def frames(screen, number):
    answer = screen.api.get(f'{screen.path}/recording/{number}')
    assert answer.status_code == 200, answer.text
    assert answer.headers['Content-Type'] == 'image/apng'
    film = Image.open(io.BytesIO(answer.content))
    return [frame.convert('RGB') for frame in ImageSequence.Iterator(film)], film


def colours_of(pictures):
    """Of the middle of the window, without repetitions."""
    found = []
    for picture in pictures:
        colour = '#%02x%02x%02x' % picture.getpixel((200, 100))
        if not found or found[-1] != colour:
            found.append(colour)
    return found


def decoded(film):
    """Its frames, by ffmpeg: other people's decoder. (It reads animated PNGs from files alone.)"""
    done = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', 'pipe:0', '-fps_mode', 'passthrough', '-f', 'image2pipe', '-c:v', 'ppm', 'pipe:1'],
        input=film, capture_output=True, timeout=gb.PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    size = 1024 * 768 * 3 + len(b'P6\n1024 768\n255\n')
    return [Image.open(io.BytesIO(done.stdout[at : at + size])) for at in range(0, len(done.stdout), size)]


def near(pixel, colour):
    """Films lose a little."""
    return all(abs(have - int(colour[at : at + 2], 16)) < 24 for have, at in zip(pixel, (1, 3, 5)))


def shows(film, colours):
    """The middle of its window has these colours, one after another."""
    left = list(colours)
    for frame in decoded(film):
        if left and near(frame.getpixel((200, 100)), left[0]):
            left.pop(0)
    return not left


def duration(film):
    done = subprocess.run(
        ['ffprobe', '-v', 'error', '-show_entries', 'format=duration', '-of', 'json', 'pipe:0'],
        input=film, capture_output=True, timeout=gb.PATIENCE,
    )  # fmt: skip
    return float(json.loads(done.stdout)['format']['duration'])


def test_other_formats(screen):
    screen.execute(WINDOW).ok()
    number = record(screen, action='start', fps=60).json()['id']
    for count, colour in enumerate(COLOURS, 1):
        screen.execute(f"frame['bg'] = {colour!r}\nroot.update()").ok()
        gb.wait_until(lambda: recordings(screen)[0]['frames'] >= count, f'frame {count} is there')
    stopped = record(screen, action='stop', format='webm').json()
    assert (stopped['state'], stopped['format']) == ('done', 'webm'), stopped
    path = f'{screen.path}/recording/{number}'
    for name, kind, magic in (
        (None, 'video/webm', b'\x1aE\xdf\xa3'),
        ('mp4', 'video/mp4', b'ftyp'),
        ('gif', 'image/gif', b'GIF89a'),
    ):
        answer = screen.api.get(path, params={'format': name} if name else {})
        assert answer.status_code == 200 and answer.headers['Content-Type'] == kind, answer.text
        assert magic in answer.content[:16]
        assert shows(answer.content, COLOURS[1:]), name
        if name != 'mp4':  # of which ffprobe cannot tell it from a pipe
            assert abs(duration(answer.content) - stopped['duration_ms'] / 1000) < 0.3, name
    assert screen.api.get(path, params={'format': 'apng'}).headers['Content-Type'] == 'image/apng'
    assert screen.api.get(path, params={'format': 'avi'}).status_code == 400


def test_film_of_a_run(api):
    code = WINDOW + "for colour in %r:\n    frame['bg'] = colour\n    root.update()\n    time.sleep(1)\n" % COLOURS
    seen = api.run(code, record={'format': 'webm', 'fps': 30}).ok()
    assert seen['film']['format'] == 'webm' and seen['film']['error'] is None and seen['film']['frames'] >= 4
    assert shows(base64.b64decode(seen['film']['data']), COLOURS[1:])
    nothing = api.run('print(1)', record=True).ok()
    assert nothing.stdout == '1\n' and nothing['film']['data'] is None
    assert nothing['film']['error']['code'] == 'nothing_recorded' and nothing['film']['error']['remediation']
    assert api.run('1').ok()['film'] is None


def test_machine_without_ffmpeg(tmp_path):
    hidden = ('unshare', '--mount', 'sh', '-c', 'mount --bind /dev/null /usr/bin/ffmpeg && exec "$@"', 'sh')
    with gb.running_daemon('--preload', 'json', '--ready', '1', before=hidden) as daemon, daemon.api() as api:
        screen = api.session(display=True)
        refused = screen.post_code('1', record={'format': 'mp4'})
        gb.assert_problem(refused, 501, 'ffmpeg_missing', 'apt-get install ffmpeg')
        screen.execute(WINDOW, record=True).ok()
        assert len(frames(screen, 1)[0]) >= 1
        gb.assert_problem(screen.api.get(f'{screen.path}/recording/1?format=gif'), 501, 'ffmpeg_missing', 'ffmpeg')


def test_start_paint_stop_fetch(screen):
    screen.execute(WINDOW).ok()
    started = record(screen, action='start', fps=60)
    assert started.status_code == 200 and started.json()['state'] == 'recording', started.text
    number = started.json()['id']
    gb.wait_until(lambda: recordings(screen)[0]['frames'] == 1, 'the first frame is there')
    for count, colour in enumerate(COLOURS[1:], 2):
        screen.execute(f"frame['bg'] = {colour!r}\nroot.update()").ok()
        gb.wait_until(lambda: recordings(screen)[0]['frames'] >= count, f'frame {count} is there')
    assert screen.api.get(f'{screen.path}/recording/{number}').json()['code'] == 'recording_running'
    stopped = record(screen, action='stop').json()
    assert (stopped['state'], stopped['ended']) == ('done', 'stopped') and stopped['frames'] >= 4
    pictures, film = frames(screen, number)
    assert len(pictures) == stopped['frames'] == film.n_frames
    assert {picture.size for picture in pictures} == {(1024, 768)}
    assert colours_of(pictures) == COLOURS
    assert screen.api.delete(f'{screen.path}/recording/{number}').status_code == 204
    assert recordings(screen) == []


def test_recording_of_one_cell(screen):
    code = WINDOW + "for colour in %r:\n    frame['bg'] = colour\n    root.update()\n    time.sleep(1)\n" % COLOURS
    seen = screen.execute(code, record={'fps': 30}).ok()
    pictures, film = frames(screen, seen['recording'])
    shown = colours_of(pictures)
    assert shown[-1] == '#ffff00' and set(COLOURS) <= set(shown)
    (report,) = recordings(screen)
    assert report['ended'] == 'cell' and report['bytes'] > 1000 and report['width'] == 1024
    assert [cell['cell'] for cell in report['cells']] == [seen['cell']]
    assert sum(cell['frames'] for cell in report['cells']) <= report['frames'] == film.n_frames
    assert screen.execute('1').ok()['recording'] is None


def test_still_screen_makes_one_frame(screen):
    screen.execute(WINDOW).ok()
    record(screen, action='start')
    gb.wait_until(lambda: recordings(screen)[0]['frames'] == 1, 'the first frame is there')
    screen.execute('sum(range(10000))').ok()
    assert record(screen, action='stop').json()['frames'] == 1


def test_recording_ends_by_itself(screen):
    screen.execute(WINDOW).ok()
    record(screen, action='start', max_seconds=0.2)
    gb.wait_until(lambda: recordings(screen)[0]['state'] == 'done', 'its time is over')
    assert recordings(screen)[0]['ended'] == 'max_seconds'
    assert len(frames(screen, 1)[0]) == 1


def test_what_cannot_be_recorded(screen, session):
    answer = record(session, action='start')
    assert answer.status_code == 409 and answer.json()['code'] == 'no_display'
    assert session.post_code('1', record=True).json()['code'] == 'no_display'
    assert record(screen, action='stop').json()['code'] == 'recording_not_found'
    assert record(screen, action='pause').status_code == 400
    assert screen.api.get(f'{screen.path}/recording/7').status_code == 404
    number = record(screen, action='start').json()['id']
    assert record(screen, action='stop', id=number).json()['frames'] == 0
    assert screen.api.get(f'{screen.path}/recording/{number}').json()['code'] == 'nothing_recorded'


def test_run_makes_a_film(tmp_path):
    (tmp_path / 'a.py').write_text(WINDOW + "time.sleep(0.3)\nframe['bg'] = '#00ff00'\nroot.update()\n")
    film = tmp_path / 'film.apng'
    done = gb.cli('run', '--record', film, tmp_path / 'a.py')
    assert done.returncode == 0, done.stderr
    pictures = [frame.convert('RGB') for frame in ImageSequence.Iterator(Image.open(film))]
    assert colours_of(pictures)[-1] == '#00ff00'
    done = gb.cli('run', '--record', tmp_path / 'film.webm', tmp_path / 'a.py')
    assert done.returncode == 0, done.stderr
    assert near(decoded((tmp_path / 'film.webm').read_bytes())[-1].getpixel((200, 100)), '#00ff00')
    refused = gb.cli('run', '--record', tmp_path / 'film.avi', tmp_path / 'a.py')
    assert refused.returncode == 2 and '.webm' in refused.stderr
    empty = gb.cli('run', '--record', film, '-c', '1')
    assert empty.returncode == 1 and 'no window' in empty.stderr
