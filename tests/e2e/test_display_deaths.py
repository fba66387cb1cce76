"""X servers and screen processes that are killed: what the answers say, and that the display comes back."""

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gb
import pytest
import requests

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


def test_an_x_server_that_ends_beside_a_screen_process_that_was_stopped(screen):
    """Code of the session can stop the screen process, which then does not notice."""
    screen.execute(WINDOW, screenshot=True).ok()
    watcher = of_display(screen, 'glovebox-screen')
    os.kill(watcher, signal.SIGSTOP)
    kill(screen, 'Xvfb')
    answer = screen.api.get(f'{screen.path}/screenshot')
    assert answer.status_code >= 400 and answer.json()['code'] == 'display_gone', answer.text
    gb.wait_until(lambda: gb.command_of(watcher) == '', 'the stopped process is gone')
    assert screen.api.get(f'{screen.path}/screenshot').status_code == 200


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


@pytest.mark.parametrize(
    ('method', 'path', 'body'),
    [('GET', 'screenshot', None), ('GET', 'windows', None), ('POST', 'input', {'action': 'left_click', 'coordinate': [5, 5]})],
    ids=['screenshot', 'windows', 'input'],
)
def test_questions_are_answered_when_the_session_ends(api, screen, method, path, body):
    """The screen process does not answer; the session is deleted meanwhile."""
    screen.execute(WINDOW, screenshot=True).ok()
    os.kill(of_display(screen, 'glovebox-screen'), signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(requests.request, method, f'{api.url}{screen.path}/{path}', json=body, headers=api.http.headers, timeout=30)
        time.sleep(0.5)
        screen.delete()
        answer = asked.result()
    assert answer.status_code == 410 and answer.json()['code'] == 'session_gone', answer.text
    assert api.get('/health').status_code == 200


def test_a_client_that_leaves_before_the_session_ends(api, screen):
    screen.execute(WINDOW, screenshot=True).ok()
    os.kill(of_display(screen, 'glovebox-screen'), signal.SIGSTOP)
    for _ in range(3):
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.get(f'{api.url}{screen.path}/screenshot', headers=api.http.headers, timeout=0.2)
    screen.delete()
    assert api.get('/health').status_code == 200


def test_the_process_that_forks_screens_may_fail_to_start_many_times():
    """After the second time there was no display any more, for any session, until the server was started again."""
    with gb.running_daemon('--ready', '1', '--preload', 'none') as daemon, daemon.api() as api:
        session = api.session(display=True)
        stop, killed = threading.Event(), []

        def kill():
            while not stop.is_set():
                for pid, (parent, _, _) in gb.processes().items():
                    with contextlib.suppress(OSError):
                        if parent != daemon.pid or Path(f'/proc/{pid}/cmdline').read_bytes() != b'glovebox\0screens\0':
                            continue
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

        killer = threading.Thread(target=kill)
        killer.start()
        ended = lambda: daemon.log().count('the process that forks screens ended')
        shots = lambda s: api.get(f'{s.path}/screenshot').status_code
        try:
            while ended() < 6:  # a display that is there needs it no more
                assert shots(api.session(display=True)) in (200, 409, 503)
        finally:
            stop.set()
            killer.join()
        gb.wait_until(lambda: shots(session) == 200, 'there are screenshots again')
        assert api.run(WINDOW, capture_screenshot=True).ok().screenshot['windows']


def test_all_jails_end_at_once():
    """The next sandbox was dead as well, which it said while the session took it: the session was ready twice, and the server fell."""
    with gb.running_daemon('--ready', '2', '--preload', 'none') as daemon, daemon.api() as api:
        for _ in range(5):
            session = api.session(display=True)
            session.execute('x = 1').ok()
            gb.wait_until(lambda: api.metric('glovebox_guests_ready') == 2, 'sandboxes are ready')
            os.kill(daemon.pid, signal.SIGSTOP)
            for pid, _ in gb.descendants(daemon.pid):
                if gb.command_of(pid) == 'glovebox-init':
                    os.kill(pid, signal.SIGKILL)
            os.kill(daemon.pid, signal.SIGCONT)
            gb.wait_until(lambda: session.execute('1').state_lost, 'it is told')  # the first may have run before its interpreter was killed
            session.execute('1').ok()
            session.delete()
