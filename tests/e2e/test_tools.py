"""Functions of the client, called by code in a session: over a WebSocket and by long poll."""

import re
import threading

import gb
import pytest


def schema(required=(), **properties):
    return {'type': 'object', 'properties': properties, 'required': list(required)}


INT, TEXT = {'type': 'integer'}, {'type': 'string'}
ADD = {
    'name': 'add',
    'description': 'Adds two numbers.',
    'parameters': schema(['a'], a={**INT, 'description': 'the first'}, b={**INT, 'default': 2}),
    'returns': {**INT, 'description': 'the sum'},
}


def tool(name='ask', parameters=None, **fields):
    return {'name': name, 'parameters': parameters or schema(x={}), **fields}


class Server:
    """A client that answers calls with functions: handlers[name](arguments) is a value, an exception, or None for no answer."""

    def __init__(self, session, *tools, **handlers):
        self.session, self.handlers = session, handlers
        self.calls, self.cancelled = [], []
        self.socket = session.socket()
        self.give(*tools)

    def give(self, *tools):
        self.socket.send('tools', tools=list(tools))
        self.answer = self.socket.receive()
        return self.answer

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def reply(self, call, value):
        if isinstance(value, Exception):
            self.socket.send('tool_result', call=call, error={'type': type(value).__name__, 'message': str(value)})
        else:
            self.socket.send('tool_result', call=call, value=value)

    def run(self, code, **fields):
        id = self.socket.send('execute', code=code, **fields)
        while True:
            m = self.socket.receive()
            if m['type'] == 'tool_call':
                self.calls.append(m)
                value = self.handlers[m['tool']](m['arguments'])
                if value is not NO_ANSWER:
                    self.reply(m['call'], value)
            elif m['type'] == 'tool_cancel':
                self.cancelled.append(m)
            elif m['type'] == 'done':
                assert m['id'] == id
                return gb.Observation(m['observation'])
            elif m['type'] == 'error':
                return m


NO_ANSWER = object()


@pytest.fixture
def serve(session):
    made = []

    def start(*tools, **handlers):
        made.append(Server(session, *tools, **handlers))
        return made[-1]

    yield start
    for server in made:
        server.socket.close()


def add(a):
    return a['a'] + a['b']


# ---- a function like any other ---------------------------------------------------------


def test_it_is_an_ordinary_function(serve):
    s = serve(ADD, add=add)
    assert [t['name'] for t in s.answer['tools']] == ['add'] and s.answer['type'] == 'tools'
    assert s.run('add(1), add(1, 5), add(b=1, a=3), [add(i) for i in range(3)]').text == '(3, 6, 4, [2, 3, 4])'
    assert s.calls[0]['arguments'] == {'a': 1, 'b': 2} and s.calls[0]['cell'] == 1
    assert len({c['call'] for c in s.calls}) == 6
    code = 'import inspect, types\nprint(inspect.signature(add))\nprint(inspect.getdoc(add))\nisinstance(add, types.FunctionType)'
    o = s.run(code).ok()
    assert o.stdout.splitlines() == [
        '(a: int, b: int = 2) -> int', 'Adds two numbers.', '', 'Args:', '    a (int): the first', '', 'Returns:', '    int: the sum',
    ]
    assert o.text == 'True'


def test_prints_come_before_the_call_they_precede(serve):
    order = []
    s = serve(ADD, add=lambda a: order.append('call') or 1)
    s.socket.send('execute', code='print("before")\nadd(1)')
    while (m := s.socket.receive())['type'] != 'done':
        if m['type'] == 'tool_call':
            s.reply(m['call'], 1)
        order.append(m['type'])
    assert order.index('stdout') < order.index('tool_call')


