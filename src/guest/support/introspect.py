"""What an editor asks about the session's variables: their list, completions, and what stands at the cursor.

No code of the session runs for it, as far as that can be had: attributes are looked up in the dictionaries of objects and
classes, never by getattr(), and only values of types that Python or numpy and pandas define are shown, cut short. So a
property, a __repr__ or a __getattr__ of the session's cannot hang the answer, or change anything."""

import keyword
import types

_MAX_VARIABLES = 1000
_MAX_MATCHES = 200
_MAX_REPR = 160
_MAX_DOC = 8000

_type_name_of = type.__dict__['__name__'].__get__
_type_module_of = type.__dict__['__module__'].__get__
_type_mro_of = type.__dict__['__mro__'].__get__
_type_dict_of = type.__dict__['__dict__'].__get__
_type_flags_of = type.__dict__['__flags__'].__get__
_HEAP_TYPE = 1 << 9

_HIDDEN = frozenset(('__name__', '__doc__', '__package__', '__loader__', '__spec__', '__builtins__', '__file__', '__annotations__'))


def introspect(text, namespace):
    """Answers a request, a JSON text, with a JSON text."""
    ask = json.loads(text)
    what = {'variables': _list_variables, 'complete': _complete, 'inspect': _inspect}[ask['what']]
    try:
        answer = what(ask, namespace)
    except KeyboardInterrupt:
        raise
    except Exception as e:
        answer = {'failed': _brief(e)}
    return json.dumps(answer, ensure_ascii=True, default=str)


# ---- values that may be looked at ---------------------------------------------------------


def _name_of_type(value):
    kind = type(value)
    try:
        module, name = _type_module_of(kind), _type_name_of(kind)
    except Exception:
        return 'object'
    return name if module in ('builtins', '__main__') or type(module) is not str else f'{module}.{name}'


def _short(value, depth=2):
    """The beginning of repr(value) for values made of Python's own types; None for others."""
    kind = type(value)
    if kind in (int, bool, type(None), float, complex):
        if kind is int and value.bit_length() > 512:
            return f'<int of {value.bit_length()} bits>'
        return repr(value)
    if kind in (str, bytes, bytearray):
        return repr(value[:_MAX_REPR]) + ('…' if len(value) > _MAX_REPR else '')
    if kind is range:
        return repr(value)
    if kind in (list, tuple, set, frozenset, dict):
        return _short_container(value, kind, depth)
    return None


def _short_container(value, kind, depth):
    if depth == 0:
        return '…' if value else repr(kind()) if kind is not dict else '{}'
    opened, closed = {list: '[]', tuple: '()', dict: '{}', set: '{}', frozenset: ('frozenset({', '})')}[kind]
    parts, length = [], 0
    items = kind.items(value) if kind is dict else value
    for item in items:
        if length > _MAX_REPR or len(parts) == 40:
            parts.append('…')
            break
        if kind is dict:
            text = f'{_element(item[0], depth)}: {_element(item[1], depth)}'
        else:
            text = _element(item, depth)
        parts.append(text)
        length += len(text) + 2
    if kind is tuple and len(parts) == 1:
        parts[0] += ','
    return opened + ', '.join(parts) + closed if parts or kind in (list, tuple, dict) else f'{_type_name_of(kind)}()'


def _element(item, depth):
    text = _short(item, depth - 1)
    return text if text is not None else f'<{_name_of_type(item)}>'


def _of(value, module, name):
    """The value is an instance of exactly this class of an imported module."""
    found = sys.modules.get(module)
    return found is not None and type(value) is vars(found).get(name)


