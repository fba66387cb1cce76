"""The end of a cell whose picture is wanted: toolkits paint their windows, as they would in a main loop, until the daemon has the picture."""

from time import monotonic as _clock

_PAINTED, _AWAITS = 5, 6  # enum wire_loop

_SLICE = 0.05  # seconds that one toolkit may handle events before the others have their turn
_FIRST = 1.0  # the windows are called painted after so long, also when events come without end
_LIVELY = 0.12  # toolkits that paint by timers of their own are called often for so long after the last event
_OFTEN, _SELDOM = 8, 40  # ms; the screen takes a wait of less than 30 ms for an animation's
_LONGEST = 120  # the daemon says long before that that it has its picture
_SPINS = 3  # waits that ended at once: a connection whose events no toolkit takes


def paint_screen(own):
    """Paints, and handles events until the daemon says that it has its picture. Without windows of its own the process just waits."""
    hidden = _show_hidden() if own else []
    try:
        pumps = [pump for name, pump in _PUMPS.items() if name in sys.modules] if own else []
        _pump_until_told(pumps, _PAINTED if own else _AWAITS)
    except KeyboardInterrupt:  # the daemon's, for a callback that did not return; the code of the cell has ended before
        pass
    finally:
        _close(hidden)


def _pump_until_told(pumps, word):
    begin = lively = _clock()
    lazy = all(pump in _PROMPT for pump in pumps)  # they tell whether there is something to do
    told, spins = False, 0
    while True:
        busy = _pump_once(pumps)
        now = _clock()
        if not told and (not busy or now - begin > _FIRST):
            told = True
            _tell_loop(word)
        often = not lazy and now - lively < _LIVELY
        said = _paint_wait(0 if busy else _OFTEN if often else _SELDOM, spins < _SPINS)
        if said == 1 or now - begin > _LONGEST:
            return
        spins = spins + 1 if said == 2 else 0
        if said == 2:
            lively = _clock()


def _pump_once(pumps):
    """Every toolkit handles the events that are there. True when one of them may have more to do at once."""
    busy = False
    for pump in list(pumps):
        try:
            busy = bool(pump()) or busy
        except Exception as e:
            pumps.remove(pump)  # once is enough
            _report(e, 'While its windows were painted for the picture:')
    return busy


# ---- figures ------------------------------------------------------------------------------


def _show_hidden():
    """Opens windows for the figures that have none on the screen; they are closed again when the picture was taken."""
    helpers = sys.modules.get('matplotlib._pylab_helpers')
    managers = list(helpers.Gcf.figs.values()) if helpers is not None else []
    drawable = [m for m in managers if getattr(m.canvas, 'required_interactive_framework', None)]
    hidden = [m for m in drawable if not _on_screen(m)]
    _send_figures(hidden)  # first: a window smaller than the figure makes the figure smaller
    for manager in drawable:
        try:
            if manager in hidden:
                manager.show()
                _keep_open(manager)
            if manager in hidden or manager.canvas.figure.stale:
                manager.canvas.draw_idle()
        except Exception as e:
            _report(e, 'A figure could not be shown:')
    return hidden


def _keep_open(manager):
    """The window ignores requests to close it: Tk handles such requests while it destroys the window, and then destroys it twice."""
    protocol = getattr(getattr(manager, 'window', None), 'protocol', None)
    if protocol is not None:
        protocol('WM_DELETE_WINDOW', lambda: None)


def _close(managers):
    for manager in managers:
        try:
            sys.modules['matplotlib._pylab_helpers'].Gcf.destroy(manager)
        except Exception as e:
            _report(e, 'The window of a figure could not be closed:')


# ---- toolkits: each handles what is there, without waiting ---------------------------------


_tcl = None  # an interpreter of our own, for its events() alone, which are those of all


def _pump_tk():
    """Events, idle callbacks and timers of all roots of this thread. update() would not return from an after(0) that comes again and again,
    and Tk maps and paints in idle callbacks, which come after all timers: so timers come last here."""
    global _tcl
    root = getattr(sys.modules.get('tkinter'), '_default_root', None)
    app = getattr(root, 'tk', None) or _tcl
    if app is None:
        app = _tcl = sys.modules['_tkinter'].create(None, 'glovebox', 'Glovebox', False, 1, False, False, None)
    kinds, end = sys.modules['_tkinter'], _clock() + _SLICE
    painting = kinds.DONT_WAIT | kinds.WINDOW_EVENTS | kinds.FILE_EVENTS | kinds.IDLE_EVENTS
    while app.dooneevent(painting) or app.dooneevent(kinds.DONT_WAIT):
        if _clock() > end:
            return True
    return False


def _pump_qt(binding):
    def pump():
        core = sys.modules[f'{binding}.QtCore']
        application = core.QCoreApplication.instance()
        if application is not None:
            kinds = getattr(core.QEventLoop, 'ProcessEventsFlag', core.QEventLoop)
            application.processEvents(kinds.AllEvents, int(_SLICE * 1000))

    return pump


def _pump_glib():
    context, end = sys.modules['gi.repository.GLib'].MainContext.default(), _clock() + _SLICE
    while context.pending() and _clock() < end:
        context.iteration(False)


def _pump_pygame():
    pygame = sys.modules['pygame']
    if pygame.display.get_init() and pygame.display.get_surface() is not None:
        pygame.event.pump()


def _pump_pyglet():
    for window in list(sys.modules['pyglet'].app.windows):
        window.switch_to()
        window.dispatch_events()
        window.dispatch_event('on_draw')
        window.flip()


def _pump_kivy():
    loop = sys.modules['kivy.base'].EventLoop
    window = loop.window
    if window is None:
        return
    if loop.event_listeners:
        loop.idle()  # which ends the program when it has none
    else:
        sys.modules['kivy.clock'].Clock.tick()
        window.dispatch('on_draw')
        window.dispatch('on_flip')


def _pump_glut():
    glut = sys.modules['OpenGL.GLUT']
    if glut.glutGetWindow():
        glut.glutMainLoopEvent()


def _pump_wx():
    application = sys.modules['wx'].GetApp()
    if application is not None:
        application.Yield(True)


_PUMPS = {
    '_tkinter': _pump_tk,
    **{f'{binding}.QtCore': _pump_qt(binding) for binding in ('PyQt5', 'PyQt6', 'PySide2', 'PySide6')},
    'gi.repository.Gdk': _pump_glib,
    'pygame': _pump_pygame,
    'pyglet.window': _pump_pyglet,
    'kivy.core.window': _pump_kivy,
    'OpenGL.GLUT': _pump_glut,
    'wx': _pump_wx,
}
_PROMPT = (_pump_tk, _pump_pygame)
