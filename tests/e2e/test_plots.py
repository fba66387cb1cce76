"""show() of plotly, altair and bokeh: a figure is sent as a display, where these packages would open a browser."""

import pytest

PLOTLY = 'import plotly.graph_objects as go\nfig = go.Figure(go.Scatter(x=[1, 2, 3], y=[3, 1, 2]))\n'
ALTAIR = (
    'import warnings\nwarnings.simplefilter("ignore")\nimport altair as alt, pandas as pd\n'
    'fig = alt.Chart(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})).mark_bar().encode(x="a", y="b")\n'
)
# Debian has no bokeh: a package with the same modules, whose own show() would open a browser.
BOKEH = """
import os, sys
os.makedirs('bokeh/io')
for name, text in {
    '__init__': '', 'io/__init__': 'from .showing import show', 'io/showing': 'def show(obj, **more): raise RuntimeError("a browser")',
    'plotting': 'from .io import show\\nclass figure: pass', 'resources': 'INLINE = "inline"',
    'embed': 'def file_html(obj, resources, title): return f"<div>{type(obj).__name__} {resources}</div>"',
}.items():
    open(f'bokeh/{name}.py', 'w').write(text)
sys.path.insert(0, os.getcwd())
from bokeh.plotting import figure, show
fig = figure()
"""


@pytest.mark.parametrize('show', ['fig.show()', 'import plotly.io as pio; pio.show(fig)', 'display(fig)'])
def test_plotly(api, show):
    session = api.session()
    [forms] = session.execute(PLOTLY + show, timeout_s=120).ok().displays
    assert forms['application/vnd.plotly.v1+json']['data'][0]['y'] == [3, 1, 2]
    assert '<div' in forms['text/html'] and forms['text/plain'] == '<plotly figure: scatter>'
    assert len(forms['text/html']) < 100_000, 'without the script of plotly'


@pytest.mark.parametrize('show', ['fig.show()', 'display(fig)'])
def test_altair(api, show):
    session = api.session()
    [forms] = session.execute(ALTAIR + show, timeout_s=120).ok().displays
    [mime] = [m for m in forms if m.startswith('application/vnd.vegalite.v')]
    assert forms[mime]['mark'] == 'bar' and '<div' in forms['text/html']


def test_figures_as_values(api):
    session = api.session()
    assert 'application/vnd.plotly.v1+json' in session.execute(PLOTLY + 'fig', timeout_s=120).ok().result
    assert session.execute(ALTAIR + 'fig', timeout_s=120).ok().result['text/plain'] == '<altair chart: bar>'


def test_bokeh(api):
    session = api.session()
    [forms] = session.execute(BOKEH + 'show(fig)').ok().displays
    assert forms == {'text/html': '<div>figure inline</div>', 'text/plain': '<bokeh figure>'}
