"""Blocked, or still at work? Windows are closed under code that waits in a main loop, and under no other."""

import pytest

from screens import box_of, colours, image, only_window

# Whatever it does next, the window is red at first, and the longest wait for a settled picture is soon over.
WINDOW = """
import time
import tkinter as tk
root = tk.Tk()
root.geometry('200x100')
canvas = tk.Canvas(root, width=200, height=100, bg='#ff0000', highlightthickness=0)
canvas.pack()
root.update()
def draw(seconds):
    until = time.monotonic() + seconds
    n = 0
    while time.monotonic() < until:
        canvas.create_line(n % 200, 0, n % 200, 100, fill='#ff0000' if n // 200 % 2 else '#ffff00')
        root.update()
        n += 1
def finish(colour):
    canvas.delete('all')
    canvas['bg'] = colour
    root.update()
"""
SOON = {'wait': {'max_ms': 200}}
GREEN, BLUE = (0, 255, 0), (0, 0, 255)


@pytest.fixture
def screen(api):
    return api.session(display=True)


def colours_of(seen):
    return colours(image(seen.screenshot), box_of(only_window(seen.screenshot)))


def test_code_that_draws_is_let_draw_until_its_loop(screen):
    code = WINDOW + "draw(1.5)\nfinish('#00ff00')\nroot.mainloop()\nprint('after the loop')"
    seen = screen.execute(code, screenshot=SOON).ok()
    assert seen.stdout == 'after the loop\n'
    assert colours_of(seen) == {GREEN: 20000} and seen.screenshot['settled'], 'the picture of the loop, not of the way there'


def test_code_that_draws_is_let_draw_until_its_end(screen):
    seen = screen.execute(WINDOW + "draw(1.5)\nfinish('#00ff00')\nprint(root.winfo_exists())", screenshot=SOON).ok()
    assert seen.stdout == '1\n'
    assert colours_of(seen) == {GREEN: 20000} and seen.screenshot['settled']
    assert screen.value('root.winfo_viewable()') == '1', 'nobody closed it'


def test_code_that_sleeps_is_let_sleep(screen):
    seen = screen.execute(WINDOW + "time.sleep(1.5)\nroot.after(1500)\nfinish('#0000ff')\nroot.mainloop()\nprint('after')", screenshot=SOON).ok()
    assert seen.stdout == 'after\n'
    assert colours_of(seen) == {BLUE: 20000}


def test_what_was_wiped_away_is_still_on_the_picture(screen):
    code = WINDOW + "canvas.create_rectangle(50, 20, 150, 80, fill='#0000ff', outline='#0000ff')\nroot.update()\ntime.sleep(1.5)\nfinish('#ff0000')\nroot.mainloop()"
    seen = screen.execute(code, screenshot=SOON).ok()
    assert colours_of(seen).get(BLUE, 0) > 5000, 'not of the empty window at the end'


def test_an_animation_of_a_loop_is_closed(screen):
    code = WINDOW + """
def step(n=0):
    canvas['bg'] = '#%02x00ff' % (n % 256)
    root.after(10, step, n + 1)
step()
root.tk.mainloop()
print('after the loop')
"""
    seen = screen.execute(code, screenshot=SOON).ok()
    assert seen.stdout == 'after the loop\n' and not seen.screenshot['settled']


def test_a_busy_animation_of_a_loop_is_closed(screen):
    code = WINDOW + """
def step(n=0):
    until = time.monotonic() + 0.03
    while time.monotonic() < until:
        pass
    canvas['bg'] = '#%02x00ff' % (n % 256)
    root.after(0, step, n + 1)
step()
root.mainloop()
print('after the loop')
"""
    assert screen.execute(code, screenshot=SOON).ok().stdout == 'after the loop\n'


def test_a_second_window_after_the_first_loop_is_let_draw(screen):
    again = WINDOW + "draw(1.5)\nfinish('#00ff00')\nroot.mainloop()\nprint('after the second')"
    assert screen.execute(WINDOW + 'root.mainloop()\n' + again, screenshot=SOON).ok().stdout == 'after the second\n'


def test_pauses_of_matplotlib_are_no_end(science_daemon):
    code = """
import matplotlib.pyplot as plt
figure = plt.figure('pauses', figsize=(3, 2))
for shade in range(6):
    figure.set_facecolor((1, shade / 10, 0))
    plt.pause(0.3)
print(plt.fignum_exists('pauses'))
figure.set_facecolor((0, 1, 0))
plt.show()
print(plt.fignum_exists('pauses'))
"""
    with science_daemon.api() as api:
        seen = api.session(display=True).execute(code, screenshot=SOON, timeout_s=60).ok()
    assert seen.stdout == 'True\nFalse\n', 'closed in its last loop, and not before'
    assert colours_of(seen).get(GREEN, 0) > 50000


def test_a_figure_that_nobody_looks_at_is_shown_without_waiting(science_daemon):
    code = "import matplotlib.pyplot as plt\nplt.figure('alone', figsize=(3, 2)).set_facecolor((0, 1, 0))\nplt.show()\nprint(plt.fignum_exists('alone'))"
    with science_daemon.api() as api:
        session = api.session(display=True)
        o = session.execute(code, timeout_s=60).ok()
        assert o.stdout == 'True\n' and 'capture_screenshot' in o.stderr and 'on_block' in o.stderr
        assert session.execute('plt.close("all")\nplt.plot([1])\nplt.show(block=False)\nplt.close("all")', timeout_s=60).ok().stderr == ''
        assert session.execute('plt.plot([1])\nplt.show()', timeout_s=2, on_block='wait').status == 'timeout'


def test_a_warning_of_show_names_the_line_of_the_cell(science_daemon):
    code = "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    with science_daemon.api() as api:
        seen = api.session(display=True).execute(code, capture_screenshot=True).ok()
    assert seen.stderr.startswith('<cell 1>:5: UserWarning: Matplotlib is currently using agg'), seen.stderr
    assert 'Agg backend opens none' in seen.screenshot['note'] and len(seen.displays) == 1


def test_a_game_that_waits_for_its_player_has_settled(screen):
    code = """
import pygame
pygame.init()
surface = pygame.display.set_mode((200, 100))
running = True
while running:
    running = not any(event.type == pygame.QUIT for event in pygame.event.get())
    surface.fill((255, 0, 0))
    pygame.draw.circle(surface, (0, 255, 0), (100, 50), 20)
    pygame.display.flip()
    pygame.time.Clock().tick(60)
"""
    seen = screen.execute(code, screenshot={'wait': {'max_ms': 60000}}, timeout_s=90).ok()
    assert seen.screenshot['settled'] and colours_of(seen)[GREEN] > 1000


def test_a_program_of_its_own_is_closed(screen):
    game = 'import pygame\npygame.init()\ns = pygame.display.set_mode((200, 100))\nn = 0\nwhile not any(e.type == pygame.QUIT for e in pygame.event.get()):\n    n += 1\n    s.fill((0, n % 256, 255))\n    pygame.display.flip()\n'
    seen = screen.execute(f'import subprocess, sys\nprint(subprocess.run([sys.executable, "-c", {game!r}], capture_output=True).returncode)', screenshot=SOON, timeout_s=60).ok()
    assert seen.stdout == '0\n'
