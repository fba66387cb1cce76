"""Options of pictures, other sizes and kinds of displays, and what happens when things go wrong."""

import os
import signal

import pytest

import gb
from screens import box_of, colours, decode, image, only_window

RED, BLUE = (255, 0, 0), (0, 0, 255)
WINDOW = """
import tkinter as tk
root = tk.Tk()
root.title('below')
root.geometry('200x100+50+60')
tk.Frame(root, bg='#ff0000', width=200, height=100).place(x=0, y=0)
root.update()
"""
COVER = """
top = tk.Toplevel(root)
top.title('above')
top.geometry('200x100+50+60')
tk.Frame(top, bg='#0000ff', width=200, height=100).place(x=0, y=0)
root.update()
"""
NOBODY = 65534


@pytest.fixture
def screen(api):
    return api.session(display={'width': 400, 'height': 300})


def shot(session, **query):
    return session.api.get(f'{session.path}/screenshot', params=query)


def test_size_region_scale_format(screen):
    assert screen.info['display'] == {'width': 400, 'height': 300, 'depth': 24, 'dpi': 96, 'up': False}
    seen = screen.execute(WINDOW, screenshot={'region': {'x': 50, 'y': 60, 'width': 200, 'height': 100}}).ok()
    assert image(seen.screenshot).size == (200, 100) and colours(image(seen.screenshot)) == {RED: 20000}
    assert screen.get()['display']['up']
    assert decode(shot(screen).content).size == (400, 300)
    assert decode(shot(screen, scale=0.5).content).size == (200, 150)
    jpeg = shot(screen, format='jpeg', quality=95)
    assert jpeg.headers['Content-Type'] == 'image/jpeg' and jpeg.content[:3] == b'\xff\xd8\xff'
    red = decode(jpeg.content).getpixel((150, 110))
    assert red[0] > 240 and red[1] < 20 and red[2] < 20
    assert shot(screen, x=399, y=299, width=50, height=50).status_code == 200
    outside = shot(screen, x=400, y=0, width=5, height=5)
    assert outside.status_code == 400 and outside.json()['code'] == 'region_outside'


def test_window_that_another_covers(screen):
    screen.execute(WINDOW + COVER).ok()

    def both():
        windows = {w['title']: w for w in screen.api.get(f'{screen.path}/windows').json()['windows']}
        return set(windows) == {'above', 'below'} and windows['above']['focused'] and windows

    windows = gb.wait_until(both, 'the upper one has the focus')
    assert not windows['below']['focused']
    assert colours(decode(shot(screen).content), box_of(windows['below'])) == {BLUE: 20000}
    assert colours(decode(shot(screen, window=windows['below']['id']).content)) == {RED: 20000}
    assert colours(decode(shot(screen, active_window='true').content)) == {BLUE: 20000}
    missing = shot(screen, window=99)
    assert missing.status_code == 404 and missing.json()['code'] == 'window_not_found'
    assert 'windows' in missing.json()['remediation']


def test_picture_at_the_end_too(screen):
    code = WINDOW + "import time\ntime.sleep(0.3)\nroot.title('later')\nroot.update()\nraise ValueError('after the window')"
    seen = screen.execute(code, screenshot={'end': True}, on_block='wait')
    assert seen.status == 'error' and seen.error['type'] == 'ValueError'
    assert only_window(seen.screenshot['end'])['title'] == 'later'
    assert colours(image(seen.screenshot)).get(RED) == colours(image(seen.screenshot['end'])).get(RED) == 20000


def test_render_timeout_counts_from_the_end_of_the_code(screen):
    seen = screen.execute('import time\ntime.sleep(1)\n' + WINDOW, screenshot={'render_timeout': 0.1}).ok()
    assert only_window(seen.screenshot) and colours(image(seen.screenshot)).get(RED) == 20000


def test_what_keeps_changing_is_not_settled(screen):
    code = WINDOW + "def tick(n=0):\n    root.configure(bg='#%06x' % n)\n    root.after(15, tick, n + 1)\nroot.geometry('300x200')\ntick()\nroot.mainloop()"
    seen = screen.execute(code, screenshot={'wait': {'max_ms': 400}}).ok()
    assert not seen.screenshot['settled'] and 'still changing' in seen.screenshot['note']


def test_code_that_ignores_its_close_button_is_interrupted(screen):
    code = WINDOW + "root.protocol('WM_DELETE_WINDOW', lambda: None)\nroot.mainloop()"
    seen = screen.execute(code, capture_screenshot=True)
    assert seen.status == 'interrupted' and seen.error['code'] == 'window_stayed_open' and 'on_block' in seen.error['remediation']
    assert colours(image(seen.screenshot)).get(RED) == 20000
    assert screen.value('6 * 7') == '42'


