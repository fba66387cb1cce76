"""Processes that multiprocessing starts anew (spawn, forkserver) and that must find what the code defined: they import the main module from a file. A program that runs
once has such a file. Of a session's cells one is written with their functions and classes, and with the values of the variables that these use: running the cells again
in each child would repeat what they did."""

_PROGRAM_DIR = '/workspace'
_CHILDREN_DIR = '/tmp/.glovebox'
_MAX_VALUE = 64 << 20  # bytes of one variable that children are given
_GENERATIONS = 4  # files that are kept: a child reads its own only when it has started

_is_program = False  # set by the host: the code runs once, and its file is at __file__ for those who look for it
_program_path = None  # where it was written
_written = []  # paths of earlier files, oldest first

# What a child runs in place of the main module. Definitions come after the values that their defaults and decorators need, and before those that are made of them.
_LOADER = '''\
def _load():
    import importlib, pickle, sys
    names = globals()
    sys.modules['__main__'] = sys.modules[__name__]
    with open(__file__[:-3] + '.pickle', 'rb') as f:
        flags, modules, values, definitions = pickle.load(f)
    for name, module in modules.items():
        try:
            names[name] = importlib.import_module(module)
        except ImportError:
            pass
    def give(values):
        left = {}
        for name, data in values.items():
            try:
                names[name] = pickle.loads(data)
            except Exception:
                left[name] = data
        return left
    left = give(values)
    for filename, source in definitions:
        try:
            exec(compile(source, filename, 'exec', flags, True), names)
        except Exception:
            pass
    give(left)
_load()
del _load
'''


def _program_text():
    return ''.join(next(reversed(_entries.values()))[2])


def write_program():
    """Writes the program's file, for code that names __file__ and for children; returns its path."""
    global _program_path
    import os

    if _program_path is not None:
        return _program_path
    for name in (f'{_PROGRAM_DIR}/main.py', f'{_PROGRAM_DIR}/__main__.py', f'{_CHILDREN_DIR}-main.py'):
        try:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue  # the session's own
        with open(fd, 'w', encoding='utf-8', errors='backslashreplace') as f:
            f.write(_program_text())
        _program_path = vars(sys.modules['__main__'])['__file__'] = name
        return name
    return None


def _patch_spawn(spawn):
    """multiprocessing.spawn, and loky's copy of it: what a child is told about the main module."""
    plain = getattr(spawn, 'get_preparation_data', None)
    if plain is None:
        return

    def get_preparation_data(*args, **kwargs):
        data = plain(*args, **kwargs)
        if 'init_main_from_name' not in data and (spawn.__name__ == 'multiprocessing.spawn' or 'init_main_from_path' in data):
            data.pop('init_main_from_path', None)
            path = _main_for_children()
            if path is not None:
                data['init_main_from_path'] = path
        return data

    get_preparation_data.__module__, get_preparation_data.__qualname__ = spawn.__name__, 'get_preparation_data'
    spawn.get_preparation_data = get_preparation_data


def _main_for_children():
    """The path of a file with the main module, or None when the code defined nothing. A program without `if __name__ == '__main__'` would start itself again."""
    try:
        if _is_program and '__name__' in _program_text():
            return write_program()
        return _write_definitions()
    except Exception as e:
        _report(e, 'What was defined here could not be given to a child process:')
        return None


def _write_definitions():
    import hashlib
    import os
    import pickle

    flags, definitions, used = _find_definitions()
    if not definitions:
        return None
    data = pickle.dumps((flags, *_find_values(used), definitions))
    path = f'{_CHILDREN_DIR}/{hashlib.sha256(data).hexdigest()[:24]}'
    if not os.path.exists(f'{path}.py'):
        os.makedirs(_CHILDREN_DIR, 0o700, exist_ok=True)
        for end, content in (('.pickle', data), ('.py', _LOADER.encode())):
            with open(path + end, 'wb') as f:
                f.write(content)
        _written.append(path)
        _forget_children()
    return f'{path}.py'


def _forget_children():
    import os

    while len(_written) > _GENERATIONS:
        path = _written.pop(0)
        for end in ('.pickle', '.py'):
            try:
                os.unlink(path + end)
            except OSError:
                pass


def _find_definitions():
    """Compiler flags of __future__ imports, (file name, source) of all functions and classes of cells, and the names that occur in them."""
    import __future__
    import ast

    flags, found, used = 0, [], set()
    for filename, entry in _entries.items():
        try:
            tree = ast.parse(''.join(entry[2]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.append((filename, _definition_text(ast, node, entry[2])))
                used.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            elif isinstance(node, ast.ImportFrom) and node.module == '__future__':
                for alias in node.names:
                    flags |= getattr(__future__, alias.name).compiler_flag
    return flags, found, used


def _definition_text(ast, node, lines):
    """The statement on the lines where its cell has it, so that tracebacks tell the right ones."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    if node.col_offset or not lines[first - 1].startswith(('def', 'class', 'async', '@')):
        return '\n' * (first - 1) + ast.unparse(node)
    last = lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode()
    return '\n' * (first - 1) + ''.join(lines[first - 1 : node.end_lineno - 1]) + last + '\n'


def _find_values(used):
    """The modules and the pickled values behind these names of the main module."""
    import pickle

    modules, values, names = {}, {}, vars(sys.modules['__main__'])
    for name in sorted(used & set(names)):
        value = names[name]
        if isinstance(value, type(sys)):
            modules[name] = value.__name__
        elif getattr(value, '__module__', None) != '__main__' or not isinstance(value, (type, type(_find_values))):
            try:
                data = pickle.dumps(value)
            except Exception:
                continue
            if len(data) <= _MAX_VALUE:
                values[name] = data
    return modules, values
