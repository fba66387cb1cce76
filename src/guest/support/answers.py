"""Final answers: as JSON where the value is some, else as its repr, and in smolagents' safe encoding where it has one."""

MAX_ANSWER = 8 << 20
MAX_ANSWER_DEPTH = 64


def encode_answer(value):
    """(True and JSON text | False and repr, "safe:…" or None)."""
    import json

    encoded = None
    try:
        encoded = 'safe:' + json.dumps(_safe(value), allow_nan=True)
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


def _safe(value):
    """The value with smolagents' markers for what JSON has no words for; its reader knows no markers for numbers."""
    return _bare_numbers(to_json(value))


def _bare_numbers(data):
    if type(data) is list:
        return [_bare_numbers(item) for item in data]
    if type(data) is not dict:
        return data
    read = {'int': lambda d: int(d['data'], 16), 'float': lambda d: float(d['data'])}.get(data.get('__type__'))
    return read(data) if read else {key: _bare_numbers(item) for key, item in data.items()}
