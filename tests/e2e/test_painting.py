"""A picture is never black because the code ended: windows are painted at the end of a cell whose picture is wanted."""

import time

import pytest

import gb
from screens import colours, decode, image

YELLOW, GREEN, RED, LINE = (255, 243, 176), (0, 255, 0), (255, 0, 0), (31, 119, 180)

TK = """
import tkinter as tk
root = tk.Tk()
label = tk.Label(root, text='Hello there', padx=40, pady=40, bg='#fff3b0')
label.pack()
"""
PLOT = 'import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\n'
TURTLE = """
import turtle
turtle.speed(0)
turtle.fillcolor('#ff0000')
turtle.begin_fill()
for _ in range(4):
    turtle.forward(100)
    turtle.right(90)
turtle.end_fill()
"""
PYGAME = """
import pygame
screen = pygame.display.set_mode((300, 200))
screen.fill((0, 128, 255))
pygame.draw.circle(screen, (255, 0, 0), (150, 100), 50)
pygame.display.flip()
"""
QT = """
from PyQt5.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel('Hello')
label.setStyleSheet('background: #ff0000')
label.resize(200, 100)
label.show()
"""
GTK = """
import gi
gi.require_version('Gtk', '3.0')
from gi.repository import Gtk
window = Gtk.Window()
window.set_default_size(200, 100)
style = Gtk.CssProvider()
style.load_from_data(b'window { background: #ff0000; }')
window.get_style_context().add_provider(style, 800)
window.add(Gtk.Label(label='Hello'))
window.show_all()
"""
PYGLET = """
import pyglet
window = pyglet.window.Window(200, 100)
@window.event
def on_draw():
    pyglet.gl.glClearColor(1, 0, 0, 1)
    window.clear()
"""

# name: code that ends without a main loop, a colour of its window, the least number of its pixels
CASES = {
    'tk': (TK, YELLOW, 5000),
    'tk after an error': (TK + '1 / 0', YELLOW, 5000),
    'tk with two roots': (TK + "other = tk.Tk()\nother.geometry('100x100+10+10')\nother['bg'] = '#00ff00'", GREEN, 5000),
    'tk changed at the end': (TK + "root.update()\nimport time\ntime.sleep(0.5)\nlabel['bg'] = '#00ff00'", GREEN, 5000),
    'plot': (PLOT, LINE, 200),
    'plot after an error': (PLOT + "raise ValueError('x')", LINE, 200),
    'draw and pause': (PLOT + 'plt.draw()\nplt.pause(0.001)', LINE, 200),
    'show without blocking': (PLOT + 'plt.show(block=False)', LINE, 200),
    'show that blocks': (PLOT + 'plt.show()', LINE, 200),
    'interactive': ('import matplotlib.pyplot as plt\nplt.ion()\n' + PLOT, LINE, 200),
    'turtle': (TURTLE, RED, 5000),
    'pygame': (PYGAME, RED, 5000),
    'qt': (QT, RED, 5000),
    'gtk': (GTK, RED, 5000),
    'pyglet': (PYGLET, RED, 5000),
}


@pytest.fixture
def screen(api):
    return api.session(display=True)


def near(picture, colour):
    """How many pixels have the colour, or almost."""
    return sum(n for c, n in colours(picture).items() if all(abs(a - b) <= 3 for a, b in zip(c, colour)))


def check(screenshot, colour, least):
    assert near(image(screenshot), colour) >= least, screenshot['note']
    assert screenshot['settled'] and screenshot['windows']


@pytest.mark.parametrize('name', CASES)
def test_code_that_ends_is_painted(screen, name):
    code, colour, least = CASES[name]
    seen = screen.execute(code, capture_screenshot=True)
    assert seen.status == ('error' if 'error' in name else 'ok'), seen.error
    check(seen.screenshot, colour, least)


@pytest.mark.parametrize('name', CASES)
def test_a_one_shot_lives_until_its_picture_is_taken(api, name):
    code, colour, least = CASES[name]
    check(api.run(code, capture_screenshot=True).screenshot, colour, least)


@pytest.mark.parametrize('profile', ['smolagents', 'restricted'])
@pytest.mark.parametrize('name', ['tk', 'plot', 'draw and pause', 'show without blocking'])
def test_profiles(api, profile, name):
    code, colour, least = CASES[name]
    screen = api.session(display=True, profile=profile, additional_imports=['tkinter', 'matplotlib', 'matplotlib.pyplot'])
    check(screen.execute(code, capture_screenshot=True).ok().screenshot, colour, least)


