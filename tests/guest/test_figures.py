"""matplotlib without a screen."""

import ast
import base64
import io
import struct
import sys

import pytest
from conftest import forms
from PIL import Image, ImageChops

pytest.importorskip('matplotlib')


def images(outcome):
    """Sizes of the PNG displays of a cell."""
    sizes = []
    for bundle in outcome.displays:
        if 'image/png' in forms(bundle):
            data = base64.b64decode(forms(bundle)['image/png'][1])
            assert data.startswith(b'\x89PNG\r\n\x1a\n')
            sizes.append(struct.unpack('>II', data[16:24]))
    return sizes


def picture(bundle):
    return Image.open(io.BytesIO(base64.b64decode(forms(bundle)['image/png'][1])))


def run(guest, *cells, **options):
    outcome = guest('import matplotlib.pyplot as plt', *cells, **options)
    for cell in guest.cells:
        assert cell.error is None, cell.error[2]
        assert cell.stderr == ''
    return outcome


def test_an_open_figure_is_shown_at_the_end(guest):
    outcome = run(guest, 'x = plt.plot([1, 2])', 'plt.get_fignums()')
    assert len(images(guest.cells[1])) == 1
    assert forms(guest.cells[1].displays[0])['text/plain'][1] == '<Figure size 640x480 with 1 Axes>'
    assert outcome.result[0][2] == '[]' and not outcome.displays


@pytest.mark.parametrize('content', ['lines.Line2D([0, 1], [0, 1])', 'patches.Circle((0.5, 0.5), 0.2)'])
def test_a_figure_that_holds_only_artists(guest, content):
    outcome = run(guest, f'from matplotlib import lines, patches\nx = plt.figure().add_artist({content})')
    assert len(images(outcome)) == 1


def test_show_shows_at_once_and_closes(guest):
    run(guest, 'plt.plot([1])\nplt.show()\ndisplay("between")\nplt.plot([2])\nplt.show(block=True)')
    shown = guest.cells[1].displays
    assert ['image/png' in forms(bundle) for bundle in shown] == [True, False, True]


def test_several_figures_in_order(guest):
    run(guest, 'for w in (2, 4, 3):\n    plt.figure(figsize=(w, 1)).add_subplot().axis("off")\nplt.figure(1)')
    texts = [forms(bundle)['text/plain'][1] for bundle in guest.cells[1].displays]
    assert texts == ['<Figure size 400x100 with 1 Axes>', '<Figure size 300x100 with 1 Axes>']
    assert forms(guest.cells[1].result)['text/plain'][1] == '<Figure size 200x100 with 1 Axes>'


@pytest.mark.parametrize('last', ['fig', 'display(fig)', 'fig.show()', 'display(fig, fig)'])
def test_a_figure_appears_once(guest, last):
    outcome = run(guest, f'fig, ax = plt.subplots()\nax.plot([1, 2])\n{last}')
    in_result = outcome.result is not None and 'image/png' in forms(outcome.result)
    expected = 2 if last == 'display(fig, fig)' else 1
    assert len(images(outcome)) + in_result == expected


def test_a_figure_that_changed_appears_again(guest):
    outcome = run(
        guest,
        'fig, ax = plt.subplots()\nline, = ax.plot([1, 2])\ndisplay(fig)\nline.set_data([0, 1], [5, 1])',
    )
    assert len(images(outcome)) == 2


def test_a_closed_figure_as_value(guest):
    run(guest, 'fig, ax = plt.subplots()\nplt.close(fig)', 'fig')
    assert not guest.cells[1].displays
    assert 'image/png' in forms(guest.cells[2].result)


def test_dpi_and_tight_box(guest):
    run(guest, 'fig = plt.figure(figsize=(10, 8), dpi=50)\nfig.add_axes([0, 0, 0.5, 0.5]).axis("off")')
    [(width, height)] = images(guest.cells[1])
    assert 250 <= width < 300 and 200 <= height < 250


def test_an_empty_figure_has_only_text(guest):
    run(guest, 'f = plt.figure()')
    assert [list(forms(bundle)) for bundle in guest.cells[1].displays] == [['text/plain']]


def test_saving(guest, tmp_path):
    run(
        guest,
        'import os\nplt.plot([1, 2])\nplt.savefig("a.png")\nplt.savefig("b.svg")\nplt.savefig("c.pdf")\nplt.close()\nsorted(os.listdir())',
        'from matplotlib import animation\nfig, ax = plt.subplots()\nline, = ax.plot([0, 1])\n'
        'a = animation.FuncAnimation(fig, lambda i: line.set_ydata([0, i]), frames=3)\na.save("d.gif", writer="pillow")\nplt.close()',
    )
    assert guest.cells[1].result[0][2] == "['a.png', 'b.svg', 'c.pdf']"
    assert not guest.cells[1].displays and not guest.cells[2].displays
    assert (tmp_path / 'd.gif').read_bytes().startswith(b'GIF8')


def test_errors_while_drawing(guest):
    guest(
        'import matplotlib.pyplot as plt',
        'plt.title("$\\\\frac{$")\nfig2 = plt.figure()\nx = plt.plot([1])',
        'plt.get_fignums()',
    )
    outcome = guest.cells[1]
    assert outcome.error is None
    assert 'A figure could not be drawn:' in outcome.stderr and 'ValueError' in outcome.stderr
    assert len(images(outcome)) == 1
    assert guest.cells[2].result[0][2] == '[]'


