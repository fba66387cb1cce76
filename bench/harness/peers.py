"""What Glovebox is measured beside: python3 started for a piece of code, python3 kept running, and ipykernel."""

import json
import subprocess
import time

PYTHON = '/usr/bin/python3'


def python_once(code):
    """Seconds that `python3 -c code` takes, from start to end."""
    start = time.perf_counter()
    subprocess.run([PYTHON, '-c', code], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


_WORKER = """
import json, sys, time
spaces = {}
for line in sys.stdin:
    code, space = json.loads(line)
    space = spaces.setdefault(space, {'__name__': '__main__'})
    start = time.perf_counter()
    exec(compile(code, '<cell>', 'exec'), space)
    print(json.dumps([time.perf_counter() - start, space.get('answer')]), flush=True)
"""


class Worker:
    """A python3 that runs pieces of code one after another: what an interpreter does with nothing around it."""

    def __init__(self):
        self.process = subprocess.Popen(
            [PYTHON, '-c', _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    @property
    def pid(self):
        return self.process.pid

    def run(self, code, space='main'):
        """(seconds as measured inside, the global `answer` afterwards)."""
        self.process.stdin.write(json.dumps([code, space]) + '\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError('the python3 worker died')
        return tuple(json.loads(line))


class Kernel:
    """ipykernel by jupyter_client's blocking client, with this same interpreter."""

    def __init__(self):
        from jupyter_client import KernelManager

        self.manager = KernelManager(kernel_name='python3')
        self.manager.start_kernel(stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels(hb=False)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def execute(self, code):
        """Runs a cell and waits for its reply. May be called at once: the request waits for the kernel to come up."""
        sent = self.client.execute(code)
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply['parent_header'].get('msg_id') == sent:
                break
        if reply['content']['status'] != 'ok':
            raise RuntimeError(f'ipykernel: {reply["content"]}')

    def wait_until_idle(self):
        """Throws away what the kernel published, until nothing comes any more."""
        from queue import Empty

        try:
            while True:
                self.client.get_iopub_msg(timeout=0.2)
        except Empty:
            pass


def kernel_available():
    try:
        import ipykernel  # noqa: F401
        import jupyter_client  # noqa: F401
    except ImportError:
        return False
    return True
