"""Daemons that tests share. Each test has sessions of its own and no test depends on another."""

import contextlib
import os
import signal
import threading
import time

import pytest

import gb

LONGEST_TEST = 400  # seconds; none should take a twentieth of it


class Stalls(threading.Thread):
    """How long the machine kept us from running at most: what a test that lost a race on a loaded machine can be told by."""

    EVERY = 0.05

    def __init__(self):
        super().__init__(daemon=True)
        self.longest = 0

    def run(self):
        while True:
            start = time.monotonic()
            time.sleep(self.EVERY)
            self.longest = max(self.longest, time.monotonic() - start - self.EVERY)


stalls = Stalls()


def pytest_sessionstart():
    stalls.start()


def pytest_runtest_setup():
    stalls.longest = 0


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo and not call.excinfo.errisinstance(pytest.skip.Exception):
        stalled = f'load {os.getloadavg()[0]:.1f}, no time for the tests for up to {stalls.longest:.2f} s'
        item.user_properties.append(('machine', stalled))
        item.add_report_section(call.when, 'machine', stalled)
        # scripts/failed-tests gives no second run to a test during which a daemon crashed
        item.user_properties.extend(('crashed', str(pid)) for pid in gb.crashed_daemons())
    yield


@pytest.fixture(scope='session', autouse=True)
def program():
    if not gb.PROGRAM.exists():
        pytest.exit(f'{gb.PROGRAM} is missing: run make, or name a build directory with GLOVEBOX_BUILD', 2)
    gb.remove_left_folders()


@pytest.fixture(autouse=True)
def no_test_hangs():
    def too_long(signum, frame):
        raise TimeoutError(f'the test took longer than {LONGEST_TEST} s')

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LONGEST_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


shared = []  # daemons that live longer than a test


@contextlib.contextmanager
def shared_daemon(*args):
    with gb.running_daemon(*args) as d:
        shared.append(d)
        yield d
        shared.remove(d)


@pytest.fixture(autouse=True)
def no_session_outlives_its_test():
    """What a test leaves on a shared daemon would be there in those that come later: in which ones, distribution decides."""
    yield
    for d in shared:
        if d.process.poll() is None:
            with d.api() as api:
                api.end_sessions()


@pytest.fixture(scope='session')
def daemon():
    """A daemon with a small template, that most tests share."""
    with shared_daemon('--preload', 'json,random,re,asyncio,dataclasses', '--ready', '4', '--grace', '2') as d:
        yield d


@pytest.fixture(scope='session')
def science_daemon():
    """A daemon whose sessions have numpy, pandas and matplotlib imported already."""
    with shared_daemon(
        '--preload', 'json,random,numpy,pandas,matplotlib.pyplot,PIL.Image', '--ready', '2', '--grace', '1'
    ) as d:
        yield d


@pytest.fixture
def api(daemon):
    with daemon.api() as api:
        yield api


@pytest.fixture
def session(api):
    return api.session()


@pytest.fixture
def science(science_daemon):
    with science_daemon.api() as api:
        yield api.session()