def test_an_error_in_the_cell_keeps_its_figures(guest):
    outcome = guest('import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0')
    assert outcome.error[0] == 'ZeroDivisionError' and len(images(outcome)) == 1


def test_the_backend(guest):
    run(guest, 'import matplotlib\nmatplotlib.get_backend(), type(plt.figure().canvas).__module__')
    assert guest.cells[1].result[0][2].lower() == "('module://glovebox_inline', 'glovebox_inline')"
    outcome = run(
        guest,
        'import sys\n"glovebox_inline" in sys.modules',
        'import matplotlib\nmatplotlib.use("agg")\nx = plt.plot([1])',
    )
    assert len(images(outcome)) == 1


def test_not_imported_before_it_is_used(guest):
    outcome = guest(
        'import sys\n[m for m in sys.modules if m.startswith(("matplotlib", "glovebox", "numpy", "IPython", "asyncio"))]'
    )
    assert outcome.result[0][2] == '[]'


@pytest.mark.parametrize(
    'value, expected', [('', 'module://glovebox_inline'), ('agg', 'module://glovebox_inline'), ('svg', 'svg')]
)
def test_mplbackend(guest, value, expected):
    outcome = guest('import matplotlib\nmatplotlib.get_backend()', env={'MPLBACKEND': value})
    assert eval(outcome.result[0][2]).lower() == expected


def test_a_subprocess_is_not_bound_to_our_backend(guest):
    outcome = guest(
        'import subprocess, sys, matplotlib.pyplot as plt\nplt.plot([1])\nplt.close()',
        'subprocess.run([sys.executable, "-c", "import matplotlib.pyplot as p; p.plot([1]); p.savefig(\'x.png\')"], capture_output=True).returncode',
    )
    assert outcome.result[0][2] == '0'


def test_figures_without_pyplot_and_pickled_ones(guest):
    outcome = run(
        guest,
        'from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1, 2])\nf',
        'import pickle\ng = pickle.loads(pickle.dumps(f))\ng',
    )
    assert 'image/png' in forms(guest.cells[1].result) and 'image/png' in forms(outcome.result)
    assert not outcome.displays and sys.modules


PICTURES = {
    'plot': 'plt.plot([1, 2, 3])',
    'labels': 'plt.plot([1, 2], label="a"); plt.title("t"); plt.xlabel("x"); plt.ylabel("y"); plt.legend(); plt.twinx()',
    'margin': 'plt.subplots(); plt.suptitle("near the upper edge")',
    'layout': 'f, axes = plt.subplots(2, 2, layout="constrained"); p = axes[0][0].imshow([[1, 2], [3, 4]]); f.colorbar(p)',
    'solid': 'plt.figure().add_subplot(projection="3d").plot([1, 2], [1, 2], [1, 3])',
    'outside': 'plt.plot([1, 2]); plt.text(2, 1.5, "a text that leaves the canvas on its right side")',
    'coloured': 'plt.figure(facecolor=(1, 0, 0, 0.5), dpi=73); plt.pie([1, 2], labels=["a", "b"])',
}


@pytest.mark.parametrize('code', PICTURES.values(), ids=PICTURES)
def test_a_picture_is_that_of_savefig(guest, code):
    """What savefig() draws, pixel by pixel, cut to the size that savefig(bbox_inches='tight') would cut it to."""
    compare = """
import base64, io
def saved(**options):
    file = io.BytesIO()
    f.savefig(file, dpi=f.dpi, facecolor=f.get_facecolor(), **options)
    return base64.b64encode(file.getvalue()).decode()
"""
    run(guest, f'{code}\nf = plt.gcf()\nplt.close()\nf', compare + '[saved(), saved(bbox_inches="tight")]')
    shown = picture(guest.cells[1].result)
    whole, tight = (Image.open(io.BytesIO(base64.b64decode(text))) for text in ast.literal_eval(guest.cells[2].result[0][2]))
    assert shown.mode == 'RGBA' and shown.info == tight.info
    assert abs(shown.width - tight.width) <= 1 and abs(shown.height - tight.height) <= 1
    if "leaves the canvas" in code:
        assert shown.tobytes() == tight.tobytes()
        return
    content = ImageChops.difference(shown, Image.new('RGBA', shown.size, shown.getpixel((0, 0)))).convert('RGB').getbbox()
    everything = ImageChops.difference(whole, Image.new('RGBA', whole.size, whole.getpixel((0, 0)))).convert('RGB').getbbox()
    assert shown.getpixel((0, 0)) == whole.getpixel((0, 0))
    assert shown.crop(content).tobytes() == whole.crop(everything).tobytes()


def test_drawing_leaves_the_collector_as_it_was(guest):
    run(guest, 'import gc', 'x = plt.plot([1])', 'gc.isenabled()', 'gc.disable()\nx = plt.plot([1])', 'gc.isenabled()')
    assert guest.cells[3].result[0][2] == 'True' and guest.cells[5].result[0][2] == 'False'
