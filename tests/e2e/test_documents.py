"""Programs as users of coding_env, smolagents and tinyAgent bring them along: pasted as they are, they run."""

import base64
import dataclasses
import inspect
import io
import json
import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import CodeAction, CodeObservation, CodingEnv, Glovebox  # noqa: E402
from glovebox.executors import LocalPythonExecutor, PythonCodeActEnv  # noqa: E402
from glovebox.integrations import tinyagent  # noqa: E402

BACKENDS = ['smolagents', 'restrictedpython', 'python']

WORLD = """
import random
import time
import tkinter as tk
from dataclasses import dataclass

SIZE = 200

@dataclass
class Ball:
    x: float
    y: float
    dx: float
    dy: float
    radius: float = 12.0
    color: str = "red"

    def step(self) -> None:
        self.x += self.dx
        self.y += self.dy
        if not self.radius < self.x < SIZE - self.radius:
            self.dx *= -1
        if not self.radius < self.y < SIZE - self.radius:
            self.dy *= -1

def draw(canvas, balls):
    canvas.delete("all")
    for ball in balls:
        r = ball.radius
        canvas.create_oval(ball.x - r, ball.y - r, ball.x + r, ball.y + r, fill=ball.color, outline="")
"""
ANIMATIONS = {
    'after and mainloop': WORLD
    + """
def main():
    root = tk.Tk()
    canvas = tk.Canvas(root, width=SIZE, height=SIZE, bg="white")
    canvas.pack()
    balls = [Ball(50, 60, 3, 2), Ball(120, 90, -2, 3, color="blue")]
    frames = {"n": 0}
    def tick():
        for b in balls:
            b.step()
        draw(canvas, balls)
        frames["n"] += 1
        if frames["n"] < 40:
            root.after(10, tick)
    tick()
    root.mainloop()
    print("ended")

if __name__ == "__main__":
    main()
""",
    'frames with update and sleep': WORLD
    + """
root = tk.Tk()
canvas = tk.Canvas(root, width=SIZE, height=SIZE, bg="white")
canvas.pack()
balls = [Ball(random.randint(40, 60), 60, 3, 2)]
for frame in range(10):
    for b in balls:
        b.x += b.dx
        b.step()
    draw(canvas, balls)
    root.update_idletasks()
    root.update()
    time.sleep(0.01)
print("ended")
""",
}


def colours(png):
    from PIL import Image

    return {colour for _, colour in Image.open(io.BytesIO(png)).convert('RGB').getcolors(1 << 24)}


def picture_of(observation):
    """The bytes of the picture, whether the client gives text or an object."""
    shot = observation.screenshot
    return base64.b64decode(shot) if isinstance(shot, str) else shot.data


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', ANIMATIONS)
def test_the_ball_animation(daemon, backend, name):
    with CodingEnv(daemon.url, executor_backend=backend, additional_imports=['dataclass', 'typing']) as env:
        env.reset()
        seen = env.step(CodeAction(ANIMATIONS[name], capture_screenshot=True)).observation
        assert (seen.exit_code, seen.stderr) == (0, '') and 'ended' in seen.stdout
        assert (255, 0, 0) in colours(picture_of(seen))


CLASSES = {
    'a plain class': 'class Ball:\n    def __init__(self, x, dx=2):\n        self.x = x\n        self.dx = dx\nb = Ball(1)\nb.x += b.dx\nprint(b.x)',
    'a named tuple': 'from collections import namedtuple\nBall = namedtuple("Ball", "x dx")\nb = Ball(1, 2)\nprint(b.x + b.dx)',
    'a dict': 'b = {"x": 1, "dx": 2}\nb["x"] += b["dx"]\nprint(b["x"])',
    'a dataclass': 'from dataclasses import dataclass\n@dataclass\nclass Ball:\n    x: int\n    dx: int = 2\n    def move(self):\n        self.x += self.dx\n        return self.x\nprint(Ball(1).move())',
    'match and annotations': 'x: int = 3\nmatch x:\n    case 3:\n        print(x)',
}


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', CLASSES)
def test_classes_and_their_substitutes(api, backend, name):
    assert api.run(CLASSES[name], executor_backend=backend).ok().stdout == '3\n'


def test_the_refresh_code_that_coding_env_added(api):
    code = """
import time
try:
    import tkinter as tk
    if tk._default_root:
        tk._default_root.update_idletasks()
        tk._default_root.update()
except Exception as e:
    pass
time.sleep(0.1)
print("done")
"""
    window = "import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text='Hello', bg='#ff0000').pack()\n"
    shown = code.replace('    pass\n', '    print(e)\n') + 'print(root.winfo_ismapped())'
    for backend in ('python', 'smolagents'):
        assert api.run(code, executor_backend=backend, additional_imports=['tkinter', 'time']).ok().stdout == 'done\n'
        seen = api.run(window + shown, executor_backend=backend, additional_imports=['tkinter', 'time'], display=True).ok()
        assert seen.stdout == 'done\n1\n'


def test_the_models_of_coding_env():
    action = CodeAction('print(1)', True)
    assert (action.code, action.capture_screenshot, CodeAction('x').capture_screenshot) == ('print(1)', True, False)
    assert list(inspect.signature(CodeAction).parameters)[:2] == ['code', 'capture_screenshot']
    assert CodeObservation().screenshot is None and (CodeObservation().stdout, CodeObservation().stderr, CodeObservation().exit_code) == ('', '', 0)


# ---- classes derived as the documents derive them -----------------------------------------------------