def test_code_that_ignores_everything_is_killed_and_told_why(screen):
    code = WINDOW + """
root.protocol('WM_DELETE_WINDOW', lambda: None)
while True:
    try:
        root.mainloop()
    except KeyboardInterrupt:
        pass
"""
    seen = screen.execute(code, capture_screenshot=True)
    assert seen.status == 'interrupted' and seen.error['code'] == 'window_stayed_open' and 'killed' in seen.error['message']
    assert colours(image(seen.screenshot)).get(RED) == 20000
    assert screen.value('6 * 7') == '42'


def test_figures_are_windows_when_shown(science_daemon):
    with science_daemon.api() as api:
        session = api.session(display=True)
        hidden = session.execute('import matplotlib.pyplot as plt\nplt.plot([1, 2])', capture_screenshot=True).ok()
        assert hidden.displays and only_window(hidden.screenshot)['class'] == 'Matplotlib'
        shown = session.execute("plt.figure('shown')\nplt.show(block=False)\nplt.gcf().canvas.flush_events()", capture_screenshot=True).ok()
        assert [w['title'] for w in shown.screenshot['windows']] == ['shown'] and not shown.displays
        assert session.value('len(plt.get_fignums())') == '1'


def test_reset_and_a_server_that_dies(screen):
    screen.execute(WINDOW, capture_screenshot=True).ok()
    screen.reset()
    seen = screen.execute(WINDOW, capture_screenshot=True).ok()
    assert colours(image(seen.screenshot)).get(RED) == 20000
    # The X server is a process of the session: its code may kill it. Tk ends its process then, so another one does it.
    kill = "import os, signal\nfor p in os.listdir('/proc'):\n    if p.isdigit() and open(f'/proc/{p}/comm').read() == 'Xvfb\\n':\n        os.kill(int(p), signal.SIGKILL)"
    screen.reset()
    screen.execute('pass', capture_screenshot=True).ok()
    screen.execute(kill).ok()
    seen = gb.wait_until(lambda: shot(screen).status_code == 200, 'there is a new X server')
    assert colours(image(screen.execute(WINDOW, capture_screenshot=True).ok().screenshot)).get(RED) == 20000


def test_one_shot(api):
    seen = api.run(WINDOW + "root.mainloop()\nprint('x')", capture_screenshot=True).ok()
    assert seen.stdout == 'x\n' and colours(image(seen.screenshot)).get(RED) == 20000


@pytest.mark.parametrize('kind', ['plain', 'ready'])
@pytest.mark.parametrize('user', [None, NOBODY], ids=['root', 'ordinary user'])
def test_kinds_of_servers_and_users(kind, user):
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--displays', kind, *(['--waive', 'cgroup'] if user else []), user=user) as daemon, daemon.api() as api:
        seen = api.session(display=True).execute(WINDOW + 'root.mainloop()', capture_screenshot=True).ok()
        assert colours(image(seen.screenshot)).get(RED) == 20000
        family = gb.descendants(daemon.pid)
        names = [gb.command_of(pid) for pid, _ in family]
        assert names.count('Xvfb') == (1 if kind == 'plain' else 2)


def test_everything_goes_with_the_session(daemon, api):
    session = api.session(display=True)
    session.execute(WINDOW, capture_screenshot=True).ok()
    space = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')

    def inside():
        found = []
        for pid in gb.processes():
            try:
                if os.readlink(f'/proc/{pid}/ns/pid') == space:
                    found.append(gb.command_of(pid))
            except OSError:
                pass
        return sorted(found)

    assert {'Xvfb', 'glovebox-screen', 'glovebox-init', 'python3'} <= set(inside())
    session.delete()
    gb.wait_until(lambda: not inside(), 'nothing of the session is left')


def test_command_line(tmp_path):
    (tmp_path / 'window.py').write_text(WINDOW + "root.mainloop()\nprint('after')")
    done = gb.cli('run', '--display-size', '400x300', '--screenshot', 'out.png', 'window.py', cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, 'after\n'), done.stderr
    picture = decode((tmp_path / 'out.png').read_bytes())
    assert picture.size == (400, 300) and colours(picture).get(RED) == 20000
    assert gb.cli('run', '--screenshot', 'out.gif', '-c', '1').returncode == 2
    assert 'WIDTHxHEIGHT' in gb.cli('run', '--display-size', 'big', '-c', '1').stderr


def test_a_large_picture_comes_whole(api):
    """Far more than one piece of an answer: noise does not compress."""
    code = (
        'import os\nimport tkinter as tk\nfrom PIL import Image, ImageTk\nroot = tk.Tk()\nroot.geometry("600x400+0+0")\n'
        'photo = ImageTk.PhotoImage(Image.frombytes("RGB", (600, 400), os.urandom(720000)))\ntk.Label(root, image=photo, bd=0).pack()\nroot.update()'
    )
    seen = api.session(display=True).execute(code, capture_screenshot=True).ok()
    assert len(colours(image(seen.screenshot))) > 1000 and len(seen.screenshot['data']) > 500_000
    assert len(api.run(code, display=True, capture_screenshot=True).ok().screenshot['data']) > 500_000
    step = api.post('/step', json={'action': {'code': code, 'capture_screenshot': True}}).json()
    assert api.get('/health').status_code == 200, step
