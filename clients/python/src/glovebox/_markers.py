"""Values on their way through JSON: plain data as it is, and what JSON lacks as objects with a "__type__".

The markers are those of smolagents' safe serialiser (tuple, set, frozenset, bytes, complex, datetime, date, time, timedelta, Decimal,
Path, PIL.Image, ndarray, dataclass, dict_with_complex_keys), and two of ours for numbers that JSON cannot hold: int and float. Nothing is
ever pickled, and reading a value never imports or constructs what the other side names. The same file is used by the client and
inside sessions, so it needs nothing but the standard library.
"""

import base64
import dataclasses
import datetime
import decimal
import io
import pathlib
import sys
import types

MAX_DEPTH = 56  # the server reads 64 levels, and some are around the value

_NUMBERS = (-(1 << 63), (1 << 63) - 1)


def to_json(value, depth=0):
    """The value as data that json.dumps() takes. TypeError for what cannot travel."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return value if value.isascii() else value.encode('utf-8', 'backslashreplace').decode()
    if kind is int:
        return value if _NUMBERS[0] <= value <= _NUMBERS[1] else {'__type__': 'int', 'data': hex(value)}
    if kind is float:
        return value if value - value == 0 else {'__type__': 'float', 'data': repr(value)}
    if depth > MAX_DEPTH:
        raise ValueError(f'Cannot safely serialize data nested more than {MAX_DEPTH} levels deep')
    if kind is list:
        return [to_json(item, depth + 1) for item in value]
    if kind is dict:
        return _dict_to_json(value, depth)
    return _other_to_json(value, depth)


def _dict_to_json(value, depth):
    if all(type(key) is str for key in value) and '__type__' not in value:
        return {to_json(key): to_json(item, depth + 1) for key, item in value.items()}
    pairs = [[to_json(key, depth + 3), to_json(item, depth + 3)] for key, item in value.items()]
    return {'__type__': 'dict_with_complex_keys', 'data': pairs}


def _other_to_json(value, depth):
    for base, name in ((tuple, 'tuple'), (set, 'set'), (frozenset, 'frozenset')):
        if isinstance(value, base):
            return {'__type__': name, 'data': [to_json(item, depth + 2) for item in value]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {'__type__': 'bytes', 'data': _to_base64(bytes(value))}
    if isinstance(value, complex):
        return {'__type__': 'complex', 'real': to_json(value.real), 'imag': to_json(value.imag)}
    for convert in (_time_to_json, _library_to_json, _dataclass_to_json):
        data = convert(value, depth)
        if data is not None:
            return data
    for base in (str, bool, int, float, list, dict):  # a subclass travels as what it extends
        if isinstance(value, base):
            return to_json(base(value), depth)
    hint = ''
    if hasattr(value, 'to_dict'):
        hint = "; pass plain data instead, for example what its to_dict() returns"
    raise TypeError(f'Cannot safely serialize object of type {type(value).__name__}{hint}')


def _time_to_json(value, depth):
    if isinstance(value, datetime.timedelta):
        return {'__type__': 'timedelta', 'total_seconds': value.total_seconds()}
    for base, name in ((datetime.datetime, 'datetime'), (datetime.date, 'date'), (datetime.time, 'time')):
        if isinstance(value, base):
            return {'__type__': name, 'data': value.isoformat()}
    if isinstance(value, decimal.Decimal):
        return {'__type__': 'Decimal', 'data': str(value)}
    if isinstance(value, pathlib.PurePath):
        return {'__type__': 'Path', 'data': str(value)}
    return None


def _library_to_json(value, depth):
    """numpy and PIL, asked only where they are loaded: otherwise the value cannot be theirs."""
    numpy = sys.modules.get('numpy')
    if numpy is not None and hasattr(numpy, 'ndarray'):
        if isinstance(value, numpy.generic):
            return to_json(value.item(), depth) if not isinstance(value.item(), numpy.generic) else None
        if isinstance(value, numpy.ndarray):
            return {'__type__': 'ndarray', 'data': to_json(value.tolist(), depth + 1), 'dtype': str(value.dtype)}
    images = sys.modules.get('PIL.Image')
    if images is not None and isinstance(value, images.Image):
        file = io.BytesIO()
        value.save(file, format='PNG')
        return {'__type__': 'PIL.Image', 'data': _to_base64(file.getvalue())}
    return None


def _dataclass_to_json(value, depth):
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return None
    data = {f.name: to_json(getattr(value, f.name), depth + 2) for f in dataclasses.fields(value)}
    kind = type(value)
    return {'__type__': 'dataclass', 'class_name': kind.__name__, 'module': kind.__module__, 'data': data}


def from_json(data):
    """The value that to_json() was given, as far as this side knows its type."""
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    read = _READERS.get(data['__type__']) if isinstance(data.get('__type__'), str) else None
    if read is None:
        return {key: from_json(item) for key, item in data.items()}
    try:
        return read(data)
    except Exception as e:
        raise ValueError(f'a value of type {data["__type__"]} that cannot be read: {e}') from None


def _read_time(name):
    def read(data):
        return getattr(datetime, name).fromisoformat(data['data'])

    return read


def _read_timedelta(data):
    return datetime.timedelta(seconds=data['total_seconds'])


def _read_decimal(data):
    return decimal.Decimal(data['data'])


def _read_path(data):
    return pathlib.Path(data['data'])


def _read_image(data):
    """A PIL image where PIL is; otherwise the bytes of its PNG file."""
    raw = _from_base64(data['data'])
    try:
        from PIL import Image
    except ImportError:
        return raw
    image = Image.open(io.BytesIO(raw), formats=['PNG'])
    image.load()
    return image


def _read_array(data):
    """An array where numpy is and the type is one of plain numbers, texts or times; otherwise a list."""
    values = from_json(data['data'])
    try:
        import numpy
    except ImportError:
        return values
    kind = numpy.dtype(str(data['dtype']))
    return numpy.array(values, dtype=kind) if kind.kind in 'biufcSUMm' else values


def _read_dataclass(data):
    """Its fields as attributes: the class itself belongs to the other side."""
    return types.SimpleNamespace(**{str(name): from_json(item) for name, item in data['data'].items()})


def _to_base64(raw):
    return base64.b64encode(raw).decode('ascii')


def _from_base64(text):
    return base64.b64decode(text, validate=True)


_READERS = {
    'tuple': lambda d: tuple(from_json(item) for item in d['data']),
    'set': lambda d: {from_json(item) for item in d['data']},
    'frozenset': lambda d: frozenset(from_json(item) for item in d['data']),
    'bytes': lambda d: _from_base64(d['data']),
    'complex': lambda d: complex(from_json(d['real']), from_json(d['imag'])),
    'int': lambda d: int(d['data'], 16),
    'float': lambda d: float(d['data']),
    'dict_with_complex_keys': lambda d: {from_json(key): from_json(item) for key, item in d['data']},
    'datetime': _read_time('datetime'),
    'date': _read_time('date'),
    'time': _read_time('time'),
    'timedelta': _read_timedelta,
    'Decimal': _read_decimal,
    'Path': _read_path,
    'PIL.Image': _read_image,
    'ndarray': _read_array,
    'dataclass': _read_dataclass,
}
