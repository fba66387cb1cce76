"""What the magics of notebooks do. Programs are started by subprocess, so a session that may not start programs refuses them."""

import re


class UsageError(Exception):
    """A magic that is not there, or is used wrongly."""


UsageError.__module__ = 'builtins'


def run_magic(kind, *arguments):
    """What the lines become; see notebook_lines.py."""
    space = sys.modules['__main__'].__dict__
    if kind == 'shell':
        return _shell(_expand(arguments[0], space), space)
    if kind == 'output':
        return _shell_output(_expand(arguments[0], space), space)
    if kind == 'help':
        return _show_help(*arguments, space)
    if kind == 'line':
        name, line = arguments
        action = _LINE_MAGICS.get(name)
        if action is None:
            more = f' But the cell magic `%%{name}` is.' if name in _CELL_MAGICS else ''
            raise UsageError(f'Line magic function `%{name}` not found.{more}')
        return action(line, space)
    name, line, body, above = arguments
    action = _CELL_MAGICS.get(name)
    if action is None:
        raise UsageError(f'Cell magic `%%{name}` not found.')
    return action(line, body, space, above, sys._getframe(1).f_code.co_filename)


# ---- programs ------------------------------------------------------------


def _expand(text, space):
    """`{expression}` and `$name` of a command, as far as they mean something in the session."""

    def braces(match):
        try:
            return str(eval(match[1], space))
        except Exception:
            return match[0]

    text = re.sub(r'\{([^{}]+)\}', braces, text)
    return re.sub(r'\$(\w+)', lambda m: str(space[m[1]]) if m[1] in space else m[0], text)


def _shell(command, space):
    import subprocess

    sys.stdout.flush()
    space['_exit_code'] = subprocess.call(['/bin/bash', '-c', command])


def _shell_output(command, space):
    import subprocess

    done = subprocess.run(['/bin/bash', '-c', command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    space['_exit_code'] = done.returncode
    return done.stdout.decode(errors='replace').splitlines()


def _script(program):
    def run(line, body, space, above, filename):
        import subprocess
        import tempfile

        sys.stdout.flush()
        with tempfile.NamedTemporaryFile('w', suffix='.script') as file:
            file.write(body)
            file.flush()
            code = subprocess.call([*program, file.name, *line.split()])
        space['_exit_code'] = code
        if code:
            raise subprocess.CalledProcessError(code, [*program])

    return run


def _alias(program):
    return lambda line, space: _shell(_expand(f'{program} {line}', space), space)


# ---- time ------------------------------------------------------------------


def _run_source(source, space, above, filename):
    """Runs code in the session, with the line numbers of the cell; the value of its last expression."""
    import ast

    source = translate_cell(source) or source
    tree = compile('\n' * above + source, filename, 'exec', ast.PyCF_ONLY_AST)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, 'exec'), space)
    return eval(compile(ast.Expression(last.value), filename, 'eval'), space) if last else None


def _span(seconds):
    for unit, size in (('s', 1), ('ms', 1e-3), ('μs', 1e-6), ('ns', 1e-9)):
        if seconds >= size or unit == 'ns':
            return f'{seconds / size:.3g} {unit}'


def _timed(source, space, above, filename):
    import time

    usage, wall = _cpu(), time.perf_counter()
    try:
        return _run_source(source, space, above, filename)
    finally:
        wall = time.perf_counter() - wall
        user, system = (after - before for after, before in zip(_cpu(), usage))
        print(f'CPU times: user {_span(user)}, sys: {_span(system)}, total: {_span(user + system)}\nWall time: {_span(wall)}')


def _cpu():
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def _timeit(line, body, space, above, filename):
    import statistics
    import timeit

    options, statement = _options(line, 'nr')
    setup, code = (statement or 'pass', body) if body is not None else ('pass', statement)
    timer = timeit.Timer(code, setup, globals=space)
    runs = int(options.get('r', 7))
    loops = int(options['n']) if 'n' in options else timer.autorange()[0]
    times = [t / loops for t in timer.repeat(runs, loops)]
    mean, deviation = statistics.fmean(times), statistics.pstdev(times)
    print(f'{_span(mean)} ± {_span(deviation)} per loop (mean ± std. dev. of {runs} run{"s" * (runs != 1)}, {loops:,} loop{"s" * (loops != 1)} each)')


def _options(line, letters):
    """`-n 10 -r3 rest`: ({'n': '10', 'r': '3'}, 'rest')."""
    found = {}
    while True:
        match = re.match(rf'-([{letters}])\s*(\S+)\s*', line) or re.match(r'-([a-z])\s*()', line)
        if not match:
            return found, line
        found[match[1]] = match[2]
        line = line[match.end() :]


# ---- the session --------------------------------------------------------------


def _cd(line, space):
    import os

    os.chdir(os.path.expanduser(line.strip('"\'') or '/workspace'))
    print(os.getcwd())


def _pwd(line, space):
    import os

    return os.getcwd()


def _env(line, space):
    import os

    if not line:
        return dict(os.environ)
    name, equals, value = line.partition('=')
    if not equals:
        name, _, value = line.partition(' ')
        if not value:
            if name not in os.environ:
                raise UsageError(f'Environment does not have key: {name}')
            return os.environ[name]
    os.environ[name.strip()] = value = _expand(value.strip(), space)
    print(f'env: {name.strip()}={value}')


def _plain_names(line, space):
    kinds = line.split()
    return sorted(
        n for n, v in space.items() if not n.startswith('_') and type(v).__name__ != 'module' and (not kinds or type(v).__name__ in kinds)
    )


