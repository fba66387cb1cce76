"""glovebox.executors: contracts that programs already code against, called as those programs call them."""

import base64
import io
import subprocess
import sys
import types

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import CodeAction, CodeExecutor, Glovebox, Notebook  # noqa: E402
from glovebox.executors import (  # noqa: E402
    BASE_BUILTIN_MODULES,
    CodeExecResult,
    DockerExecutor,
    E2BExecutor,
    ExecutorBackend,
    ListContext,
    LocalPythonExecutor,
    PyExecutor,
    PythonCodeActEnv,
    PythonExecutor,
    PythonToolOutput,
    RestrictedPythonExecutor,
    WasmExecutor,
    printed_final_answer,
)
from glovebox.integrations import smolagents, tinyagent  # noqa: E402


@pytest.fixture
def box(daemon):
    with Glovebox(daemon.url) as box:
        yield box


# ---- CodeExecutor and Notebook ---------------------------------------------------------


class Context:
    """The two methods are all that an executor may use."""

    def __init__(self):
        self.calls = []

    def add_output(self, output):
        self.calls.append(output)

    def add_error(self, error):
        self.calls.append(error)


def reports(executor, *codes):
    """What each of the executions reported."""
    context = Context()
    for code in codes:
        assert executor.execute(code, context) is None
    assert len(context.calls) == len(codes)
    return context.calls


def test_code_executor_reports_success_and_failure(box):
    with CodeExecutor(box.session()) as executor:
        assert executor._timeout == 30
        good, bad, left, text = reports(
            executor,
            'import sys\nprint("out")\nprint("err", file=sys.stderr)\n5',
            'print("before")\n1 / 0',
            'import sys; print("said"); sys.exit(3)',
            'def f(:',
        )
    assert good == {'type': 'successful_execution', 'stdout': 'out\n', 'stderr': 'err\n'}
    assert (bad['type'], bad['exit_code'], bad['stdout']) == ('execution_error', 1, 'before\n')
    assert bad['stderr'].startswith('Traceback (most recent call last)') and 'ZeroDivisionError: division by zero' in bad['stderr']
    assert left == {'type': 'execution_error', 'exit_code': 3, 'stdout': 'said\n', 'stderr': ''}
    assert text['exit_code'] == 1 and 'SyntaxError' in text['stderr']


def test_code_executor_starts_from_imports_alone(box):
    with CodeExecutor(box) as executor:
        first, kept, gone, file = reports(
            executor,
            'import math as m\nfrom os import path\nx = 1\nopen("left.txt", "w").write("here")',
            'print(m.floor(2.5), path.sep)',
            'print(x)',
            'print(open("left.txt").read())',
        )
        assert executor.notebook.imports == ['from os import path', 'import math as m']
    assert first['type'] == kept['type'] == 'successful_execution' and kept['stdout'] == '2 /\n'
    assert "NameError: name 'x' is not defined" in gone['stderr']
    assert file['stdout'] == 'here\n', 'files are those of the container'


def test_code_executor_ends_programs_as_an_interpreter_does(box):
    """Open files are written, exit functions called, threads awaited."""
    with CodeExecutor(box) as executor:
        left, read, told, late = reports(
            executor,
            'file = open("left.txt", "w")\nfile.write("here")',
            'print(open("left.txt").read())',
            'import atexit\natexit.register(print, "bye")\n1 / 0',
            'import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print("late"))).start()',
        )
    assert left['type'] == 'successful_execution' and read['stdout'] == 'here\n' and late['stdout'] == 'late\n'
    assert (told['exit_code'], told['stdout']) == (1, 'bye\n')


def test_code_executor_forgets_imports_that_fail(box):
    with CodeExecutor(box) as executor:
        failed, fine = reports(executor, 'import json\nimport no_such_module_at_all\nprint(1)', 'print(json.dumps([1]))')
        assert failed['type'] == 'execution_error' and fine['stdout'] == '[1]\n'
        assert executor.notebook.imports == ['import json']


