"""Functions of the client as functions of the session. What they do is done by C: _tool_send, _tool_wait, _tool_next, _tool_drop."""

import keyword

MAX_DOC = 20_000

_VALUE_TYPE = 'application/vnd.glovebox.value+json'

_TYPES = {
    'string': 'str',
    'integer': 'int',
    'number': 'float',
    'boolean': 'bool',
    'array': 'list',
    'object': 'dict',
    'null': 'None',
}
_NOT_RAISED = ('StopIteration', 'StopAsyncIteration')  # they would end the caller's loops instead of telling

_defined = {}  # name: function, as we put them into the session's namespace
_input_tool = None  # the name of the tool that answers input()
_futures = {}  # number of a call: (loop, future)
_delivering = False
_delivery_lock = None


class ToolError(RuntimeError):
    """A tool of the client failed, in a way that no class of Python's own stands for."""


class ToolTimeout(ToolError, TimeoutError):
    """The tool gave no answer in time."""


class ToolArgumentError(ToolError, TypeError):
    """The arguments are not what the tool's schema allows."""


class ToolResultError(ToolError):
    """The tool answered what its schema does not allow."""


class ToolUnavailable(ToolError):
    """Nobody is there to answer: the client left, or the tool was taken away."""


class ToolBudgetError(ToolError):
    """The tool was called as often as is allowed."""


class ToolCancelled(ToolError):
    """The cell ended while the call waited."""


_TOOL_ERRORS = {
    kind.__name__: kind
    for kind in (ToolError, ToolTimeout, ToolArgumentError, ToolResultError, ToolUnavailable, ToolBudgetError, ToolCancelled)
}
for _kind in _TOOL_ERRORS.values():
    _kind.__module__ = 'builtins'


def define_tools(text, namespace):
    """Puts the tools of a JSON list into the namespace, in place of those before."""
    global _input_tool
    _input_tool = None
    for name, function in _defined.items():
        if namespace.get(name) is function:
            del namespace[name]
    _defined.clear()
    for name, kind in _TOOL_ERRORS.items():
        setattr(builtins, name, kind)
    for definition in json.loads(text):
        name = definition['name']
        if definition.get('input'):
            _input_tool = name
            continue
        try:
            function = _from_source(definition) if definition.get('source') else _make_tool(definition)
        except Exception as e:
            _report(e, f'The tool {name} could not be defined:')
            function = _broken_tool(name, _brief(e))
        namespace[name] = _defined[name] = function


def set_variables(text, namespace):
    """Puts the values of a JSON object into the namespace."""
    for name, data in json.loads(text).items():
        try:
            namespace[name] = from_json(data)
        except Exception as e:
            _report(e, f'The variable {name} could not be set:')


def add_typed(forms, value):
    """Adds the form of a value that keeps the types JSON lacks, where it has one that fits."""
    try:
        text = _encode_json(to_json(value))
    except (TypeError, ValueError):
        return
    if _utf8_size(text) <= MAX_FORM and len(forms) < MAX_FORMS:
        forms.append((_VALUE_TYPE, 'j', text))


# ---- making functions --------------------------------------------------


def _from_source(definition):
    name, filename = definition['name'], f'<tool {definition["name"]}>'
    register_source(filename, definition['source'])
    space = {**_defined, '__name__': '__main__', '__builtins__': builtins}  # it may use the tools before it
    exec(compile(definition['source'], filename, 'exec', dont_inherit=True), space)
    if not callable(space.get(name)):
        raise NameError(f'its source defines no function of the name {name}')
    return space[name]


def _broken_tool(name, why):
    def tool(*args, **kwargs):
        raise ToolError(f'{name} could not be defined: {why}')

    tool.__name__ = tool.__qualname__ = name
    return tool


def _make_tool(definition):
    """A function with the signature that the schema says, as if somebody had written it."""
    name, schema = definition['name'], definition['parameters']
    properties, required = schema.get('properties', {}), schema.get('required', ())
    no_none = {p for p in properties if p not in required and not _takes_null(properties[p])}
    is_async = definition.get('async', False)

    def call(arguments):
        for p in list(arguments):
            if arguments[p] is ... or (arguments[p] is None and p in no_none):
                del arguments[p]  # left out
        return (_await_tool if is_async else _call_tool)(name, arguments)

    parameters, collected, defaults = _signature(properties, required, schema.get('additionalProperties'))
    # Names of ours begin with two underscores, which neither tools nor plain parameters may.
    source = f'def {name}({parameters}):\n    return {"await " if is_async else ""}__call({collected})\n'
    space = {'__call': call, '__name__': '__main__', '__builtins__': builtins, **defaults}
    exec(compile(('async ' if is_async else '') + source, _OURS, 'exec', dont_inherit=True), space)
    tool = space[name]
    tool.__annotations__ = _annotations(properties, definition.get('returns'))
    tool.__doc__ = _documentation(definition, properties)
    return tool