def test_optional_parameters_odd_names_and_more(serve):
    odd = tool('odd', schema(['from'], **{'from': TEXT}))
    more = tool('more', {'type': 'object', 'properties': {'a': INT}, 'additionalProperties': INT})
    late = tool('late', schema(['y'], x={**INT, 'default': 1}, y=INT))
    left_out = tool('left_out', schema(['q'], q=TEXT, limit=INT))
    echo = lambda a: a
    s = serve(odd, more, late, left_out, tool('nothing', {'type': 'object'}), odd=echo, more=echo, late=echo, left_out=echo, nothing=echo)
    assert s.run('odd(**{"from": "x"})').text == "{'from': 'x'}"
    assert s.run('more(a=1, b=2)').text == "{'a': 1, 'b': 2}"
    assert s.run('late(y=5), late(3, y=4)').text == "({'x': 1, 'y': 5}, {'x': 3, 'y': 4})"
    assert s.run('left_out("a"), left_out("a", None), left_out("a", 3)').text == "({'q': 'a'}, {'q': 'a'}, {'q': 'a', 'limit': 3})"
    assert s.run('nothing()').text == '{}'
    names = tool('call', {**schema(call=INT, more=INT, arguments=INT, name=INT, space=INT), 'additionalProperties': True})
    s.give(names)
    s.handlers['call'] = echo
    assert s.run('call(1, 2, 3, 4, space=5, x=6)').result['application/json'] == {'call': 1, 'more': 2, 'arguments': 3, 'name': 4, 'space': 5, 'x': 6}


def test_typed_values_go_both_ways(serve):
    s = serve(tool(), ask=lambda a: a['x'])
    code = """
import datetime, decimal, pathlib, dataclasses, numpy as np
from PIL import Image
@dataclasses.dataclass
class P:
    x: int
    y: tuple
values = [(1, (2,)), {3}, frozenset([4]), b'\\x00\\xff', 1+2j, datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.date(2020, 1, 2),
    datetime.time(1, 2), datetime.timedelta(days=1, microseconds=5), decimal.Decimal('1.10'), pathlib.Path('/a/b'), {(1, 2): 'x', 'y': [None]},
    {'__type__': 'tuple', 'data': 7}, 2**200, -2**63, float('inf'), 'é€\\U0001f600', {'a': {'b': [1, 2.5, True]}}]
back = [ask(v) for v in values]
assert back == values, [(a, b) for a, b in zip(back, values) if a != b]
assert [type(b) for b in back] == [type(v) for v in values]
nan = ask(float('nan')); assert nan != nan
array = ask(np.arange(6, dtype='int16').reshape(2, 3))
assert array.dtype == 'int16' and array.tolist() == [[0, 1, 2], [3, 4, 5]]
assert ask(np.float64(2.5)) == 2.5 and ask(np.int32(7)) == 7
image = ask(Image.new('RGB', (3, 2), 'red')); assert image.size == (3, 2) and image.getpixel((0, 0)) == (255, 0, 0)
point = ask(P(1, (2, 3))); assert point.x == 1 and point.y == (2, 3)
'fine'
"""
    assert s.run(code).ok().text == "'fine'"
    assert s.calls[0]['arguments']['x'] == {'__type__': 'tuple', 'data': [1, {'__type__': 'tuple', 'data': [2]}]}


def test_source_is_defined_in_the_session_itself(serve):
    source = 'import math\nK = 10\ndef area(r):\n    "of a circle"\n    return round(math.pi * r * r * K, 2)\n'
    cls = 'class Tool:\n    def __call__(self, x):\n        return self.forward(x)\n    def forward(self, x):\n        return x * 2\ndouble = Tool()\n'
    s = serve({'name': 'area', 'source': source}, {'name': 'double', 'source': cls}, {'name': 'broken', 'source': 'x = 1/0'})
    assert s.run('area(1), area.__doc__, double(4), "K" in globals()').text == "(31.42, 'of a circle', 8, False)"
    o = s.run('broken(1)')
    assert o.error['type'] == 'ToolError' and 'ZeroDivisionError' in o.error['message']
    assert not s.calls
    s.session.reset()
    assert s.run('double(5)').text == '10', 'also in a fresh interpreter'