def _look(value):
    """Shape, size and short text of a value, where they can be had without code of the session's."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset, dict, str, bytes, bytearray):
        return [len(value)], sys.getsizeof(value), _short(value)
    if _of(value, 'numpy', 'ndarray'):
        text = f'{value.dtype} array' if value.dtype.hasobject or value.size > 8 else repr(value.tolist())
        return list(value.shape), int(value.nbytes), text
    if _of(value, 'pandas', 'DataFrame') and len(value.columns) <= 1000:
        names = ', '.join(c if type(c) is str else _element(c, 1) for c in value.columns[:12].tolist())
        return list(value.shape), int(value.memory_usage(index=True, deep=False).sum()), f'columns: {names}'[:_MAX_REPR]
    if _of(value, 'pandas', 'Series'):
        return list(value.shape), int(value.memory_usage(index=True, deep=False)), f'{value.dtype} series'
    if kind is types.ModuleType:
        name = _dict_of(value).get('__name__')
        return None, None, f'module {name}' if type(name) is str else 'module'
    if kind is types.FunctionType:
        return None, None, f'def {value.__code__.co_name}({", ".join(_parameters(value))})'
    if kind is type:
        return None, None, f'class {_type_name_of(value)}'
    return None, sys.getsizeof(value) if kind in (int, float, complex, bool, type(None), range) else None, _short(value)


def _parameters(function):
    code = function.__code__
    n = code.co_argcount + code.co_kwonlyargcount
    return list(code.co_varnames[:n])


def _list_variables(ask, namespace):
    found, left_out = [], 0
    for name, value in list(dict.items(namespace)):
        if type(name) is not str or name in _HIDDEN or name.startswith('_'):
            continue
        if isinstance(type(value), type) and type(value) is types.BuiltinFunctionType:
            continue
        if len(found) == _MAX_VARIABLES:
            left_out += 1
            continue
        try:
            shape, size, text = _look(value)
        except Exception:
            shape = size = text = None
        found.append({'name': name[:200], 'type': _name_of_type(value)[:200], 'shape': shape, 'size': size, 'repr': text and text[: 2 * _MAX_REPR]})
    return {'variables': found, 'left_out': left_out}


# ---- names and attributes without getattr() --------------------------------------------------


_NOTHING = object()


def _dict_of(value):
    """The instance dictionary, without asking the class."""
    if isinstance(type(value), type) and type(value) is types.ModuleType:
        return types.ModuleType.__dict__['__dict__'].__get__(value)
    for base in _type_mro_of(type(value)):
        member = _type_dict_of(base).get('__dict__')
        if type(member) is types.GetSetDescriptorType:
            try:
                found = member.__get__(value, type(value))
            except Exception:
                return {}
            if type(found) in (dict, types.MappingProxyType):
                return found
            # a subclass of dict may have an items() of its own
            return dict(dict.items(found)) if dict in _type_mro_of(type(found)) else {}
    return {}


def _is_class(value):
    return type in _type_mro_of(type(value))


def _attribute(value, name):
    own = _dict_of(value)
    if _is_class(value):
        for base in _type_mro_of(value):
            if name in _type_dict_of(base):
                return _type_dict_of(base)[name]
    if name in own:
        return own[name]
    if _of(value, 'pandas', 'DataFrame') and name in value.columns:
        return value[name]
    for base in _type_mro_of(type(value)):
        if name in _type_dict_of(base):
            return _type_dict_of(base)[name]
    return _NOTHING


def _unwrap(found):
    return found.__func__ if type(found) in (staticmethod, classmethod) else found


def _attributes(value):
    """{name: value or _NOTHING}"""
    found = {}
    classes = [*_type_mro_of(value)] if _is_class(value) else []
    for base in reversed([*classes, *_type_mro_of(type(value))] if not classes else classes):
        found.update((k, v) for k, v in _type_dict_of(base).items() if type(k) is str)
    found.update((k, v) for k, v in _dict_of(value).items() if type(k) is str)
    if _of(value, 'pandas', 'DataFrame'):
        found.update((c, value[c]) for c in value.columns[:200].tolist() if type(c) is str and c.isidentifier())
    return found


def _resolve(parts, namespace):
    """The object of a dotted name; _NOTHING when there is none."""
    value = dict.get(namespace, parts[0], _NOTHING)
    if value is _NOTHING:
        value = vars(builtins).get(parts[0], _NOTHING)
    for name in parts[1:]:
        if value is _NOTHING:
            break
        value = _unwrap(_attribute(value, name))
    return value


def _dotted_before(text):
    """The name that ends at the end of the text: its parts, and where its last part starts."""
    at = len(text)
    while at and (text[at - 1].isalnum() or text[at - 1] in '_.'):
        at -= 1
    parts = text[at:].split('.')
    if len(parts) > 1 and (not parts[0] or parts[0][0].isdigit() or (at and text[at - 1] in ')]}"\'')):
        return None, at
    return parts, len(text) - len(parts[-1])


def _kind_of(value):
    if value is _NOTHING:
        return 'variable'
    value = _unwrap(value)
    if _is_class(value):
        return 'class'
    kind = type(value)
    if kind is types.ModuleType:
        return 'module'
    if kind in _FUNCTIONS:
        return 'function'
    return 'property' if kind is property else 'variable'


_FUNCTIONS = frozenset(
    (
        types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType,
        types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    )
)  # fmt: skip


# ---- completion -------------------------------------------------------------------------------


def _cursor(ask):
    code = ask['code']
    at = ask.get('cursor')
    return code, len(code) if at is None else min(at, len(code))


def _modules(prefix):
    import pkgutil

    names = {n for n in [*sys.modules, *sys.stdlib_module_names] if '.' not in n}
    names.update(m.name for m in pkgutil.iter_modules())
    return {n: _NOTHING for n in names if n.startswith(prefix)}


def _complete(ask, namespace):
    code, cursor = _cursor(ask)
    before = code[:cursor]
    line = before[before.rfind('\n') + 1 :]
    parts, start = _dotted_before(before)
    if parts is None:
        return {'start': cursor, 'end': cursor, 'matches': []}
    prefix = parts[-1]
    words = line.split()
    is_import = bool(words) and words[0] in ('import', 'from') and 'import' not in words[1:] and '(' not in line
    if len(parts) == 1 and is_import:
        found = _modules(prefix)
    elif len(parts) == 1 and words[:1] == ['from'] and len(words) > 2 and words[2] == 'import':
        module = sys.modules.get(words[1])
        found = {k: v for k, v in _dict_of(module).items() if type(k) is str} if type(module) is types.ModuleType else {}
    elif len(parts) == 1:
        found = {name: _NOTHING for name in keyword.kwlist}
        found.update(vars(builtins))
        found.update((k, v) for k, v in dict.items(namespace) if type(k) is str)
    else:
        value = _resolve(parts[:-1], namespace)
        found = {} if value is _NOTHING else _attributes(value)
    names = [n for n in found if n.startswith(prefix) and (not n.startswith('_') or prefix.startswith('_'))]
    names.sort(key=lambda n: (n.startswith('_'), n.lower()))
    matches = [
        {'text': n, 'kind': 'keyword' if found[n] is _NOTHING and keyword.iskeyword(n) else 'module' if is_import else _kind_of(found[n])}
        for n in names[:_MAX_MATCHES]
        if n != prefix or len(names) > 1
    ]
    return {'start': start, 'end': cursor, 'matches': matches}


# ---- inspection -------------------------------------------------------------------------------


def _annotation(function, name):
    notes = function.__annotations__
    found = dict.get(notes, name, _NOTHING)
    if found is _NOTHING:
        return ''
    text = found if type(found) is str else _type_name_of(found) if type(found) is type else _element(found, 1)
    return f' -> {text}' if name == 'return' else f': {text}'


def _parameter(function, name, default=_NOTHING):
    note = _annotation(function, name)
    if default is _NOTHING:
        return name + note
    return f'{name}{note} = {_element(default, 1)}' if note else f'{name}={_element(default, 1)}'


def _function_signature(function, bound=False):
    """inspect.signature() would call repr() of the defaults, which may be the session's."""
    for _ in range(10):  # functools.wraps()
        inner = function.__dict__.get('__wrapped__')
        if type(inner) is not types.FunctionType:
            break
        function = inner
    code, names = function.__code__, function.__code__.co_varnames
    n, k = code.co_argcount, code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    given = [_NOTHING] * (n - len(defaults)) + [*tuple.__iter__(defaults)]
    parts = [_parameter(function, name, default) for name, default in zip(names[:n], given)]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, '/')
    if bound:
        parts = parts[1:] if parts[1:2] != ['/'] else parts[2:]
    at = n + k
    if code.co_flags & 4:  # CO_VARARGS
        parts.append('*' + _parameter(function, names[at]))
        at += 1
    elif k:
        parts.append('*')
    more = function.__kwdefaults__ or {}
    parts += [_parameter(function, name, dict.get(more, name, _NOTHING)) for name in names[n : n + k]]
    if code.co_flags & 8:  # CO_VARKEYWORDS
        parts.append('**' + _parameter(function, names[at]))
    return f'({", ".join(parts)}){_annotation(function, "return")}'[:2000]


