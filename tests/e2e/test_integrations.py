"""Executors in the place of smolagents' and tinyAgent's. Their own packages are not needed: what they call is called here."""

import datetime
import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import Glovebox  # noqa: E402
from glovebox.integrations import smolagents, tinyagent  # noqa: E402


@pytest.fixture
def box(daemon):
    with Glovebox(daemon.url) as box:
        yield box


# ---- smolagents: what CodeAgent hands to an executor -----------------------------------


class Base:
    """Tools are called as smolagents' own base class has it."""

    def __call__(self, *args, sanitize_inputs_outputs=False, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], dict) and set(args[0]) <= set(self.inputs):
            args, kwargs = (), args[0]
        return self.forward(*args, **kwargs)


class Search(Base):
    name, description, output_type = 'search', 'Searches the web.', 'string'
    inputs = {
        'query': {'type': 'string', 'description': 'What to search for.'},
        'limit': {'type': 'integer', 'description': 'How many.', 'nullable': True},
        'extra': {'type': 'any', 'description': 'Whatever.', 'nullable': True},
    }

    def forward(self, query, limit=3, extra=None):
        return f'{query}x{limit}' + (f' {extra!r}' if extra is not None else '')


class FinalAnswerTool(Base):
    name, description, output_type = 'final_answer', 'The final answer.', 'any'
    inputs = {'answer': {'type': 'any', 'description': 'The answer.'}}

    def forward(self, answer):
        return answer


class CheckedAnswer(FinalAnswerTool):
    def forward(self, answer):
        if answer == 13:
            raise ValueError('unlucky')
        return {'checked': answer}


class AnswerInParts(FinalAnswerTool):
    inputs = {'first': {'type': 'string', 'description': 'One part.'}, 'second': {'type': 'string', 'description': 'The other.'}}

    def forward(self, first, second):
        return f'{first} and {second}'


class Managed:
    name, description, output_type = 'helper', 'Helps.', 'string'
    inputs = {'task': {'type': 'string', 'description': 'The task.'}, 'additional_args': {'type': 'object', 'description': 'More.'}}

    def run(self, task):
        return f'did {task}'

    def __call__(self, task, **more):
        return self.run(task) + (f' {sorted(more.items())}' if more else '')


@pytest.fixture
def executor(box):
    with smolagents.GloveboxExecutor(['json'], box=box) as executor:
        executor.send_variables({'x': 5, 'when': datetime.date(2020, 1, 2)})
        executor.send_tools({'search': Search(), 'final_answer': FinalAnswerTool(), 'helper': Managed()})
        yield executor


def test_smolagents_steps(executor):
    out = executor('print("hi")\ny = x + 1')
    assert (out.output, out.logs, out.is_final_answer) == (6, 'hi\n', False)
    assert executor.state['_print_outputs'] == 'hi\n'
    assert executor('y, when, {1, 2}').output == (6, datetime.date(2020, 1, 2), {1, 2})
    assert executor('import json\njson.dumps([y])').output == '[6]'


def test_smolagents_tools(executor):
    assert executor('search("a")').output == 'ax3'
    assert executor('search(query="b", limit=1, extra=(1, 2))').output == 'bx1 (1, 2)'
    assert executor('helper(task="it")').output == 'did it'
    assert executor('helper("the job", depth=2)').output == "did the job [('depth', 2)]"
    assert executor('search(5)').output == '5x3', 'converted where nothing is lost'
    strict = smolagents.GloveboxExecutor(box=executor._box, coerce=False)
    strict.send_tools(dict(executor.static_tools))
    with strict, pytest.raises(smolagents.InterpreterError, match='must be of type "string"'):
        strict('search(5)')
    with pytest.raises(smolagents.InterpreterError, match="Cannot assign to name 'search': doing this would erase the existing tool!"):
        executor('search = 3')


def test_smolagents_final_answers(executor):
    out = executor('print("thinking")\nfinal_answer({"a": (1, x)})\nprint("never")')
    assert out.is_final_answer and out.output == {'a': (1, 5)} and out.logs == 'thinking\n'
    assert not executor('1').is_final_answer
    executor.send_tools({'final_answer': CheckedAnswer()})
    out = executor('final_answer(12)')
    assert out.is_final_answer and out.output == {'checked': 12}
    with pytest.raises(smolagents.InterpreterError, match='unlucky'):
        executor('final_answer(13)')
    executor.send_tools({'final_answer': AnswerInParts()})
    assert executor('final_answer(\n    first="a",\n    second="b",\n)').output == executor('final_answer("a", "b")').output == 'a and b'
    executor.send_tools({'final_answer': FinalAnswerTool()})
    assert executor("text = '''with\nfinal_answer(5)\n'''\nif text:\n    final_answer(text)").output == 'with\nfinal_answer(5)\n'