def test_tools_are_replaced_and_survive_a_reset(serve, session):
    s = serve(ADD, tool(), add=add, ask=lambda a: 'first')
    assert s.run('x = add(1)\nask(1)').text == "'first'"
    session.reset()
    assert s.run('add(2)').text == '4'
    assert s.run('import os\nos._exit(0)').status == 'killed'
    assert s.run('add(3)').text == '5'
    s.give(tool('other'))
    s.handlers['other'] = lambda a: 'other'
    assert s.run('other(), "add" in globals(), "ask" in globals()').text == "('other', False, False)"
    assert session.api.get(f'{session.path}/tools').json()['tools'][0]['calls'] == 1


# ---- what goes wrong -------------------------------------------------------------------


def test_errors_of_the_tool_are_raised_in_the_cell(serve):
    raised = {'v': ValueError('bad value'), 'k': KeyError('key'), 's': StopIteration('no'), 'u': UnicodeDecodeError('utf-8', b'', 0, 1, 'r')}

    class Odd(Exception):
        pass

    s = serve(tool(), ask=lambda a: raised.get(a['x'], Odd('odd one')))
    o = s.run('try:\n    ask("v")\nexcept ValueError as e:\n    print("caught", e)\nask("k")')
    assert o.stdout == 'caught bad value\n' and o.error['type'] == 'KeyError'
    assert o.error['line'] == 5 and '<glovebox>' not in o.error['traceback']
    assert s.run('ask("x")').error['message'] == 'Odd: odd one'
    assert s.run('ask("x")').error['type'] == 'ToolError'
    assert s.run('[ask("s") for _ in range(2)]').error['type'] == 'ToolError'
    assert s.run('ask("u")').error['type'] == 'ToolError'


def test_the_schema_holds_both_ways(serve):
    s = serve(ADD, add=lambda a: 'no number' if a['a'] == 5 else add(a))
    o = s.run('add("x")')
    assert o.error['type'] == 'ToolArgumentError' and o.error['message'] == 'add(): $.a: must be of type "integer", not a string'
    assert s.run('try:\n    add([1])\nexcept TypeError as e:\n    print("as a TypeError")').stdout == 'as a TypeError\n'
    assert s.run('add()').error['type'] == 'TypeError'
    assert s.run('add(1, c=2)').error['type'] == 'TypeError'
    assert not s.calls, 'nothing of this reached the client'
    o = s.run('add(5)')
    assert o.error['type'] == 'ToolResultError' and 'not a string' in o.error['message']
    o = s.run('add(object())')
    assert o.error['type'] == 'ToolArgumentError' and 'Cannot safely serialize object of type object' in o.error['message']
    deep = s.run('x = []\nfor _ in range(100): x = [x]\nadd(x)')
    assert deep.error['type'] == 'ToolArgumentError' and 'levels deep' in deep.error['message']


def test_a_tool_that_does_not_answer_times_out(serve):
    s = serve(tool(timeout_s=0.3), ask=lambda a: NO_ANSWER)
    o = s.run('try:\n    ask(1)\nexcept TimeoutError as e:\n    print(type(e).__name__, e)')
    assert o.stdout == "ToolTimeout 'ask' did not answer within 0.3 s\n"
    assert [c['reason'] for c in s.cancelled] == ['its time limit had passed']
    s.reply(s.calls[0]['call'], 1)
    late = s.socket.receive()
    assert late['type'] == 'error' and late['code'] == 'call_not_found'


def test_time_spent_in_a_tool_does_not_count(serve):
    def slow(a):
        threading.Event().wait(2)
        return a['x']

    s = serve(tool(), ask=slow)
    assert s.run('ask(1)', timeout_s=1.5).ok().text == '1'
    assert s.run('ask(1)\nwhile True: pass', timeout_s=0.5).status == 'timeout', 'what comes after does'


def test_budgets(serve):
    s = serve(tool(max_calls=3), ask=lambda a: a['x'])
    o = s.run('for i in range(9): print(ask(i))')
    assert o.stdout == '0\n1\n2\n' and o.error['type'] == 'ToolBudgetError'
    s.give(tool(max_calls=3))
    assert s.run('ask(1)').ok().text == '1', 'given anew, counted anew'


