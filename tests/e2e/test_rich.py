"""Values and displays in rich forms; figures without a screen."""

import base64
import struct
import zlib

import pytest

import gb


def png_size(text):
    """(width, height) of a base64 PNG, whose chunks must all be sound."""
    data = base64.b64decode(text, validate=True)
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, kinds, pixels, size = 8, [], b'', None
    while at < len(data):
        (length,) = struct.unpack('>I', data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack('>I', data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        if kind == b'IHDR':
            size = struct.unpack('>II', body[:8])
        if kind == b'IDAT':
            pixels += body
        at += 12 + length
    assert kinds[0] == b'IHDR' and kinds[-1] == b'IEND'
    assert len(set(zlib.decompress(pixels))) > 2, 'something is drawn'
    return size


def test_display(session):
    seen = session.execute('display(1, "two")\nprint("x")\ndisplay({"a": 3})').ok()
    assert [d['text/plain'] for d in seen.displays] == ['1', "'two'", "{'a': 3}"]
    assert seen.result is None and seen.stdout == 'x\n'


@pytest.mark.parametrize(
    'body, mime, expected',
    [
        ('def _repr_html_(self): return "<b>x</b>"', 'text/html', '<b>x</b>'),
        ('def _repr_markdown_(self): return "**x**"', 'text/markdown', '**x**'),
        ('def _repr_latex_(self): return "$x$"', 'text/latex', '$x$'),
        ('def _repr_svg_(self): return "<svg/>"', 'image/svg+xml', '<svg/>'),
        ('def _repr_json_(self): return {"a": [1, None]}', 'application/json', {'a': [1, None]}),
        ('def _repr_javascript_(self): return "1"', 'application/javascript', '1'),
        ('def _repr_png_(self): return b"\\x89PNG"', 'image/png', base64.b64encode(b'\x89PNG').decode()),
        ('def _repr_jpeg_(self): return b"\\xff\\xd8"', 'image/jpeg', base64.b64encode(b'\xff\xd8').decode()),
        ('def _repr_mimebundle_(self, include=None, exclude=None): return {"text/x-own": "own", "text/plain": "p"}', 'text/x-own', 'own'),
        ('def _repr_mimebundle_(self, **kw): return {"text/html": "h"}, {"text/html": {"meta": 1}}', 'text/html', 'h'),
    ],
)  # fmt: skip
def test_rich_forms(session, body, mime, expected):
    result = session.execute(f'class R:\n    {body}\n    def __repr__(self): return "plain"\nR()').ok().result
    assert result[mime] == expected
    assert result['text/plain'] in ('plain', 'p')
    displayed = session.execute('display(R())').ok().displays
    assert displayed == [result]


@pytest.mark.parametrize(
    'expression,mime,expected',
    [
        ('HTML("<b>x</b>")', 'text/html', '<b>x</b>'),
        ('Markdown("# m")', 'text/markdown', '# m'),
        ('Math("x^2")', 'text/latex', '$\\displaystyle x^2$'),
        ('JSON({"a": 1})', 'application/json', {'a': 1}),
        ('SVG("<svg/>")', 'image/svg+xml', '<svg/>'),
        ('Code("a < b")', 'text/html', '<pre><code>a &lt; b</code></pre>'),
        ('Image("dot.png")', 'image/png', base64.b64encode(b'\x89PNG').decode()),
        ('Image(url="http://h/p.png", width=5)', 'text/html', '<img src="http://h/p.png" width="5"/>'),
        ('FileLink("dot.png")', 'text/plain', 'dot.png'),
    ],
)
def test_ipython_display_without_ipython(session, expression, mime, expected):
    session.execute('from IPython.display import *\nopen("dot.png", "wb").write(b"\\x89PNG")').ok()
    assert session.execute(expression).ok().result[mime] == expected


def test_ipython_without_ipython(session):
    seen = session.execute('import IPython\nIPython.get_ipython(), IPython.display.display is display').ok()
    assert seen.result['text/plain'] == '(None, True)'
    code = 'from IPython.display import clear_output, display_html, update_display\nhandle = display("a", display_id=True)\nclear_output()\ndisplay_html("<i>", raw=True)\nupdate_display("b", display_id=handle.display_id)'
    assert [d.get('text/html', d.get('text/plain')) for d in session.execute(code).ok().displays] == ["'a'", None, '<i>', "'b'"]
    for missing in ('import IPython.core', 'from IPython import embed', 'from IPython.display import Image\nImage("nope.png")'):
        assert session.execute(missing).error['type'] in ('ModuleNotFoundError', 'ImportError', 'FileNotFoundError')


@pytest.mark.parametrize(
    'body',
    [
        'def _repr_html_(self): raise ValueError("in html")',
        'def _repr_html_(self): return 5',
        'def _repr_html_(self): return None',
        'def _repr_png_(self): return "not bytes"',
        'def _repr_json_(self): return object()',
        'def _repr_json_(self): return float("nan")',
        'def _repr_mimebundle_(self, **kw): return 5',
        'def _repr_mimebundle_(self, **kw): return {5: 6, "": "x", "a\\nb": "c", "x" * 1000: "d", "bad\\"mime": "e"}',
        'def _repr_mimebundle_(self, **kw): 1/0',
        'def __getattr__(self, name): return lambda *a, **k: "anything"',
        'def __getattr__(self, name): raise RuntimeError(name)',
        'def _repr_html_(self): return "\\ud800"',
    ],
)
def test_forms_that_fail_leave_the_plain_one(session, body):
    seen = session.execute(f'class R:\n    {body}\n    def __repr__(self): return "plain"\nR()')
    assert seen.status == 'ok', seen.error
    assert 'plain' in seen.result['text/plain']
    assert session.value('1') == '1'


def test_too_many_and_too_large_displays(session, daemon):
    before = daemon.rss()
    seen = session.execute('for i in range(1000): display(i)').ok()
    assert len(seen.displays) == 256 and seen.truncated['displays'] >= 1
    session.execute(
        'class Big:\n  def _repr_html_(self): return "x" * 10_000_000\n  def __repr__(self): return "big"'
    ).ok()
    seen = session.execute('for i in range(10): display(Big())').ok()
    assert 1 <= len(seen.displays) <= 4 and seen.truncated['displays'] >= 6
    assert session.value('1') == '1'
    gb.wait_until(lambda: daemon.rss() - before < 64 << 20, 'the memory is given back')


def test_display_from_a_thread_and_between_cells(session):
    seen = session.execute(
        'import threading\nt = threading.Thread(target=display, args=(5,)); t.start(); t.join()'
    ).ok()
    assert [d['text/plain'] for d in seen.displays] == ['5']
    session.execute('import time\nthreading.Timer(0.1, display, args=("late",)).start()').ok()
    assert session.execute('time.sleep(0.3)').ok().displays in (
        [{'text/plain': "'late'", 'application/json': 'late'}],
        [],
    )


# ---- numpy, pandas, matplotlib, PIL -------------------------------------------------------


def test_figures_become_png(science):
    seen = science.execute(
        'import matplotlib.pyplot as plt\nfig, ax = plt.subplots(figsize=(4, 3), dpi=100)\nax.plot([1, 4, 9])\nax.set_title("Título $x^2$")'
    ).ok()
    assert len(seen.displays) == 1 and seen.displays[0]['text/plain'].startswith('<Figure size')
    width, height = png_size(seen.displays[0]['image/png'])
    assert 200 < width < 600 and 150 < height < 450
    assert science.execute('plt.get_fignums()').ok().text == '[]', 'shown ones are closed, as in a notebook'
    assert science.execute('1').displays == []


def test_several_figures_show_and_savefig(science):
    seen = science.execute('import matplotlib.pyplot as plt\nfor i in range(3):\n  plt.figure(); plt.plot([i, 1])').ok()
    assert len(seen.displays) == 3
    seen = science.execute('plt.plot([1, 2]); plt.show()\nprint("after")\nplt.plot([2, 1]); plt.show()').ok()
    assert len(seen.displays) == 2
    seen = science.execute('plt.bar([1, 2], [3, 4]); plt.savefig("out.png"); plt.close()').ok()
    assert seen.displays == [] and [f['path'] for f in seen.files] == ['out.png']
    assert science.get_file('out.png').content[:4] == b'\x89PNG'


def test_figure_as_value_is_not_shown_twice(science):
    seen = science.execute('import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1, 2])\nfig').ok()
    pictures = [d for d in seen.displays if 'image/png' in d] + [r for r in [seen.result] if r and 'image/png' in r]
    assert len(pictures) == 1


def test_figures_of_a_failing_cell(science):
    seen = science.execute('import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1/0')
    assert seen.error['type'] == 'ZeroDivisionError' and len(seen.displays) == 1
    assert science.execute('import matplotlib; matplotlib.get_backend()').ok().text


def test_dataframes(science):
    seen = science.execute('import pandas as pd\ndf = pd.DataFrame({"a": [1, 2], "b": ["x", "<y>"]})\ndf').ok()
    assert seen.result['text/plain'] == '   a    b\n0  1    x\n1  2  <y>'
    assert '<table' in seen.result['text/html'] and '&lt;y&gt;' in seen.result['text/html']
    assert science.value('df["a"].sum()') in ('3', 'np.int64(3)')
    seen = science.execute('pd.DataFrame({"n": range(100_000)})').ok()
    assert len(seen.result['text/html']) < 100_000, 'pandas cuts it, as in a notebook'


def test_pillow_images(science):
    seen = science.execute(
        'from PIL import Image\nim = Image.new("RGB", (30, 20), "red")\nim.putpixel((3, 3), (1, 2, 3))\nim'
    ).ok()
    assert png_size(seen.result['image/png']) == (30, 20)


def test_plots_in_subprocesses_do_not_break(science):
    seen = science.execute(
        'import subprocess\nsubprocess.run(["/usr/bin/python3", "-c", "import matplotlib.pyplot as p; p.plot([1]); p.savefig(\'s.png\')"], check=True)'
    ).ok()
    assert 's.png' in [f['path'] for f in seen.files]


def test_warm_template_modules_are_there(science):
    seen = science.execute(
        'import sys; [m in sys.modules for m in ("numpy", "pandas", "matplotlib.pyplot", "PIL.Image")]'
    ).ok()
    assert seen.text == '[True, True, True, True]'
    assert seen.usage['wall_ms'] < 5000
