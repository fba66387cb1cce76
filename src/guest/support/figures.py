"""matplotlib figures without a screen: images of open figures, and the backend whose show() makes them."""

import io

# What a figure holds itself; its background is none of it.
_CONTENT = ('axes', 'lines', 'images', 'texts', 'patches', 'artists', 'legends', 'subfigs')


def flush_figures():
    """Shows each open figure once and closes them all, as Jupyter does at the end of a cell."""
    helpers = sys.modules.get('matplotlib._pylab_helpers')
    if helpers is None:
        return
    managers = list(helpers.Gcf.figs.values())
    hidden = [manager for manager in managers if not _on_screen(manager)]
    try:
        _send_figures(hidden)
    finally:
        if len(hidden) == len(managers):
            helpers.Gcf.destroy_all()
        else:
            for manager in hidden:
                helpers.Gcf.destroy(manager)


def _send_figures(managers):
    for manager in sorted(managers, key=lambda manager: manager.num):
        _show_once(manager.canvas.figure)


def _on_screen(manager):
    """A window that the code showed: it stays until the code, or somebody in front of the screen, closes it."""
    if getattr(manager, '_shown', False):  # Tk
        return True
    window = getattr(manager, 'window', None)
    visible = getattr(window, 'isVisible', None) or getattr(window, 'get_visible', None)  # Qt, GTK
    try:
        return bool(visible and visible())
    except Exception:
        return False


def _is_figure(value):
    module = sys.modules.get('matplotlib.figure')
    return module is not None and issubclass(type(value), getattr(module, 'Figure', ()))


def _show_once(figure):
    """Shows a figure unless it was shown as it is: as a value, by display() or by figure.show()."""
    if getattr(figure, '_glovebox_shown', False) and not figure.stale:
        return
    try:
        forms = _rich_bundle(figure, None, None)
    except Exception as e:
        _report(e, 'A figure could not be drawn:')
    else:
        _send(forms)


def _figure_png(figure):
    """PNG bytes cut to what is drawn; None for a figure with nothing on it or one that cannot be drawn."""
    if not any(getattr(figure, kind, None) for kind in _CONTENT):
        return None
    image = io.BytesIO()
    try:
        figure.canvas.print_figure(
            image,
            format='png',
            dpi=figure.dpi,
            facecolor=figure.get_facecolor(),
            edgecolor=figure.get_edgecolor(),
            bbox_inches='tight',
        )
    except Exception as e:
        _report(e, 'A figure could not be drawn:')
        return None
    finally:
        # Set also when it failed: one report is enough. A later change makes it stale again.
        figure._glovebox_shown, figure.stale = True, False
    return image.getvalue()


def _fill_inline_backend(module):
    """The content of glovebox_inline. matplotlib 3.5 reads the functions, later ones the classes."""
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class FigureManager(FigureManagerBase):
        def show(self):
            _show_once(self.canvas.figure)

    class FigureCanvas(FigureCanvasAgg):
        manager_class = FigureManager

    def new_figure_manager(num, *args, FigureClass=Figure, **kwargs):
        return new_figure_manager_given_figure(num, FigureClass(*args, **kwargs))

    def new_figure_manager_given_figure(num, figure):
        return FigureManager(FigureCanvas(figure), num)

    def draw_if_interactive():
        pass

    def show(*args, **kwargs):
        flush_figures()

    for thing in (
        FigureManager,
        FigureCanvas,
        new_figure_manager,
        new_figure_manager_given_figure,
        draw_if_interactive,
        show,
    ):
        thing.__module__, thing.__qualname__ = module.__name__, thing.__name__
        setattr(module, thing.__name__, thing)