def test_code_executor_holds_time_and_output(box):
    with CodeExecutor(box, timeout=0.5) as executor:
        slow, alive = reports(executor, 'print("begun", flush=True)\nwhile True: pass', 'print("alive")')
    assert slow == {'type': 'execution_error', 'exit_code': 124, 'stdout': 'begun\n', 'stderr': 'Execution timed out after 0.5 s\n'}
    assert alive['stdout'] == 'alive\n'
    with CodeExecutor(box) as executor:
        (long,) = reports(executor, 'import sys\nprint("é" * 2_000_000)\nprint("y" * 3_000_000, file=sys.stderr)')
    for text in (long['stdout'], long['stderr']):
        assert 1_000_000 < len(text.encode()) <= 1 << 20


def test_code_executor_in_a_container_of_ones_own():
    asked = []

    class Container:
        def exec_run(self, command, demux):
            asked.append((command, demux))
            command = [sys.executable if word == 'python' else word for word in command]
            done = subprocess.run(command, capture_output=True)
            return types.SimpleNamespace(exit_code=done.returncode, output=(done.stdout or None, done.stderr or None))

    executor = CodeExecutor(Container(), timeout=1)
    good, bad, slow = reports(executor, 'import math\nprint(math.tau > 6)', 'print(math.pi); raise SystemExit(4)', 'while True: pass')
    assert good == {'type': 'successful_execution', 'stdout': 'True\n', 'stderr': ''}
    assert (bad['exit_code'], bad['stdout']) == (4, '3.141592653589793\n')
    assert slow['exit_code'] == 124 and slow['stderr'] == 'Execution timed out after 1 s\n'
    assert all(demux and command[-3:-1] == ['python', '-c'] for command, demux in asked)


def test_notebook_contract():
    book = Notebook()
    assert book.get_code_with_imports('x = 1') == 'x = 1'
    book.add_imports_from_code('import sys\nfrom os import (path,\n    sep)\nif True:\n    import json\n"import re"\n')
    book.add_imports_from_code('import abc\nimport sys')
    assert book.get_code_with_imports('print(1)') == 'from os import path, sep\nimport abc\nimport sys\nprint(1)'
    book.add_imports_from_code('this is not Python')
    assert len(book.imports) == 3


def test_notebook_puts_future_imports_first():
    book = Notebook()
    book.add_imports_from_code('from PIL import Image')
    code = book.get_code_with_imports('"""Doc."""\nfrom __future__ import annotations; x = 1\n')
    compile(code, 'cell', 'exec')
    assert code.startswith('from __future__ import annotations\nfrom PIL import Image\n') and 'x = 1' in code
    book.add_imports_from_code('from __future__ import annotations')
    compile(book.get_code_with_imports('y: int = 2'), 'cell', 'exec')


def test_list_context(box):
    context = ListContext()
    with CodeExecutor(box) as executor:
        executor.execute('print(1)', context)
        executor.execute('1 / 0', context)
    assert [o['stdout'] for o in context.outputs] == ['1\n'] and len(context.errors) == 1


# ---- the PythonToolOutput family -------------------------------------------------------


def test_family_is_one(box):
    for kind in (LocalPythonExecutor, DockerExecutor, E2BExecutor, WasmExecutor):
        assert issubclass(kind, PythonExecutor) and 'session' in kind.__doc__
        with kind(box=box) as executor:
            assert executor.execute('x = 20').error is None
            assert executor.execute('x + 1') == PythonToolOutput(output=21, error=None, logs='', is_final_answer=False)
            failed = executor.execute('print("said")\nx / 0')
            assert failed.output == '' and 'ZeroDivisionError: division by zero' in failed.error and failed.logs == 'said\n'
            executor.restart_session()
            assert 'defined' in executor.execute('x').error
            done = executor.execute('import time\ntime.sleep(60)' if kind is LocalPythonExecutor else 'while True: pass', timeout=0.5)
            assert done.error == 'Execution timed out'
    with pytest.raises(TypeError):
        PythonExecutor()


