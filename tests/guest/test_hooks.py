"""input(), getpass(), modules that are adapted when they are imported."""

import sys


def test_input_without_a_keyboard(guest):
    outcome = guest('name = input("Name? ")')
    name, message, text, line, notes = outcome.error
    assert (name, line) == ('EOFError', 1)
    assert message == 'input() has no keyboard here: pass the text as `stdin` with the request, or with `glovebox run --stdin FILE`'
    assert outcome.stdout == 'Name? '
    assert text.count('File ') == 1 and '    name = input("Name? ")\n' in text


def test_input_reads_stdin(guest):
    outcome = guest('a = input()\nb = input("b: ")\nc = input("")\n[a, b, c]', stdin='one\n\nlast')
    assert outcome.result[0][2] == "['one', '', 'last']"
    assert outcome.stdout == 'b: '


def test_input_is_like_the_builtin(guest):
    guest(
        'input.__name__, input.__module__',
        'input(1, 2)',
        'input(prompt="x")',
        'import sys\nsys.stdin = None\ninput()',
    )
    assert guest.cells[0].result[0][2] == "('input', 'builtins')"
    assert [cell.error[0] for cell in guest.cells[1:]] == ['TypeError', 'TypeError', 'RuntimeError']
    assert guest.cells[1].error[1] == 'input expected at most 1 argument, got 2'


def test_getpass(guest):
    outcome = guest('from getpass import getpass\ngetpass()')
    assert outcome.error[0] == 'EOFError' and 'getpass() has no keyboard here' in outcome.error[1]
    assert outcome.stderr == '' and outcome.stdout == 'Password: '
    assert guest('import getpass\ngetpass.getpass("p")', stdin='secret\n').result[0][2] == "'secret'"


def test_ipython_display_reaches_us(guest, tmp_path):
    package = tmp_path / 'IPython'
    (package / 'core').mkdir(parents=True)
    (package / '__init__.py').write_text('')
    (package / 'core' / '__init__.py').write_text('')
    (package / 'core' / 'display_functions.py').write_text(
        'def display(*a, **k): print("not this one")\nclear_output = update_display = publish_display_data = display\n'
        'here = [__loader__, __spec__.loader]\n'
    )
    (package / 'display.py').write_text('from IPython.core.display_functions import *\n')
    source = (
        'from IPython.display import display as d, clear_output, publish_display_data\n'
        'd(1)\nclear_output()\npublish_display_data({"text/html": "<b>"})'
    )
    outcome = guest(f'import sys; sys.path.insert(0, {str(tmp_path)!r})\n' + source)
    assert outcome.error is None, outcome.error[2]
    assert outcome.stdout == ''
    assert [d[0][0] for d in outcome.displays] == [
        'text/plain',
        'application/vnd.glovebox.display+json',  # clear_output()
        'text/html',
    ]
    outcome = guest(
        f'import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom IPython.core import display_functions as m\n'
        '[type(l).__name__ for l in m.here + [m.__loader__, m.__spec__.loader]]'
    )
    assert outcome.result[0][2] == str(['SourceFileLoader'] * 4)


def test_ipython_that_is_not_installed(guest):
    outcome = guest('import IPython_is_not_here')
    assert outcome.error[0] == 'ModuleNotFoundError'
    assert '<glovebox>' not in outcome.error[2] and outcome.error[2].count('File ') == 1


def test_an_adapted_module_is_the_real_one(guest):
    outcome = guest(
        'import getpass, inspect\n"def getuser" in inspect.getsource(getpass), getpass.__spec__.name'
    )
    assert outcome.result[0][2] == "(True, 'getpass')"
    assert sys.version_info
