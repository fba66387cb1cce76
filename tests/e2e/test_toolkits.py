"""Each toolkit that Debian has: unchanged code, its real pixels while it runs, and a main loop that returns."""

import pytest

from screens import box_of, colours, image, only_window

RED = (255, 0, 0)
QT = """
from {0}.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel()
label.setStyleSheet('background: #ff0000')
label.resize(300, 200)
label.setWindowTitle('kit')
label.show()
app.{1}()
"""

# name: (code, at least so many of the window's pixels are red)
KITS = {
    'turtle': (
        """
import turtle
turtle.speed(0)
turtle.title('kit')
turtle.color('#ff0000')
turtle.begin_fill()
turtle.circle(80)
turtle.end_fill()
turtle.done()
""",
        19000,
    ),
    'matplotlib': (
        """
import matplotlib.pyplot as plt
plt.figure(num='kit', facecolor='#ff0000')
plt.plot([1, 4, 9])
plt.show()
""",
        100000,
    ),
    'pygame': (
        """
from dataclasses import dataclass
import pygame

@dataclass
class Ball:
    x: int = 0

    def move(self):
        self.x = (self.x + 5) % 300

pygame.init()
screen = pygame.display.set_mode((300, 200))
pygame.display.set_caption('kit')
clock, ball, running = pygame.time.Clock(), Ball(), True
while running:
    for event in pygame.event.get():
        running = running and event.type != pygame.QUIT
    screen.fill((255, 0, 0))
    ball.move()
    pygame.draw.circle(screen, (0, 0, 255), (ball.x, 100), 20)
    pygame.display.flip()
    clock.tick(60)
""",
        58000,
    ),
    'PyQt5': (QT.format('PyQt5', 'exec_'), 60000),
    'PyQt6': (QT.format('PyQt6', 'exec'), 60000),
    'PySide2': (QT.format('PySide2', 'exec_'), 60000),
    'gtk3': (
        """
import gi
gi.require_version('Gtk', '3.0')
from gi.repository import Gtk
window = Gtk.Window(title='kit')
window.set_default_size(300, 200)
area = Gtk.DrawingArea()
area.connect('draw', lambda widget, cr: (cr.set_source_rgb(1, 0, 0), cr.paint()))
window.add(area)
window.connect('destroy', Gtk.main_quit)
window.show_all()
Gtk.main()
""",
        60000,
    ),
    'pyglet': (
        """
import pyglet
window = pyglet.window.Window(300, 200, caption='kit')
pyglet.gl.glClearColor(1, 0, 0, 1)

@window.event
def on_draw():
    window.clear()

pyglet.app.run()
""",
        60000,
    ),
    'kivy': (
        """
from kivy.config import Config
Config.set('graphics', 'width', '300')
Config.set('graphics', 'height', '200')
from kivy.app import App
from kivy.uix.button import Button

class Kit(App):
    title = 'kit'

    def build(self):
        return Button(background_normal='', background_color=(1, 0, 0, 1))

Kit().run()
""",
        59000,
    ),
}


@pytest.mark.parametrize('name', KITS)
def test_picture_while_it_runs_and_a_loop_that_returns(api, name):
    code, red = KITS[name]
    session = api.session(display=True)
    longest = 1500 if name == 'pygame' else 30000  # that one moves for ever
    seen = session.execute(code + "\nprint('after the loop')", screenshot={'wait': {'max_ms': longest}}, timeout_s=90).ok()
    assert seen.stdout.endswith('after the loop\n')
    window = only_window(seen.screenshot)
    assert window['title'] == 'kit'
    assert colours(image(seen.screenshot), box_of(window)).get(RED, 0) >= red * 0.98


@pytest.mark.parametrize('name', ['bytedesign', 'clock', 'colormixer', 'forest', 'nim', 'paint'])
def test_turtle_demos(api, name):
    """Programs of CPython's own, as they are; the picture is there when they wait for their user, or tick."""
    session = api.session(display=True)
    code = f"import runpy\nrunpy.run_module('turtledemo.{name}', run_name='__main__')"
    seen = session.execute(code, capture_screenshot=True, timeout_s=90)
    assert seen.screenshot['settled'], seen.screenshot['note']
    assert len(colours(image(seen.screenshot), box_of(only_window(seen.screenshot)))) >= 3


@pytest.mark.parametrize('name', ['aliens', 'chimp', 'fonty', 'glcube', 'textinput'])
def test_pygame_examples(api, name):
    """As the package has them: games that move, OpenGL, a window that waits for its player."""
    path = f'/usr/share/doc/python-pygame-doc/examples/{name}.py'
    code = f"import runpy, sys\nsys.argv = [{path!r}]\nrunpy.run_path({path!r}, run_name='__main__')"
    seen = api.session(display=True).execute(code, screenshot={'wait': {'max_ms': 2000}}, timeout_s=90)
    window = only_window(seen.screenshot)
    assert len(colours(image(seen.screenshot), box_of(window))) >= 30, seen.screenshot['note']
