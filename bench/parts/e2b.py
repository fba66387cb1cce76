"""E2B's unmodified SDK: a sandbox to its first answer, a trivial cell beside the native API, and the start of a command."""

import contextlib
import json
import os
import subprocess
import time

from harness.client import Refused
from harness.daemon import ROOT, Daemon, build_dir
from harness.stats import Section

CODE = 'x = 1 + 1'
CLIENT = ROOT / 'bench/programs/e2b_client.mjs'
REST_S = 0.05  # the pool makes another sandbox meanwhile


class Sdk:
    """A Node process with the SDK."""

    def __init__(self, port):
        build = build_dir()
        node = subprocess.run([ROOT / 'scripts/node-for-tests', build, 'e2b'], capture_output=True, text=True, check=True).stdout.strip()
        url = f'http://localhost:{port}'
        env = {**os.environ, 'E2B_API_URL': url, 'E2B_SANDBOX_URL': url, 'E2B_API_KEY': 'e2b_' + '0' * 40}
        self.process = subprocess.Popen([node, CLIENT, build / 'npm/e2b'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def round(self):
        self.process.stdin.write(CODE + '\n')
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        if 'error' in told:
            raise Refused(told['error'])
        return told

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def e2b(effort):
    """E2B: a sandbox to its first answer, a trivial cell and a command through their SDK"""
    section = Section('e2b', 'E2B', "Calls of E2B's own SDK for JavaScript, unmodified, on the loopback. The times are taken in Node.")
    native = section.row("our own API: a cell with Node's fetch()", 'ms')
    create = section.row('Sandbox.create() and the first runCode()', 'ms')
    cell = section.row('runCode() of a trivial cell', 'ms', native)
    command = section.row('commands.run() until the command runs', 'ms')
    with Daemon() as daemon, contextlib.closing(Sdk(daemon.port)) as sdk:
        for _ in range(5):
            sdk.round()  # Node compiles, and the pool learns which sandboxes are asked for
        for _ in range(effort(100, 10)):
            time.sleep(REST_S)
            told = {}
            create.attempt(lambda: told.update(sdk.round()) or told['create'])
            if told:
                native.attempt(lambda: told['native'])
                cell.attempt(lambda: told['cell'])
                command.attempt(lambda: told['command'])
    section.target('Sandbox.create() and the first runCode(), median', create.median, 10, 'ms')
    section.target('runCode() against the native cell, medians', cell.median / native.median, 2, 'x')
    section.target('the start of a command, median', command.median, 5, 'ms')
    return section