def test_local_executor_has_the_base_modules(box):
    assert len(BASE_BUILTIN_MODULES) == 17 == len(LocalPythonExecutor.BASE_BUILTIN_MODULES)
    with LocalPythonExecutor(['numpy', 'json'], max_print_outputs_length=2000, box=box) as executor:
        assert executor.authorized_imports == sorted({*BASE_BUILTIN_MODULES, 'numpy'})
        executor.setup_session()
        assert executor.execute('\n'.join(f'import {name}' for name in sorted(BASE_BUILTIN_MODULES))).error is None
        assert executor.execute('import numpy as np\nint(np.arange(4).sum())').output == 6
        assert 'Import of os is not allowed' in executor.execute('import os').error
        assert len(executor.execute('print("x" * 5000)').logs) < 2100


def test_local_executor_has_modules_imported(box):
    with LocalPythonExecutor([], box=box) as executor:
        for _ in range(2):
            assert executor.execute('math.floor(math.pi), json.dumps([1]), random.choice([7])').output == (3, '[1]', 7)
            executor.restart_session()


def test_local_executor_output(box):
    with LocalPythonExecutor([], box=box) as executor:
        assert executor.execute('result = 2 * 7\nprint("so")') == PythonToolOutput(14, None, 'so\n')
        assert executor.execute('_result = (1, 2)\nprint(1)').output == (1, 2)
        assert executor.execute('print(1)').output == ''
        assert executor('6 * 7').output == 42, 'as smolagents calls it'


def test_modules_that_are_not_installed(box):
    words = '^Non-installed authorized modules: no_such_module_at_all. Please install these modules or remove them'
    for make in (LocalPythonExecutor, smolagents.GloveboxExecutor):
        with pytest.raises(smolagents.InterpreterError, match=words):
            make(['math', 'no_such_module_at_all'], box=box)


def test_docker_executor_limits(box):
    with DockerExecutor(box=box) as executor:
        limits = executor.session.info()['limits']
        assert (limits['memory_bytes'], limits['cpus'], limits['processes']) == (128 << 20, 0.5, 50)
        assert executor.execute('print(6 * 7)').output == '42\n', 'what was printed'
        assert 'MemoryError' in executor.execute('x = ["x" * 10**6 for _ in range(300)]').error
        assert 'Read-only' in executor.execute('open("/usr/x", "w")').error
        assert executor.execute('import socket\nsocket.create_connection(("192.0.2.1", 80))').error
    with DockerExecutor(additional_authorized_imports=['math', 'json'], memory_limit='256m', timeout=60, cpu_quota=150_000, pids_limit=20, box=box) as executor:
        limits = executor.session.info()['limits']
        assert (limits['memory_bytes'], limits['cpus'], limits['processes'], executor.timeout_seconds) == (256 << 20, 1.5, 20, 60)
    kwargs = {'mem_limit': '200m', 'cpu_quota': 80_000, 'network_mode': 'none'}
    with DockerExecutor([], None, container_run_kwargs=kwargs, host='127.0.0.1', port=8888, box=box) as executor:
        assert executor.session.info()['limits']['memory_bytes'] == 200 << 20
    for wrong in ({'memory_limit': 'much'}, {'readonly': False}, {'network_mode': 'host'}):
        with pytest.raises(ValueError):
            DockerExecutor(box=box, **wrong)


def test_wasm_executor_starts_nothing(box):
    with WasmExecutor(box=box) as executor:
        assert 'not permitted' in executor.execute('import subprocess\nsubprocess.run(["true"])').error


def test_glovebox_executor_takes_limits_as_written(box):
    with smolagents.GloveboxExecutor(['json'], memory_limit='256m', timeout=60, box=box) as executor:
        assert executor.session.info()['limits']['memory_bytes'] == 256 << 20 and executor.timeout_seconds == 60
        assert executor.authorized_imports == sorted({*smolagents.BASE_BUILTIN_MODULES, 'json'})
        executor('x = 1')
        executor.restart_session()
        with pytest.raises(smolagents.InterpreterError, match='`x` is not defined'):
            executor('x')