def test_tinyagent(api):
    screen = api.session(display=True, profile='tinyagent', additional_imports=['tkinter'])
    check(screen.execute(TK, capture_screenshot=True).ok().screenshot, YELLOW, 5000)


@pytest.mark.parametrize('name', ['tk', 'plot', 'pygame'])
def test_command_line(name, tmp_path):
    code, colour, least = CASES[name]
    (tmp_path / 'code.py').write_text(code)
    done = gb.cli('run', '--screenshot', tmp_path / 'out.png', '--render-timeout', 2, tmp_path / 'code.py')
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert near(decode((tmp_path / 'out.png').read_bytes()), colour) >= least


def test_socket(screen):
    with screen.socket() as socket:
        done = socket.execute(TK, capture_screenshot=True, render_timeout=1)[-1]
    check(done['observation']['screenshot'], YELLOW, 5000)


def test_a_cell_that_reached_its_time_limit(screen):
    seen = screen.execute(TK + 'while True:\n    pass', capture_screenshot=True, timeout_s=1)
    assert seen.status == 'timeout'
    check(seen.screenshot, YELLOW, 5000)
    assert screen.value('6 * 7') == '42'


def test_busy_machine(api):
    """Two processes that compute all the time, beside it."""
    with gb.running_daemon() as other, other.api() as beside:
        loops = [beside.session().in_background('while True: pass', timeout_s=60) for _ in range(2)]
        for name in ('tk', 'plot', 'draw and pause', 'show that blocks', 'pygame'):
            code, colour, least = CASES[name]
            for _ in range(3):
                check(api.run(code, capture_screenshot=True).screenshot, colour, least)
        del loops


# ---- what it must not do ----------------------------------------------------------------


def test_plots_stay_as_they_are(science_daemon):
    with science_daemon.api() as api:
        big = PLOT + "plt.figure(figsize=(20, 15))\nplt.plot([1, 2])\n"
        plain = api.session(display=True).execute(big).ok()
        screen = api.session(display=True)
        seen = screen.execute(big, capture_screenshot=True).ok()
        assert len(seen.displays) == 2 and [d['image/png'] for d in seen.displays] == [d['image/png'] for d in plain.displays]
        assert not seen.stderr
        assert screen.value('plt.get_fignums()') == '[]'
        assert screen.execute('pass', capture_screenshot=True).ok().screenshot['windows'] == []


def test_closed_figures_are_not_drawn(science_daemon):
    with science_daemon.api() as api:
        seen = api.session(display=True).execute(PLOT + "plt.close('all')", capture_screenshot=True).ok()
        assert seen.screenshot['windows'] == [] and not seen.displays and not seen.screenshot['settled']


def test_withdrawn_windows_stay_withdrawn(screen):
    seen = screen.execute(TK + 'root.withdraw()', capture_screenshot=True).ok()
    assert seen.screenshot['windows'] == [] and 'No window' in seen.screenshot['note']


def test_without_a_picture_nothing_is_painted(screen):
    screen.execute(TK + 'called = []\nroot.after_idle(called.append, 1)').ok()
    assert screen.value('called') == '[]'
    assert screen.api.get(f'{screen.path}/windows').json()['windows'] == []
    check(screen.execute('1', capture_screenshot=True).ok().screenshot, YELLOW, 5000)
    assert screen.value('called') == '[1]'


@pytest.mark.parametrize('name', ['tk', 'qt', 'gtk', 'turtle'])
def test_a_settled_picture_between_cells_is_painted(screen, name):
    """A cell that opened its window asked for no picture: the window is painted for the one that is asked for later."""
    code, colour, least = CASES[name]
    screen.execute(code).ok()
    for _ in range(2):
        answer = screen.api.get(f'{screen.path}/screenshot', params={'settle': 'true'})
        assert answer.status_code == 200 and near(decode(answer.content), colour) >= least
    assert screen.value('6 * 7') == '42'


def test_a_settled_picture_of_an_empty_screen_runs_nothing(screen):
    screen.execute('x = 1').ok()
    assert screen.api.get(f'{screen.path}/screenshot', params={'settle': 'true'}).status_code == 200
    assert screen.execute('x').ok()['cell'] == 2


