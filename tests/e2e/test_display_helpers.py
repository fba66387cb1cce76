"""Helpers of displays that hang: they have a deadline, and displays start nevertheless."""

import os
import shutil
import signal

import gb

KILLED = 'it is killed and a new one is started'

def helpers(daemon):
    """Pids of processes that fork screens; the screens have the same name, in jails."""

    def outside(pid):
        try:
            return os.readlink(f'/proc/{pid}/ns/pid') == os.readlink('/proc/self/ns/pid')
        except OSError:
            return False

    return [p for p in daemon.children('glovebox-screen') if outside(p)]


def picture(session):
    return session.api.get(f'{session.path}/screenshot')


def shows_pictures(session):
    """A request may end before the helper's deadline; the next one finds the display."""
    gb.wait_until(lambda: picture(session).status_code == 200, 'the display has a picture')


def test_a_helper_that_stopped_is_replaced():
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        first = api.session(display=True)
        shows_pictures(first)
        (pid,) = helpers(daemon)
        os.kill(pid, signal.SIGSTOP)
        second = api.session(display=True)
        shows_pictures(second)
        assert f'the process that forks screens does not answer; {KILLED}' in daemon.log()
        assert pid not in helpers(daemon)
        assert picture(first).status_code == 200, 'displays that were there are not affected'


def test_an_x_zygote_that_does_not_start_is_replaced_by_plain_servers(tmp_path, monkeypatch):
    """Its library is a pipe, which the loader waits to open."""
    for name in ('glovebox', 'glovebox-guest.so'):
        shutil.copy(gb.PROGRAM.parent / name, tmp_path / name)
    os.mkfifo(tmp_path / 'glovebox-xserver.so')
    monkeypatch.setattr(gb, 'PROGRAM', tmp_path / 'glovebox')
    with gb.running_daemon('--preload', 'json', '--ready', '1') as daemon, daemon.api() as api:
        session = api.session(display=True)
        shows_pictures(session)
        assert f'a warm X server does not answer; {KILLED}' in daemon.log()