def test_final_answers_by_call_and_by_print(box):
    for kind in (LocalPythonExecutor, DockerExecutor):
        with kind(box=box) as executor:
            assert executor.execute('final_answer(14)') == PythonToolOutput(14, None, '', True)
            said = executor.execute('result = 2 * 7\nprint(f"final_answer: The result is {result}")')
            assert said.is_final_answer and said.output == 'The result is 14' and said.error is None
            assert executor.execute('print("FINAL_ANSWER: x")').output == 'x'
            assert executor.execute('print("Answer: 42")') == PythonToolOutput('42', None, 'Answer: 42\n', True)
            assert not executor.execute('print("The Answer: 42")').is_final_answer
        with kind(box=box, printed_final_answers=False) as executor:
            assert not executor.execute('print("final_answer: 1")').is_final_answer
    with LocalPythonExecutor([], box=box) as executor:
        assert executor.execute('result = "Answer: 42"') == PythonToolOutput('Answer: 42', None, '', True)
    assert printed_final_answer('a\nfinal_answer: 1\nfinal_answer: 2\n') == '2' and printed_final_answer('no') is None


# ---- tinyAgent's ------------------------------------------------------------------------


def test_tinyagent_names():
    assert len(tinyagent.PythonExecutor.SAFE_BUILTINS) == 21 and 'sorted' in tinyagent.PythonExecutor.SAFE_BUILTINS
    assert tinyagent.FinalResult(3).value == 3


def test_tinyagent_import_function(box):
    with tinyagent.PythonExecutor(['math', 'json'], box=box) as executor:
        assert executor.run('print(__import__("math").floor(2.5))') == ('2', False)
        assert executor.run('f = __import__\nprint(f("json", fromlist=["dumps"]).dumps([1]))') == ('[1]', False)
        for call in ('__import__("os")', '__import__("os", None, None, ["path"])', '__import__("os", fromlist=["path"])', 'print(__import__("os"))'):
            with pytest.raises(RuntimeError, match="^Import 'os' not allowed$"):
                executor.run(call)
        with pytest.raises(RuntimeError, match="^Import 'os.path' not allowed$"):
            executor.run('__import__("os.path")')


def test_tinyagent_errors_have_their_classes(box):
    with tinyagent.PythonExecutor(box=box, limits={'memory_bytes': 200 << 20}) as executor:
        for name in ('eval', 'exec', 'open', 'compile', 'input', 'globals', 'isinstance', 'getattr'):
            with pytest.raises(NameError, match=f"^name '{name}' is not defined$"):
                executor.run(f'print({name})')
        with pytest.raises(MemoryError):
            executor.run('x = []\nwhile True:\n    x.append("x" * 1_000_000)')
        assert executor.run('print("alive")') == ('alive', False)


def test_tinyagent_collections_are_allowed(box):
    code = 'from collections import defaultdict\nd = defaultdict(int)\nd["a"] += 1\nprint(dict(d))'
    with tinyagent.PythonExecutor(box=box) as executor:
        assert executor.run(code) == ("{'a': 1}", False)
    assert box.run(code, profile='tinyagent').stdout == "{'a': 1}\n"


@pytest.mark.parametrize('profile', ['python', 'restricted', 'restrictedpython', 'tinyagent', 'tinyagent-0.73.5'])
def test_final_answer_returns_its_value(box, profile):
    seen = box.run('print(final_answer(9) + 1)', profile=profile)
    assert (seen.stdout, seen.is_final_answer, seen.final_answer) == ('10\n', True, 9)
    assert box.run('final_answer(answer=3) + 1', profile=profile).value == 4


