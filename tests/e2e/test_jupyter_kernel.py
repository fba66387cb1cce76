"""jupyter_kernel_test, the suite that Jupyter has for kernels, and a Jupyter server with --gateway-url as JupyterLab uses it."""

import asyncio
import contextlib
import json
import queue
import socket
import subprocess
import threading

import gb
import jupyter_kernel_test
import pytest
import requests
import websockets
from jupyter_client import BlockingKernelClient
from jupyter_client.jsonutil import extract_dates, json_default
from test_jupyter import Channels, answer_inputs, contents

# ---- the suite --------------------------------------------------------------------------------


class Wire:
    """A kernel's WebSocket, read by a thread. A reply is handed out when its request is idle: the suite waits for the other
    messages a tenth of a second only."""

    def __init__(self, url):
        self.loop, self.messages, self.replies = asyncio.new_event_loop(), {'shell': queue.Queue(), 'iopub': queue.Queue()}, {}
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.ws = self.wait(self.connect(url))
        self.reading = asyncio.run_coroutine_threadsafe(self.read(), self.loop)

    def wait(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(gb.PATIENCE)

    async def connect(self, url):
        return await websockets.connect(url.replace('http:', 'ws:'), max_size=None, ping_interval=None)

    async def read(self):
        async for text in self.ws:
            message = extract_dates(json.loads(text))
            id = message['parent_header'].get('msg_id')
            if message['channel'] == 'shell':
                self.replies[id] = message
                continue
            self.messages['iopub'].put(message)
            if message['content'].get('execution_state') == 'idle' and id in self.replies:
                self.messages['shell'].put(self.replies.pop(id))

    def close(self):
        self.wait(self.ws.close())
        self.reading.result(gb.PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Channel:
    def __init__(self, name, wire):
        self.name, self.wire = name, wire

    def send(self, message):
        self.wire.wait(self.wire.ws.send(json.dumps({**message, 'channel': self.name}, default=json_default)))

    async def get_msg(self, timeout=None):
        return self.wire.messages[self.name].get(timeout=timeout)


class Client(BlockingKernelClient):
    def __init__(self, wire):
        super().__init__()
        self.wire = wire

    @property
    def shell_channel(self):
        return Channel('shell', self.wire)

    @property
    def iopub_channel(self):
        return Channel('iopub', self.wire)


class KernelTest(jupyter_kernel_test.KernelTests):
    """The samples are those of ipykernel's own test."""

    test_pager = None  # `obj?` prints; there is no pager
    language_name, file_extension = 'python', '.py'
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [{'text': 'zi', 'matches': {'zip'}}]
    complete_code_samples = ['1', "print('hello, world')", 'def f(x):\n  return x*2\n\n\n']
    incomplete_code_samples = ["print('''hello", 'def f(x):\n  x*2']
    invalid_code_samples = ['import = 7q']
    code_generate_error = 'raise'
    code_execute_result = [{'code': '6*7', 'result': '42'}]
    code_display_data = [
        {'code': "from IPython.display import HTML, display; display(HTML('<b>test</b>'))", 'mime': 'text/html'},
        {'code': "from IPython.display import Math, display; display(Math('\\frac{1}{2}'))", 'mime': 'text/latex'},
    ]
    code_history_pattern = '6?7*'
    supported_history_operations = ('tail', 'range', 'search')
    code_inspect_sample = 'print'
    code_clear_output = 'from IPython.display import clear_output; clear_output()'

    @classmethod
    def setUpClass(cls):
        cls.running = gb.running_daemon()
        daemon = cls.running.__enter__()
        cls.kernel = f'{daemon.url}/api/kernels/' + requests.post(f'{daemon.url}/api/kernels').json()['id']
        cls.kc = Client(Wire(f'{cls.kernel}/channels'))

    @classmethod
    def tearDownClass(cls):
        cls.kc.wire.close()
        assert requests.delete(cls.kernel).status_code == 204
        cls.running.__exit__(None, None, None)


# ---- a Jupyter server, and what JupyterLab asks it ------------------------------------------------


@pytest.fixture
def server(daemon, tmp_path):
    """The address of a Jupyter server whose kernels are the daemon's."""
    with socket.create_server(('127.0.0.1', 0)) as unused:
        port = unused.getsockname()[1]
    argv = [gb.PYTHON, '-m', 'jupyter_server', f'--gateway-url={daemon.url}', f'--port={port}', '--ip=127.0.0.1', '--allow-root', '--no-browser']
    argv += ['--ServerApp.token=', '--ServerApp.password=', '--ServerApp.disable_check_xsrf=True']
    env = gb.clean_env(HOME=tmp_path, JUPYTER_NO_CONFIG='1')
    with open(tmp_path / 'log', 'w') as log, subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=log, stderr=log) as process:
        try:
            gb.wait_until(lambda: 'is running at' in (tmp_path / 'log').read_text() or process.poll() is not None, 'the Jupyter server listens')
            yield f'http://127.0.0.1:{port}'
        finally:
            process.kill()


@contextlib.contextmanager
def channels_of(server, kernel, api):
    """A connection to the server. It loses what is sent before it has connected to the gateway itself."""
    with Channels(server, kernel, '?session_id=x') as channels:
        gb.wait_until(lambda: api.get(f'/api/kernels/{kernel}').json()['connections'] == 1, 'the server is connected')
        yield channels
    gb.wait_until(lambda: api.get(f'/api/kernels/{kernel}').json()['connections'] == 0, 'the server has left')


def test_jupyterlab_through_a_gateway(server, api):
    def call(method, where, **body):
        answer = requests.request(method, server + where, json=body or None, timeout=gb.PATIENCE)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    assert call('GET', '/api/kernelspecs')['kernelspecs']['python3']['spec']['language'] == 'python'
    session = call('POST', '/api/sessions', path='a.ipynb', name='', type='notebook', kernel={'name': 'python3'})
    kernel = session['kernel']['id']
    assert api.get(f'/api/kernels/{kernel}').status_code == 200, 'the kernel is a session of ours'
    with channels_of(server, kernel, api) as channels:
        assert channels.ask('kernel_info_request')['status'] == 'ok'
        assert contents(channels.execute('import os\nx = 6 * 7\nx'), 'execute_result')[0]['data'] == {'text/plain': '42'}
        assert answer_inputs(channels, 'input("name? ")', 'Ann')[0] == [{'prompt': 'name? ', 'password': False}]
        assert channels.ask('complete_request', {'code': 'os.getp', 'cursor_pos': 7})['matches']
        assert channels.ask('comm_info_request', {'target_name': 'jupyter.widget'}, 'shell')['comms'] == {}
        id = channels.request('execute_request', {'code': 'while True: pass'})
        while channels.receive()['header']['msg_type'] != 'execute_input':
            pass
        call('POST', f'/api/kernels/{kernel}/interrupt')
        assert contents(channels.about(id), 'error')[0]['ename'] == 'KeyboardInterrupt'
    call('POST', f'/api/kernels/{kernel}/restart')
    with channels_of(server, kernel, api) as channels:
        assert contents(channels.execute('x'), 'error')[0]['ename'] == 'NameError'
    call('DELETE', f'/api/sessions/{session["id"]}')
    gb.wait_until(lambda: api.get(f'/api/kernels/{kernel}').status_code == 404, 'the kernel ends')
