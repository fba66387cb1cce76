"""Functions made from definitions, and the values that travel."""

import inspect
import json
import math

import pytest


@pytest.fixture
def call(gb):
    """define(definition) puts it into a namespace; its calls are noted and answered with what `answer` holds."""
    calls = []
    space = {}

    def send(name, text, for_loop):
        calls.append((name, json.loads(text)))
        return len(calls)

    gb._tool_send = send
    gb._tool_wait = lambda number: call.answer

    def call(*definitions):
        gb.define_tools(json.dumps(definitions), space)
        return space

    call.answer, call.calls = (True, 'null'), calls
    return call


def definition(name='f', required=(), more=False, **properties):
    schema = {'type': 'object', 'properties': properties, 'required': list(required), 'additionalProperties': more}
    return {'name': name, 'parameters': schema}


def test_signatures(call):
    number, text = {'type': 'integer'}, {'type': 'string', 'nullable': True}
    space = call(
        definition('a', ['x'], x=number, y={**number, 'default': 3}),
        definition('b', ['y'], x=text, y=number),
        definition('c', more=True, x={}),
        definition('d', ['class'], **{'class': number}),
    )
    shown = [str(inspect.signature(space[n])) for n in 'abcd']
    assert shown == [
        '(x: int, y: int = 3)',
        "(x: 'str | None' = Ellipsis, *, y: int)",
        '(x=Ellipsis, **__more)',
        '(**__arguments)',
    ]
    space['a'](1)
    space['b'](y=2)
    space['b'](None, y=2)
    space['c'](more=5)
    space['d'](**{'class': 1})
    assert [c[1] for c in call.calls] == [{'x': 1, 'y': 3}, {'y': 2}, {'x': None, 'y': 2}, {'more': 5}, {'class': 1}]


def test_answers_and_errors(call, gb):
    f = call(definition())['f']
    call.answer = (True, '{"__type__": "tuple", "data": [1]}')
    assert f() == (1,)
    for name, kind in (('KeyError', KeyError), ('ToolTimeout', gb.ToolTimeout), ('KeyboardInterrupt', gb.ToolError), ('Odd', gb.ToolError)):
        call.answer = (False, name, 'why')
        with pytest.raises(kind, match='why'):
            f()
    assert issubclass(gb.ToolTimeout, TimeoutError) and issubclass(gb.ToolArgumentError, TypeError)


def test_given_anew(call):
    space = call(definition('f'), definition('g'))
    mine = space['g'] = object()
    call(definition('h'))
    assert 'f' not in space and space['g'] is mine and callable(space['h'])


def test_markers(gb):
    for value in ((1, [2]), {'a': {3}}, frozenset({4}), b'\0', 1 - 2j, {1: 2}, {'__type__': 'set'}, 2**70, -math.inf, 'é'):
        data = json.loads(json.dumps(gb.to_json(value), allow_nan=False))
        assert gb.from_json(data) == value and type(gb.from_json(data)) is type(value)
    assert gb.to_json('\ud800') == '\\ud800'
    for bad in (object(), print, [lambda: 0]):
        with pytest.raises(TypeError, match='Cannot safely serialize object of type'):
            gb.to_json(bad)
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match='levels deep'):
        gb.to_json(deep)
    with pytest.raises(ValueError, match='a value of type bytes that cannot be read'):
        gb.from_json({'__type__': 'bytes', 'data': '!'})
    assert gb.from_json({'__type__': 'made up', 'x': 1}) == {'__type__': 'made up', 'x': 1}


def test_typed_results(gb):
    forms = []
    gb.add_typed(forms, {1, 2})
    gb.add_typed(forms, object())
    assert len(forms) == 1 and forms[0][0] == 'application/vnd.glovebox.value+json'
    space = {}
    gb.set_variables('{"x": {"__type__": "tuple", "data": [1]}, "y": {"__type__": "bytes", "data": "!"}}', space)
    assert space == {'x': (1,)}