def _who(line, space):
    print('\t '.join(_plain_names(line, space)) or 'Interactive namespace is empty.')


def _whos(line, space):
    names = _plain_names(line, space)
    width = max([8, *(len(n) for n in names)])
    print(f'{"Variable":<{width}}   Type        Data/Info\n{"-" * (width + 24)}')
    for name in names:
        text = ' '.join(repr(space[name])[:200].split())
        print(f'{name:<{width}}   {type(space[name]).__name__:<10}  {text[:60]}')


def _run_file(line, space):
    import runpy
    import shlex

    words = shlex.split(line)
    if not words:
        raise UsageError('%run needs the name of a file')
    before = sys.argv
    sys.argv = words
    try:
        path = words[0] if words[0].endswith('.py') else words[0] + '.py'
        made = runpy.run_path(path, run_name='__main__')
    except SystemExit as e:
        if e.code:
            raise
        return
    finally:
        sys.argv = before
    space.update((k, v) for k, v in made.items() if not k.startswith('__'))


def _matplotlib(line, space):
    """Figures are shown inline anyway."""
    if line not in ('', 'inline', 'notebook', 'widget', 'ipympl', 'agg', '-l', '--list'):
        print(f'%matplotlib {line}: figures are shown inline here', file=sys.stderr)


def _no_extension(line, space):
    print(f'%load_ext {line}: extensions of IPython are not available here, nothing was loaded', file=sys.stderr)


def _nothing(line, space):
    pass


def _writefile(line, body, space, above, filename):
    import os

    options, path = _options(_expand(line, space), 'x')
    path = os.path.expanduser(path.strip().strip('"\''))
    if not path:
        raise UsageError('%%writefile needs the name of a file')
    print('Appending to' if 'a' in options else 'Overwriting' if os.path.exists(path) else 'Writing', path)
    with open(path, 'a' if 'a' in options else 'w', encoding='utf-8') as file:
        file.write(body if body.endswith('\n') else body + '\n')


def _capture(line, body, space, above, filename):
    import contextlib
    import io
    from types import SimpleNamespace

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        _run_source(body, space, above, filename)
    if line:
        space[line.split()[-1]] = SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), show=lambda: print(out.getvalue(), end=''))


def _as_form(mime):
    return lambda line, body, space, above, filename: display({mime: body}, raw=True)


def _show_help(name, marks, space):
    """`name?`: what it is, how it is called, what its documentation says; with `??` its source."""
    import inspect
    import pydoc

    if name.startswith('%'):
        bare = name.lstrip('%')
        action = _LINE_MAGICS.get(bare) or _CELL_MAGICS.get(bare)
        print(f'{name}: {"no such magic" if action is None else action.__doc__ or "a magic of notebooks"}')
        return
    try:
        thing = eval(name, space)
    except Exception:
        print(f'Object `{name}` not found.')
        return
    parts = []
    try:
        parts.append(f'Signature: {name}{inspect.signature(thing)}')
    except (TypeError, ValueError):
        parts.append(f'Type: {type(thing).__name__}\nString form: {_fit(_plain(thing), 2000)}')
    try:
        parts.append(f'Source:\n{inspect.getsource(thing)}' if marks == '??' else f'Docstring:\n{pydoc.getdoc(thing) or "<no docstring>"}')
    except (TypeError, OSError):
        parts.append(f'Docstring:\n{pydoc.getdoc(thing) or "<no docstring>"}')
    print('\n'.join(parts))


_LINE_MAGICS = {
    'time': lambda line, space: _timed(line, space, 0, '<magic>'),
    'timeit': lambda line, space: _timeit(line, None, space, 0, '<magic>'),
    'pip': lambda line, space: run_command(line),
    'conda': lambda line, space: run_command(line),
    'cd': _cd,
    'pwd': _pwd,
    'env': _env,
    'set_env': _env,
    'who': _who,
    'who_ls': _plain_names,
    'whos': _whos,
    'run': _run_file,
    'matplotlib': _matplotlib,
    'pylab': _matplotlib,
    'load_ext': _no_extension,
    'reload_ext': _no_extension,
    'autoreload': _nothing,
    'config': _nothing,
    'precision': _nothing,
    'xmode': _nothing,
    'system': lambda line, space: _shell_output(_expand(line, space), space),
    'sx': lambda line, space: _shell_output(_expand(line, space), space),
    'lsmagic': lambda line, space: print('%' + '  %'.join(_LINE_MAGICS) + '\n%%' + '  %%'.join(_CELL_MAGICS)),
    **{name: _alias(name) for name in ('ls', 'cat', 'mkdir', 'rmdir', 'rm', 'cp', 'mv')},
}
_CELL_MAGICS = {
    'time': lambda line, body, space, above, filename: _timed(body, space, above, filename),
    'timeit': _timeit,
    'bash': _script(('/bin/bash',)),
    'shell': lambda *arguments: _shell_cell(*arguments),
    'sh': _script(('/bin/sh',)),
    'script': lambda line, body, *more: _script(tuple(line.split()))('', body, *more),
    'python': _script((sys.executable,)),
    'python3': _script((sys.executable,)),
    'writefile': _writefile,
    'file': _writefile,
    'capture': _capture,
    'html': _as_form('text/html'),
    'HTML': _as_form('text/html'),
    'markdown': _as_form('text/markdown'),
    'latex': _as_form('text/latex'),
    'svg': _as_form('image/svg+xml'),
    'javascript': _as_form('application/javascript'),
    'js': _as_form('application/javascript'),
}
