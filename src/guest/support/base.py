"""What the other files share: maxima, text that fits them, and builtins that cells cannot replace."""

import builtins
import linecache
import sys

# Functions made from here on look their builtins up in this copy, so a cell that replaces builtins.len or
# builtins.__import__ does not change what we do.
__builtins__ = dict(vars(builtins))

MAX_TRACEBACK = 200_000  # bytes of UTF-8, as all text maxima
MAX_MESSAGE = 20_000
MAX_ANSWER = 16 << 20  # of an exception that carries an answer
MAX_NOTES = 50
MAX_CHAIN = 50  # exceptions of one chain that are shown
MAX_EXCEPTIONS = 300  # exceptions of one report, groups and their members together
MAX_FRAMES = 2_000  # of one traceback, after repetitions are folded
MAX_PLAIN = 1 << 20  # text/plain of a value
MAX_FORM = 16 << 20  # any other form of a value, before base64
MAX_BUNDLE = 24 << 20  # all forms of a value together
MAX_FORMS = 16
MAX_MIME = 128
MAX_JSON = 64 << 10  # application/json of a plain value
MAX_JSON_DEPTH = 32
MAX_DATA_VALUES = 200_000  # of a data frame or a figure, as data
MAX_BOXES = 1_000  # of a box plot
MAX_SOURCES = 64 << 20  # bytes of cell sources kept for tracebacks

_OURS = '<glovebox>'
_exact = str.__str__  # a plain str also from an instance of a subclass

_emit = None  # the host's function that sends a bundle
_unwatched = False  # set by the host: nobody looks at the windows of this cell
_data_forms = False  # … and: data frames and figures are wanted as data, too
_tell_loop = None  # … and the one that says how the code waits for its windows
_paint_wait = None  # … and the one that waits until the daemon has a picture


def _fit(text, limit):
    """The text as valid UTF-8 of about `limit` bytes: too much loses its middle, and a line says how much."""
    if len(text) <= limit:
        if text.isascii():
            return text
        data = text.encode('utf-8', 'backslashreplace')
        if len(data) <= limit:
            return data.decode()
    n_head = limit * 2 // 3
    head, tail = text[:n_head], text[n_head - limit :]
    if not (head.isascii() and tail.isascii()):
        head = head.encode('utf-8', 'backslashreplace')[:n_head].decode('utf-8', 'ignore')
        tail = tail.encode('utf-8', 'backslashreplace')[n_head - limit :].decode('utf-8', 'ignore')
    left_out = len(text) - len(head) - len(tail)
    return f'{head}\n[... {left_out:,} characters left out ...]\n{tail}'


def _brief(exc):
    """An exception in one line that cannot fail: its type and the start of its text."""
    try:
        text = _exact(str(exc))
    except BaseException:
        text = '<exception str() failed>'
    line = ' '.join(text[:500].split())
    name = _type_name(type(exc))
    return _fit(f'{name}: {line}' if line else name, 1000)


def _report(exc, what):
    """Says on stderr that something of the user's failed while we called it; the cell itself goes on."""
    try:
        sys.stderr.write(f'{what}\n{format_error(exc)[2]}')
    except Exception:
        pass  # a cell may have closed or replaced stderr
