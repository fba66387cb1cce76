"""Several clients use the same sessions at once, with every operation at every moment: whatever comes of it, each request has a definite answer."""

import io
import random
import tarfile

import requests

PATIENCE = 150
MOST = 6  # sessions at a time
ORPHAN = 'import os, time\nme = os.getpid()\nif os.fork() == 0:\n    if os.fork() == 0:\n        time.sleep({0})\n        os.kill(me, 9)\n    os._exit(0)\nos.wait()'
CELLS = [
    'x = 1', 'x = globals().get("x", 0) + 1\nx', 'open("/workspace/f", "a").write("x")', 'import os\nos._exit(1)', ORPHAN.format(0.05), ORPHAN.format(0.3),
    '%%shell\nk=1; (sleep 30 &) ; echo $k', 'import time\ntime.sleep(0.3)', 'import threading, os\nthreading.Timer(0.1, os._exit, (3,)).start()', '1 / 0',
    'import subprocess\nsubprocess.Popen(["sleep", "30"])\nNone', 'bytearray(10**8)\nNone', 'import sys\nprint("y" * 100000)', 'ask(1)', 'while True: pass',
    'input()', 'import tkinter\nroot = tkinter.Tk()',
]  # fmt: skip

ASK = {'name': 'ask', 'parameters': {'type': 'object', 'properties': {'x': {'type': 'integer'}}}}


def tar():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w') as archive:
        for name in ('a', 'b/c'):
            info = tarfile.TarInfo(name)
            info.size = 1000
            archive.addfile(info, io.BytesIO(b'z' * 1000))
    return data.getvalue()


TAR = tar()


