"""bundle() and display()."""

import base64
import json
import math
from unittest import mock

import pytest
from conftest import forms


def test_plain_values(gb):
    for value in (
        0,
        -1,
        2**63 - 1,
        2.5,
        1e300,
        'é\n"',
        True,
        False,
        [],
        [1, [2.0, None, 'x']],
        {'a': {'b': [True]}},
        (1, (2,)),
    ):
        found = forms(gb.bundle(value))
        assert list(found) == ['text/plain', 'application/json']
        assert found['text/plain'] == ('t', repr(value))
        assert found['application/json'][0] == 'j'
        assert json.loads(found['application/json'][1]) == json.loads(json.dumps(value))


def test_numbers_of_numpy(gb):
    import numpy
    for value, data in ((numpy.arange(5).sum(), 10), (numpy.float64(2.5), 2.5), (numpy.uint8(7), 7), (numpy.int64(-(2**63)), -(2**63))):
        assert forms(gb.bundle(value)) == {'text/plain': ('t', repr(value)), 'application/json': ('j', json.dumps(data))}
    for value in (numpy.float64('nan'), numpy.float32(0.1), numpy.bool_(True), numpy.uint64(2**64 - 1), numpy.arange(2)):
        assert list(forms(gb.bundle(value))) == ['text/plain']


def deep(n):
    value = 1
    for _ in range(n):
        value = [value]
    return value


class Sub(dict):
    pass


@pytest.mark.parametrize(
    'value',
    [
        None,
        math.inf,
        math.nan,
        [math.nan],
        2**63,
        [2**100],
        {1: 2},
        {'a': {None: 1}},
        {1, 2},
        b'x',
        1j,
        [object],
        Sub(a=1),
        [Sub(a=1)],
        '\ud800',
        ['\ud800'],
        {'\ud800': 1},
        deep(33),
        list(range(60_000)),
        'x' * 70_000,
        '☃' * 30_000,
        ['x' * 40_000] * 2,
    ],
    ids=lambda v: repr(v)[:20],
)
def test_no_json_where_it_would_not_be_the_value(gb, value):
    found = forms(gb.bundle(value))
    found.pop('application/vnd.python.json', None)
    assert list(found) == ['text/plain']
    assert found['text/plain'] == ('t', repr(value))
    found['text/plain'][1].encode()


def test_json_at_the_limits(gb):
    assert 'application/json' in forms(gb.bundle(deep(32)))
    assert 'application/json' in forms(gb.bundle('x' * 65_000))
    looped = []
    looped.append(looped)
    assert gb.bundle(looped) == [('text/plain', 't', '[[...]]')]


def test_huge_values_are_cut(gb):
    for value in (
        [0] * 30_000_000,
        (1,) * 5_000_000,
        'x' * 50_000_000,
        b'x' * 20_000_000,
        {i: i for i in range(300_000)},
    ):
        [(mime, kind, text)] = gb.bundle(value)
        assert len(text) < gb.MAX_PLAIN + 200
        assert 'left out ...]' in text
        assert text[0] == repr(value[:1] if not isinstance(value, dict) else {})[0] and text[-1] in "])}'"


class Rich:
    def _repr_html_(self):
        return '<b>é</b>'

    def _repr_markdown_(self):
        return '**x**'

    def _repr_svg_(self):
        return '<svg/>'

    def _repr_png_(self):
        return b'\x89PNG'

    def _repr_jpeg_(self):
        return b'\xff\xd8', {'width': 3}

    def _repr_latex_(self):
        return '$x$'

    def _repr_json_(self):
        return {'a': [1]}

    def _repr_javascript_(self):
        return 'alert(1)'

    def _repr_pdf_(self):
        return b'%PDF'

    def __repr__(self):
        return 'Rich()'


def test_all_methods(gb):
    assert forms(gb.bundle(Rich())) == {
        'text/plain': ('t', 'Rich()'),
        'text/html': ('t', '<b>é</b>'),
        'text/markdown': ('t', '**x**'),
        'image/svg+xml': ('t', '<svg/>'),
        'image/png': ('t', base64.b64encode(b'\x89PNG').decode()),
        'image/jpeg': ('t', base64.b64encode(b'\xff\xd8').decode()),
        'text/latex': ('t', '$x$'),
        'application/json': ('j', '{"a":[1]}'),
        'application/javascript': ('t', 'alert(1)'),
        'application/pdf': ('t', base64.b64encode(b'%PDF').decode()),
    }
    assert list(forms(gb.bundle(Rich))) == ['text/plain']  # the class itself


