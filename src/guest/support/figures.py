"""matplotlib figures without a screen: images of open figures, and the backend whose show() makes them."""

import gc
import io
import math

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
    collecting = gc.isenabled()
    gc.disable()  # drawing makes many objects and hardly any garbage: collections take a quarter of its time
    try:
        return _draw_png(figure)
    except Exception as e:
        _report(e, 'A figure could not be drawn:')
        return None
    finally:
        if collecting:
            gc.enable()
        # Set also when it failed: one report is enough. A later change makes it stale again.
        figure._glovebox_shown, figure.stale = True, False


def _draw_png(figure):
    """Draws once and cuts the picture out of the pixels. print_figure() draws twice: first only to find out what to cut."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas, box, file = figure.canvas, 'tight', io.BytesIO()
    if getattr(type(canvas), 'draw', None) is FigureCanvasAgg.draw and canvas.device_pixel_ratio == 1:
        content, box = _draw_and_measure(figure, canvas)
        picture = _cut_picture(canvas, content, box, figure.dpi)
        if picture:
            _save_picture(picture, figure.dpi, file)
            return file.getvalue()

    canvas.print_figure(
        file,
        format='png',
        dpi=figure.dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        bbox_inches=box,
    )
    return file.getvalue()


def _draw_and_measure(figure, canvas):
    """In inches: the box around everything that is drawn, and with the margin what print_figure() would cut to."""
    from matplotlib import rcParams

    saving, canvas._is_saving = canvas._is_saving, True  # artists of animations are drawn, too
    try:
        canvas.draw()
        content = figure.get_tightbbox(canvas.get_renderer())
        return content, content.padded(rcParams['savefig.pad_inches'])
    finally:
        canvas._is_saving = saving


def _cut_picture(canvas, content, box, dpi):
    """The pixels of the box; None when something lies outside of the canvas, or the background there cannot be told."""
    from PIL import Image

    if not all(map(math.isfinite, (*content.extents, *box.extents))):
        return None
    width, height = canvas.get_width_height()
    if content.x0 < 0 or content.y0 < 0 or content.x1 * dpi > width or content.y1 * dpi > height:
        return None
    left, top = math.floor(box.x0 * dpi), math.floor(height - box.y1 * dpi)
    right, bottom = left + int(box.width * dpi), top + int(box.height * dpi)
    if left >= right or top >= bottom:
        return None
    drawn = Image.frombuffer('RGBA', (width, height), canvas.buffer_rgba(), 'raw', 'RGBA', 0, 1)
    if left >= 0 and top >= 0 and right <= width and bottom <= height:
        return drawn.crop((left, top, right, bottom))

    corners = {drawn.getpixel((x, y)) for x in (0, width - 1) for y in (0, height - 1)}
    if len(corners) > 1:
        return None
    picture = Image.new('RGBA', (right - left, bottom - top), corners.pop())
    picture.paste(drawn, (-left, -top))
    return picture


def _save_picture(picture, dpi, file):
    """zlib's level 4 makes files as small as its default, 6, in less time; those of level 3 are a quarter larger."""
    from matplotlib import __version__
    from PIL import PngImagePlugin

    made_by = PngImagePlugin.PngInfo()
    made_by.add_text('Software', f'Matplotlib version{__version__}, https://matplotlib.org/')
    picture.save(file, format='png', compress_level=4, dpi=(dpi, dpi), pnginfo=made_by)


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
