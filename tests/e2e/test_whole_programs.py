"""One-shots are whole programs: they have a file, a hook for errors, and an exit status of their own."""

import subprocess

import gb
import pytest


def test_a_program_has_a_file(api):
    o = api.run('import os\nprint(__file__, os.path.dirname(os.path.abspath(__file__)) == os.getcwd(), open(__file__).read().count("import"))')
    assert o.stdout == '/workspace/main.py True 2\n' and o.files == []
    assert api.run('import __main__\nprint(__main__.__dict__["__fi" + "le__"], __import__("os").listdir())').stdout == '/workspace/main.py []\n'


def test_a_cell_has_none(session):
    assert session.execute('__file__').error['type'] == 'NameError'


def test_source_of_what_a_program_defines(api):
    code = 'import inspect\nclass A:\n    x = 1\ndef f(): pass\nprint(inspect.getsource(A), inspect.getsource(f), end="")'
    assert api.run(code).stdout == 'class A:\n    x = 1\n def f(): pass\n'


def test_the_hook_for_errors_is_called(api):
    o = api.run('import sys\nsys.excepthook = lambda kind, value, tb: print("caught", kind.__name__, value, tb.tb_lineno)\n1 / 0')
    assert (o.stdout, o.status, o.exit_code) == ('caught ZeroDivisionError division by zero 3\n', 'error', 1)
    assert (o.error['type'], o.error['message'], o.error['traceback']) == ('ZeroDivisionError', 'division by zero', '')


def test_a_hook_that_fails(api):
    o = api.run('import sys\nsys.excepthook = lambda *a: undefined\n1 / 0')
    assert o.stderr.startswith('Error in sys.excepthook:\n') and "name 'undefined' is not defined" in o.stderr
    assert 'ZeroDivisionError' in o.error['traceback']


def test_cells_keep_their_tracebacks(session):
    o = session.execute('import sys\nsys.excepthook = lambda *a: print("hook")\n1 / 0')
    assert o.stdout == '' and 'ZeroDivisionError' in o.error['traceback']


@pytest.mark.parametrize('status', [0, 7])
@pytest.mark.parametrize('way', ['os.execv("/bin/sh", ["sh", "-c", "echo program; exit {}"])', 'print("program"); import os; os._exit({})'])
def test_the_status_is_the_programs_own(api, way, status):
    o = api.run('import os\nprint("first")\n' + way.format(status))
    assert (o.stdout.split()[0], o.exit_code, o.status) == ('first', status, 'error' if status else 'ok')
    if status:
        assert (o.error['type'], o.error['message']) == ('SystemExit', 'exit code 7')


def test_a_program_that_a_signal_ends(api):
    o = api.run('import os\nos.execv("/bin/sh", ["sh", "-c", "kill -9 $$"])')
    assert (o.status, o.exit_code, o.error['type']) == ('killed', 137, 'InterpreterDied')


def test_a_program_that_closes_our_socket(api):
    o = api.run('import os\nos.close(1023)')
    assert o.status == 'killed' and 'descriptor 1023' in o.error['message']


def test_on_the_command_line():
    for code, status in (('import os; os.execv("/bin/true", ["true"])', 0), ('import os; os.execv("/bin/sh", ["sh", "-c", "exit 9"])', 9)):
        assert subprocess.run([gb.PROGRAM, 'run', '-c', code], capture_output=True, timeout=60).returncode == status
