"""Final answers: as JSON where the value is some, else as its repr, and in smolagents' safe encoding where it has one."""

MAX_ANSWER = 8 << 20
MAX_ANSWER_DEPTH = 64


def encode_answer(value):
    """(True and JSON text | False and repr, "safe:…" or None)."""
    import json

    encoded = None
    try:
        encoded = 'safe:' + json.dumps(_safe(value, 0), allow_nan=True)
    except Exception:
        pass  # not every value has one
    if encoded is not None and len(encoded) > MAX_ANSWER:
        encoded = None
    try:
        text = json.dumps(_answer_json(value, 0), ensure_ascii=False, allow_nan=False)
        if len(text) <= MAX_ANSWER:
            return True, text, encoded
    except Exception:
        pass
    try:
        text = _fit(_exact(repr(value)), MAX_PLAIN)
    except Exception as e:
        text = f'<repr() of the answer failed: {_brief(e)}>'
    return False, text, encoded


def format_exc():
    """The traceback of the exception that is being handled, as text."""
    exc = sys.exc_info()[1]
    return 'NoneType: None\n' if exc is None else format_error(exc)[2]


def safe_json_dumps(value):
    import json

    return json.dumps(value, default=repr)


class _NoJson(Exception):
    pass


def _answer_json(value, depth):
    """What JSON says without loss: exact types only, and numpy's scalars as the numbers they are."""
    kind = type(value)
    if depth > MAX_ANSWER_DEPTH:
        raise _NoJson
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list or kind is tuple:
        return [_answer_json(v, depth + 1) for v in value]
    if kind is dict:
        if any(type(k) is not str for k in value):
            raise _NoJson
        return {k: _answer_json(v, depth + 1) for k, v in value.items()}
    numpy = sys.modules.get('numpy')
    if numpy is not None and issubclass(kind, numpy.generic) and kind.__module__ == 'numpy':
        return _answer_json(value.item(), depth + 1)
    raise _NoJson


def _safe(value, depth):
    """The value with smolagents' markers for what JSON has no words for."""
    import base64

    kind = type(value)
    if depth > MAX_ANSWER_DEPTH:
        raise _NoJson
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_safe(v, depth + 1) for v in value]
    if kind is dict:
        if all(type(k) is str for k in value):
            return {k: _safe(v, depth + 1) for k, v in value.items()}
        pairs = [[_safe(k, depth + 1), _safe(v, depth + 1)] for k, v in value.items()]
        return {'__type__': 'dict_with_complex_keys', 'data': pairs}
    for known, name in ((tuple, 'tuple'), (set, 'set'), (frozenset, 'frozenset')):
        if kind is known:
            return {'__type__': name, 'data': [_safe(v, depth + 1) for v in value]}
    if kind is bytes:
        return {'__type__': 'bytes', 'data': base64.b64encode(value).decode()}
    if kind is complex:
        return {'__type__': 'complex', 'real': value.real, 'imag': value.imag}
    return _safe_object(value, kind, depth)


def _safe_object(value, kind, depth):
    import base64
    import dataclasses

    module, name = kind.__module__, kind.__name__
    if module == 'datetime' and name in ('datetime', 'date', 'time'):
        return {'__type__': name, 'data': value.isoformat()}
    if module == 'datetime' and name == 'timedelta':
        return {'__type__': 'timedelta', 'total_seconds': value.total_seconds()}
    if module == 'decimal' and name == 'Decimal':
        return {'__type__': 'Decimal', 'data': str(value)}
    if module.startswith('pathlib'):
        return {'__type__': 'Path', 'data': str(value)}
    if module == 'numpy' and name == 'ndarray':
        return {'__type__': 'ndarray', 'data': _safe(value.tolist(), depth + 1), 'dtype': str(value.dtype)}
    if module == 'numpy':
        return _safe(value.item(), depth + 1)
    if module.startswith('PIL.') and hasattr(value, 'save'):
        out = io.BytesIO()
        value.save(out, format='PNG')
        return {'__type__': 'PIL.Image', 'data': base64.b64encode(out.getvalue()).decode()}
    if dataclasses.is_dataclass(value):
        data = {f.name: _safe(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value)}
        return {'__type__': 'dataclass', 'class_name': name, 'module': module, 'data': data}
    raise _NoJson(f'Cannot safely serialize object of type {name}')