def test_interrupt_while_a_call_waits(serve, session):
    s = serve(tool(), ask=lambda a: NO_ANSWER)
    id = s.socket.send('execute', code='try:\n    ask(1)\nexcept KeyboardInterrupt:\n    print("stopped")')
    seen = []
    while not seen or seen[-1]['type'] != 'done':
        seen.append(s.socket.receive())
        if seen[-1]['type'] == 'tool_call':
            session.interrupt()
    kinds = [m['type'] for m in seen]
    assert seen[-1]['observation']['stdout'] == 'stopped\n' and 'tool_cancel' in kinds
    s.handlers['ask'] = lambda a: 'still works'
    assert s.run('ask(1)').text == "'still works'"


def test_a_client_that_leaves(serve, session):
    s = serve(tool(timeout_s=50), ask=lambda a: NO_ANSWER)
    cell = session.in_background('try:\n    ask(1)\nexcept ToolUnavailable as e:\n    print(e)')
    assert s.socket.receive()['type'] == 'tool_call'
    s.socket.close()
    assert cell.result().stdout == "'ask' gave no answer: the client that answers the tool has disconnected\n"
    o = session.execute('ask(1)')
    assert o.error['type'] == 'ToolUnavailable' and o.error['message'] == "the client that answers 'ask' has disconnected"
    again = serve(tool(), ask=lambda a: 'back')
    assert again.run('ask(1)').text == "'back'", 'another client takes it over'


# ---- many at once ----------------------------------------------------------------------


def test_calls_from_threads_wait_at_once(serve):
    waiting = []
    s = serve(tool(), ask=lambda a: waiting.append(a['x']) or NO_ANSWER)
    s.socket.send('execute', code='from concurrent.futures import ThreadPoolExecutor as T\nlist(T(12).map(ask, range(12)))')
    calls = []
    while len(calls) < 12:
        m = s.socket.receive()
        calls += [m] if m['type'] == 'tool_call' else []
    for m in reversed(calls):
        s.reply(m['call'], m['arguments']['x'] * 10)
    while (m := s.socket.receive())['type'] != 'done':
        pass
    assert m['observation']['result']['application/json'] == [i * 10 for i in range(12)]


def test_async_tools(serve):
    s = serve(tool('fetch', schema(['x'], x=INT), **{'async': True}))
    code = """
import asyncio
async def one(i):
    try:
        return await fetch(i)
    except ValueError as e:
        return str(e)
task = asyncio.ensure_future(fetch(99))
found = await asyncio.gather(*(one(i) for i in range(40)))
task.cancel()
try:
    await task
except asyncio.CancelledError:
    found.append('cancelled')
found
"""
    s.socket.send('execute', code=code)
    calls, seen = [], []
    while not seen or seen[-1]['type'] != 'done':
        seen.append(s.socket.receive())
        if seen[-1]['type'] == 'tool_call':
            calls.append(seen[-1])
        if len(calls) == 41:
            for c in reversed(calls[1:]):
                i = c['arguments']['x']
                s.reply(c['call'], i if i % 2 else ValueError(f'no {i}'))
            calls.append(None)
    o = gb.Observation(seen[-1]['observation']).ok()
    assert o.result['application/json'] == [i if i % 2 else f'no {i}' for i in range(40)] + ['cancelled']
    assert [m['reason'] for m in seen if m['type'] == 'tool_cancel'] == ['the code no longer waits for the answer']
    assert s.run('import inspect\ninspect.iscoroutinefunction(fetch)').text == 'True'


