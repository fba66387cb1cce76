"""A session with a screen: figures become windows, and a cell can run inside another that waits in a main loop."""


def use_display():
    """The session has a screen: figures become windows on it when they are shown, if there is a toolkit to make them."""
    import os
    from importlib.util import find_spec

    threading = sys.modules.get('threading')
    if threading is not None:  # toolkits ask whether they are in the main thread, which has had another number before the fork
        threading.main_thread()._set_native_id()
    if find_spec('_tkinter') is None:
        os.environ.pop('MPLBACKEND', None)
        return
    backend = os.environ.get('MPLBACKEND') or 'TkAgg'
    if 'matplotlib' in sys.modules:
        sys.modules['matplotlib'].rcParams['backend'] = backend
    pyplot = sys.modules.get('matplotlib.pyplot')
    if pyplot is not None:
        if hasattr(pyplot, '_get_backend_mod'):
            pyplot._backend_mod = None  # asked for anew at the first figure
        else:
            pyplot.switch_backend(backend)
    for binding in ('PyQt5', 'PyQt6', 'PySide2', 'PySide6'):
        for module in ('QtCore', 'QtGui', 'QtWidgets'):
            _on_import(f'{binding}.{module}', _patch_qt)


def _patch_qt(module):
    """Qt's loop runs Python only for its own callbacks: while it runs, a signal becomes one."""
    core = sys.modules[module.__name__.partition('.')[0] + '.QtCore']
    for kind in ('QCoreApplication', 'QGuiApplication', 'QApplication'):
        application = vars(module).get(kind)
        for name in ('exec', 'exec_'):
            if application is not None and name in vars(application):
                setattr(application, name, _with_wakeup(core, getattr(application, name)))


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
    return staticmethod(run)


def _drain(sock):
    try:
        sock.recv(4096)
    except OSError:
        pass
