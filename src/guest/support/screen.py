"""A session with a screen: figures become windows, and a cell can run inside another that waits in a main loop. What toolkits are
asked to do tells whether the code is in a main loop, so that nobody closes a window into which it still draws."""

_NONE, _MAIN, _POLLS, _PAUSE = range(4)  # enum wire_loop

# module: what of it (functions, or methods of its classes) stands for which
_WAITS = {
    'tkinter': {'mainloop': _MAIN, 'Misc.mainloop': _MAIN, 'Misc.wait_window': _MAIN, 'Misc.wait_variable': _MAIN},
    'tkinter.commondialog': {'Dialog.show': _MAIN},
    'turtle': {'TurtleScreenBase.mainloop': _MAIN},
    'matplotlib.pyplot': {'pause': _PAUSE},
    'pygame.event': {'get': _POLLS, 'poll': _POLLS, 'wait': _POLLS},
    'pyglet.app.base': {'EventLoop.run': _MAIN},
    'kivy.base': {'runTouchApp': _MAIN},
    'OpenGL.GLUT': {'glutMainLoop': _MAIN},
}


# What toolkits are called in Debian and Ubuntu.
_PACKAGES = {
    'tkinter': 'python3-tk',
    '_tkinter': 'python3-tk',
    'turtle': 'python3-tk',
    'PIL.ImageTk': 'python3-pil.imagetk',
    'matplotlib': 'python3-matplotlib',
    'pygame': 'python3-pygame',
    'PyQt5': 'python3-pyqt5',
    'PyQt6': 'python3-pyqt6',
    'PySide2': 'python3-pyside2.qtwidgets',
    'PySide6': 'python3-pyside6.qtwidgets',
    'gi': 'python3-gi',
    'kivy': 'python3-kivy',
    'pyglet': 'python3-pyglet',
    'OpenGL': 'python3-opengl',
    'wx': 'python3-wxgtk4.0',
}
_NO_SCREEN = ('$DISPLAY', 'No available video device', 'video system not initialized', "couldn't be initialized", 'Cannot connect to "None"', 'cannot open display')
_NO_OPENGL = ('Library "GL" not found', 'Unable to load OpenGL library', 'NoSuchConfigException', 'fbConfig', 'GLX', 'Could not create GL context')


def advise_missing(exc):
    """(a word for programs, what to do) about modules that are not there and windows that cannot be; else None."""
    import os

    text = f'{type(exc).__name__}: {exc}'
    if isinstance(exc, ModuleNotFoundError):
        name = str(exc.name)
        package = _PACKAGES.get(name) or _PACKAGES.get(name.partition('.')[0])
        if package is not None:
            return 'toolkit_missing', f'Install it on the server: apt-get install {package}. Toolkits that are there need no installation: docs/display.md lists them.'
        if name.isidentifier() and name not in sys.stdlib_module_names:
            return 'module_missing', (
                f'Make the session with "additional_imports": ["{name}"], which installs the package that a module is in (glovebox run: --package NAME), '
                f'or put %pip install {name} on a line of its own.'
            )
    if isinstance(exc, ValueError) and str(exc).startswith('Namespace Gtk not available'):
        return 'toolkit_missing', 'Install it on the server: apt-get install gir1.2-gtk-3.0.'
    if not os.environ.get('DISPLAY') and any(words in text for words in _NO_SCREEN):
        return 'no_display', 'The session has no screen. Make it with "display": true (glovebox run: --display); plots need none.'
    if any(words in text for words in _NO_OPENGL):
        return 'no_opengl', 'The program wants OpenGL: install it on the server, in software: apt-get install libgl1 libglu1-mesa libgl1-mesa-dri.'
    return None


_tk_found = None  # looked for once, in the zygote: it takes longer than all else that a display needs


def has_tk():
    global _tk_found
    if _tk_found is None:
        from importlib.util import find_spec

        _tk_found = find_spec('_tkinter') is not None
    return _tk_found