class Chaos:
    """One client. `ids` is shared by all of them: sessions, forks and contexts, which are sessions too."""

    def __init__(self, url, seed, ids):
        self.url, self.chance, self.ids, self.http = url, random.Random(seed), ids, requests.Session()
        self.counts, self.trail = {}, []

    def ask(self, method, path, stream=False, **kwargs):
        self.trail.append((method, path[-60:], str(kwargs)[:120]))
        del self.trail[:-40]
        with self.http.request(method, self.url + path, timeout=PATIENCE, stream=stream, **kwargs) as answer:
            kind = path.partition('?')[0].split('/')
            self.note(f'{method} {kind[4] if len(kind) > 4 else kind[-1] if len(kind) < 4 else "session"} {answer.status_code}')
            if stream:  # and leaves before the end
                next(answer.iter_content(100), None)
                return {}
            found = answer.json() if 'json' in answer.headers.get('Content-Type', '') else {}
            problem = answer.status_code >= 400
            if answer.status_code in (500, 501, 502) or problem and method != 'HEAD' and not found.get('detail'):
                raise AssertionError(f'{method} {path}: {answer.status_code} {answer.text[:300]}')
            return found

    def note(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def turn(self):
        if len(self.ids) < 2 or (len(self.ids) < MOST and self.chance.random() < 0.1):
            return self.create()
        path = f'/v1/sessions/{self.chance.choice(list(self.ids))}'
        verb = self.chance.choice(VERBS)
        return getattr(self, verb)(path)

    # ---- the operations ----------------------------------------------------------------------

    def create(self):
        body = {
            'limits': {'memory_bytes': 300 << 20, 'processes': 64},
            'ttl_s': self.chance.choice([3, 20, 600]),
            'pause_on_expiry': self.chance.random() < 0.5,
            'display': self.chance.random() < 0.3,
        }
        made = self.ask('POST', '/v1/sessions', json=body)
        if 'id' in made:
            self.ids.append(made['id'])

    def forget(self, path):
        if (gone := path.rpartition('/')[2]) in self.ids:
            self.ids.remove(gone)

    def execute(self, path, **more):
        body = {'code': self.chance.choice(CELLS), 'timeout_s': self.chance.choice([0.4, 2, 10]), **more}
        if self.chance.random() < 0.2:
            body['capture_screenshot'] = True
        events = {'headers': {'Accept': 'text/event-stream'}, 'stream': True} if self.chance.random() < 0.2 else {}
        found = self.ask('POST', f'{path}/execute', json=body, **events)
        if found.get('code') in ('session_gone', 'session_not_found'):
            self.forget(path)

    def execute_in_context(self, path):
        found = self.ask('GET', f'{path}/contexts').get('contexts') or [{'id': 'default'}]
        self.execute(path, context=self.chance.choice(found)['id'])

    def context(self, path):
        made = self.ask('POST', f'{path}/contexts', json={'cwd': '/tmp'} if self.chance.random() < 0.5 else {})
        if 'id' in made and self.chance.random() < 0.5:
            self.ids.append(made['id'])

    def change_context(self, path):
        found = self.ask('GET', f'{path}/contexts').get('contexts', [])[1:]
        if found:
            which = f'{path}/contexts/{self.chance.choice(found)["id"]}'
            self.ask(*(('DELETE', which) if self.chance.random() < 0.5 else ('POST', f'{which}/restart')))

    def process(self, path):
        body = {'cmd': self.chance.choice(['echo x >> f', 'sleep 0.2', 'yes | head -c 1000000', 'kill -9 -1', 'exit 3', 'sleep 20 & echo y'])}
        if self.chance.random() < 0.4:
            body['background'] = True
        if self.chance.random() < 0.2:
            body['pty'] = {'rows': 24, 'cols': 80}
        self.ask('POST', f'{path}/processes', json={**body, 'timeout_s': 3})

    def change_process(self, path):
        found = self.ask('GET', f'{path}/processes').get('processes', [])
        if not found:
            return
        which = f'{path}/processes/{self.chance.choice(found)["id"]}'
        method, where, kwargs = self.chance.choice([
            ('DELETE', which, {}), ('POST', f'{which}/signal', {'json': {'signal': 'TERM'}}), ('POST', f'{which}/stdin', {'json': {'text': 'a\n'}}),
            ('GET', f'{which}/stream', {'stream': True}), ('GET', which, {}),
        ])  # fmt: skip
        self.ask(method, where, **kwargs)

    def post(self, path):
        verb, body = self.chance.choice([
            ('checkpoints', {'name': 'a'}), ('checkpoints', {}), ('rollback', {'checkpoint': 'a'}), ('rollback', {'undo': True}), ('pause', {}), ('resume', {}),
            ('resume', {'ttl_s': 5}), ('reset', {}), ('interrupt', {}), ('complete', {'code': 'x.', 'cursor': 2}), ('inspect', {'code': 'x', 'cursor': 1}),
            ('input', {'action': 'left_click', 'coordinate': [5, 5]}),
        ])  # fmt: skip
        self.ask('POST', f'{path}/{verb}', json=body)

    def look(self, path):
        self.ask('GET', self.chance.choice([path, *(f'{path}/{what}' for what in LOOKS)]))

    def answer_tool(self, path):
        for call in self.ask('GET', f'{path}/tools/calls?wait_s=0').get('calls', [])[:1]:
            self.ask('POST', f'{path}/tools/calls/{call["call"]}', json={'value': 1})
        self.ask('PUT', f'{path}/tools', json={'tools': [ASK]})

    def files(self, path):
        self.ask('PUT', *self.chance.choice([(f'{path}/files/up',), (f'{path}/archive',)]), data=TAR)

    def fork(self, path):
        for made in self.ask('POST', f'{path}/fork', json={'count': self.chance.choice([1, 1, 3])}).get('sessions', []):
            if len(self.ids) < 2 * MOST and self.chance.random() < 0.5:
                self.ids.append(made['id'])
            else:
                self.ask('DELETE', f'/v1/sessions/{made["id"]}')

    def delete(self, path):
        self.forget(path)
        self.ask('DELETE', path)

    def change(self, path):
        self.ask('PATCH', path, json={'ttl_s': self.chance.choice([1, 30]), 'name': 'n'})


LOOKS = ('variables', 'archive', 'files', 'files/f', 'cells', 'export', 'logs', 'screenshot', 'windows', 'checkpoints', 'processes', 'contexts', 'tools')
VERBS = [
    *['execute'] * 8, *['execute_in_context'] * 3, 'context', 'change_context', 'process', 'process', 'change_process', *['post'] * 7, 'look', 'look', 'answer_tool',
    'files', 'fork', 'delete', 'change',
]  # fmt: skip
