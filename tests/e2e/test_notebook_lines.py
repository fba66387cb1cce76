"""Magics, commands and help of notebooks, as ordinary cells."""

import json

import pytest


@pytest.fixture
def run(session):
    def run(code):
        return session.execute(code)

    return run


@pytest.mark.parametrize(
    'code, stdout, text',
    [
        ('%matplotlib inline\nx = 1\nx', '', '1'),
        ('!echo hi {1 + 1}', 'hi 2\n', None),
        ('name = "n"\n!echo $name $HOME_', 'n\n', None),
        ("x = !printf 'a\\nb'\nx", '', "['a', 'b']"),
        ('x = %pwd\nx', '', "'/workspace'"),
        ('!exit 3\n_exit_code', '', '3'),
        ('%cd /tmp\n%pwd', '/tmp\n', "'/tmp'"),
        ('%env A=1\n%env A', 'env: A=1\n', "'1'"),
        ('%%bash\nfor i in 1 2; do echo $i; done', '1\n2\n', None),
        ('%%writefile a.txt\nhello\n', 'Writing a.txt\n', None),
        ('%%html\n<b>x</b>', '', None),
        ('%%capture out\nprint("q")', '', None),
        ('%%python3\nprint("sub")', 'sub\n', None),
        ('if True:\n    !echo in\nfor i in range(2):\n    !echo $i', 'in\n0\n1\n', None),
        ('s = """\n!not\n%not\n"""\nprint(s)\n!echo done', '\n!not\n%not\n\ndone\n', None),
        ('!echo a \\\n  b\nprint("after")', 'a b\nafter\n', None),
        ('x = 7 % 4\nx', '', '3'),
        ('def f(a, b=1):\n    "Doc of f."\nf?', 'Signature: f(a, b=1)\nDocstring:\nDoc of f.\n', None),
        ('?nothing', 'Object `nothing` not found.\n', None),
        ('a = 1\nb = "s"\n%who int', 'a\n', None),
    ],
)  # fmt: skip
def test_lines(run, code, stdout, text):
    seen = run(code).ok()
    assert (seen.stdout, seen.text) == (stdout, text)


def test_times(run):
    seen = run('%time sum(range(10))').ok()
    assert seen.text == '45' and seen.stdout.startswith('CPU times: user ') and 'Wall time: ' in seen.stdout
    assert run('%time y = 3\ny').ok().text == '3'
    assert run('%%time\na = 1\na + 1').ok().text == '2'
    assert run('%timeit -n 10 -r 2 1 + 1').ok().stdout.endswith('per loop (mean ± std. dev. of 2 runs, 10 loops each)\n')
    assert 'loops each' in run('%%timeit -r 1 x = 1\nx + 1').ok().stdout


def test_files(run, session):
    run('%%writefile m.py\nz = 5\nimport sys\nprint(__name__, sys.argv[1:])').ok()
    seen = run('%run m.py one two\nz').ok()
    assert seen.stdout == "__main__ ['one', 'two']\n" and seen.text == '5'
    run('%%writefile -a m.py\nz = 6').ok()
    assert run('%run m\nz').ok().text == '6'


def test_errors_keep_their_lines(run):
    seen = run('%%time\nx = 1\n1/0')
    assert seen.error['type'] == 'ZeroDivisionError' and 'line 3' in seen.error['traceback']
    seen = run('x = 1\n!true\n1/0')
    assert seen.error['line'] == 3
    seen = run('%%bash\nexit 3')
    assert 'CalledProcessError' in seen.error['type']
    assert run('%nope').error['message'] == 'Line magic function `%nope` not found.'
    assert run('%%nope\n1').error['message'] == 'Cell magic `%%nope` not found.'
    assert run('!true\n1 +').error['type'] == 'SyntaxError', 'told as it was written'


def test_extensions_are_a_note(run):
    seen = run('%load_ext autoreload\n%autoreload 2').ok()
    assert 'not available' in seen.stderr


def test_refused_where_programs_or_the_profile_are(api):
    assert 'not permitted' in api.run('!echo hi', exec='none').error['message']
    assert api.run('%%bash\necho hi', exec='none').status == 'error'
    for profile in ('smolagents', 'restricted', 'tinyagent'):
        seen = api.run('!echo hi', profile=profile)
        assert seen.status in ('error', 'refused') and seen.stdout == ''


def test_in_dialects_that_notebooks_reach(api):
    said = api.post('/run_jupyter', json={'cells': ['%cd /tmp', 'x = !echo a', 'x']}).json()
    assert said['cells'][2]['display'][0]['text/plain'] == "['a']"
    said = api.post('/execute', json={'generated_code': '!echo hi', 'language': 'ipython'}).json()
    assert said['stdout'] == 'hi\n'
    assert json.dumps(said)
