"""Errors in the words of the executor that a session's profile stands for."""

_MAX_SEGMENT = 2_000  # characters of a statement that are quoted
_MAX_SHOWN = 2_000  # of a value
_CLOSE = 3


def profile_words(profile, exc, filename, said, kind, message, line):
    """(type, message, traceback) of an error as the profile says it; `said` is what format_error() said, `kind` and `message` what
    they are so far, `line` where a refusal was found, or 0. None leaves everything as it is."""
    words = _words(profile, exc, filename, kind, message, line)
    if words is None:
        return None
    python_kind, python_message, text = said[:3]
    old, new = f'{python_kind}: {python_message}\n', f'{words[0]}: {words[1]}\n'
    at = text.rfind(old)
    if at >= 0 and not python_message.isspace():
        text = text[:at] + new + text[at + len(old) :]
    elif not text.endswith(new):
        text += new  # a suggestion, a note or a mark stands at its end
    return (*words, _fit(text, MAX_TRACEBACK))


def _words(profile, exc, filename, kind, message, line):
    parsing = isinstance(exc, SyntaxError) and not line and SyntaxError.filename.__get__(exc) == filename
    if profile == 'restricted':
        return (kind, _restricted_syntax(exc)) if parsing else None
    if profile != 'smolagents':
        return None
    if parsing:
        return kind, _parsing_failed(exc, kind)
    tree = _tree(filename)
    if not line:
        kind, message = _inner_words(exc, kind, message)
    segment = _statement(tree, filename, exc, line)
    if segment is None:
        return kind, message
    return kind, _fit(f"Code execution failed at line '{segment}' due to: {kind}: {message}", MAX_MESSAGE)


def _text_of(exc):
    _add_text(exc)
    text = SyntaxError.text.__get__(exc)
    return _exact(text) if isinstance(text, str) else None


def _restricted_syntax(exc):
    text = _text_of(exc)
    statement = None if text is None else text.strip()
    return f'Line {exc.lineno}: {type(exc).__name__}: {exc.msg} at statement: {statement!r}'


def _parsing_failed(exc, kind):
    text = (_text_of(exc) or '').rstrip('\n')
    mark = ' ' * (exc.offset if type(exc.offset) is int and 0 < exc.offset < 1000 else 0) + '^'
    return f'Code parsing failed on line {exc.lineno} due to: {kind}: {exc}\n{text}\n{mark}'


# ---- where -------------------------------------------------------------


def _tree(filename):
    import ast

    if filename not in _entries:
        return None
    try:
        return ast.parse(''.join(_entries[filename][2]))
    except Exception:
        return None


def _place(entry):
    """(line, column, end line, end column) of what a frame was doing; columns may be None."""
    for i, (line, end_line, column, end_column) in enumerate(entry.tb_frame.f_code.co_positions()):
        if i == entry.tb_lasti // 2 and line is not None:
            return line, column, end_line, end_column
    return entry.tb_lineno, None, None, None


def _entries_in(exc, of_cells):
    found, tb = [], _traceback_of(exc)
    while tb is not None:
        if of_cells(tb.tb_frame.f_code):
            found.append(tb)
        tb = tb.tb_next
    return found


def _statement(tree, filename, exc, line):
    """The source of the top-level statement that failed."""
    import ast

    column = None
    if not line:
        at = _entries_in(exc, lambda code: code.co_filename == filename and code.co_name == '<module>')
        if not at:
            return None
        line, column = _place(at[0])[:2]
    for node in tree.body if tree is not None else ():
        first = min([node.lineno, *(d.lineno for d in getattr(node, 'decorator_list', ()))])
        if not first <= line <= node.end_lineno:
            continue
        if column is not None and line == node.end_lineno and column >= node.end_col_offset:
            continue  # the next one of this line
        return _cut(ast.get_source_segment(''.join(_entries[filename][2]), node) or '', _MAX_SEGMENT)
    return None


def _cut(text, most):
    return text if len(text) <= most else text[:most] + '…'


# ---- what --------------------------------------------------------------


class _Unknown(Exception):
    """An expression whose value cannot be told without running it again."""


def _inner_words(exc, kind, message):
    """smolagents' own words for what its evaluation of a tree would have met."""
    try:
        words = _words_at_node(exc) or _words_of_text(exc, message)
    except Exception:
        words = None  # the error as Python has it is never lost
    return ('InterpreterError', words) if words else (kind, message)