def use_display():
    """The session has a screen: figures become windows on it when they are shown, if there is a toolkit to make them."""
    import os

    threading = sys.modules.get('threading')
    if threading is not None:  # toolkits ask whether they are in the main thread, which has had another number before the fork
        threading.main_thread()._set_native_id()
    _on_import('matplotlib.pyplot', _patch_show)
    for name, table in _WAITS.items():
        _on_import(name, lambda module, table=table: _watch_waits(module, table))
    if not has_tk():
        os.environ.pop('MPLBACKEND', None)
        return
    backend = os.environ.get('MPLBACKEND') or 'TkAgg'
    figures_stay_pictures = backend.lower() == 'agg'  # as without a screen: they open no window, which would prevent a snapshot
    if 'matplotlib' in sys.modules and not figures_stay_pictures:
        sys.modules['matplotlib'].rcParams['backend'] = backend
    pyplot = sys.modules.get('matplotlib.pyplot')
    if pyplot is not None and not figures_stay_pictures:
        if hasattr(pyplot, '_get_backend_mod'):
            pyplot._backend_mod = None  # asked for anew at the first figure
        else:
            pyplot.switch_backend(backend)
    for binding in ('PyQt5', 'PyQt6', 'PySide2', 'PySide6'):
        for module in ('QtCore', 'QtGui', 'QtWidgets'):
            _on_import(f'{binding}.{module}', _patch_qt)


_NOBODY_LOOKS = (
    'plt.show() did not wait: nobody looks at this window, and nobody can close it before the time limit. For a picture of it ask for one with the cell '
    '("capture_screenshot": true; glovebox run: --screenshot FILE). For windows that are used meanwhile say "on_block": "wait" or "leave". '
    'Figures that are not shown come as images by themselves.\n'
)


def _patch_show(pyplot):
    """A show() that would wait for a hand that is not there shows the windows, and says what to do."""
    import functools
    import types

    original, unwatched = pyplot.show, _show_unwatched

    def show(*args, **kwargs):
        return original(*args, **kwargs) if not unwatched(pyplot, original, args, kwargs) else None

    # With pyplot's own names: a warning of matplotlib's is about the first frame that is not matplotlib's, the line of the cell.
    shown = types.FunctionType(show.__code__, vars(pyplot), 'show', None, show.__closure__)
    pyplot.show = functools.wraps(original)(shown)


def _show_unwatched(pyplot, original, args, kwargs):
    """True when nobody looks, and it has shown the windows without waiting."""
    managers = list(sys.modules['matplotlib._pylab_helpers'].Gcf.figs.values())
    waits = kwargs.get('block', args[0] if args else None)
    if waits is None:
        waits = not pyplot.isinteractive()
    if not (_unwatched and waits and managers and all(hasattr(manager, 'window') for manager in managers)):
        return False
    original(block=False)
    for manager in managers:
        manager.canvas.draw()
        manager.canvas.flush_events()
    sys.stderr.write(_NOBODY_LOOKS)
    return True


def _watch_waits(module, table):
    for path, how in table.items():
        holder, name = module, path
        if '.' in path:
            kind, name = path.split('.')
            holder = getattr(module, kind, None)
        original = getattr(holder, name, None)
        if original is not None:
            setattr(holder, name, (_polling if how == _POLLS else _waiting)(original, how))


_outer = []  # the wait that the code is in, if any: those inside of it change nothing


def _waiting(original, how):
    import functools

    @functools.wraps(original)
    def wait(*args, **kwargs):
        if _outer:
            return original(*args, **kwargs)
        _outer.append(how)
        _tell_loop(how)
        try:
            return original(*args, **kwargs)
        finally:
            _outer.clear()
            _tell_loop(_NONE)

    return wait


def _polling(original, how):
    import functools

    @functools.wraps(original)
    def ask(*args, **kwargs):
        _tell_loop(_POLLS)
        return original(*args, **kwargs)

    return ask


def _patch_qt(module):
    """Qt's loop runs Python only for its own callbacks: while it runs, a signal becomes one."""
    core = sys.modules[module.__name__.partition('.')[0] + '.QtCore']
    for kind in ('QCoreApplication', 'QGuiApplication', 'QApplication'):
        application = vars(module).get(kind)
        for name in ('exec', 'exec_'):
            if application is not None and name in vars(application):
                setattr(application, name, staticmethod(_waiting(_with_wakeup(core, getattr(application, name)), _MAIN)))


def _with_wakeup(core, original):
    import signal
    import socket

    def run(*args, **kwargs):
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        before = signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        kind = getattr(core.QSocketNotifier, 'Type', core.QSocketNotifier).Read
        notifier = core.QSocketNotifier(near.fileno(), kind)
        notifier.activated.connect(lambda *ignored: _drain(near))
        try:
            return original(*args, **kwargs)
        finally:
            notifier.setEnabled(False)
            signal.set_wakeup_fd(before)
            near.close()
            far.close()

    run.__name__ = run.__qualname__ = getattr(original, '__name__', 'exec')
    return run


def _drain(sock):
    try:
        sock.recv(4096)
    except OSError:
        pass
