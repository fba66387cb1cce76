"""A headless Chromium, driven over its DevTools protocol."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import requests
import websockets

import gb

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')


class Browser:
    """One page. Calls block until their answer is there."""

    def __init__(self, url):
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        assert program, 'no Chromium: scripts/install-deps --test'
        self.folder = Path(tempfile.mkdtemp(prefix='glovebox-browser-'))
        self.loop = asyncio.new_event_loop()
        self.numbers = itertools.count(1)
        self.ws = None
        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
             '--disable-background-networking', '--disable-component-update', '--window-size=1100,900', '--remote-debugging-port=0',
             f'--user-data-dir={self.folder}', 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            self.port = gb.wait_until(self._port, 'the browser is there')
            self.ws = self._wait(self._connect(self._page()))
            self.call('Page.enable')
            self.call('Page.navigate', url=url)
            gb.wait_until(lambda: self.value("location.href !== 'about:blank' && document.readyState") == 'complete', 'the page is loaded')
        except BaseException:
            self.close()
            raise

    def _port(self):
        assert self.process.poll() is None, f'the browser ended with {self.process.returncode}'
        path = self.folder / 'DevToolsActivePort'
        return path.exists() and path.read_text().split('\n')[0]

    def _page(self):
        def find():
            pages = requests.get(f'http://127.0.0.1:{self.port}/json', timeout=gb.PATIENCE).json()
            return next((page['webSocketDebuggerUrl'] for page in pages if page['type'] == 'page'), None)

        return gb.wait_until(find, 'the browser has a page')

    async def _connect(self, url):
        return await websockets.connect(url, max_size=None)

    def _wait(self, what):
        return self.loop.run_until_complete(asyncio.wait_for(what, gb.PATIENCE))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.ws is not None:
            self._wait(self.ws.close())
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **params):
        number = next(self.numbers)
        self._wait(self.ws.send(json.dumps({'id': number, 'method': method, 'params': params})))
        while True:  # events come in between
            message = json.loads(self._wait(self.ws.recv()))
            if message.get('id') == number:
                assert 'error' not in message, message
                return message['result']

    def value(self, expression):
        """What the expression is in the page."""
        answer = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        assert 'exceptionDetails' not in answer, answer
        return answer['result'].get('value')

    def click(self, x, y):
        for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
            button = {} if kind == 'mouseMoved' else {'button': 'left', 'clickCount': 1}
            self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **button)

    def type(self, text):
        for c in text:
            for kind in ('keyDown', 'keyUp'):
                key = {'key': 'Enter', 'code': 'Enter', 'windowsVirtualKeyCode': 13} if c == '\n' else {'key': c}
                self.call('Input.dispatchKeyEvent', type=kind, **key, **({'text': c} if kind == 'keyDown' and c != '\n' else {}))

    def screenshot(self):
        """PNG bytes."""
        return base64.b64decode(self.call('Page.captureScreenshot')['data'])