def _words_of_text(exc, message):
    if type(exc) is ValueError and ('values to unpack (expected' in message):
        return f'Cannot unpack tuple of wrong size: {message}'
    if type(exc) is TypeError and message.startswith('cannot unpack non-iterable '):
        return f'Cannot unpack non-tuple value: {message}'
    if type(exc) is TypeError and ' argument after ** must be a mapping, not ' in message:
        return f'Cannot unpack non-dict value in **kwargs: {message.rpartition(" ")[2]}'
    if type(exc) is RuntimeError and message == 'No active exception to reraise':
        return 'Re-raise is not supported without an active exception'
    return None


def _words_at_node(exc):
    if type(exc) not in (KeyError, IndexError, TypeError, NameError, AttributeError):
        return None
    at = _entries_in(exc, lambda code: code.co_filename in _entries)
    if not at:
        return None
    frame, place = at[-1].tb_frame, _place(at[-1])
    tree = _tree(frame.f_code.co_filename) if None not in place else None
    node = _node_at(tree, place) if tree is not None else None
    if type(exc) is NameError:
        return f"Cannot delete name '{exc.name}': name is not defined" if _is_deleted(node) else None
    if type(exc) is AttributeError:
        return _words_of_method(exc, node, tree)
    if type(node).__name__ == 'Subscript':
        return _words_of_index(exc, node, frame)
    if type(node).__name__ == 'AugAssign' and type(node.op).__name__ == 'Add' and type(exc) is TypeError:
        if type(_peek(node.target, frame)) is list:
            return f'Cannot add non-list value {_show(_peek(node.value, frame))} to a list.'
    return None


def _node_at(tree, place):
    """The expression or statement at exactly this place; of several the outermost, which is what was being done."""
    import ast

    for node in ast.walk(tree):
        if getattr(node, 'lineno', None) == place[0] and not isinstance(node, ast.Expr):
            if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == (place[0], place[1], place[2], place[3]):
                return node
    return None


def _is_deleted(node):
    return type(node).__name__ in ('Name', 'Delete') and type(getattr(node, 'ctx', None)).__name__ != 'Load'


def _words_of_method(exc, node, tree):
    """Of x.name(…), which smolagents looks up in another way than x.name."""
    import ast

    name = AttributeError.name.__get__(exc)
    if not isinstance(node, ast.Attribute) or node.attr != name:
        return None
    if not any(isinstance(n, ast.Call) and n.func is node for n in ast.walk(tree)):
        return None
    return f'Object {_show(AttributeError.obj.__get__(exc))} has no attribute {node.attr}'


def _words_of_index(exc, node, frame):
    if type(node.ctx).__name__ == 'Del':
        return f'Cannot delete index/key: {exc}'
    if type(node.ctx).__name__ != 'Load':
        return None
    value = None
    try:
        value = _peek(node.value, frame)
        shown = _show(value)
    except _Unknown:
        shown = _source_of(node.value)
    try:
        index = _peek(node.slice, frame)
    except _Unknown:
        if type(exc) is not KeyError or not exc.args:
            return f'Could not index {shown}: {type(exc).__name__}: {exc}'
        index = exc.args[0]
    words = f"Could not index {shown} with '{_show(index)}': {type(exc).__name__}: {exc}"
    if type(index) is str and type(value) is dict:
        import difflib

        close = difflib.get_close_matches(index, [key for key in value if type(key) is str][:_MAX_SHOWN], _CLOSE)
        if close:
            words += f'. Maybe you meant one of these indexes instead: {close}'
    return words


def _source_of(node):
    import ast

    return _cut(ast.unparse(node), 200)


def _show(value):
    return _cut(_exact(str(value)), _MAX_SHOWN)


def _peek(node, frame):
    """The value of an expression of names, constants and items of plain containers, as it is in the frame."""
    import ast

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value
    if isinstance(node, ast.Tuple):
        return tuple(_peek(item, frame) for item in node.elts)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        value, index = _peek(node.value, frame), _peek(node.slice, frame)
        if type(value) in (list, tuple, dict, str) and type(index) in (int, str, tuple):
            return value[index]
    raise _Unknown