def _signature(properties, required, more):
    """(parameters, the expression that collects them, names the defaults have) of the function's source."""
    if not all(p.isidentifier() and not keyword.iskeyword(p) and not p.startswith('__') for p in properties):
        return '**__arguments', '__arguments', {}
    parts, defaults, may_follow = [], {}, True
    for i, (p, schema) in enumerate(properties.items()):
        if p in required and 'default' not in schema:
            if not may_follow and '*' not in parts:
                parts.append('*')  # what must be given cannot follow what need not, unless by name
            parts.append(p)
        else:
            may_follow = False
            parts.append(f'{p}=__default_{i}')
            defaults[f'__default_{i}'] = from_json(schema['default']) if 'default' in schema else ...
    collected = ', '.join(f'{p!r}: {p}' for p in properties)
    if more is False:
        return ', '.join(parts), f'{{{collected}}}', defaults
    return ', '.join([*parts, '**__more']), f'{{{collected}, **__more}}' if collected else '__more', defaults


def _takes_null(schema):
    kinds = schema.get('type', 'any')
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return schema.get('nullable', False) or 'null' in kinds or 'any' in kinds


def _type_text(schema):
    kinds = schema.get('type', 'any')
    names = [_TYPES.get(k, 'Any') for k in (kinds if isinstance(kinds, list) else [kinds])]
    if schema.get('nullable') and 'None' not in names:
        names.append('None')
    return ' | '.join(names)


def _annotations(properties, returns):
    found = {}
    for name, schema in [*properties.items(), *([('return', returns)] if returns else ())]:
        text = _type_text(schema)
        if text != 'Any':
            found[name] = getattr(builtins, text, text)
    return found


def _documentation(definition, properties):
    lines = [definition.get('description') or f'{definition["name"]}: a tool of the client.']
    described = [(p, s) for p, s in properties.items() if s.get('description')]
    if described:
        lines += ['', 'Args:', *(f'    {p} ({_type_text(s)}): {s["description"]}' for p, s in described)]
    returns = definition.get('returns')
    if returns and returns.get('description'):
        lines += ['', 'Returns:', f'    {_type_text(returns)}: {returns["description"]}']
    return _fit('\n'.join(lines), MAX_DOC)


# ---- calling them ------------------------------------------------------


def _tool_text(name, arguments):
    try:
        return _encode_json(to_json(arguments))
    except (TypeError, ValueError) as e:
        raise ToolArgumentError(f'{name}(): {e}') from None


def _call_tool(name, arguments):
    return _tool_value(_tool_wait(_tool_send(name, _tool_text(name, arguments), False)))


def ask_for_line(prompt, password):
    """A line that the client types. Without an answer it is the end of the input."""
    try:
        return _call_tool(_input_tool, {'prompt': prompt, 'password': password})
    except RuntimeError as e:  # a ToolError, or a call from a forked process
        raise EOFError(f'nobody answered: {e}') from None


def _tool_value(outcome):
    if outcome[0]:
        return from_json(json.loads(outcome[1]))
    raise _tool_exception(outcome[1], outcome[2])


def _tool_exception(name, text):
    """The client's exception: the same class when it is one of ours or of Python's own."""
    kind = _TOOL_ERRORS.get(name)
    if kind is None and name not in _NOT_RAISED:
        kind = __builtins__.get(name)
    try:
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(text)
    except TypeError:
        pass  # it wants more than a text
    return ToolError(f'{name}: {text}' if name else text)


async def _await_tool(name, arguments):
    import asyncio

    loop = asyncio.get_running_loop()
    future = loop.create_future()
    number = _expect(name, _tool_text(name, arguments), (loop, future))
    try:
        outcome = await future
    finally:
        if _futures.pop(number, None):
            _tool_drop(number)  # cancelled: nobody waits any more
    return _tool_value(outcome)


def _expect(name, text, waiting):
    """Sends the call. One thread waits for the answers of all calls that event loops wait for, while there are any."""
    global _delivering, _delivery_lock
    import _thread

    if _delivery_lock is None:
        _delivery_lock = _thread.allocate_lock()
    with _delivery_lock:  # no answer is delivered before it is known who waits for it
        number = _tool_send(name, text, True)
        _futures[number] = waiting
        if not _delivering:
            _thread.start_new_thread(_deliver, ())
            _delivering = True
    return number


def _deliver():
    global _delivering
    while True:
        got = _tool_next()
        if got is None:
            with _delivery_lock:
                if not _futures:
                    _delivering = False
                    return
            continue
        with _delivery_lock:
            waiting = _futures.pop(got[0], None)
        if waiting is not None:
            loop, future = waiting
            try:
                loop.call_soon_threadsafe(_settle, future, got[1])
            except RuntimeError:
                pass  # the loop was closed: nobody waits


def _settle(future, outcome):
    if not future.done():
        future.set_result(outcome)
