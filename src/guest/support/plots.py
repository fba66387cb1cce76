"""show() of plotly, bokeh and altair: they would open a browser, which a session has not. Here it sends the figure as a
display: the JSON that describes it, and HTML. Nothing of these packages is imported before the code imports it."""


def _patch_plotly(module):
    """fig.show() calls plotly.io.show()."""

    def show(fig, renderer=None, validate=True, **kwargs):
        display(_plotly_forms(fig), raw=True)

    show.__module__, show.__qualname__ = module.__name__, 'show'
    module.show = show


def _patch_plotly_figure(module):
    """A figure that is the value of a cell; plotly's own method asks for IPython."""
    module.BaseFigure._repr_mimebundle_ = lambda self, include=None, exclude=None, validate=True, **kwargs: _plotly_forms(self)


def _plotly_forms(figure):
    import json

    import plotly.io

    forms = {'application/vnd.plotly.v1+json': json.loads(plotly.io.to_json(figure, validate=False))}
    try:
        forms['image/png'] = plotly.io.to_image(figure, format='png') if 'kaleido' in sys.modules or _is_installed('kaleido') else None
    except Exception:
        pass  # kaleido needs a browser that may not be there: the other forms show the figure
    # The script of plotly has 3.5 MB: a page on the network fetches it.
    forms['text/html'] = plotly.io.to_html(figure, include_plotlyjs='cdn', full_html=False, validate=False)
    kinds = ', '.join(dict.fromkeys(str(trace.get('type', 'scatter')) for trace in forms['application/vnd.plotly.v1+json'].get('data', ())))
    forms['text/plain'] = f'<plotly figure: {kinds or "empty"}>'
    return {mime: data for mime, data in forms.items() if data is not None}


def _is_installed(name):
    return PathFinder.find_spec(name) is not None


def _patch_altair(module):
    """Chart.show() and charts as values. The module is altair's api, of whatever version of Vega-Lite."""
    chart = module.TopLevelMixin

    def show(self, *args, **kwargs):
        display(_altair_forms(self), raw=True)

    chart.show = show
    chart._repr_mimebundle_ = lambda self, include=None, exclude=None, **kwargs: _altair_forms(self)


def _altair_forms(chart):
    spec = chart.to_dict()
    version = spec.get('$schema', '').rpartition('/v')[2].partition('.')[0] or '5'
    kind = spec.get('mark', 'layers')
    kind = kind.get('type', 'chart') if isinstance(kind, dict) else kind
    return {
        f'application/vnd.vegalite.v{version}+json': spec,
        'text/html': chart.to_html(),
        'text/plain': f'<altair chart: {kind}>',
    }


def _patch_bokeh(module):
    """bokeh.io.showing, from which bokeh.io and bokeh.plotting take their show()."""

    def show(obj, *args, **kwargs):
        display(_bokeh_forms(obj), raw=True)

    show.__module__, show.__qualname__ = module.__name__, 'show'
    module.show = show


def _bokeh_forms(obj):
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    return {'text/html': file_html(obj, INLINE, 'bokeh'), 'text/plain': f'<bokeh {type(obj).__name__}>'}
