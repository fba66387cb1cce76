"""Each toolkit that Debian has: unchanged code, its real pixels while it runs, and a main loop that returns."""

import pytest

from screens import box_of, colours, image, only_window

RED = (255, 0, 0)
QT = """
from {0}.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel('TEXT')
label.setStyleSheet('background: #ff0000; color: #0000ff; font-size: 40px')
label.resize(300, 200)
label.setWindowTitle('kit')
label.show()
app.{1}()
"""

# name: (code, at least so many of the window's pixels are red)
KITS = {
    'tkinter': (
        """
import tkinter as tk
root = tk.Tk()
root.title('kit')
root.geometry('300x200')
tk.Label(root, text='TEXT', font=('Helvetica', 30), bg='#ff0000', fg='#0000ff').place(x=0, y=0, width=300, height=200)
root.mainloop()
""",
        60000,
    ),
    'matplotlib with Qt': (
        """
import matplotlib
matplotlib.use('QtAgg')
import matplotlib.pyplot as plt
plt.figure(num='kit', facecolor='#ff0000')
plt.plot([1, 4, 9])
plt.title('TEXT', color='#0000ff', fontsize=30)
plt.show()
""",
        100000,
    ),
    'OpenGL': (
        """
from OpenGL.GL import *
from OpenGL.GLUT import *
glutInit()
glutInitDisplayMode(GLUT_DOUBLE | GLUT_RGB)
glutInitWindowSize(300, 200)
glutCreateWindow(b'kit')
glutSetOption(GLUT_ACTION_ON_WINDOW_CLOSE, GLUT_ACTION_GLUTMAINLOOP_RETURNS)
def draw():
    glClearColor(1, 0, 0, 1)
    glClear(GL_COLOR_BUFFER_BIT)
    glColor3f(0, 0, 1)
    glRasterPos2f(-0.5, 0)
    for c in b'TEXT':
        glutBitmapCharacter(GLUT_BITMAP_TIMES_ROMAN_24, c)
    glutSwapBuffers()
glutDisplayFunc(draw)
glutMainLoop()
""",
        60000,
    ),
    'turtle': (
        """
import turtle
turtle.speed(0)
turtle.title('kit')
turtle.color('#ff0000')
turtle.begin_fill()
turtle.circle(80)
turtle.end_fill()
turtle.color('#0000ff')
turtle.write('TEXT', font=('Helvetica', 30))
turtle.hideturtle()
turtle.done()
""",
        19000,
    ),
    'matplotlib': (
        """
import matplotlib.pyplot as plt
plt.figure(num='kit', facecolor='#ff0000')
plt.plot([1, 4, 9])
plt.title('TEXT', color='#0000ff', fontsize=30)
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
text = pygame.font.Font(None, 60).render('TEXT', True, (0, 0, 255))
while running:
    for event in pygame.event.get():
        running = running and event.type != pygame.QUIT
    screen.fill((255, 0, 0))
    ball.move()
    pygame.draw.circle(screen, (0, 255, 0), (ball.x, 150), 20)
    screen.blit(text, (20, 20))
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
def draw(widget, cr):
    cr.set_source_rgb(1, 0, 0)
    cr.paint()
    cr.set_source_rgb(0, 0, 1)
    cr.set_font_size(40)
    cr.move_to(20, 60)
    cr.show_text('TEXT')
area.connect('draw', draw)
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

text = pyglet.text.Label('TEXT', font_size=30, x=20, y=100, color=(0, 0, 255, 255))

@window.event
def on_draw():
    window.clear()
    text.draw()

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
        return Button(background_normal='', background_color=(1, 0, 0, 1), text='TEXT', color=(0, 0, 1, 1), font_size=40)

Kit().run()
""",
        59000,
    ),
}


def blue(counts):
    """Pixels of blue text on red, which fades into it at its edges."""
    return sum(n for (r, g, b), n in counts.items() if b > 150 and r < 100 and g < 60)


@pytest.mark.parametrize('name', KITS)
def test_picture_while_it_runs_and_a_loop_that_returns(api, name):
    code, red = KITS[name]
    session = api.session(display=True)
    longest = 1500 if name == 'pygame' else 30000  # that one moves for ever
    wants = {'wait': {'max_ms': longest}, 'end': True}
    seen = session.execute(code + "\nprint('after the loop')", screenshot=wants, timeout_s=90).ok()
    assert seen.stdout.endswith('after the loop\n')
    window = only_window(seen.screenshot)
    assert window['title'] == 'kit'
    during = colours(image(seen.screenshot), box_of(window))
    assert during.get(RED, 0) >= red * 0.9, 'the background'
    assert blue(during) > 60, 'the text'
    after = seen.screenshot['end']
    assert after['data'] and after['error'] is None
    if not after['windows']:  # some toolkits close theirs only with the program
        assert colours(image(after)) == {(0, 0, 0): 1024 * 768}


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
