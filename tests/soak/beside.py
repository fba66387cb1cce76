"""The steps of a walk that use what lives beside the interpreter of a session: contexts, processes, archives, pauses, and the state of %%shell cells."""

import io
import tarfile

BESIDE = {'context_cell': 3, 'context_write': 2, 'context_crash': 1, 'process': 2, 'background': 1, 'peek': 3, 'shell': 4, 'suspend': 1, 'archive': 1}
WRITER = 'i=0; while :; do i=$((i+1)); echo $i > /workspace/p.new; mv /workspace/p.new /workspace/p; sleep 0.01; done'
PEEK = 'try:\n    items.append(open("/workspace/p").read())\nexcept OSError:\n    items.append("")\nitems[-1]'
W = '/workspace/w'


class Beside:
    """For a Walk. A context has one variable, `m`; `other` is (its id, the value of m, or None when an answer said that it is lost)."""

    other = None

    def forget_beside(self):
        self.other = None

    def wrote(self, path, text):
        """From outside the interpreter: what a death between cells leads back to may have it or not."""
        self.truth.files[path] = self.truth.files.get(path, '') + text
        self.after = {}

    # ---- contexts -------------------------------------------------------------------------

    def context_of(self):
        if self.other is None:
            status, made = self.ask('POST', f'{self.path}/contexts')
            self.note('context', status, made.get('code'))
            self.after = {}
            if status == 201:
                self.other = (made['id'], None)
            elif status in (404, 410):
                self.gone(status, made)
        return self.other

    def in_context(self, code):
        """The observation, or None."""
        if not self.context_of():
            return None
        status, seen = self.ask('POST', f'{self.path}/execute', code=code, context=self.other[0], timeout_s=100)
        self.note('context:', code[:60], status, seen.get('status'), {k: seen[k] for k in ('state_lost', 'files_lost', 'interpreter_died') if seen.get(k)})
        if status == 200:
            return seen
        if seen.get('code') == 'session_gone':
            self.gone(status, seen)
        self.other = None  # with its variable: the answer says so
        return None

    def context_cell(self):
        had = self.other and self.other[1]
        seen = self.in_context('m = globals().get("m", 0) + 1\nm')
        if not seen:
            return
        if seen.get('state_lost'):
            self.count('told: context lost')
            had = None
        if seen['status'] != 'ok':
            self.other = (self.other[0], None)
            return
        m = int(seen['result']['text/plain'])
        if had is not None and m != had + 1:
            raise self.lie(f'the context has m = {m}, and must have {had + 1}')
        self.other = (self.other[0], m)

    def context_write(self):
        seen = self.in_context(f'with open({W!r}, "a") as f: f.write("k")')
        if seen and seen['status'] == 'ok' and not seen.get('files_lost'):
            self.wrote(W, 'k')
        elif self.path:
            self.resync('context')
        if seen and seen.get('state_lost') and self.other:
            self.other = (self.other[0], None)

    def context_crash(self):
        seen = self.in_context('import os\nos._exit(1)')
        if seen and not seen.get('state_lost'):
            raise self.lie('a context that died has lost nothing')
        if seen and seen.get('files_lost'):
            self.resync('context')
        if self.other:
            self.other = (self.other[0], None)

    # ---- processes ---------------------------------------------------------------------------

    def process(self):
        status, seen = self.ask('POST', f'{self.path}/processes', cmd=f'printf q >> {W}')
        self.note('process', status, seen.get('code'), seen.get('exit_code'), seen.get('detail'))
        if status in (404, 410):
            return self.gone(status, seen)
        if status == 200 and seen['exit_code'] == 0 and seen['state'] == 'exited':
            self.wrote(W, 'q')
        else:
            self.after = {}
            self.resync('process')

    def background(self):
        """One that goes on writing, until the session ends or it is deleted."""
        status, seen = self.ask('GET', f'{self.path}/processes')
        running = [p['id'] for p in seen.get('processes', ()) if p['state'] == 'running']
        self.after = {}
        if running:
            self.ask('DELETE', f'{self.path}/processes/{running[0]}')
        else:
            status, seen = self.ask('POST', f'{self.path}/processes', cmd=WRITER, background=True)
            self.note('background', status, seen.get('code'))

    def peek(self):
        """A cell that reads what a process writes meanwhile."""

        def effect(t, value):
            t.variables['items'].append(value)

        self.cell(PEEK, effect)

    # ---- the rest --------------------------------------------------------------------------------

    def shell(self):
        seen = self.cell('%%shell\nk=$((k+1)); echo $k', lambda t, _: None, ('ok', 'error'))  # an error: its bash was killed
        if not seen or not self.path:
            return
        if seen['status'] != 'ok' or any(seen.get(k) for k in ('state_lost', 'interpreter_died', 'may_differ')):
            self.truth.shell = None
            return
        k = int(seen['stdout'])
        if self.truth.shell is not None and k != self.truth.shell + 1:
            raise self.lie(f'the shell has k = {k}, and must have {self.truth.shell + 1}')
        self.truth.shell = k
        self.after[self.number] = self.truth.copy()

    def suspend(self):
        status, seen = self.ask('POST', f'{self.path}/pause')
        self.note('pause', status, seen.get('code'))
        if status in (404, 410):
            return self.gone(status, seen)
        if status != 200:
            return None
        status, seen = self.ask('POST', f'{self.path}/execute', code='n = -1')
        if status not in (404, 409, 410) or status == 409 and seen['code'] != 'session_paused':
            raise self.lie(f'a paused session answered {status} {seen}')
        if self.chance.random() < 0.3:
            self.checkpoint()
        if self.path and self.chance.random() < 0.3:
            self.rollback()
        if self.path:
            status, seen = self.ask('POST', f'{self.path}/resume')
            self.note('resume', status, seen.get('code'))
            if status != 200:
                self.gone(status, seen)

    def archive(self):
        """One file there, and the whole folder back."""
        data = io.BytesIO()
        text = self.chance.choice('uv').encode()
        with tarfile.open(fileobj=data, mode='w') as tar:
            info = tarfile.TarInfo('w')
            info.size, info.mode = len(text), 0o666
            tar.addfile(info, io.BytesIO(text))
        answer = self.http.put(f'{self.url}{self.path}/archive', data=data.getvalue(), timeout=150)
        self.count(f'PUT archive {answer.status_code}')
        self.note('archive', answer.status_code)
        if answer.status_code in (404, 410):
            return self.gone(answer.status_code, answer.json())
        if answer.ok:
            self.truth.files[W] = ''
            self.wrote(W, text.decode())
        else:
            self.after = {}
            return self.resync('archive')
        answer = self.http.get(f'{self.url}{self.path}/archive', timeout=150)
        self.count(f'GET archive {answer.status_code}')
        if not answer.ok:
            return None
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
            found = next((m for m in tar.getmembers() if m.name.lstrip('./') == 'w'), None)
            if found is None or tar.extractfile(found).read() != text:
                self.check()  # the interpreter may have died in between, which its next answer says