def test_mimebundle_comes_first(gb):
    class Spec:
        asked = None

        def _repr_mimebundle_(self, include=None, exclude=None):
            self.asked = include, exclude
            return {
                'application/vnd.x.v1+json': {'n': None},
                'text/html': 'mine',
                'text/plain': 'plain',
                5: 6,
            }, {'meta': 1}

        def _repr_html_(self):
            return 'not asked'

        def _repr_latex_(self):
            return '$y$'

    value = Spec()
    assert forms(gb.bundle(value)) == {
        'text/plain': ('t', 'plain'),
        'application/vnd.x.v1+json': ('j', '{"n":null}'),
        'text/html': ('t', 'mine'),
        'text/latex': ('t', '$y$'),
    }
    assert value.asked == (None, None)


def test_instance_attributes_and_delegation(gb):
    class Plain:
        pass

    class Proxy:
        def __init__(self, to):
            self.to = to

        def __getattr__(self, name):
            return getattr(self.to, name)

    plain = Plain()
    plain._repr_html_ = lambda: 'own'
    assert forms(gb.bundle(plain))['text/html'] == ('t', 'own')
    assert forms(gb.bundle(Proxy(Rich())))['text/html'] == ('t', '<b>é</b>')


def test_objects_that_have_every_attribute(gb):
    thing = mock.MagicMock()
    assert list(forms(gb.bundle(thing))) == ['text/plain']
    assert thing.mock_calls == []


def test_failing_methods(gb, capsys):
    class Fails:
        def _repr_html_(self):
            1 / 0

        def _repr_latex_(self):
            raise NotImplementedError

        def _repr_png_(self):
            raise SystemExit(3)

        def _repr_markdown_(self):
            return 'fine'

        def _repr_json_(self):
            return {'x': object()}

        def _repr_svg_(self):
            return 17

        def __repr__(self):
            return 'F'

    found = forms(gb.bundle(Fails()))
    assert found['text/markdown'] == ('t', 'fine')
    assert found['text/plain'][1] == 'F\n[application/json left out: it is no JSON]'
    assert set(found) == {'text/plain', 'text/markdown'}
    said = capsys.readouterr().err
    assert (
        '_repr_html_ of ' in said
        and '1 / 0' in said
        and '<glovebox>' not in said
        and 'NotImplemented' not in said
    )


def test_failing_repr(gb):
    class Foo:
        def __repr__(self):
            return 1 / 0

    class NotText:
        def __repr__(self):
            return 5

    class Exits:
        def __repr__(self):
            raise SystemExit

    class Interrupted:
        def __repr__(self):
            raise KeyboardInterrupt

    name = f'{__name__}.test_failing_repr.<locals>.Foo'
    assert gb.bundle(Foo()) == [
        ('text/plain', 't', f'<repr of {name} failed: ZeroDivisionError: division by zero>')
    ]
    assert gb.bundle([Foo()])[0][2] == '<repr of list failed: ZeroDivisionError: division by zero>'
    assert 'TypeError' in gb.bundle(NotText())[0][2]
    assert 'SystemExit' in gb.bundle(Exits())[0][2]
    for value in (Interrupted(), [Interrupted()]):
        with pytest.raises(KeyboardInterrupt):
            gb.bundle(value)


