"""Mouse and keyboard: what an action takes before the screen settles, beside xdotool on an Xvfb of its own."""

import contextlib
import os
import shutil
import subprocess
import time

from harness.daemon import Daemon
from harness.stats import Section
from parts.display import OldWay

RUNS = 50

WINDOW = "import tkinter as tk\nroot = tk.Tk()\nroot.geometry('400x300+0+0')\ntk.Entry(root).pack()\nroot.mainloop()"

# An action, and what xdotool is told for the same.
ACTIONS = {
    'a click': ({'action': 'left_click', 'coordinate': [200, 10]}, ['mousemove', '200', '10', 'click', '1']),
    'a key': ({'action': 'key', 'text': 'ctrl+a'}, ['key', 'ctrl+a']),
    'ten characters typed': ({'action': 'type', 'text': 'characters'}, ['type', '--delay', '0', 'characters']),
    'a character that no key has': ({'action': 'type', 'text': '中'}, ['type', '--delay', '0', '中']),
}


def xdotool(display, words):
    began = time.perf_counter()
    subprocess.run(['xdotool', *words], env={**os.environ, 'DISPLAY': display}, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1e3


def act(connection, session, action, settle):
    """Milliseconds of the request."""
    began = time.perf_counter()
    connection.call('POST', f'/v1/sessions/{session}/input', {**action, 'settle': settle})
    return (time.perf_counter() - began) * 1e3


def input_actions(effort):
    """mouse and keyboard: an action over HTTP, before and after the screen settled, beside xdotool"""
    section = Section('input', 'Mouse and keyboard', 'xdotool: one process for each action, on an Xvfb without windows.')
    for tool in ('Xvfb', 'xdotool'):
        if not shutil.which(tool):
            section.trouble = f'{tool} is not installed (scripts/install-deps --bench)'
            return section
    with OldWay() as old, Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        session = connection.create(display=True)['id']
        connection.call('POST', f'/v1/sessions/{session}/execute', {'code': WINDOW, 'on_block': 'leave', 'capture_screenshot': True})
        for name, (action, words) in ACTIONS.items():
            theirs = section.row(f'{name}: xdotool', 'ms')
            ours = section.row(f'{name}: POST …/input, not settled', 'ms', theirs)
            whole = section.row(f'{name}: POST …/input, settled', 'ms', theirs)
            for _ in range(effort(RUNS)):
                theirs.attempt(lambda words=words: xdotool(old.display, words))
                ours.attempt(lambda action=action: act(connection, session, action, False))
                whole.attempt(lambda action=action: act(connection, session, action, True))
            section.target(f'{name}: before settling, median', ours.samples and ours.median, 5, 'ms')
        connection.delete(session)
    return section
