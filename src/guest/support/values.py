"""The forms of a value, as IPython finds them. A bundle is a list of (mime, kind, text), where kind is 't' for text
(base64 of bytes) and 'j' for JSON text."""

import json
import json.encoder
from math import isfinite

_encode_text = json.encoder.encode_basestring  # C, keeps characters beyond ASCII
_encode_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(',', ':')
).encode

_METHODS = (
    ('_repr_html_', 'text/html'),
    ('_repr_markdown_', 'text/markdown'),
    ('_repr_svg_', 'image/svg+xml'),
    ('_repr_png_', 'image/png'),
    ('_repr_jpeg_', 'image/jpeg'),
    ('_repr_latex_', 'text/latex'),
    ('_repr_json_', 'application/json'),
    ('_repr_javascript_', 'application/javascript'),
    ('_repr_pdf_', 'application/pdf'),
)
_LOOSE_JSON = 'application/vnd.python.json'
_DISPLAY_CONTROL = 'application/vnd.glovebox.display+json'
_MAX_INT = 1 << 63  # what every JSON reader takes


def bundle(value):
    """All forms of a value, text/plain first."""
    kind = type(value)
    if kind in _PLAIN:
        text = _plain(value)
        json_text = _plain_json(value, kind, text)
        if json_text is None:
            return [('text/plain', 't', text), *_loose_json(value, kind)]
        return [('text/plain', 't', text), ('application/json', 'j', json_text)]
    try:
        if kind.__module__ == 'numpy' and kind.__name__ in _NUMPY_NUMBERS:
            return _number_bundle(value)
        return _rich_bundle(value, None, None)
    except Exception:
        return [('text/plain', 't', _plain(value))]  # an object that lies about what it is


_PLAIN = frozenset(
    (int, float, str, bool, type(None), list, tuple, dict, set, frozenset, bytes, bytearray, complex)
)


# What a sum or a mean gives: numbers that have the same digits in JSON. (Of smaller floats Python shows others than numpy.)
_NUMPY_NUMBERS = frozenset(f'{kind}{bits}' for kind in ('int', 'uint') for bits in (8, 16, 32, 64)) | {'float64', 'longlong', 'ulonglong'}


def _number_bundle(value):
    plain, number = _plain(value), value.item()
    json_text = _plain_json(number, type(number), repr(number))
    return [('text/plain', 't', plain), *([('application/json', 'j', json_text)] if json_text else [])]


# ---- text/plain --------------------------------------------------------


def _plain(value):
    try:
        text = repr(value) if type(value) not in _SLICED or len(value) <= _MANY else _repr_of_ends(value)
        return _fit(_exact(text), MAX_PLAIN)
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        return f'<repr of {_type_name(type(value))} failed: {_brief(e)}>'


_SLICED = frozenset((str, bytes, list, tuple))
_MANY = MAX_PLAIN  # items; each takes at least one character


def _repr_of_ends(value):
    """Of a value with so many items that its middle would be cut anyway."""
    half = _MANY // 2
    head, tail = repr(value[:half])[:-1], repr(value[-half:])[1:]
    return f'{head} [... {len(value) - 2 * half:,} items left out ...] {tail}'


# ---- application/json of plain values ----------------------------------


def _plain_json(value, kind, text):
    if kind is int:
        return text if -_MAX_INT <= value < _MAX_INT else None
    if kind is str:
        return _json_or_none(_encode_text, value) if len(value) < MAX_JSON else None
    if kind is bool:
        return 'true' if value else 'false'
    if kind is float:
        return text if isfinite(value) else None
    if kind is list or kind is dict or kind is tuple:
        return _json_or_none(_encode_json, value) if _json_size(value, 0) <= MAX_JSON else None
    return None


def _loose_json(value, kind):
    """NaN and infinities, alone or inside, as Python's json module writes them; not JSON, but what some clients compare."""
    if kind not in (float, list, tuple, dict) or _json_size(value, 0) > MAX_JSON:
        return []
    text = _json_or_none(json.JSONEncoder(check_circular=False).encode, value)
    return [(_LOOSE_JSON, 't', text)] if text and ('NaN' in text or 'Infinity' in text) else []


