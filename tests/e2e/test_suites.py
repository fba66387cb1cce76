"""What the suites of smolagents, OpenEnv, RestrictedPython and tinyAgent found."""

import sys

import gb
import pytest

sys.path.insert(0, str(gb.ROOT / 'clients/python/src'))

from glovebox import Glovebox, Tool  # noqa: E402
from glovebox.integrations import smolagents  # noqa: E402


@pytest.fixture
def box(daemon):
    with Glovebox(daemon.url) as box:
        yield box


def test_lists_of_types_below_the_top_level(box):
    schema = {
        'type': 'object',
        'properties': {
            'rows': {'type': 'array', 'items': {'type': 'object', 'properties': {'a': {'type': ['integer', 'null']}}}},
            'pair': {'type': 'array', 'items': {'type': 'array', 'prefixItems': [{'type': 'string'}, {'type': ['integer', 'string']}]}},
        },
    }
    show = Tool(lambda **given: repr(given), name='show', parameters=schema)
    with box.session(tools=[show]) as session:
        assert session.run('show(rows=[{"a": None}], pair=[["x", 1], ["y", "z"]])').value == "{'rows': [{'a': None}], 'pair': [['x', 1], ['y', 'z']]}"
        assert 'rows[0].a' in session.run('show(rows=[{"a": "x"}])').error.message
        assert 'pair[0][0]' in session.run('show(pair=[[1, 1]])').error.message


class Annotated:
    """As smolagents makes it of `def f(thing: SomeClass)`."""

    name, description, output_type = 'describe', 'Says what it got.', 'string'
    inputs = {'thing': {'type': 'object', 'description': 'An object of some class.'}}

    def __call__(self, *args, **kwargs):
        return repr((*args, *kwargs.values()))


@pytest.mark.parametrize('coerce', [True, False])
def test_tools_annotated_by_a_class(box, coerce):
    with smolagents.GloveboxExecutor(box=box, coerce=coerce) as executor:
        executor.send_tools({'describe': Annotated()})
        assert executor('describe(5), describe({"a": 1}), describe(thing=[1])').output == ('(5,)', "({'a': 1},)", '([1],)')


def test_nul_in_code_is_an_outcome(api):
    words = 'source code cannot contain null bytes'
    for profile in ('python', 'smolagents', 'restricted', 'tinyagent'):
        seen = api.run('print(1)\0', profile=profile)
        assert seen.exit_code == 1 and seen.stdout == '' and words in seen.error['message'], profile
    assert api.run('x\0').error['type'] == 'SyntaxError'
    session = api.session()
    assert words in session.execute('x = 1\0').error['message'] and session.value('1') == '1'
    step = api.post('/step', json={'action': {'code': 'x\0'}}).json()
    assert step['observation']['exit_code'] == 1 and words in step['observation']['stderr']
    said = api.post('/run_code', json={'code': 'x\0'}).json()
    assert said['run_result']['return_code'] == 1 and words in said['run_result']['stderr']
    call = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_python', 'arguments': {'code': 'x\0'}}}
    said = api.post('/mcp', json=call, headers={'Accept': 'application/json, text/event-stream'})
    assert words in said.text and 'isError' in said.text


def test_nan_as_openenv_writes_it(api):
    def stdout(code):
        return api.post('/step', json={'action': {'code': code}}).json()['observation']['stdout']

    assert stdout('float("nan")') == 'NaN'
    assert stdout('[1.5, float("-inf"), {"a": float("inf")}]') == '[1.5, -Infinity, {"a": Infinity}]'
    assert stdout('{1, 2}') == '{1, 2}'


@pytest.mark.parametrize('profile', ['restricted', 'restrictedpython'])
def test_future_imports_beside_printed(api, profile):
    code = '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\nprint("a")\nx = printed\nx'
    assert api.run(code, profile=profile).ok().text == "'a\\n'"


def test_except_star_under_smolagents(api):
    code = (
        'try:\n    raise ExceptionGroup("g", [ValueError(1), TypeError(2)])\n'
        'except* ValueError as e:\n    print("values", len(e.exceptions))\nexcept* TypeError:\n    print("types")'
    )
    assert api.run(code, profile='smolagents').ok().stdout == 'values 1\ntypes\n'
    refused = api.run('try:\n    pass\nexcept* ValueError as e:\n    import os', profile='smolagents')
    assert refused.status == 'refused' and 'Import of os is not allowed' in refused.error['message']


# ---- GloveboxExecutor in the place of LocalPythonExecutor ----------------------------------


def test_state_has_the_variables(box):
    with smolagents.GloveboxExecutor(box=box) as executor:
        executor('x = (1, 2)\ndef f():\n    return 1')
        assert executor.state['x'] == (1, 2) and 'x' in executor.state and executor.state.get('nothing') is None
        assert set(executor.state) >= {'x', '__name__', '_print_outputs'}
        executor.state['y'] = 5
        assert executor.state['y'] == 5 and executor('y + 1').output == 6 and executor.state['y'] == 5
        with pytest.raises(KeyError):
            executor.state['nothing']
        del executor.state['y']
        assert 'y' not in executor.state


def test_static_tools(box):
    with smolagents.GloveboxExecutor(box=box, additional_functions={'double': lambda x: x * 2}) as executor:
        assert executor.static_tools == {}
        executor.send_tools({'describe': Annotated()})
        assert {'describe', 'double'} <= set(executor.static_tools) and executor('double(x=4)').output == 8


def test_timeouts_have_their_own_class(box):
    with smolagents.GloveboxExecutor(box=box, timeout_seconds=0.5) as executor:
        with pytest.raises(smolagents.ExecutionTimeoutError, match='maximum execution time of 0.5 seconds') as caught:
            executor('import time\ntime.sleep(30)')
        assert isinstance(caught.value, smolagents.InterpreterError)


def test_modules_that_are_not_installed_are_told_at_construction(box):
    with pytest.raises(smolagents.InterpreterError, match='Non-installed authorized modules: nonesuch_module'):
        smolagents.GloveboxExecutor(['json', 'nonesuch_module.*', 'os.path'], box=box)
    smolagents.GloveboxExecutor(['json', 'os.path', '*'], box=box).cleanup()
