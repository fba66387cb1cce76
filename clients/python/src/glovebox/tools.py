"""Functions of yours that code in a session can call."""

from __future__ import annotations

import asyncio
import enum
import getpass
import inspect
import re
import typing
from typing import Any, Callable, Optional, Union

from ._markers import from_json, to_json

Schema = dict[str, Any]

_PLAIN = {str: 'string', int: 'integer', float: 'number', bool: 'boolean', list: 'array', dict: 'object', type(None): 'null'}
_LISTS = (list, tuple, set, frozenset)


class Tool:
    """A function for a session, with its schema.

    The schema is made from the signature, the annotations and the docstring, unless `parameters` and `returns` give it. With `source` the
    function runs in the session itself and `function` is not needed.

    timeout            seconds one call may take (the server's default is 60)
    max_calls          how often it may be called
    async_in_session   code in the session awaits it, any number at once
    """

    def __init__(
        self,
        function: Optional[Callable[..., Any]] = None,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[Schema] = None,
        returns: Optional[Schema] = None,
        timeout: Optional[float] = None,
        max_calls: Optional[int] = None,
        async_in_session: bool = False,
        source: Optional[str] = None,
    ) -> None:
        if function is None and source is None:
            raise TypeError('a tool needs a function or its source')
        if name is None and function is None:
            raise TypeError('a tool that is given as source needs its name')
        self.function = function
        self.name: str = name or getattr(function, '__name__', '') or type(function).__name__
        self.source = source
        self.definition: dict[str, Any] = {'name': self.name}
        if source is not None:
            self.definition['source'] = source
        else:
            # Whose parameters are given may take them in whatever way: smolagents' tools have *args and **kwargs.
            self.definition.update(describe(function) if parameters is None else {'parameters': parameters})
            if returns is not None:
                self.definition['returns'] = returns
        if description is not None:
            self.definition['description'] = description
        for key, value in (('timeout_s', timeout), ('max_calls', max_calls), ('async', async_in_session or None)):
            if value is not None:
                self.definition[key] = value

    @classmethod
    def of(cls, thing: Any) -> 'Tool':
        """A tool from a function, a Tool, or an object like those of smolagents (name, description, inputs, output_type)."""
        if isinstance(thing, Tool):
            return thing
        if hasattr(thing, 'inputs') and hasattr(thing, 'name') and callable(thing):
            return cls._of_object(thing)
        if callable(thing):
            return cls(thing)
        raise TypeError(f'{thing!r} is no tool: give a function, a Tool, or an object with name, inputs and __call__')

    @classmethod
    def _of_object(cls, thing: Any) -> 'Tool':
        properties, required = {}, []
        for name, given in thing.inputs.items():
            properties[name] = _of_loose(given)
            if not given.get('nullable') and 'default' not in given:
                required.append(name)
        return cls(
            thing,
            name=thing.name,
            description=getattr(thing, 'description', None) or '',
            parameters={'type': 'object', 'properties': properties, 'required': required, 'additionalProperties': False},
        )

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Runs the function on what came from a session; the fields of the answer. A coroutine runs on an event loop of its own."""
        try:
            value = self.function(**from_json(arguments))  # type: ignore[misc]
            if inspect.isawaitable(value):
                value = asyncio.run(_await(value))
            return {'value': to_json(value)}
        except Exception as e:
            return error_answer(e)

    async def call_async(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same on the running loop; a plain function runs in a thread, so that it does not stop the loop."""
        try:
            function, decoded = self.function, from_json(arguments)
            if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, '__call__', None)):
                value = await function(**decoded)  # type: ignore[misc]
            else:
                loop = asyncio.get_running_loop()
                value = await loop.run_in_executor(None, lambda: function(**decoded))  # type: ignore[misc]
                if inspect.isawaitable(value):
                    value = await value
            return {'value': to_json(value)}
        except Exception as e:
            return error_answer(e)


def input_tool(ask: Optional[Callable[[str, bool], Any]] = None, *, timeout: float = 3600) -> Tool:
    """A tool that answers input() and getpass() of cells without `stdin`.

    ask        ask(prompt, password) returns the line, and may be a coroutine function; without it, the terminal is asked
    timeout    seconds to wait for a line; without one, the code gets an EOFError
    """
    answer = Tool(ask or _ask_terminal, name='ask_for_input', parameters={'type': 'object'}, timeout=timeout)
    del answer.definition['parameters']
    answer.definition['input'] = True
    return answer


def _ask_terminal(prompt: str, password: bool) -> str:
    return getpass.getpass(prompt) if password else input(prompt)


async def _await(value: Any) -> Any:
    return await value


def error_answer(e: BaseException) -> dict[str, Any]:
    return {'error': {'type': type(e).__name__[:100], 'message': _text(e)}}