def test_threads_left_behind_by_a_cell(serve):
    s = serve(tool(), ask=lambda a: NO_ANSWER)
    code = """
import threading
said = []
def work():
    for _ in range(2):
        try:
            ask(1)
        except Exception as e:
            said.append(f'{type(e).__name__}: {e}')
        done.wait(30)
done = threading.Event()
t = threading.Thread(target=work); t.start()
"""
    s.socket.send('execute', code=code)
    while s.socket.receive()['type'] != 'done':
        pass
    s.handlers['ask'] = lambda a: 'answered'
    o = s.run('import time\nwhile not said: time.sleep(0.01)\ndone.set(); t.join(); said')
    said = o.ok().result['application/json']
    assert said[0] in (
        'ToolCancelled: the cell ended before the answer came',
        'RuntimeError: tools can only be called while a cell runs',
    )


def test_a_forked_process_cannot_call(serve):
    s = serve(tool(), ask=lambda a: 'parent')
    code = """
import os
r, w = os.pipe()
pid = os.fork()
if not pid:
    try:
        ask(1)
    except RuntimeError as e:
        os.write(w, str(e).encode())
    os._exit(0)
os.waitpid(pid, 0)
os.read(r, 200).decode(), ask(2)
"""
    assert s.run(code).ok().text == "('tools cannot be called from a process that was forked', 'parent')"


def test_sockets_have_tools_of_their_own(serve):
    one = serve(tool('mine'), mine=lambda a: 1)
    two = serve(tool('yours'), yours=lambda a: 2)
    assert {t['name'] for t in two.answer['tools']} == {'mine', 'yours'}
    assert two.run('yours(1)').text == '2'
    two.socket.close()
    assert one.run('try:\n    yours(1)\nexcept ToolUnavailable:\n    print("gone")\nmine(1)').stdout == 'gone\n'


# ---- refused and forged ----------------------------------------------------------------


def test_a_tool_answers_input(serve, session):
    asked = []

    def ask(given):
        asked.append((given['prompt'], given['password']))
        return EOFError('no more') if given['prompt'] == 'end' else given['prompt'].upper()

    s = serve({'name': 'keyboard', 'input': True}, keyboard=ask)
    seen = s.run('import getpass\nprint("before")\ninput("a"), getpass.getpass("b"), input(5)').ok()
    assert (seen.text, seen.stdout) == ("('A', 'B', '5')", 'before\n') and asked == [('a', False), ('b', True), ('5', False)]
    assert s.run('input("end")').error['message'] == 'no more' and s.run('keyboard()').error['type'] == 'NameError'
    assert s.run('input("a")', stdin='given\n').ok().text == "'given'", 'the text of the request is the whole input'
    assert s.run('import io, sys\nold = sys.stdin\nsys.stdin = io.StringIO("own\\n")\ntry:\n    x = input("a")\nfinally:\n    sys.stdin = old\nx').ok().text == "'own'"
    assert len(asked) == 4
    s.socket.close()
    gb.wait_until(lambda: 'nobody answered' in session.execute('input()').error['message'], 'the client has left')


def test_bad_definitions_are_explained(serve, session):
    s = serve(tool())
    for tools, says in (
        ([{'name': 'a b'}], '$.tools[0].name: must be a Python identifier'),
        ([tool(parameters={'type': 'object', 'properties': {'x': {'$ref': '#/y'}}})], '"$ref" is not understood here'),
        ([tool(), tool()], "there is another 'ask'"),
        ('no list', '$.tools: must be a list'),
    ):
        s.socket.send('tools', tools=tools)
        m = s.socket.receive()
        assert m['type'] == 'error' and m['status'] == 400 and says in m['detail'], m
        answer = session.api.put(f'{session.path}/tools', json={'tools': tools})
        assert answer.status_code == 400 and says in answer.json()['detail']
    s.handlers['ask'] = lambda a: 'as before'
    assert s.run('ask(1)').text == "'as before'"


def wire_number(name):
    """The value of an enumerator of src/wire/wire.h."""
    text = re.sub(r'/\*.*?\*/', '', (gb.ROOT / 'src/wire/wire.h').read_text(), flags=re.S)
    body = next(m[1] for m in re.finditer(r'enum wire_\w+ \{(.*?)\}', text, re.S) if re.search(rf'\b{name}\b', m[1]))
    value = -1
    for word in body.split(','):
        found, _, given = word.partition('=')
        value = int(given) if given.strip() else value + 1
        if found.strip() == name:
            return value


