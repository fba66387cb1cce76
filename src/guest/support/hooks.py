"""What cells find in place of Python's own: input() without a keyboard, display(), and modules changed a little
when they are imported."""

from importlib.machinery import ModuleSpec, PathFinder

_NO_KEYBOARD = 'input() has no keyboard here: pass the text as `stdin` with the request, or with `glovebox run --stdin FILE`'
_INLINE = 'glovebox_inline'


def install():
    """Puts everything in its place; called once, best before anything is preloaded."""
    atexit.register(_functions)
    builtins.input = make_input(_NO_KEYBOARD)
    builtins.display = display
    for name, action in (
        ('getpass', _patch_getpass),
        ('inspect', _patch_inspect),
        ('socket', _patch_socket),
        ('psutil._common', _patch_psutil),
        ('multiprocessing.spawn', _patch_spawn),
        ('joblib.externals.loky.backend.spawn', _patch_spawn),
        ('matplotlib', _choose_backend),
        ('plotly.io', _patch_plotly),
        ('plotly.basedatatypes', _patch_plotly_figure),
        ('altair.vegalite.v4.api', _patch_altair),
        ('altair.vegalite.v5.api', _patch_altair),
        ('altair.vegalite.v6.api', _patch_altair),
        ('bokeh.io.showing', _patch_bokeh),
        ('IPython.core.display_functions', _patch_ipython),
    ):
        _on_import(name, action)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


# ---- input -------------------------------------------------------------


def make_input(message):
    """An input() that reads what came with the request, and otherwise fails at once saying `message`."""

    def input(prompt='', /, *more):
        if more:
            raise TypeError(f'input expected at most 1 argument, got {len(more) + 1}')
        sys.audit('builtins.input', prompt)
        line = _read_line(prompt, message)
        sys.audit('builtins.input/result', line)
        return line

    input.__module__, input.__qualname__, input.__doc__ = 'builtins', 'input', builtins.input.__doc__
    return input


def _read_line(prompt, message, password=False):
    if getattr(sys, 'stdin', None) is None or getattr(sys, 'stdout', None) is None:
        raise RuntimeError('input(): lost sys.stdin or sys.stdout')
    if _asks_client():
        return ask_for_line(str(prompt), password)
    sys.stdout.write(str(prompt))
    try:
        sys.stdout.flush()
    except Exception:
        pass  # as in Python's own: whatever has a write() will do
    line = sys.stdin.readline()
    if not line:
        raise EOFError(message if _without_keyboard() else 'EOF when reading a line')
    return line[:-1] if line.endswith('\n') else line


def _asks_client():
    """Does a client answer input(), and is there no text to read instead?"""
    try:
        return _input_tool is not None and sys.stdin.fileno() == 0 and _without_keyboard()
    except (AttributeError, OSError, ValueError):
        return False


def _without_keyboard():
    """Was no text given with the request? Then descriptor 0 is /dev/null, not a file."""
    import os
    import stat

    try:
        return not stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        return True


def _patch_getpass(module):
    def getpass(prompt='Password: ', stream=None):
        return _read_line(prompt, _NO_KEYBOARD.replace('input()', 'getpass()', 1), password=True)

    getpass.__module__, getpass.__qualname__ = module.__name__, 'getpass'
    module.getpass = getpass


# ---- other modules -----------------------------------------------------


def _choose_backend(matplotlib):
    """Not by MPLBACKEND alone, which the session's subprocesses inherit: they have no glovebox_inline."""
    import os

    if os.environ.get('MPLBACKEND', '').lower() in ('', 'agg', f'module://{_INLINE}'):
        matplotlib.rcParams['backend'] = f'module://{_INLINE}'


def _patch_ipython(module):
    """IPython's display() prints a repr when no IPython shell runs; let it reach us."""

    for place in (module, sys.modules.get('IPython.display')):
        if place is not None:
            place.display = display
            place.publish_display_data = publish_display_data
            place.update_display = update_display
            place.clear_output = clear_output


# ---- when a module is imported -----------------------------------------

_actions = {}


def _on_import(name, action):
    """Calls action(module) now if the module is there, and else when it has been imported."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    earlier = _actions.get(name)
    _actions[name] = action if earlier is None else lambda module: (earlier(module), action(module))


class _Finder:
    """First on sys.meta_path; answers for glovebox_inline and for modules that an action waits for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == _INLINE:
            return ModuleSpec(name, _InlineLoader())
        if name in _DISPLAY_MODULES and _lacks_ipython(name):
            return ModuleSpec(name, DisplayModulesLoader(), is_package=name == 'IPython')
        if name not in _actions:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and hasattr(spec.loader, 'exec_module'):
            spec.loader = _Loader(spec.loader, _actions[name])
        return spec


def _lacks_ipython(name):
    """IPython is not installed, or was not when its package was imported."""
    if name == 'IPython':
        return PathFinder.find_spec(name) is None
    return isinstance(getattr(sys.modules.get('IPython'), '__loader__', None), DisplayModulesLoader)


class _InlineLoader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        _fill_inline_backend(module)


class _Loader:
    """A module's own loader, and an action afterwards."""

    def __init__(self, loader, action):
        self._loader, self._action = loader, action

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module must not meet us: packages read their data through __loader__ and __spec__.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            self._action(module)
        except Exception as e:
            _report(e, f'{module.__name__} was imported, but not adapted:')