def _text(e: BaseException) -> str:
    # str(KeyError('x')) is "'x'"; raised again from its text there would be two pairs of quotes.
    text = str(e.args[0]) if isinstance(e, KeyError) and len(e.args) == 1 else str(e)
    return text.encode('utf-8', 'backslashreplace').decode().replace('\0', '\\0')[:60_000]


def tool(function: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """A decorator: `@tool` or `@tool(timeout=5)` makes a Tool of a function."""
    return Tool(function, **options) if function is not None else lambda f: Tool(f, **options)


# ---- schemas -----------------------------------------------------------


def describe(function: Any) -> dict[str, Any]:
    """Description, parameters and result of a function, as far as it says them itself."""
    try:
        hints = typing.get_type_hints(function if inspect.isroutine(function) else function.__call__)
    except Exception:
        hints = {}
    text, described = _read_docstring(inspect.getdoc(function) or '')
    properties: dict[str, Schema] = {}
    required, more = [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f'{name} of a tool must be possible to give by name: no *{name}, no / after it')
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
            continue
        schema = schema_of(hints.get(name, Any))
        if name in described:
            schema['description'] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            _set_default(schema, parameter.default)
        properties[name] = schema
    found: dict[str, Any] = {
        'description': text,
        'parameters': {'type': 'object', 'properties': properties, 'required': required, 'additionalProperties': more},
    }
    returns = schema_of(hints['return']) if 'return' in hints else {}
    if returns:
        found['returns'] = returns
    return found


def _set_default(schema: Schema, value: Any) -> None:
    try:
        schema['default'] = to_json(value)
    except (TypeError, ValueError):
        return  # it stays on our side: the parameter is left out of the call
    if value is None and 'type' in schema:
        schema['nullable'] = True


def schema_of(annotation: Any) -> Schema:
    """The JSON schema of a type; {} where anything is allowed."""
    if annotation in _PLAIN:
        return {'type': _PLAIN[annotation]}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return {'enum': list(arguments)}
    if origin is Union or type(annotation).__name__ == 'UnionType':
        return _schema_of_union([a for a in arguments])
    if annotation in _LISTS or origin in _LISTS or origin is typing.get_origin(typing.Sequence[int]):
        items = schema_of(arguments[0]) if arguments and origin is not tuple else {}
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            items = schema_of(arguments[0])
        return {'type': 'array', **({'items': items} if items else {})}
    if origin is dict:
        values = schema_of(arguments[1]) if len(arguments) == 2 and arguments[0] is str else {}
        return {'type': 'object', **({'additionalProperties': values} if values else {})}
    return {}


def _schema_of_union(members: list[Any]) -> Schema:
    several = [schema_of(m) for m in members if m is not type(None)]
    if not all(several):
        return {}
    found = several[0] if len(several) == 1 else {'anyOf': several}
    if type(None) in members:
        found = {**found, 'nullable': True} if len(several) == 1 else {'anyOf': [*several, {'type': 'null'}]}
    return found


def _of_loose(given: dict[str, Any]) -> Schema:
    """An input as smolagents writes it: type "any", "image" or "audio" beside JSON's own."""
    schema = {k: v for k, v in given.items() if k in ('description', 'default', 'enum', 'nullable', 'items', 'properties', 'required')}
    kinds = given.get('type', 'any')
    if kinds == 'object' and not given.get('properties'):
        return schema  # smolagents says so of every class, not of mappings alone
    known = [k for k in (kinds if isinstance(kinds, list) else [kinds]) if k in _PLAIN.values()]
    if known and len(known) == (len(kinds) if isinstance(kinds, list) else 1):
        schema['type'] = known if len(known) > 1 else known[0]
    return schema


_SECTION = re.compile(r'^(args|arguments|parameters|params|returns?|yields|raises|examples?|notes?|attributes)\s*:?\s*$', re.I)
_GOOGLE = re.compile(r'^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$')
_SPHINX = re.compile(r'^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$')


def _read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the sections, and what is said of each parameter (Google's and Sphinx's way)."""
    text: list[str] = []
    found: dict[str, str] = {}
    section, current, indent = '', '', 0
    for line in doc.splitlines():
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if depth == 0 and _SECTION.match(bare):
            section, current = bare.rstrip(':').strip().lower(), ''
        elif _SPHINX.match(bare):
            current = _SPHINX.match(bare)[1]  # type: ignore[index]
            found[current], section, indent = _SPHINX.match(bare)[2], 'sphinx', depth  # type: ignore[index]
        elif not section and not bare.startswith((':return', ':rtype', ':raises')):
            text.append(line)
        elif section in ('args', 'arguments', 'parameters', 'params') and (not current or depth <= indent) and _GOOGLE.match(bare):
            current, indent = _GOOGLE.match(bare)[1].lstrip('*'), depth  # type: ignore[index]
            found[current] = _GOOGLE.match(bare)[2]  # type: ignore[index]
        elif current and bare and depth > indent:
            found[current] = f'{found[current]} {bare}'.strip()
    return '\n'.join(text).strip(), found
