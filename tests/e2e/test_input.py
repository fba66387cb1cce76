"""Mouse and keyboard of a session's screen."""

import pytest

import gb
from screens import box_of, colours, image, only_window

# What the widgets say about themselves goes to files: the cell blocks in the main loop meanwhile.
FORM = """
import tkinter as tk
root = tk.Tk()
root.title('Form')
root.geometry('400x300')
seen = open('/workspace/seen', 'w', buffering=1)
def note(*words):
    print(*words, file=seen)
colour = tk.Frame(root, bg='#ff0000')
colour.place(x=0, y=200, width=400, height=100)
def press():
    colour['bg'] = '#00ff00'
    note('pressed')
tk.Button(root, text='press', command=press).place(x=10, y=10, width=100, height=40)
entry = tk.Entry(root)
entry.place(x=10, y=60, width=380, height=30)
entry.bind('<Return>', lambda e: note('entry', ascii(entry.get())))
entry.bind('<Control-s>', lambda e: note('saved'))
canvas = tk.Canvas(root, bg='white')
canvas.place(x=10, y=100, width=380, height=90)
for name in ('<Button-1>', '<ButtonRelease-1>', '<Double-1>', '<Triple-1>', '<Button-2>', '<Button-3>', '<Button-4>', '<Button-5>',
             '<Shift-Button-1>'):
    canvas.bind(name, lambda e, name=name: note(name, e.x, e.y))
moved = []
canvas.bind('<B1-Motion>', lambda e: moved.append((e.x, e.y)))
root.bind('<KeyPress-F5>', lambda e: note('moved', len(moved), moved[-1]))
root.mainloop()
"""


