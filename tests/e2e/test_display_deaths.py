"""X servers and screen processes that are killed: what the answers say, and that the display comes back."""

import os
import signal
import time

import gb
import pytest

WINDOW = 'import tkinter as tk\nroot = tk.Tk(); tk.Label(root, text="hi", bg="gold").pack(); root.update()'
NAMES = {'Xvfb': "the session's X server ended", 'glovebox-screen': 'the process that watches'}


@pytest.fixture
def screen(api):
    session = api.session(display=True)
    session.execute('x = 1').ok()
    return session


def of_display(session, name):
    """Pid of a process of the session's display."""
    jail = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')

    def is_it(pid):
        try:
            return gb.command_of(pid) == name and os.readlink(f'/proc/{pid}/ns/pid') == jail
        except OSError:
            return False

    return gb.wait_until(lambda: next((p for p in gb.processes() if is_it(p)), None), f'{name} is there')


def kill(session, name):
    pid = of_display(session, name)
    os.kill(pid, signal.SIGKILL)
    gb.wait_until(lambda: gb.command_of(pid) == '', f'{name} is gone')


@pytest.mark.parametrize('name', NAMES)
def test_an_interpreter_with_windows_ends_and_says_why(screen, name):
    screen.execute(WINDOW, screenshot=True).ok()
    kill(screen, name)
    time.sleep(0.3)  # the daemon hears of it
    seen = screen.execute('root.update()')
    assert seen.status == 'killed' and seen.error['code'] == 'display_gone', seen
    assert NAMES[name] in seen.error['message'] and 'os._exit' not in seen.error['message']
    assert 'Open the windows again' in seen.error['remediation']
    seen = screen.execute(WINDOW, screenshot=True).ok()  # the display is back
    assert seen.screenshot['data'] and seen.screenshot['windows']


@pytest.mark.parametrize('name', NAMES)
def test_killed_while_a_cell_runs(screen, name):
    screen.execute(WINDOW, screenshot=True).ok()
    cell = screen.in_background('root.after(600000, root.destroy); root.mainloop()', timeout_s=60)
    time.sleep(0.3)
    kill(screen, name)
    seen = gb.Observation(cell.result())
    assert seen.error['code'] == 'display_gone' and NAMES[name] in seen.error['message'], seen


@pytest.mark.parametrize('name', NAMES)
def test_a_picture_of_a_dead_display_is_an_error(screen, name):
    screen.execute(WINDOW, screenshot=True).ok()
    kill(screen, name)
    time.sleep(0.3)
    answer = screen.api.get(f'{screen.path}/screenshot')
    assert answer.status_code >= 400 and answer.json()['code'] == 'display_gone', answer.text
    assert NAMES[name] in answer.text and 'open them again' in answer.text
    answer = screen.api.get(f'{screen.path}/screenshot')  # told once: the display starts anew
    assert answer.status_code == 200 and answer.headers['Content-Type'] == 'image/png'


@pytest.fixture
def bare(screen):
    """The X server was killed, and the interpreter had no connection to it."""
    assert screen.api.get(f'{screen.path}/screenshot').status_code == 200
    kill(screen, 'Xvfb')
    time.sleep(0.3)
    return screen


def test_a_cell_that_opens_no_window_gets_the_error_as_its_picture(bare):
    seen = bare.execute('x', screenshot=True).ok()
    assert seen.text == '1' and seen.screenshot['error']['code'] == 'display_gone', seen.screenshot


def test_a_cell_that_opens_windows_has_its_picture(bare):
    seen = bare.execute(WINDOW + '\nx', screenshot=True).ok()
    assert seen.text == '1' and seen.screenshot['windows'] and not seen.screenshot['error']


def test_other_ends_are_told_as_before(screen):
    screen.execute(WINDOW, screenshot=True).ok()
    seen = screen.execute('import os; os._exit(1)')
    assert seen.error['code'] == 'interpreter_died' and 'os._exit' in seen.error['message']


FILL_THE_QUEUE = """
import socket
kept = []
for _ in range(400):
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    kept.append(client)
    try:
        client.connect('/tmp/.X11-unix/X99')
    except OSError:
        break
len(kept)
"""


def test_a_full_queue_of_the_display_harms_nobody_else():
    """The X server cannot be started while code holds every place in the socket's queue: so in a server's first display, which takes a while."""
    with gb.running_daemon() as fresh:
        api = gb.Api(fresh.url)
        session = api.session(display=True)
        assert session.execute(FILL_THE_QUEUE)['result']['application/json'] > 100
        for _ in range(4):
            answer = api.get(f'/v1/sessions/{session.id}/screenshot')
            assert answer.status_code in (200, 503), answer.text
        assert api.get('/health').status_code == 200
        assert session.execute('[client.close() for client in kept] and 1')['status'] == 'ok'