def test_interrupt_in_a_method_goes_through(gb):
    class Slow:
        def _repr_html_(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gb.bundle(Slow())


def test_large_forms_are_left_out(gb):
    class Large:
        def __repr__(self):
            return 'L'

        def _repr_png_(self):
            return bytes(gb.MAX_FORM + 1)

        def _repr_jpeg_(self):
            return bytes(gb.MAX_FORM - 100)

        def _repr_pdf_(self):
            return bytes(gb.MAX_FORM - 100)

        def _repr_html_(self):
            return 'é' * gb.MAX_FORM

    found = forms(gb.bundle(Large()))
    assert set(found) == {'text/plain', 'image/jpeg'}
    assert found['text/plain'][1].splitlines() == [
        'L',
        '[text/html left out: 33,554,432 bytes, the limit is 16,777,216]',
        '[image/png left out: 16,777,217 bytes, the limit is 16,777,216]',
        '[application/pdf left out: the forms of one value are limited to 25,165,824 bytes]',
    ]


def test_strange_bundles(gb):
    class Many:
        def __init__(self, given):
            self.given = given

        def _repr_mimebundle_(self, include=None, exclude=None):
            return self.given

    many = forms(gb.bundle(Many({f'x/{i}': 'y' for i in range(1000)})))
    assert len(many) == gb.MAX_FORMS
    strange = Many(
        {
            'noslash': 'a',
            'x/' + 'y' * 200: 'b',
            'x/é': 'c',
            'text/html': None,
            'x/j+json': 'no json',
            'x/k+json': '[1, 2]',
        }
    )
    found = forms(gb.bundle(strange))
    assert set(found) == {'text/plain', 'x/k+json'} and found['x/k+json'] == ('j', '[1,2]')
    for given in (None, 5, 'text', [], (1, 2), ({}, {})):
        assert list(forms(gb.bundle(Many(given)))) == ['text/plain']
    assert set(forms(gb.bundle(Many({'application/json': deep(70)})))) == {'text/plain'}
    assert set(forms(gb.bundle(Many({'application/json': deep(50)})))) == {'text/plain', 'application/json'}


def test_lone_surrogates_are_escaped(gb):
    class Odd:
        def __repr__(self):
            return 'a\ud800'

        def _repr_html_(self):
            return 'b\udfff'

    found = forms(gb.bundle(Odd()))
    assert found == {'text/plain': ('t', 'a\\ud800'), 'text/html': ('t', 'b\\udfff')}


# ---- display -----------------------------------------------------------


@pytest.fixture
def shown(gb):
    sent = []
    gb._emit = sent.append
    return sent


def test_display(gb, shown):
    assert gb.display(1, 'x', Rich(), None) is None
    assert [bundle[0][2] for bundle in shown] == ['1', "'x'", 'Rich()', 'None']
    assert forms(shown[2]) == forms(gb.bundle(Rich()))


def test_include_and_exclude(gb, shown):
    gb.display(Rich(), include=['text/html', 'text/plain'])
    gb.display(Rich(), exclude={'image/png', 'application/pdf'})
    gb.display(5, include=['application/json'])
    gb.display(5, include=['text/html'])
    assert set(forms(shown[0])) == {'text/html', 'text/plain'}
    assert 'image/png' not in forms(shown[1]) and 'text/html' in forms(shown[1])
    assert shown[2] == [('application/json', 'j', '5')]
    assert len(shown) == 3


def test_raw(gb, shown):
    gb.display(
        {'text/html': '<i>', 'application/json': {'a': 1}, 'image/png': b'x'},
        raw=True,
        metadata={},
        transient={},
        clear=True,
    )
    assert forms(shown[0]) == {
        'application/vnd.glovebox.display+json': ('j', '{"clear": true, "wait": true}')
    }
    assert forms(shown[1]) == {
        'text/html': ('t', '<i>'),
        'application/json': ('j', '{"a":1}'),
        'image/png': ('t', 'eA=='),
    }
    with pytest.raises(TypeError, match='dicts of MIME type'):
        gb.display('text', raw=True)


def test_handle(gb, shown):
    handle = gb.display(1, display_id=True)
    handle.update(2)
    assert gb.display(3, display_id='mine').display_id == 'mine'
    assert [bundle[0][2] for bundle in shown] == ['1', '2', '3']


def test_display_in_cells(guest):
    outcome = guest(
        'for i in range(3):\n    display(i)\nclass H:\n    def _repr_html_(self): return "<p>"\ndisplay(H())\n"value"'
    )
    assert [forms(d)['text/plain'][1] for d in outcome.displays[:3]] == ['0', '1', '2']
    assert forms(outcome.displays[3])['text/html'] == ['t', '<p>'] or forms(outcome.displays[3])[
        'text/html'
    ] == ('t', '<p>')
    assert outcome.result[0][2] == "'value'"


def test_pandas_and_pillow(guest):
    pytest.importorskip('pandas')
    pytest.importorskip('PIL')
    guest(
        'import pandas as pd\npd.DataFrame({"a": [1, 2]})',
        'from PIL import Image\nImage.new("RGB", (2, 2))',
        'import numpy as np\nnp.float64(1.5), np.arange(3)',
    )
    frame, image, arrays = (forms(cell.result) for cell in guest.cells)
    assert '<table' in frame['text/html'][1] and frame['text/plain'][1] == '   a\n0  1\n1  2'
    assert base64.b64decode(image['image/png'][1]).startswith(b'\x89PNG')
    assert list(arrays) == ['text/plain']


def test_nan_and_infinities_as_pythons_json_writes_them(gb):
    def loose(value):
        return forms(gb.bundle(value)).get('application/vnd.python.json')

    assert loose(float('nan')) == ('t', 'NaN') and loose([1.0, float('-inf')]) == ('t', '[1.0, -Infinity]')
    assert loose(1.5) is None and loose(['\ud800']) is None and loose({1}) is None
