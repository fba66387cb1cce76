"""docs/promises.md is what scripts/promises writes, and every test that it names is one that pytest runs."""

import importlib.machinery
import importlib.util
import subprocess

import gb
import pytest


@pytest.fixture(scope='module')
def script():
    loader = importlib.machinery.SourceFileLoader('promises_script', str(gb.ROOT / 'scripts/promises'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('promises_script', loader))
    loader.exec_module(module)
    return module


def test_there_are_149_promises(script):
    assert [number for _, number, *_ in script.rows()] == list(range(1, 150))


def test_every_promise_names_a_test_or_a_reason(script):
    assert not list(script.mistakes())


def test_the_page_is_the_one_that_is_written(script):
    assert script.PAGE.read_text() == script.page(), 'run scripts/promises'


def test_pytest_collects_every_test_that_is_named(script):
    named = {test for *_, tests, _ in script.rows() for test in tests}
    files = sorted({f'tests/e2e/test_{file}.py' for file, _ in named})
    done = subprocess.run([gb.PYTHON, '-m', 'pytest', '--collect-only', '-q', '-p', 'no:cacheprovider', *files], cwd=gb.ROOT, capture_output=True, text=True)
    found = {line.partition('[')[0] for line in done.stdout.splitlines()}
    missing = [f'{file}::{name}' for file, name in named if f'tests/e2e/test_{file}.py::test_{name}' not in found]
    assert not missing, done.stdout[-2000:]


def test_the_script_can_fail(script, monkeypatch, tmp_path):
    """A list that is wrong, a page that is old, a test that did not pass: each is seen."""
    wrong = [('s', 1, 'p', [('executors', 'no_such_test')], ''), ('s', 2, 'q', [], ''), ('s', 4, 'r', [('nowhere', 'x')], '')]
    monkeypatch.setattr(script, 'rows', lambda: iter(wrong))
    assert len(list(script.mistakes())) == 4
    report = tmp_path / 'report.xml'
    case = '<testcase classname="tests.e2e.test_a" name="test_{}">{}</testcase>'
    cases = case.format('b[1]', '') + case.format('b[2]', '<failure/>') + case.format('c', '<skipped/>') + case.format('d', '')
    report.write_text(f'<testsuites><testsuite>{cases}</testsuite></testsuites>')
    assert script.outcomes(report) == {('a', 'b'): 'failure', ('a', 'c'): 'skipped', ('a', 'd'): 'passed'}
