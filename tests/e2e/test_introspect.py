"""Variables, completion and inspection, without running code of the session."""

import pytest

HOSTILE = '''
class Meta(type):
    def __getattribute__(cls, name):
        while True: pass
class Trap(metaclass=Meta):
    def __repr__(self):
        while True: pass
    def __getattr__(self, name):
        while True: pass
    def __len__(self):
        while True: pass
    __class__ = property(__repr__)
    size = property(__repr__)
class Lists(list):
    __repr__ = __len__ = __iter__ = type.__dict__['__dict__'].__get__(Trap)['__repr__']
trap, lists, inside = Trap(), Lists(), [Trap()]
looped = []
looped.append(looped)
'''


def variables(session):
    answer = session.api.get(f'{session.path}/variables')
    assert answer.status_code == 200, answer.text
    return {v['name']: v for v in answer.json()['variables']}


def complete(session, code, cursor=None):
    answer = session.api.post(f'{session.path}/complete', json={'code': code, 'cursor': cursor})
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(session, code, cursor=None):
    return [m['text'] for m in complete(session, code, cursor)['matches']]


def inspect(session, code, cursor=None):
    answer = session.api.post(f'{session.path}/inspect', json={'code': code, 'cursor': cursor})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_variables(science):
    assert variables(science) == {}
    science.execute(
        'import numpy as np, pandas as pd\nx, _hidden, s, d = 1, 2, "é" * 1000, {"a": [1, (2,)], "b": object()}\n'
        'a = np.zeros((3, 4)); df = pd.DataFrame({"u": [1, 2], "v": 3})\ndef f(p, *, q): pass\nbig = list(range(10**6))'
    ).ok()
    found = variables(science)
    assert found['x'] == {'name': 'x', 'type': 'int', 'shape': None, 'size': 28, 'repr': '1'}
    assert found['a']['shape'] == [3, 4] and found['a']['size'] == 96 and found['a']['type'] == 'numpy.ndarray'
    assert found['df']['shape'] == [2, 2] and found['df']['repr'] == 'columns: u, v'
    assert found['d']['repr'] == "{'a': [1, …], 'b': <object>}" and found['s']['shape'] == [1000]
    assert found['f']['repr'] == 'def f(p, q)' and found['np']['repr'] == 'module numpy'
    assert len(found['big']['repr']) < 400 and '_hidden' not in found
    assert science.value('x') == '1'  # nothing was changed


def test_values_that_would_hang_are_not_touched(session):
    session.execute(HOSTILE).ok()
    found = variables(session)
    assert found['trap']['type'] == 'Trap' and found['trap']['repr'] is None
    assert found['lists']['repr'] is None and found['inside']['repr'] == '[<Trap>]'
    assert found['looped']['repr'] == '[[…]]'
    assert 'size' in texts(session, 'trap.')
    assert inspect(session, 'trap')['type'] == 'Trap'
    assert inspect(session, 'Trap')['found']
    assert session.value('1 + 1') == '2'


NOTED = """
import sys, types, functools
ran = []
class Noted(str):
    def __repr__(self): ran.append('repr'); return 'x'
    __str__ = __format__ = __repr__
    @property
    def __dict__(self): ran.append('dict'); return {}
class Items(dict):
    def items(self): ran.append('items'); return []
    def __contains__(self, name): ran.append('contains'); return False
class Open: pass
class Signed:
    class Lazy:
        def __get__(self, *_): ran.append('get')
    __signature__ = __text_signature__ = Lazy()
class Made:
    def __init__(self, a, /, *, key: 'int' = Noted()): pass
noted = Noted('n')
def f(a, b: noted = noted, *rest, key=noted, **more) -> int: pass
@functools.wraps(f)
def g(*args): pass
opened = Open()
opened.__dict__ = Items(inner=1)
module = types.ModuleType('m')
module.__name__ = noted
sys.modules['odd'] = noted
"""


def test_nothing_of_the_session_runs(session):
    session.execute(NOTED).ok()
    assert variables(session)['module']['repr'] == 'module'
    assert inspect(session, 'f')['signature'] == '(a, b: <Noted> = <Noted>, *rest, key=<Noted>, **more) -> int'
    assert inspect(session, 'g')['signature'] == inspect(session, 'f')['signature']
    assert inspect(session, 'Made')['signature'] == "(a, /, *, key: int = <Noted>)"
    assert inspect(session, 'Open')['signature'] == '()' and inspect(session, 'Signed')['found']
    assert texts(session, 'opened.in') == ['inner'] and inspect(session, 'opened.inner')['repr'] == '1'
    assert texts(session, 'from odd import a') == []
    assert inspect(session, 'module')['found'] and texts(session, 'noted.upp') == ['upper']
    assert session.value('ran') == '[]'


def test_names_of_columns_are_not_asked(science):
    science.execute(f'import pandas as pd\n{NOTED}\ndf = pd.DataFrame([[1, 2]], columns=[noted, "b"])\nran.clear()').ok()
    assert variables(science)['df']['repr'] == 'columns: <Noted>, b'
    assert science.value('ran') == '[]'


def test_completion(science):
    science.execute('import pandas as pd\nvalue = 1\nvalue_two = "x"\ndf = pd.DataFrame({"alpha": [1]})').ok()
    assert texts(science, 'val') == ['value', 'value_two']
    assert complete(science, 'print(value_t)', 13)['start'] == 6
    assert 'DataFrame' in texts(science, 'pd.DataF') and 'upper' in texts(science, 'value_two.up')
    assert texts(science, 'df.alp') == ['alpha'] and 'mean' in texts(science, 'df.alpha.mea')
    assert 'import' in texts(science, 'impo') and 'print' in texts(science, 'prin')
    assert 'collections' in texts(science, 'import colle') and 'deque' in texts(science, 'from collections import de')
    assert texts(science, 'nothing.here.') == [] and texts(science, 'f().') == []
    kinds = {m['text']: m['kind'] for m in complete(science, 'pd.')['matches']}
    assert kinds['DataFrame'] == 'class' and kinds['read_csv'] == 'function'
    # characters beyond the basic plane count as one
    assert complete(science, '"🙂"; val', 8)['start'] == 5


def test_inspection(science):
    science.execute('import pandas as pd\ndef f(a, b=2):\n    """Adds."""\n    return a + b').ok()
    found = inspect(science, 'f(1, ', 5)
    assert found['name'] == 'f' and found['signature'] == '(a, b=2)' and found['doc'] == 'Adds.'
    assert 'CSV' in inspect(science, 'pd.read_csv')['doc'] or 'csv' in inspect(science, 'pd.read_csv')['doc']
    assert inspect(science, 'nothing')['found'] is False
    assert inspect(science, 'len')['type'] == 'builtin_function_or_method'


def test_while_a_cell_runs(session):
    running = session.hold()
    answer = session.api.get(f'{session.path}/variables')
    assert answer.status_code == 409 and answer.json()['code'] == 'session_busy'
    session.release()
    running.result()
    assert session.api.get(f'{session.path}/variables').status_code == 200


@pytest.mark.parametrize('profile', ['smolagents', 'restricted'])
def test_under_a_profile(api, profile):
    session = api.session(profile=profile)
    session.execute('count = 3').ok()
    assert variables(session)['count']['repr'] == '3'
    assert 'count' in texts(session, 'cou')


def test_a_rollback_after_it_is_exact(session):
    session.execute('x = 1').ok()
    session.execute('x = 2').ok()
    assert variables(session)['x']['repr'] == '2'
    assert session.api.post(f'{session.path}/rollback', json={'undo': True}).status_code == 200
    assert variables(session)['x']['repr'] == '1'
