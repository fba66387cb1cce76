"""The live view in a real browser: what it shows, and its mouse and keyboard."""

import pytest

import gb
from browser import Browser

PROGRAM = """
import tkinter as tk
root = tk.Tk()
root.title('form')
root.geometry('400x200+100+100')
root['bg'] = '#ff0000'
entry = tk.Entry(root, font=('Helvetica', 16))
entry.place(x=20, y=20, width=300, height=40)
pressed = []
button = tk.Button(root, text='Press', bg='#00ff00', command=lambda: (pressed.append(entry.get()), root.configure(bg='#0000ff')))
button.place(x=20, y=80, width=100, height=40)
root.mainloop()
"""
PIXEL = "(() => { const p = document.getElementById('screen').getContext('2d').getImageData(%d, %d, 1, 1).data; return [p[0], p[1], p[2]]; })()"
# Where a point of the session's screen is in the page.
PLACE = """(() => { const c = document.getElementById('screen'), b = c.getBoundingClientRect();
return [b.left + %d * b.width / c.width, b.top + %d * b.height / c.height]; })()"""


@pytest.fixture
def screen(api):
    session = api.session(display=True)
    assert session.execute(PROGRAM, on_block='leave').status == 'running'
    return session


def link(session, **body):
    answer = session.api.post(f'{session.path}/live', json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def shows(page, x, y, colour):
    return gb.wait_until(lambda: page.value(PIXEL % (x, y)) == colour, f'the page shows {colour} at {x}, {y}')


def click(page, x, y):
    page.click(*page.value(PLACE % (x, y)))


def test_watch_click_and_type(screen):
    with Browser(screen.api.url + link(screen, control=True)['url']) as page:
        shows(page, 450, 280, [255, 0, 0])
        click(page, 200, 140)
        page.type('Grüße, 世界')
        gb.wait_until(lambda: screen.value('entry.get()') == "'Grüße, 世界'", 'the text is there')
        click(page, 170, 200)
        gb.wait_until(lambda: screen.value('pressed') == "['Grüße, 世界']", 'the button was pressed')
        shows(page, 450, 280, [0, 0, 255])


def test_a_view_that_only_shows(screen):
    made = link(screen)
    assert not made['control']
    with Browser(screen.api.url + made['url']) as page:
        shows(page, 450, 280, [255, 0, 0])
        click(page, 170, 200)
        page.type('x')
        screen.execute("root.configure(bg='#00ffff')").ok()
        shows(page, 450, 280, [0, 255, 255])
        assert screen.value('pressed, entry.get()') == "([], '')"
