"""The text of cells: for tracebacks, for inspect.getsource, and whether more of it must follow."""

import io

_entries = {}  # cell's file name → its linecache entry, oldest first
_entries_bytes = 0


def register_source(filename, source):
    """Makes linecache know a cell before it runs. Entries without a time survive linecache.checkcache()."""
    global _entries_bytes
    # Not splitlines(): it also splits at form feeds and other characters where the compiler does not.
    lines = io.StringIO(source, None).readlines()
    if lines and lines[-1][-1] != '\n':
        lines[-1] += '\n'
    forget_source(filename)
    entry = (len(source), None, lines, filename)
    linecache.cache[filename] = _entries[filename] = entry
    _entries_bytes += _cost(entry)
    while _entries_bytes > MAX_SOURCES and len(_entries) > 1:
        forget_source(next(iter(_entries)))


def _cost(entry):
    return entry[0] + 64 * len(entry[2])  # a str object and a list slot per line


def forget_source(filename):
    global _entries_bytes
    entry = _entries.pop(filename, None)
    if entry is not None:
        _entries_bytes -= _cost(entry)
        if linecache.cache.get(filename) is entry:
            del linecache.cache[filename]


def _restore_source(filename):
    """linecache.clearcache() was called, by a cell or by linecache itself when memory ran out."""
    entry = _entries.get(filename)
    if entry is not None and filename not in linecache.cache:
        linecache.cache[filename] = entry


# ---- inspect -----------------------------------------------------------


def _patch_inspect(inspect):
    """inspect.getfile() refuses classes of a __main__ that is no file; ours come from cells."""
    getfile = inspect.getfile
    if getattr(getfile, 'knows_cells', False):
        return

    def getfile_of_cell(object):
        filename = _cell_of_class(object) if isinstance(object, type) else None
        if filename is None:
            return getfile(object)
        _restore_source(filename)
        return filename

    for name in ('__module__', '__name__', '__qualname__', '__doc__'):
        setattr(getfile_of_cell, name, getattr(getfile, name))
    getfile_of_cell.knows_cells = True
    inspect.getfile = getfile_of_cell


def _cell_of_class(cls):
    if cls.__dict__.get('__module__') != '__main__':
        return None
    for member in cls.__dict__.values():
        member = getattr(member, '__func__', None) or getattr(member, 'fget', None) or member
        code = getattr(member, '__code__', None)
        owned = getattr(member, '__qualname__', '') == f'{cls.__qualname__}.{getattr(member, "__name__", "")}'
        if owned and getattr(code, 'co_filename', None) in _entries:
            return code.co_filename
    for filename in reversed(_entries):
        if _defines_class(filename, cls):
            return filename
    return None


def _defines_class(filename, cls):
    import ast

    source = ''.join(_entries[filename][2])
    if cls.__name__ not in source:
        return False
    try:
        # ast.parse() takes top-level await too.
        bodies = [(ast.parse(source), '')]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    line = cls.__dict__.get('__firstlineno__')  # since 3.13
    while bodies:
        node, prefix = bodies.pop()
        for child in ast.iter_child_nodes(node):
            name = getattr(child, 'name', None)
            if isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                if prefix + name == cls.__qualname__ and line in (None, first):
                    return True
                bodies.append((child, f'{prefix}{name}.'))
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                bodies.append((child, f'{prefix}{name}.<locals>.'))
            else:
                bodies.append((child, prefix))
    return False


# ---- interactive input -------------------------------------------------


def is_complete(source):
    """'complete', 'incomplete' or 'invalid', for lines typed so far and joined by newlines, without one at their
    end: an empty last line therefore ends a block, as at Python's own prompt."""
    import ast
    import codeop
    import warnings

    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            if compiler(source, '<input>', 'exec') is None:
                return 'incomplete'
            tree = compile(source, '<input>', 'exec', ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            return _is_notebook(source)
    in_block = bool(tree.body) and isinstance(tree.body[-1], _blocks(ast))
    ended = not source.rpartition('\n')[2].strip()
    return 'incomplete' if in_block and not ended else 'complete'


def _is_notebook(source):
    """Lines of notebooks that become Python; a cell that is all a magic's goes on until an empty line."""
    if translate_cell(source) is None:
        return 'invalid'
    whole = source.lstrip().startswith('%%')
    return 'incomplete' if whole and source.rpartition('\n')[2].strip() else 'complete'


def _blocks(ast):
    """The kinds of statements that have others inside; `match` is younger than the oldest Python we know."""
    return tuple(
        kind
        for kind in vars(ast).values()
        if isinstance(kind, type)
        and issubclass(kind, ast.stmt)
        and {'body', 'cases'} & set(getattr(kind, '_fields', ()))
    )