def _signature_text(value):
    """Of functions and classes, as far as no code of the session's answers for them."""
    import inspect

    if type(value) is types.MethodType:
        return _function_signature(value.__func__, bound=True) if type(value.__func__) is types.FunctionType else None
    if type(value) is types.FunctionType:
        return _function_signature(value)
    if _is_class(value):
        if type(value) is not type:
            return None  # its metaclass would be asked
        for name in ('__init__', '__new__'):
            found = _unwrap(_attribute(value, name))
            if type(found) is types.FunctionType:
                return _function_signature(found, bound=True)
        if _type_flags_of(value) & _HEAP_TYPE:  # may have a __signature__ that computes
            return '()' if all(b is object or _type_flags_of(b) & _HEAP_TYPE for b in _type_mro_of(value)) else None
    elif type(value) not in _FUNCTIONS:
        return None
    try:
        return str(inspect.signature(value))[:2000]
    except (ValueError, TypeError):
        return None


def _doc_of(value):
    if type(value) is types.ModuleType:
        found = _dict_of(value).get('__doc__')
    elif _is_class(value):
        found = _type_dict_of(value).get('__doc__')
    elif type(value) in _FUNCTIONS or type(value) is property:
        found = value.__doc__
    else:
        found = _type_dict_of(type(value)).get('__doc__')
    if type(found) is not str:
        return None
    import inspect

    return inspect.cleandoc(found)[:_MAX_DOC]


def _inspect(ask, namespace):
    code, cursor = _cursor(ask)
    end = cursor
    while end < len(code) and (code[end].isalnum() or code[end] == '_'):
        end += 1
    text = code[:end].rstrip('(')
    if text and not (text[-1].isalnum() or text[-1] == '_'):  # between the parentheses of a call
        depth, at = 1, cursor
        while at and depth:
            at -= 1
            depth += (code[at] in ')]}') - (code[at] in '([{')
        text = code[:at] if depth == 0 else text
    parts, _ = _dotted_before(text)
    if not parts or not parts[-1]:
        return {'found': False}
    value = _resolve(parts, namespace)
    if value is _NOTHING:
        return {'found': False, 'name': '.'.join(parts)}
    try:
        shown = _look(value)[2]
    except Exception:
        shown = None
    source = value.__code__.co_filename if type(value) is types.FunctionType else None
    return {
        'found': True,
        'name': '.'.join(parts),
        'type': _name_of_type(value),
        'signature': _signature_text(value),
        'doc': _doc_of(value),
        'repr': shown,
        'file': source,
    }
