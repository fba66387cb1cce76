"""Errors as CPython prints them, of bounded size and without our own frames."""

import traceback
import types
from collections import deque

# The slots themselves: a class may define properties of these names, which could raise or never end.
_cause_of = BaseException.__cause__.__get__
_context_of = BaseException.__context__.__get__
_suppressed = BaseException.__suppress_context__.__get__
_traceback_of = BaseException.__traceback__.__get__
_qualname_of = type.__dict__['__qualname__'].__get__
_module_of = type.__dict__['__module__'].__get__
_Group = getattr(builtins, 'BaseExceptionGroup', ())  # since 3.11

# As in the traceback module.
_REPEATS_SHOWN = 3
_GROUP_WIDTH = 15
_GROUP_DEPTH = 10


def format_error(exc, filename=''):
    """(type, message, traceback, line in the cell called `filename` or 0, notes) of an exception."""
    name = _type_name(type(exc))
    try:
        # smolagents' remote executors read the agent's answer out of the text of such an exception.
        answer = name.rpartition('.')[2] == 'FinalAnswerException'
        message = _fit(_exact(str(exc)), MAX_ANSWER if answer else MAX_MESSAGE)
    except BaseException:
        message = '<exception str() failed>'
    try:
        text = _fit(_exact(''.join(_snapshot_tree(exc).format())), MAX_TRACEBACK)
    except BaseException:
        # Whatever a cell did to the traceback module, it still gets an error.
        text = f'{name}: {message}\n' if message else f'{name}\n'
    return name, message, text, _line_in(exc, filename), _notes(exc)


def _type_name(kind):
    name = _exact(_qualname_of(kind))
    try:
        module = _module_of(kind)
    except Exception:
        module = None
    if isinstance(module, str):
        module = _exact(module)
    else:
        module = '<unknown>'
    return _fit(name if module in ('builtins', '__main__') else f'{module}.{name}', 500)


def _line_in(exc, filename):
    """The line of that file nearest to where it was raised; 0 when it has none."""
    if isinstance(exc, SyntaxError) and SyntaxError.filename.__get__(exc) == filename:
        line = SyntaxError.lineno.__get__(exc)
        return line if type(line) is int and 0 < line < 1 << 31 else 0
    last = None
    tb = _traceback_of(exc)
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            last = tb
        tb = tb.tb_next
    return (last.tb_lineno or 0) if last is not None else 0


def _notes(exc):
    try:
        notes = getattr(exc, '__notes__', None)
        if notes is None:
            return []
        if isinstance(notes, list):
            return [_note(n) for n in list.__getitem__(notes, slice(0, MAX_NOTES))]
        if isinstance(notes, tuple):
            return [_note(n) for n in tuple.__getitem__(notes, slice(0, MAX_NOTES))]
        return [_fit(_exact(repr(notes)), MAX_MESSAGE)]
    except BaseException:
        return ['<__notes__ repr() failed>']


def _note(note):
    try:
        return _fit(_exact(str(note)), MAX_MESSAGE)
    except BaseException:
        return '<note str() failed>'


# ---- chains and groups -------------------------------------------------


def _snapshot_tree(exc):
    """A TracebackException with its chain and its group's members, built without recursion, within our maxima."""
    root = [None]
    seen = set()
    n = 0
    queue = deque([(exc, root, 0, 0)])
    while queue:
        exc, place, index, depth = queue.popleft()
        newer = None
        for link, is_cause in _links(exc, seen):
            n += 1
            if isinstance(link, int):
                shot = _Remark(f'[... {link:,} exceptions of this chain left out ...]')
            elif n > MAX_EXCEPTIONS:
                shot = _Remark('[... more exceptions left out ...]')
            else:
                shot = _snapshot(link)
                _queue_members(link, shot, depth, queue)
            if newer is None:
                place[index] = shot
            elif is_cause:
                newer.__cause__ = shot
            else:
                newer.__context__ = shot
            newer = shot
            if n > MAX_EXCEPTIONS:
                break
    return root[0]


def _links(exc, seen):
    """The chain from the newest exception to the oldest as (exception, whether the newer one was raised from it).
    A chain that is too long has the number of exceptions left out in its middle."""
    half = MAX_CHAIN // 2
    first, last, n, is_cause = [], deque(maxlen=half), 0, False
    while exc is not None:
        seen.add(id(exc))
        (first if n < half else last).append((exc, is_cause))
        n += 1
        exc, is_cause = _older(exc, seen)
    left_out = n - len(first) - len(last)
    if left_out:
        first.append((left_out, False))
    return [*first, *last]


def _older(exc, seen):
    cause = _cause_of(exc)
    if cause is not None and id(cause) not in seen:
        return cause, True
    context = None if _suppressed(exc) else _context_of(exc)
    return (None if id(context) in seen else context), False


def _queue_members(exc, shot, depth, queue):
    if not isinstance(exc, _Group):
        return
    members = _Group.exceptions.__get__(exc)
    if depth >= _GROUP_DEPTH:
        shot.exceptions = []  # printed as one line that says so
        return
    shot.exceptions = [None] * len(members)
    for i, member in enumerate(members[:_GROUP_WIDTH]):
        queue.append((member, shot.exceptions, i, depth + 1))


class _Remark(traceback.TracebackException):
    """A line in the place of an exception."""

    def __init__(self, text):
        self.text = text
        self.stack = traceback.StackSummary()
        self.max_group_width, self.max_group_depth = _GROUP_WIDTH, _GROUP_DEPTH
        _unlink(self)

    def format_exception_only(self, **options):
        yield self.text + '\n'