def colours(png):
    from PIL import Image

    return {colour for _, colour in Image.open(io.BytesIO(png)).convert('RGB').getcolors(1 << 24)}


# ---- the server side of coding_env ---------------------------------------------------------


def test_coding_env_executors(daemon):
    for kind in (PyExecutor, RestrictedPythonExecutor):
        with kind(['math'], url=daemon.url) as executor:
            assert isinstance(executor, ExecutorBackend)
            assert executor.run('x = 20\ndef f(n):\n    return n + 1').exit_code == 0
            assert executor.run('print(f(x))') == CodeExecResult(stdout='21\n', stderr='', exit_code=0)
            failed = executor.run('print("said")\n1 / 0')
            assert failed.exit_code == 1 and 'said' in failed.stdout and 'ZeroDivisionError' in failed.stderr
            assert 'Import of os is not allowed' in executor.run('import os').stderr
            assert executor.get_captured_screenshot() is None
            code = 'from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\np = P(3)\np.x += 1\nprint(p, safe_json_dumps([1]))'
            assert executor.run(code).stdout == 'P(x=4) [1]\n'
    with pytest.raises(TypeError):
        ExecutorBackend()


def test_coding_env_executors_take_pictures(daemon):
    """Any run may ask for one, as the first or a later one; the windows are painted before it."""
    window = 'import tkinter as tk\nroot = tk.Tk()\ntk.Label(root, text="Hello", bg="gold", width=20, height=5).pack()'
    for kind in (PyExecutor, RestrictedPythonExecutor):
        with kind(['tkinter'], url=daemon.url) as executor:
            assert executor.run('x = 1').exit_code == 0 and executor.get_captured_screenshot() is None
            assert executor.run(window, capture_screenshot=True, render_timeout=2.0).exit_code == 0
            picture = executor.get_captured_screenshot()
            assert type(picture) is str and (255, 215, 0) in colours(base64.b64decode(picture))
            executor.clear_screenshot()
            assert executor.get_captured_screenshot() is None


def test_coding_env_executors_need_their_modules(daemon):
    words = '^Non-installed authorized modules: no_such_module_at_all. Please install these modules or remove them'
    for make in (PyExecutor, RestrictedPythonExecutor, PythonCodeActEnv):
        with pytest.raises(smolagents.InterpreterError, match=words):
            make(['math', 'no_such_module_at_all'], url=daemon.url)


def test_coding_env_environment(daemon):
    with PythonCodeActEnv(['math'], executor_backend='restrictedpython', url=daemon.url) as env:
        first = env.reset()
        assert (first.stdout, first.exit_code) == ('', 0)
        seen = env.step(CodeAction('import math\nx = 1\nprint(math.floor(2.5))'))
        assert seen.stdout == '2\n' and seen.reward == 0.1
        assert env.state.step_count == 1 and env.state.episode_id and env.state.last_exit_code == 0
        assert env.step(CodeAction(code='print(x)')).stdout == '1\n'
        env.reset()
        assert env.state.step_count == 0 and 'NameError' in env.step(CodeAction('print(x)')).stderr
        with pytest.raises(ValueError, match='CodeAction'):
            env.step('print(1)')
    for backend in ('restricted', 'python'):  # profiles that coding_env has not
        with PythonCodeActEnv(executor_backend=backend, url=daemon.url) as env:
            assert env.step(CodeAction('print(1)')).stdout == '1\n'
    with pytest.raises(ValueError, match='smolagents, restricted, restrictedpython'):
        PythonCodeActEnv(executor_backend='nonsense', url=daemon.url)


def test_code_executor_has_the_limits_of_its_container(box):
    with CodeExecutor(box) as executor:
        limits = executor.session.info()['limits']
        assert (limits['memory_bytes'], limits['cpus'], limits['timeout_s']) == (2 << 30, 1, 30)
    with CodeExecutor(box, limits={'memory_bytes': 1 << 30}) as executor:
        assert executor.session.info()['limits']['memory_bytes'] == 1 << 30