WINDOW = "import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text='Hello', bg='#ff0000').pack()"


class OwnEnv(CodingEnv):
    sent = None

    def _step_payload(self, action):
        self.sent = {'code': action.code, 'capture_screenshot': action.capture_screenshot}
        return self.sent


@dataclasses.dataclass
class OwnAction:
    code: str
    capture_screenshot: bool = False


def test_a_derived_client_makes_the_message(daemon):
    with OwnEnv(daemon.url) as env:
        env.reset()
        assert env.step(OwnAction('print(1)')).observation.stdout == '1\n' and env.sent['capture_screenshot'] is False
        assert (255, 0, 0) in colours(picture_of(env.step(OwnAction(WINDOW, True)).observation))
    with CodingEnv(daemon.url) as env:
        assert env._step_payload(CodeAction('x', True)) == {'code': 'x', 'capture_screenshot': True}
        env.reset()
        assert (255, 0, 0) in colours(picture_of(env.step(OwnAction(WINDOW, True)).observation))


class OwnServerSide(PythonCodeActEnv):
    def step(self, action):
        result = self._executor.run(action.code, capture_screenshot=action.capture_screenshot)
        screenshot = self._executor.get_captured_screenshot() if action.capture_screenshot else None
        observation = CodeObservation(stdout=result.stdout, stderr=result.stderr, exit_code=result.exit_code, screenshot=screenshot)
        return self._apply_transform(observation)


def test_a_derived_environment_makes_the_observation(daemon):
    with OwnServerSide(['tkinter'], url=daemon.url) as env:
        env.reset()
        seen = env.step(CodeAction(WINDOW, capture_screenshot=True))
        assert (255, 0, 0) in colours(base64.b64decode(seen.screenshot)) and seen.reward is not None


# ---- what the executors of agents did not hold ------------------------------------------------------

ENDLESS = {
    'a loop': 'while True:\n    pass',
    'factorials': 'import math\nwhile True:\n    math.factorial(10000)',
    'powers': 'while True:\n    (2**1000000) % 1000',
    'a long sleep': 'import time\ntime.sleep(3600)',
}


@pytest.fixture
def held(daemon):
    with Glovebox(daemon.url) as box, tinyagent.PythonExecutor(['math', 'time'], box=box, limits={'timeout_s': 0.7, 'memory_bytes': 200 << 20}) as executor:
        yield executor


@pytest.mark.parametrize('name', ENDLESS)
def test_code_that_does_not_end_is_ended(held, name):
    with pytest.raises(TimeoutError):
        held.run(ENDLESS[name])
    assert held.run('print("alive")') == ('alive', False)


def test_code_that_takes_all_memory_gets_a_memory_error(held):
    with pytest.raises(MemoryError):
        held.run('data = []\nwhile True:\n    data.append("x" * (1024 * 1024))')
    assert held.run('print("alive")') == ('alive', False)


@pytest.mark.parametrize(
    'code, error',
    [
        ("print(__import__('os'))", RuntimeError),
        ("importlib.import_module('sys')", NameError),
        ('import importlib', RuntimeError),
        ('if False:\n    import os', RuntimeError),
        ('def f():\n    from subprocess import run', RuntimeError),
        ("print(eval('1+1'))", NameError),
        ("exec('import os')", NameError),
        ("().__class__.__base__.__subclasses__()", Exception),
    ],
)
def test_ways_around_the_import_list(held, code, error):
    with pytest.raises(error):
        held.run(code)


def test_tools_are_functions_of_the_code(held):
    held._globals['calculator'] = lambda expression: str(eval(expression, {'__builtins__': {}}))
    assert held.run('result = calculator("2+2")\nprint(result)') == ('4', False)
    assert held.run('result = 2 * 7\nfinal_answer(f"The result is {result}")') == ('The result is 14', True)
    assert held.final_result.value == 'The result is 14'


@pytest.mark.parametrize(
    'code, error, text',
    [
        ('{"a": 1}["b"]', KeyError, "'b'"),
        ('{}[3]', KeyError, '3'),
        ('b"\\xff".decode()', UnicodeDecodeError, "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ('import json\njson.loads("{")', json.JSONDecodeError, 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'),
    ],
)
def test_exceptions_have_their_class_and_text(daemon, code, error, text):
    with Glovebox(daemon.url) as box, tinyagent.PythonExecutor(['json'], box=box) as executor, pytest.raises(error) as caught:
        executor.run(code)
    assert str(caught.value) == text


@pytest.mark.parametrize('profile', ['tinyagent', 'smolagents'])
def test_everything_of_a_module_that_lists_nothing(api, profile):
    """math has no __all__."""
    assert api.run('from math import *\nprint(floor(2.5), pi > 3)', profile=profile, additional_imports=['math']).ok().stdout == '2 True\n'
    assert api.run('from math import *\nprint(math)', profile=profile, additional_imports=['math']).status != 'ok'


def test_an_executor_made_as_agents_make_it(daemon):
    with Glovebox(daemon.url) as box, LocalPythonExecutor(additional_authorized_imports=['math', 'json'], max_print_outputs_length=2000, box=box) as executor:
        executor.send_tools({'calculator': lambda expression: str(eval(expression, {'__builtins__': {}}))})
        executor.send_variables({'task': '2+2'})
        assert executor.execute('result = calculator(task)').output == '4' and executor.session_globals['result'] == '4'
        executor.restart_session()
        assert executor.execute('calculator("3+4")').output == '7', 'tools outlive a restart'