def test_forged_frames_end_only_their_interpreter(serve):
    s = serve(tool(), ask=lambda a: 1)
    code = """
import os, struct, sys
def frame(kind, fields):
    data = b''.join(struct.pack('<BI', tag, len(b)) + b for tag, b in fields)
    return struct.pack('<IB3xI', len(data), kind, int(__import__('inspect').currentframe().f_back.f_code.co_filename.split()[1][:-1])) + data
os.write(1023, frame({kind}, {fields}))
import time; time.sleep(30)
"""
    call, text, data = (wire_number(name) for name in ('WIRE_CALL', 'WIRE_TEXT', 'WIRE_JSON'))
    for fields in ('[]', f"[({call}, b'12')]", f"[({call}, bytes(8)), ({text}, b'ask'), ({data}, b'{{}}')]"):
        o = s.run(code.replace('{fields}', fields).replace('{kind}', str(wire_number('WIRE_TOOL_CALL'))))
        assert o.status == 'killed' and (o.state_lost or o.rolled_back), o
    assert s.run('ask(1)').text == '1'


# ---- long poll -------------------------------------------------------------------------


def test_long_poll(session):
    api, path = session.api, f'{session.path}/tools'
    assert api.put(path, json={'tools': [ADD, tool()]}).status_code == 200
    assert [t['name'] for t in api.get(path).json()['tools']] == ['add', 'ask']
    assert api.get(f'{path}/calls?wait_s=0').json() == {'calls': []}
    cell = session.in_background('print(add(40))\ntry:\n    ask("q")\nexcept LookupError as e:\n    print(repr(e))')
    (call,) = api.get(f'{path}/calls').json()['calls']
    assert call['tool'] == 'add' and call['arguments'] == {'a': 40, 'b': 2}
    assert api.get(f'{path}/calls?wait_s=0').json() == {'calls': []}, 'handed out once'
    assert api.post(f'{path}/calls/{call["call"]}', json={'value': 42}).status_code == 204
    assert api.post(f'{path}/calls/{call["call"]}', json={'value': 42}).status_code == 404
    (call,) = api.get(f'{path}/calls').json()['calls']
    assert call['tool'] == 'ask' and call['arguments'] == {'x': 'q'}
    error = {'type': 'KeyError', 'message': 'q'}
    assert api.post(f'{path}/calls/{call["call"]}', json={'error': error}).status_code == 204
    assert cell.result().stdout == "42\nKeyError('q')\n"


def test_long_poll_that_nobody_does(session):
    session.api.put(f'{session.path}/tools', json={'tools': [tool(timeout_s=0.2)]})
    o = session.execute('ask(1)')
    assert o.error['type'] == 'ToolTimeout' and 'no client fetched the call' in o.error['message']


def test_long_poll_of_a_session_that_ends(session):
    session.api.put(f'{session.path}/tools', json={'tools': [tool()]})
    before = session.api.metric('glovebox_http_connections_total')
    answers = []

    def poll():
        with gb.Api(session.api.url) as other:
            answers.append(other.get(f'{session.path}/tools/calls?wait_s=60'))

    thread = threading.Thread(target=poll)
    thread.start()
    gb.wait_until(lambda: session.api.metric('glovebox_http_connections_total') > before, 'somebody waits')
    session.delete()
    thread.join(gb.PATIENCE)
    assert answers and answers[0].status_code == 410


def test_metrics_count_calls(serve, session):
    before = session.api.metrics()
    s = serve(ADD, add=add)
    s.run('add(1)\nadd("x")')
    after = session.api.metrics()
    assert after['glovebox_tool_calls_total'] - before['glovebox_tool_calls_total'] == 2
    assert after['glovebox_tool_errors_total'] - before['glovebox_tool_errors_total'] == 1
