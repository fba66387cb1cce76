"""Data frames and matplotlib figures as data: `data_forms` of a cell (docs/rich-output.md)."""

import gb
import pytest

TABLE = 'application/vnd.glovebox.table+json'
CHART = 'application/vnd.glovebox.chart+json'


@pytest.fixture(scope='module')
def session():
    with gb.running_daemon() as daemon, daemon.api() as api:
        s = api.post('/v1/sessions').json()['id']
        yield lambda code, **more: api.post(
            f'/v1/sessions/{s}/execute', json={'code': code, 'timeout_s': 120, **{'data_forms': True, **more}}
        ).json()


@pytest.fixture
def chart(session):
    def draw(code):
        o = session(f'import matplotlib.pyplot as plt\nplt.close("all")\n{code}\nplt.show()')
        assert o['status'] == 'ok', o
        assert len(o['displays']) == 1 and 'image/png' in o['displays'][0], o
        return o['displays'][0][CHART]

    return draw


def test_a_data_frame_gives_its_columns(session):
    o = session(
        'import pandas as pd\npd.DataFrame({"n": [1, 2], "x": [1.5, float("nan")], "t": pd.to_datetime(["2024-01-02", None]), 7: ["a", None]})'
    )
    assert o['result'][TABLE] == {'n': [1, 2], 'x': [1.5, None], 't': ['2024-01-02T00:00:00', None], '7': ['a', None]}


def test_data_comes_only_when_it_is_asked_for(session):
    o = session('import pandas as pd\npd.DataFrame({"a": [1]})', data_forms=False)
    assert 'text/html' in o['result'] and TABLE not in o['result']
    o = session('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()', data_forms=False)
    assert 'image/png' in o['displays'][0] and CHART not in o['displays'][0]


def test_a_large_frame_is_left_out(session):
    o = session('import pandas as pd\npd.DataFrame({"a": range(200_001)})')
    assert o['status'] == 'ok' and 'text/html' in o['result'] and TABLE not in o['result']
    o = session('import pandas as pd\npd.DataFrame({"a": range(200_000)})')
    assert len(o['result'][TABLE]['a']) == 200_000


def test_lines_alone(chart):
    c = chart('plt.plot([1, 2, 3], [4, 5, 6])')
    assert c['elements'] == [{'label': 'Line 0', 'points': [[1, 4], [2, 5], [3, 6]]}]


def test_a_whisker_without_length_is_no_median(chart):
    box = chart('plt.boxplot([[1, 2, 3, 4, 100]])')['elements'][0]
    assert (box['median'], box['third_quartile'], box['max'], box['outliers']) == (3, 4, 4, [100])


def test_lines(chart):
    c = chart(
        'plt.plot([0, 1, 2], [0.5, 1.5, 2.5], label="up")\nplt.plot([0, 1], [3, float("inf")])\nplt.axhline(1)\n'
        'plt.title("Two")\nplt.xlabel("time (s)")\nplt.ylabel("length [m]")'
    )
    assert (c['type'], c['title'], c['x_label'], c['x_unit'], c['y_unit']) == ('line', 'Two', 'time (s)', 's', 'm')
    assert c['elements'] == [
        {'label': 'up', 'points': [[0, 0.5], [1, 1.5], [2, 2.5]]},
        {'label': 'Line 1', 'points': [[0, 3], [1, None]]},
    ]
    assert c['x_scale'] == c['y_scale'] == 'linear'
    assert len(c['x_ticks']) == len(c['x_tick_labels']) > 2 and isinstance(c['x_tick_labels'][1], str)


def test_scales(chart):
    c = chart('import datetime as d\nplt.plot([d.date(2024, 1, 1), d.date(2024, 1, 3)], [1, 1000])\nplt.yscale("log")')
    assert (c['x_scale'], c['y_scale']) == ('datetime', 'log')
    assert c['elements'][0]['points'] == [['2024-01-01', 1], ['2024-01-03', 1000]]
    assert c['x_ticks'][0].startswith('202')
    c = chart('plt.scatter(["a", "b"], [1, 2], label="s")')
    assert (c['type'], c['x_scale']) == ('scatter', 'categorical')
    assert c['elements'] == [{'label': 's', 'points': [['a', 1], ['b', 2]]}]


def test_bars(chart):
    c = chart('plt.bar(["a", "b", "c"], [1, 2, 3], label="g")\nplt.xlabel("who")')
    assert (c['type'], c['x_label']) == ('bar', 'who')
    assert c['elements'] == [{'label': n, 'group': 'g', 'value': v} for n, v in zip('abc', (1, 2, 3))]
    c = chart('plt.barh(["a", "b"], [5, 5])\nplt.xlabel("much")')
    assert c['y_label'] == 'much' and c['elements'][1] == {'label': 'b', 'group': 'Group 0', 'value': 5}
    c = chart('plt.bar([-0.2, 0.8], [1, 2], 0.4)\nplt.bar([0.2, 1.2], [3, 4], 0.4)\nplt.xticks([0, 1], ["p", "q"])')
    assert [e['label'] for e in c['elements']] == ['p', 'q', 'p', 'q']


def test_pies(chart):
    c = chart('plt.pie([1, 3], labels=["a", "b"])\nplt.title("Parts")')
    assert (c['type'], c['title']) == ('pie', 'Parts')
    assert c['elements'] == [{'label': 'a', 'angle': 90, 'radius': 1}, {'label': 'b', 'angle': 270, 'radius': 1}]


@pytest.mark.parametrize('options', ['', ', patch_artist=True', ', vert=False', ', patch_artist=True, vert=False'])
def test_boxes(chart, options):
    c = chart(f'plt.boxplot([[1, 2, 3, 4, 5, 20], [2, 3, 4, 5, 6]], labels=["A", "B"]{options})\nplt.ylabel("y")')
    assert c['type'] == 'box_and_whisker'
    assert c['elements'] == [
        {'label': 'A', 'min': 1, 'first_quartile': 2.25, 'median': 3.5, 'third_quartile': 4.75, 'max': 5, 'outliers': [20]},
        {'label': 'B', 'min': 2, 'first_quartile': 3, 'median': 4, 'third_quartile': 5, 'max': 6, 'outliers': []},
    ]


def test_several_axes_and_unknown_ones(chart):
    c = chart('f, (a, b) = plt.subplots(1, 2)\nf.suptitle("Both")\na.plot([1, 2])\nb.imshow([[1, 2], [3, 4]])')
    assert (c['type'], c['title'], [e['type'] for e in c['elements']]) == ('superchart', 'Both', ['line', 'unknown'])


def test_a_figure_is_shown_once_and_a_large_one_without_data(chart, session):
    o = session('import matplotlib.pyplot as plt\nf, a = plt.subplots()\na.plot([1, 2])\nf')
    assert CHART in o['result'] and not o.get('displays')
    o = session('plt.plot(range(100_001))\nplt.show()')
    assert 'image/png' in o['displays'][0] and CHART not in o['displays'][0]


def test_an_object_that_lies_gives_its_other_forms(session):
    o = session(
        'import pandas as pd\nclass Odd(pd.DataFrame):\n    def __init__(self): pass\n    shape = property(lambda self: 1 / 0)\n'
        '    def _repr_html_(self): return "odd"\n    def __repr__(self): return "odd"\nOdd()'
    )
    assert (o['status'], o['result']['text/plain'], TABLE in o['result']) == ('ok', 'odd', False), o