def _json_or_none(encode, value):
    try:
        text = encode(value)
        return text if _utf8_size(text) <= MAX_JSON else None  # which raises for lone surrogates: no JSON
    except Exception:
        return None


def _json_size(value, depth):
    """At most as many bytes as its JSON takes; beyond MAX_JSON as soon as that or another limit is passed."""
    kind = type(value)
    if kind is str:
        return len(value) + 2
    if kind is int:
        return 1 if -_MAX_INT <= value < _MAX_INT else MAX_JSON + 1
    if kind is float or kind is bool or value is None:
        return 1
    if depth >= MAX_JSON_DEPTH or kind not in (list, tuple, dict) or 2 * len(value) > MAX_JSON:
        return MAX_JSON + 1
    size = 2
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return MAX_JSON + 1
            size += len(key) + 3
        value = value.values()
    for item in value:
        size += 1 + _json_size(item, depth + 1)
        if size > MAX_JSON:
            break
    return size


# ---- rich objects ------------------------------------------------------


def _rich_bundle(value, include, exclude):
    def wanted(mime):
        return (not include or mime in include) and not (exclude and mime in exclude)

    if type(value) in _PLAIN:
        return [form for form in bundle(value) if wanted(form[0])]
    forms = _Forms()
    for mime, data in _offered(value, include, exclude, wanted):
        forms.add(mime, data)
    return forms.finish(value, wanted)


def _offered(value, include, exclude, wanted):
    """(mime, data) of what the object has to offer. Classes are not asked: their methods want an instance."""
    if issubclass(type(value), type) or _method(value, '_no_such_repr_method_') is not None:
        return  # the latter: one that claims to have everything
    given = _call(value, '_repr_mimebundle_', include=include, exclude=exclude)
    given = _without_metadata(given)
    given = dict(given) if isinstance(given, dict) else {}
    for mime, data in given.items():
        if type(mime) is str and wanted(mime):
            yield mime, data
    data = _data_of(value) if _data_forms else None  # first: reading the ticks makes a figure stale
    if data and data[1] is not None and data[0] not in given and wanted(data[0]):
        yield data
    if _is_figure(value) and 'image/png' not in given and wanted('image/png'):
        yield 'image/png', _figure_png(value)
    for method, mime in _METHODS:
        if mime not in given and wanted(mime):
            yield mime, _without_metadata(_call(value, method))


def _method(value, name):
    try:
        method = getattr(value, name, None)
        return method if callable(method) else None
    except Exception:
        return None


def _call(value, name, **arguments):
    """What the method returns; None when there is none or it fails."""
    method = _method(value, name)
    try:
        return None if method is None else method(**arguments)
    except KeyboardInterrupt:
        raise
    except NotImplementedError:
        return None
    except BaseException as e:
        _report(e, f'{name} of {_type_name(type(value))} failed:')
        return None


def _without_metadata(data):
    return data[0] if isinstance(data, tuple) and len(data) == 2 else data


class _Forms:
    """Collects forms within the maxima; what does not fit is named in text/plain."""

    def __init__(self):
        self.forms = []
        self.plain = None
        self.remarks = []
        self.size = 0

    def add(self, mime, data):
        if mime == 'text/plain':
            if isinstance(data, str):
                self.plain = _fit(_exact(data), MAX_PLAIN)
            return
        if data is None or not mime.isascii() or '/' not in mime or len(mime) > MAX_MIME:
            return
        form = self._encode(mime, data)
        if form is None:
            return
        size = _utf8_size(form[1])
        if len(self.forms) >= MAX_FORMS - 1 or self.size + size > MAX_BUNDLE:
            self.remarks.append(
                f'[{mime} left out: the forms of one value are limited to {MAX_BUNDLE:,} bytes]'
            )
        else:
            self.size += size
            self.forms.append((mime, *form))

    def _encode(self, mime, data):
        """(kind, text), or None for what cannot be sent."""
        if isinstance(data, (bytes, bytearray)):
            return ('t', _base64(data)) if len(data) <= MAX_FORM else self._too_large(mime, len(data))
        if mime == 'application/json' or mime.endswith('+json') or isinstance(data, (dict, list)):
            kind, text = 'j', _rich_json(data)
            if text is None:
                self.remarks.append(f'[{mime} left out: it is no JSON]')
        else:
            kind, text = 't', _valid(_exact(data)) if isinstance(data, str) else None
        if text is None:
            return None
        size = _utf8_size(text)
        return (kind, text) if size <= MAX_FORM else self._too_large(mime, size)

    def _too_large(self, mime, size):
        self.remarks.append(f'[{mime} left out: {size:,} bytes, the limit is {MAX_FORM:,}]')

    def finish(self, value, wanted):
        if not wanted('text/plain'):
            return self.forms
        plain = _plain(value) if self.plain is None else self.plain
        return [('text/plain', 't', '\n'.join([plain, *self.remarks[:MAX_FORMS]])), *self.forms]


