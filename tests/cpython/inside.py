"""Runs one module of CPython's own tests and says what became of each method. Started by `run`, in a session and outside.

Each line is a mark and a JSON value on the stdout the program was started with, whatever the tests do to fd 1.
"""

import fnmatch
import json
import os
import sys
import unittest

MARK = '\x01gb '
RESOURCES = ['cpu', 'subprocess', 'walltime']  # not: network, gui, audio, largefile, what takes gigabytes

out = os.dup(1)


def say(*value):
    data = f'\n{MARK}{json.dumps(value)}\n'.encode()
    while data:
        data = data[os.write(out, data) :]


def last_line(error):
    """The end of a traceback, which says what went wrong."""
    text = ''.join(unittest.result.traceback.format_exception(*error)).strip()
    return '\n'.join(text.splitlines()[-4:])[-600:]


class Result(unittest.TestResult):
    """A method has one outcome; the worst of its subtests counts."""

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.why = 'ok', ''
        say('start', test.id())

    def stopTest(self, test):
        super().stopTest(test)
        say('end', test.id(), self.outcome, self.why)

    def _is(self, outcome, why=''):
        if self.outcome in ('ok', 'skip'):
            self.outcome, self.why = outcome, why

    def addError(self, test, err):
        if isinstance(test, unittest.suite._ErrorHolder):  # setUpClass and the like: no method ran
            return say('end', test.id(), 'bad', last_line(err))
        self._is('bad', last_line(err))

    def addFailure(self, test, err):
        self._is('bad', last_line(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._is('bad', f'{subtest.id()}: {last_line(err)}')

    def addSkip(self, test, reason):
        if isinstance(test, unittest.suite._ErrorHolder):
            return say('end', test.id(), 'skip', reason)
        if self.outcome == 'ok':
            self.outcome, self.why = 'skip', reason

    def addExpectedFailure(self, test, err):
        self.outcome = 'ok'

    def addUnexpectedSuccess(self, test):
        self._is('bad', 'unexpected success')


def methods(suite):
    """All of a suite's tests, without the suites between."""
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            yield from methods(test)
        else:
            yield test


def unlink_if_there(path):
    """For the tests' own tidying up, which looks for files in all of sys.path: a read-only tree says EROFS of what is not there."""
    if os.path.lexists(path):
        os.unlink(path)


def main(name, *left_out):
    from test import support
    from test.support import os_helper

    os_helper._unlink = unlink_if_there

    support.verbose = 0
    support.use_resources = RESOURCES
    os.chdir(os.environ.get('TMPDIR', '/tmp'))
    sys.argv = [name]
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
    except unittest.SkipTest as e:
        return say('end', name, 'skip', str(e))
    if left_out:
        suite = unittest.TestSuite(t for t in methods(suite) if not any(fnmatch.fnmatchcase(t.id(), p) for p in left_out))
    suite.run(Result())
    say('done')


if __name__ == '__main__':  # multiprocessing imports this file again
    main(*sys.argv[1:])