def test_smolagents_errors(executor):
    with pytest.raises(ValueError, match='Import of os is not allowed'):
        executor('import os')
    with pytest.raises(smolagents.InterpreterError, match='division by zero'):
        executor('print("kept")\n1/0')
    assert executor.state['_print_outputs'] == 'kept\n'
    executor.timeout_seconds = 0.3
    with pytest.raises(smolagents.InterpreterError, match='exceeded the maximum execution time of 0.3 seconds'):
        executor('import time\ntime.sleep(60)')
    executor.timeout_seconds = 30
    assert executor('x').output == 5, 'the state survives'
    with pytest.raises(TypeError, match='Cannot safely serialize'):
        executor.send_variables({'o': object()})
        executor('1')


def test_smolagents_long_prints_are_cut(box):
    with smolagents.GloveboxExecutor(box=box, max_print_outputs_length=100) as executor:
        executor.send_tools({})
        logs = executor('print("a" * 500)').logs
    assert '..._This content has been truncated to stay below 100 characters_...' in logs and len(logs) < 200


def test_a_loop_like_code_agents(box):
    """The whole way of a run: variables, tools, steps until the final answer, clean-up."""
    steps = iter(['found = search(task)\nprint(found)', 'undefined_name', 'final_answer(found.upper())'])
    executor = smolagents.GloveboxExecutor(box=box)
    executor.send_variables({'task': 'glovebox'})
    executor.send_tools({'search': Search(), 'final_answer': FinalAnswerTool()})
    seen = []
    while True:
        try:
            out = executor(next(steps))
        except Exception as e:
            seen.append(f'Error: {e}')
            continue
        seen.append(out.logs)
        if out.is_final_answer:
            break
    session = executor.session.id
    executor.cleanup()
    assert out.output == 'GLOVEBOXX3' and seen[0] == 'gloveboxx3\n' and 'undefined_name' in seen[1]
    assert session not in [s['id'] for s in box.sessions()]


# ---- other profiles, the same tools ----------------------------------------------------


@pytest.mark.parametrize('profile', ['python', 'smolagents', 'restricted', 'tinyagent'])
def test_tools_and_variables_in_every_profile(box, profile):
    with box.session(profile=profile, tools=[Search()]) as s:
        for _ in range(2):
            assert s.run('print(search(q), n)', variables={'q': 'a', 'n': (1, 2)}, check=True).stdout == 'ax3 (1, 2)\n'


# ---- tinyAgent -------------------------------------------------------------------------


def test_tinyagent_python_executor(box):
    with tinyagent.PythonExecutor({'math'}, box=box) as executor:
        assert executor.run('print("  hi ")') == ('hi', False)
        assert executor.run('import math\nprint(math.floor(2.5))') == ('2', False)
        assert executor.run('final_answer(6 * 7)\nprint("goes on")') == ('42', True)
        assert executor.run('x = 1') == ('', False)
        with pytest.raises(NameError):
            executor.run('print(x)')
        with pytest.raises(ZeroDivisionError):
            executor.run('1 / 0')
        for code, words in [
            ('import os', "Import 'os' not allowed"),
            ('import random', "Import 'random' not allowed"),
            ('import os.path', "Import 'os.path' not allowed"),
            ('from os import environ', "Import from 'os' not allowed"),
        ]:
            with pytest.raises(RuntimeError, match=words):
                executor.run(code)
        for code in ("open('test.txt', 'w')", "eval('1 + 1')", "exec('x = 1')"):
            with pytest.raises(NameError):
                executor.run(code)
        with pytest.raises(SyntaxError):
            executor.run('print(')
        executor._globals.update(add=lambda a, b: a + b, scale=3)
        assert executor.run('final_answer(add(1, 2) * scale)') == ('9', True), 'tools as its agents give them'


def test_tinyagent_local_executor(box):
    limits = tinyagent.ExecutionLimits(max_output_bytes=20)
    with tinyagent.LocalExecutor(limits=limits, box=box) as executor:
        executor.inject('k', 5)
        executor.inject('twice', lambda n: n * 2)
        assert executor.run('x = k').success
        result = executor.run('print(x, twice(x))')
        assert result.output == '5 10' and result.error is None and result.duration_ms > 0 and result.memory_used_bytes > 0
        final = executor.run('final_answer([1, 2])')
        assert final.is_final and final.final_value == [1, 2] and final.output == ''
        assert executor.run('print("so"); final_answer({1}, verified_by="me")').output == 'so'
        assert executor.run('import math').error == "Import 'math' not allowed"
        assert executor.run('print(').error.startswith('Syntax error in code: ')
        assert not executor.run('print(1)').is_final, 'an answer is that of its own run'
        assert executor.run('print("y" * 99)').output == 'y' * 20 + '\n[OUTPUT TRUNCATED]'
        assert executor.run('1 / 0').error == 'ZeroDivisionError: division by zero'
        executor.limits.timeout_seconds = 0.4
        slow = executor.run('while True: pass')
        executor.limits.timeout_seconds = 30.0
        assert slow.timeout and not slow.success and slow.error == 'Execution timed out after 0.4s'
        executor.reset()
        assert 'not defined' in executor.run('print(x)').error
        executor.kill()