def _rich_json(data):
    """JSON text of what an object calls its JSON: data, or text that is JSON already. None when it is neither."""
    try:
        if isinstance(data, str):
            data = json.loads(data)
        text = _encode_json(data)
        text.encode()
        return text if _depth_fits(json.loads(text)) else None
    except Exception:
        return None


def _depth_fits(value):
    level = [value]
    for _ in range(
        2 * MAX_JSON_DEPTH - 4
    ):  # within the 64 levels that the daemon reads, with those around it
        level = [
            item for v in level if type(v) in (list, dict) for item in (v.values() if type(v) is dict else v)
        ]
        if not level:
            return True
    return False


def _valid(text):
    """Without lone surrogates, which are legal in str and nowhere else."""
    return text if text.isascii() else text.encode('utf-8', 'backslashreplace').decode()


def _utf8_size(text):
    return len(text) if text.isascii() else len(text.encode())


def _base64(data):
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode('ascii')


# ---- display -----------------------------------------------------------


def display(
    *objs,
    include=None,
    exclude=None,
    metadata=None,
    transient=None,
    display_id=None,
    raw=False,
    clear=False,
    **kwargs,
):
    """Shows objects in every form they have: display(df), display(figure, image),
    display({'text/html': '<b>hi</b>'}, raw=True).

    metadata is taken for the sake of code written for IPython, and ignored. With display_id a handle is returned whose
    update(obj) shows the object in the place of the one before, where the client can do that."""
    if clear:
        clear_output(wait=True)
    if display_id is True:
        import os

        display_id = os.urandom(16).hex()
    for obj in objs:
        forms = _raw_bundle(obj) if raw else _rich_bundle(obj, include, exclude)
        if forms:
            _send(forms + _control(display_id=display_id, update=_is_update(transient)) if display_id else forms)
    return _Handle(display_id) if display_id else None


def clear_output(wait=False):
    """Asks notebooks to remove what the cell has shown, at once or when something new comes."""
    _send(_control(clear=True, wait=bool(wait)))


def _control(**fields):
    """What a display is beside its content; notebooks act on it."""
    return [(_DISPLAY_CONTROL, 'j', json.dumps({k: v if isinstance(v, bool) else str(v) for k, v in fields.items()}))]


def _is_update(transient):
    return isinstance(transient, dict) and bool(transient.get('update'))


def _raw_bundle(obj):
    if not isinstance(obj, dict):
        raise TypeError(f'display(raw=True) takes dicts of MIME type to data, not {_type_name(type(obj))}')
    forms = _Forms()
    for mime, data in list(obj.items()):
        if type(mime) is str:
            forms.add(mime, data)
    return forms.finish(None, lambda mime: forms.plain is not None or forms.remarks)


def _send(forms):
    if _emit is not None:
        _emit(forms)


class _Handle:
    """What display(…, display_id=…) returns."""

    def __init__(self, display_id):
        self.display_id = display_id if isinstance(display_id, str) else f'{id(self):x}'

    def display(self, obj, **kwargs):
        display(obj, **{'display_id': self.display_id, **kwargs})

    def update(self, obj, **kwargs):
        display(obj, **{'display_id': self.display_id, **kwargs, 'transient': {'update': True}})

    def __repr__(self):
        return f'<DisplayHandle display_id={self.display_id}>'
