"""The end of a program. Exit functions of the template's modules (logging, matplotlib, …) touch many pages that a short
program never used, and each costs its process a copy: they are kept here and called only when they have something to do."""

import atexit

_register = atexit.register
_kept = []  # (function, args, kwargs) that modules of the template registered, oldest first
_keeping = 0
_checks = []  # for each of them: has it nothing to do?
_last_handler = None  # the newest log handler of the template


class _KeptFunctions:
    """Stands in atexit's own list for the kept functions, which are due when it is called."""

    due = False

    def __call__(self):
        self.due = True

    def __eq__(self, function):
        """atexit.unregister() compares each entry with the function: it is forgotten here, and this entry stays."""
        _kept[:] = [entry for entry in _kept if entry[0] != function]
        return False

    __hash__ = None


_functions = _KeptFunctions()


def _keep(function, /, *args, **kwargs):
    """atexit.register() while the template is made. Modules may have imported it by name, and call it later too."""
    if not _keeping:
        return _register(function, *args, **kwargs)
    if not callable(function):
        raise TypeError('the first argument must be callable')
    _kept.append((function, args, kwargs))
    return function


class _Keeping:
    """Exit functions that are registered inside are kept."""

    def __enter__(self):
        global _keeping
        if not _keeping:
            atexit.register = _keep
        _keeping += 1

    def __exit__(self, *exc):
        global _keeping
        _keeping -= 1
        if not _keeping and atexit.register is _keep:
            atexit.register = _register


def _finish_template():
    """The template is finished: log handlers that come now are the session's. Checks are looked up now, which costs a
    session's process fewer pages."""
    global _last_handler, _checks
    handlers = getattr(sys.modules.get('logging'), '_handlerList', None)
    _last_handler = handlers[-1] if handlers else None
    _checks = [_check_of(entry[0]) for entry in _kept]


# ---- functions that often have nothing to do ---------------------------------------------------------


def _logging_check(logging):
    # New handlers go to the end of the list. Those of the template write to stderr, which is flushed anyway.
    return lambda: not logging._handlerList or logging._handlerList[-1] is _last_handler


def _processes_check(util):
    process = sys.modules['multiprocessing.process']
    return lambda: not util._finalizer_registry and not process._children


# (module, function) → what makes its check from the module: true when a call would change nothing
_CHECKS = {
    ('logging', 'shutdown'): _logging_check,
    ('multiprocessing.util', '_exit_function'): _processes_check,
    ('weakref', 'finalize._exitfunc'): lambda weakref: lambda: not weakref.finalize._registry,
    ('matplotlib._pylab_helpers', 'Gcf.destroy_all'): lambda helpers: lambda: not helpers.Gcf.figs,
    ('PIL._imaging', 'clear_cache'): lambda imaging: lambda: True,  # it only frees memory
}


def _check_of(function):
    """One that is always false for a function that is not known."""
    name = getattr(function, '__module__', None)
    make = _CHECKS.get((name, getattr(function, '__qualname__', None)))
    return make(sys.modules[name]) if make and name in sys.modules else bool


def nothing_to_end():
    """No other thread, no exit function of the session, and nothing to do for those of the template?"""
    threading = sys.modules.get('threading')
    if threading is not None and len(threading._active) + len(threading._limbo) > 1:
        return False
    if atexit._ncallbacks() > 1 or len(_checks) != len(_kept):
        return False
    for check in _checks:
        if not check():
            return False
    return True


def end_program():
    """What the interpreter does when a program is over: waits for threads that are no daemons, calls what atexit knows."""
    if nothing_to_end():
        return
    threading = sys.modules.get('threading')
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    if not _functions.due:
        return  # the session has cleared the list
    # The last registered is called first, by atexit itself, which reports what they raise.
    for function, args, kwargs in _kept:
        if not _check_of(function)():
            _register(function, *args, **kwargs)
    _kept.clear()
    atexit._run_exitfuncs()