def test_timers_without_end_do_not_hold_the_cell(screen):
    seen = screen.execute(TK + 'n = 0\ndef again():\n    global n\n    n += 1\n    root.after(0, again)\nagain()', capture_screenshot=True).ok()
    assert near(image(seen.screenshot), YELLOW) >= 5000
    assert screen.value('n > 0') == 'True'


def test_a_callback_that_hangs_is_interrupted(screen):
    code = TK + "import time\nroot.update()\nroot.after(0, lambda: time.sleep(300))\nprint('the end')"
    started = time.monotonic()
    seen = screen.execute(code, capture_screenshot=True, timeout_s=250).ok()
    assert time.monotonic() - started < 120
    assert seen.stdout == 'the end\n' and 'KeyboardInterrupt' in seen.stderr
    assert near(image(seen.screenshot), YELLOW) >= 5000
    assert screen.value('6 * 7') == '42'


def test_a_callback_that_never_ends_is_killed_and_told_why(screen):
    code = TK + """
def hang():
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass
root.after(0, hang)
"""
    seen = screen.execute(code, capture_screenshot=True, timeout_s=250)
    assert seen.status == 'interrupted' and seen.error['code'] == 'window_stayed_busy' and 'callback' in seen.error['message']
    assert screen.value('6 * 7') == '42'


def test_the_time_limit_holds_after_the_picture(api):
    """A one-shot waits for its threads: painting its window does not give them more time."""
    code = TK + "import threading, time\nthreading.Thread(target=time.sleep, args=(300,)).start()"
    seen = api.run(code, capture_screenshot=True, timeout_s=2)
    assert seen.status == 'timeout'
    check(seen.screenshot, YELLOW, 5000)


def test_a_cell_without_windows_does_not_wait(screen):
    screen.execute('pass', capture_screenshot=True).ok()
    seen = screen.execute('6 * 7', capture_screenshot=True, render_timeout=60).ok()
    assert seen.text == '42' and seen.screenshot['windows'] == []


# ---- render_timeout ------------------------------------------------------------------------


def test_render_timeout_is_the_longest_wait_for_painting(screen):
    """A child process needs a while to open its window: the cell waits for it, as long as it was told to."""
    code = f"import subprocess\nchild = subprocess.Popen(['python3', '-c', 'import time; time.sleep(1)\\n' + {(TK + 'root.mainloop()')!r}])"
    seen = screen.execute(code, capture_screenshot=True, render_timeout=60).ok()
    check(seen.screenshot, YELLOW, 5000)
    screen.execute('child.kill(); child.wait()').ok()
    seen = screen.execute(code, capture_screenshot=True, render_timeout=0.1).ok()
    assert seen.screenshot['windows'] == [] and 'No window' in seen.screenshot['note']


@pytest.mark.parametrize('value', [-1, 61, 'soon'])
def test_render_timeout_is_checked(screen, value):
    answer = screen.post_code('1', capture_screenshot=True, render_timeout=value)
    assert answer.status_code == 400 and 'render_timeout' in answer.text
    answer = screen.api.post('/step', json={'action': {'code': '1', 'capture_screenshot': True, 'render_timeout': value}})
    assert answer.status_code == 422 and answer.json()['detail'][0]['loc'] == ['render_timeout']


def test_a_window_of_a_thread(screen):
    code = 'import threading\ndef show():\n' + ''.join(f'    {line}\n' for line in TK.strip().splitlines()) + '    root.mainloop()\nthreading.Thread(target=show, daemon=True).start()'
    check(screen.execute(code, capture_screenshot=True, render_timeout=30).ok().screenshot, YELLOW, 5000)


# ---- the screen's name ---------------------------------------------------------------------


def test_the_screen_is_number_99_and_number_0(screen):
    assert screen.value("__import__('os').environ['DISPLAY']") == "':99'"
    code = "import tkinter as tk\nroots = [tk.Tk(screenName=name) for name in (':99', ':0', None)]\nfor n, root in enumerate(roots):\n    root.title(str(n))"
    seen = screen.execute(code, capture_screenshot=True).ok()
    assert sorted(w['title'] for w in seen.screenshot['windows']) == ['0', '1', '2']


@pytest.mark.parametrize('name', [':99', ':0'])
def test_the_screen_named_by_the_caller(api, name):
    check(api.run(TK, env={'DISPLAY': name}, capture_screenshot=True).screenshot, YELLOW, 5000)