def _unlink(shot):
    shot.__cause__ = shot.__context__ = shot.exceptions = None
    shot.__suppress_context__ = False


def _snapshot(exc):
    """One exception without its chain."""
    try:
        if isinstance(exc, SyntaxError):
            _add_text(exc)
        tb, gaps = _frames_to_show(_traceback_of(exc))
        # TracebackException follows the chain itself, except to what it has seen.
        seen = {id(_cause_of(exc)), id(_context_of(exc))}
        shot = traceback.TracebackException(type(exc), exc, tb, _seen=seen)
        _unlink(shot)
        shot._str = _fit(_exact(shot._str), MAX_TRACEBACK // 2) + _suggestion(exc)
        shot.__notes__ = _notes(exc) or None
        if gaps:
            shot.stack = _GappedStack(shot.stack, gaps)
        return shot
    except BaseException:
        return _Remark(_brief(exc))


def _add_text(exc):
    """The compiler finds the line of an error in the file itself, and a cell is no file."""
    filename, line = SyntaxError.filename.__get__(exc), SyntaxError.lineno.__get__(exc)
    if SyntaxError.text.__get__(exc) is not None or type(line) is not int or type(filename) is not str:
        return
    lines = _entries[filename][2] if filename in _entries else ()
    if 0 < line <= len(lines):
        SyntaxError.text.__set__(exc, lines[line - 1])


# ---- frames ------------------------------------------------------------


def _frames_to_show(tb):
    """The traceback without our frames, and what to print before its n-th frame: {n: line}. Repeated frames are
    folded here already, because the traceback module works on each of 100,000 equal ones before it folds them.
    """
    kept, gaps, dropped = [], {}, False
    last, count = None, 0
    entry = tb
    while entry is not None:
        code = entry.tb_frame.f_code
        key = (code.co_filename, entry.tb_lineno, code.co_name)
        if key[0] == _OURS:
            dropped = True
        else:
            count = count + 1 if key == last else 1
            last = key
            if count <= _REPEATS_SHOWN:
                kept.append(entry)
                _restore_source(key[0])
            else:
                more = count - _REPEATS_SHOWN
                gaps[len(kept)] = f'  [Previous line repeated {more} more time{"s" if more > 1 else ""}]\n'
        entry = entry.tb_next
    if len(kept) > MAX_FRAMES:
        kept, gaps = _cut_frames(kept, gaps)
    if not dropped and not gaps:
        return tb, gaps
    tb = None
    for entry in reversed(kept):
        tb = types.TracebackType(tb, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return tb, gaps


def _cut_frames(kept, gaps):
    half = MAX_FRAMES // 2
    left_out = len(kept) - 2 * half
    new_gaps = {half: f'  [... {left_out:,} frames left out ...]\n'}
    for index, line in gaps.items():
        if index <= half:
            new_gaps[index] = line + new_gaps.get(index, '')
        elif index > half + left_out:
            new_gaps[index - left_out] = line
    return kept[:half] + kept[-half:], new_gaps


class _GappedStack(traceback.StackSummary):
    def __init__(self, frames, gaps):
        super().__init__(frames)
        self.gaps = gaps

    def format(self, **options):
        lines = []
        for i, text in enumerate(super().format(**options)):
            lines += [self.gaps[i], text] if i in self.gaps else [text]
        if len(self) in self.gaps:
            lines.append(self.gaps[len(self)])
        return lines


# ---- "Did you mean" ----------------------------------------------------

# CPython 3.10 and 3.11 add these words in C where they print an error, and not in the traceback module.
_SUGGESTS = (3, 10) <= sys.version_info < (3, 12)
_MAX_CANDIDATES = 750
_MAX_WORD = 40


def _suggestion(exc):
    if not _SUGGESTS:
        return ''
    try:
        for words in _candidates(exc):
            best = _nearest(exc.name, words)
            if best is not None:
                return f'. Did you mean: {best!r}?'
    except Exception:
        pass  # an object's __dir__ may do anything
    return ''


def _candidates(exc):
    if type(exc) is AttributeError and type(exc.name) is str:
        yield dir(exc.obj)
    elif type(exc) is NameError and type(exc.name) is str and _traceback_of(exc) is not None:
        tb = _traceback_of(exc)
        while tb.tb_next is not None:
            tb = tb.tb_next
        yield tb.tb_frame.f_code.co_varnames
        yield list(tb.tb_frame.f_globals)
        yield list(tb.tb_frame.f_builtins)


def _nearest(name, words):
    if len(words) >= _MAX_CANDIDATES or len(name) > _MAX_WORD:
        return None
    best, distance = None, 1 << 30
    letters = set(name.lower())
    for word in words:
        # At most a third of the characters may differ; a changed one costs 2, a changed case 1.
        most = min((len(name) + len(word) + 3) // 3, distance - 1)
        if word == name or 2 * abs(len(name) - len(word)) > most or len(word) > _MAX_WORD:
            continue
        others = set(word.lower())
        if 2 * max(len(letters - others), len(others - letters)) > most:
            continue
        d = _edit_distance(name, word)
        if d <= most:
            best, distance = word, d
    return best


def _edit_distance(a, b):
    row = [2 * i for i in range(len(b) + 1)]
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], 2 * (i + 1)
        for j, y in enumerate(b):
            change = 0 if x == y else 1 if x.lower() == y.lower() else 2
            cheapest = min(diagonal + change, row[j] + 2, row[j + 1] + 2)
            diagonal, row[j + 1] = row[j + 1], cheapest
    return row[-1]