class Form:
    def __init__(self, api):
        self.screen = api.session(display=True)
        self.cell = self.screen.in_background(FORM, on_block='wait', timeout_s=600)
        self.window = gb.wait_until(self.find, 'the form is shown')
        self.input({'action': 'wait', 'duration': 0.001})

    def find(self):
        windows = self.screen.api.get(f'{self.screen.path}/windows').json()['windows']
        return next((w for w in windows if (w['title'], w['width']) == ('Form', 400)), None)

    def post(self, *actions, **options):
        body = {**actions[0], **options} if len(actions) == 1 else {'actions': list(actions), **options}
        return self.screen.api.post(f'{self.screen.path}/input', json=body)

    def input(self, *actions, **options):
        answer = self.post(*actions, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def at(self, x, y):
        return [self.window['x'] + x, self.window['y'] + y]

    def seen(self):
        return self.screen.api.get(f'{self.screen.path}/files/seen').text.splitlines()

    def wait_for(self, *lines):
        """These lines are the last ones, some time."""
        gb.wait_until(lambda: self.seen()[-len(lines) :] == list(lines), f'{lines} were noted')


@pytest.fixture
def form(api):
    form = Form(api)
    yield form
    form.screen.interrupt()


def test_click_changes_pixels(form):
    before = form.input({'action': 'mouse_move', 'coordinate': form.at(60, 30)}, screenshot=True)
    x0, _, x1, y1 = box_of(only_window(before['screenshot']))
    below = (x0, y1 - 100, x1, y1)
    assert colours(image(before['screenshot']), below) == {(255, 0, 0): 40000}
    after = form.input({'action': 'left_click', 'coordinate': form.at(60, 30)}, screenshot=True)
    assert after['settled'] and after['acted_ms'] >= 0
    assert colours(image(after['screenshot']), below) == {(0, 255, 0): 40000}
    assert form.seen() == ['pressed']


@pytest.mark.parametrize(
    'text',
    [
        'Hello, World! {[|]}~ "q" <\\>',
        'Wörld ñ € 中文 Ω≈ç 😀',
        # More characters without a key than there are keys without a character.
        ''.join(map(chr, range(0x3B1, 0x3B1 + 24))) + 'αω' + ''.join(map(chr, range(0x430, 0x450))) + 'аβ',
    ],
)
def test_typed_text_arrives(form, text):
    form.input(
        {'action': 'left_click', 'coordinate': form.at(100, 75)},
        {'action': 'type', 'text': text},
        {'action': 'key', 'text': 'Return'},
    )
    form.wait_for(f'entry {text!a}')


def test_keys_pressed_together(form):
    form.input(
        {'action': 'triple_click', 'coordinate': form.at(100, 75)},
        {'action': 'type', 'text': 'gone'},
        {'action': 'key', 'text': 'ctrl+s'},
        {'action': 'key', 'text': 'shift+Home'},
        {'action': 'key', 'text': 'BackSpace'},
        {'action': 'hold_key', 'text': 'A', 'duration': 0.02},
        {'action': 'type', 'text': '\n'},
    )
    gb.wait_until(lambda: len(form.seen()) == 2, 'both were noted')
    saved, entry = form.seen()
    assert saved == 'saved' and set(entry.split("'")[1]) == {'A'}


def test_buttons_of_the_mouse(form):
    point = form.at(110, 140)
    for action, buttons in [
        ('right_click', ['<Button-3>']),
        ('middle_click', ['<Button-2>']),
        ('double_click', ['<Button-1>', '<ButtonRelease-1>', '<Double-1>', '<ButtonRelease-1>']),
    ]:
        form.input({'action': action, 'coordinate': point})
        form.wait_for(*[f'{button} 100 40' for button in buttons])
    form.input({'action': 'left_click', 'coordinate': form.at(60, 120), 'text': 'shift'})
    form.wait_for('<Shift-Button-1> 50 20', '<ButtonRelease-1> 50 20')
    form.input({'action': 'scroll', 'coordinate': point, 'scroll_direction': 'up', 'scroll_amount': 2})
    form.wait_for('<Button-4> 100 40', '<Button-4> 100 40')
    form.input({'action': 'scroll', 'scroll_direction': 'down', 'scroll_amount': 1})
    form.wait_for('<Button-4> 100 40', '<Button-5> 100 40')


def test_drag(form):
    form.input(
        {'action': 'left_click_drag', 'start_coordinate': form.at(20, 110), 'coordinate': form.at(220, 150)},
        {'action': 'key', 'text': 'F5'},
    )
    gb.wait_until(lambda: len(form.seen()) == 3, 'all was noted')
    down, up, moved = form.seen()
    assert (down, up) == ('<Button-1> 10 10', '<ButtonRelease-1> 210 50')
    assert moved.endswith('(210, 50)') and int(moved.split()[1]) >= 2


def test_pictures_and_the_pointer_between_actions(form):
    answer = form.input(
        {'action': 'mouse_move', 'coordinate': [7, 9]},
        {'action': 'cursor_position'},
        {'action': 'zoom', 'region': [*form.at(0, 200), *form.at(50, 300)]},
        {'action': 'screenshot'},
        settle=False,
    )
    move, pointer, zoom, screen = answer['results']
    assert move == {'action': 'mouse_move'} and (pointer['x'], pointer['y']) == (7, 9)
    assert colours(image(zoom['screenshot'])) == {(255, 0, 0): 5000}
    assert image(screen['screenshot']).size == (1024, 768)
    assert answer['settled'] is None and answer['screenshot'] is None


WRONG = [
    ({}, '$.action: is required'),
    ({'action': 'leap'}, '$.action: '),
    ({'action': 'mouse_move'}, '$.coordinate: mouse_move needs it'),
    ({'action': 'left_click', 'coordinate': [1]}, '$.coordinate: must be a list of 2 numbers, not of 1'),
    ({'action': 'left_click', 'coordinate': [1, 'x']}, '$.coordinate[1]: must be a number'),
    ({'action': 'left_click', 'coordinate': [1024, 5]}, '$.coordinate[0]: must be between 0 and 1023'),
    ({'action': 'key', 'text': 'ctrl+Retrun'}, 'no key of the name "Retrun"'),
    ({'action': 'type'}, '$.text: type needs it'),
    ({'action': 'wait', 'duration': 1e9}, '$.duration: '),
    ({'action': 'wait', 'duration': 1, 'region': [0, 0, 1, 1]}, '$.region: wait does not take it'),
    ({'action': 'zoom', 'region': [5, 5, 5, 9]}, '$.region: must be [x0, y0, x1, y1]'),
    ({'actions': []}, '$.actions: '),
    ({'actions': [{'action': 'screenshot'}, {'action': 'type', 'text': ''}]}, '$.actions[1].text: '),
    ({'actions': [{'action': 'screenshot'}, {'action': 'key'}]}, '$.actions[1].text: key needs it'),
    ({'actions': [{'action': 'screenshot'}], 'action': 'key'}, '$.action: either'),
    ({'actions': ['screenshot']}, '$.actions[0]: must be an object'),
]


def test_wrong_actions_are_named(api):
    session = api.session(display=True)
    for body, says in WRONG:
        answer = api.post(f'{session.path}/input', json=body)
        assert answer.status_code == 400 and says in answer.json()['detail'], (body, answer.text)


def test_session_without_display(session):
    answer = session.api.post(f'{session.path}/input', json={'action': 'screenshot'})
    assert answer.status_code == 409 and answer.json()['code'] == 'no_display'
