"""A package index on loopback: the simple API over http.server, with real wheels and source packages made here."""

import base64
import collections
import hashlib
import http.server
import io
import re
import tarfile
import threading
import zipfile


def canonical(name):
    return re.sub(r'[-_.]+', '-', name).lower()


def wheel(name, version, files, requires=()):
    """(file name, bytes) of a pure wheel."""
    stem = f'{name.replace("-", "_")}-{version}'
    entries = dict(files)
    requires = ''.join(f'Requires-Dist: {r}\n' for r in requires)
    entries[f'{stem}.dist-info/METADATA'] = f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}'
    entries[f'{stem}.dist-info/WHEEL'] = 'Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
    record = ''
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w') as archive:
        for path, text in entries.items():
            text = text.encode() if isinstance(text, str) else text
            digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()
            record += f'{path},sha256={digest},{len(text)}\n'
            archive.writestr(zipfile.ZipInfo(path), text)
        archive.writestr(zipfile.ZipInfo(f'{stem}.dist-info/RECORD'), record + f'{stem}.dist-info/RECORD,,\n')
    return f'{stem}-py3-none-any.whl', data.getvalue()


def sdist(name, version, files):
    """(file name, bytes) of a source package; setup.py is among the files, or a plain one is made."""
    stem = f'{name}-{version}'
    entries = {'PKG-INFO': f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'}
    entries['setup.py'] = f'from setuptools import setup\nsetup(name={name!r}, version={version!r}, py_modules=[])\n'
    entries.update(files)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz') as archive:
        for path, text in entries.items():
            info = tarfile.TarInfo(f'{stem}/{path}')
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return f'{stem}.tar.gz', data.getvalue()


EXTENSION = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = { { "answer", answer, METH_NOARGS, NULL }, { 0 } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "gbext", NULL, -1, methods };
PyMODINIT_FUNC PyInit_gbext(void) { return PyModule_Create(&module); }
"""
EXTENSION_SETUP = """
from setuptools import Extension, setup
setup(name='gbext', version='1.0', ext_modules=[Extension('gbext', ['gbext.c'])])
"""
BROKEN_SETUP = 'import sys\nsys.exit("gbbroken cannot be built: the flux is missing")\n'


def standard():
    """The packages that most tests ask for."""
    return [
        wheel('gbpure', '1.0', {'gbpure/__init__.py': 'version = "1.0"\n', 'gbpure/big.txt': 'x' * 5000}),
        wheel('gbpure', '1.1', {'gbpure/__init__.py': 'version = "1.1"\n', 'gbpure/big.txt': 'x' * 5000}),
        wheel('gbdep', '2.0', {'gbdep.py': 'import gbpure\nseen = gbpure.version\n'}, ['gbpure>=1.0', 'six']),
        wheel('gbold', '1.0', {'gbold.py': ''}, ['gbpure<1.1']),
        wheel('gbnew', '1.0', {'gbnew.py': ''}, ['gbpure>=1.1']),
        # the module PIL is another package's: what is named after the module must be found under the package's name
        wheel('six', '99.0', {'six.py': '__version__ = "99.0"\n'}),
        sdist('gbext', '1.0', {'setup.py': EXTENSION_SETUP, 'gbext.c': EXTENSION}),
        sdist('gbbroken', '1.0', {'setup.py': BROKEN_SETUP}),
    ]


class Index:
    """Serves files; counts what was fetched; can hold answers back until it is told to go on."""

    def __init__(self, files=None):
        self.files = dict(files if files is not None else standard())
        self.fetched = collections.Counter()
        self.go = threading.Event()
        self.go.set()
        self.asked = threading.Event()  # somebody waits, or was answered
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.set()
                index.go.wait(120)
                index.answer(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f'http://127.0.0.1:{self.port}/simple'
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True)
        self.thread.start()

    def answer(self, request):
        page = re.fullmatch(r'/simple/([^/]+)/?', request.path)
        name = request.path.rpartition('/')[2]
        if page:
            names = [n for n in self.files if canonical(re.split(r'-\d', n)[0]) == canonical(page[1])]
            links = ''.join(f'<a href="/files/{n}#sha256={hashlib.sha256(self.files[n]).hexdigest()}">{n}</a>\n' for n in names)
            body, kind = f'<!DOCTYPE html><html><body>{links}</body></html>'.encode(), 'text/html'
            found = bool(names)
        else:
            found = request.path.startswith('/files/') and name in self.files
            body, kind = self.files.get(name, b''), 'application/octet-stream'
            self.fetched[name] += found
        request.send_response(200 if found else 404)
        request.send_header('Content-Type', kind)
        request.send_header('Content-Length', str(len(body)))
        request.end_headers()
        try:
            request.wfile.write(body)
        except OSError:
            pass  # whoever asked was killed

    def add(self, *files):
        self.files.update(files)

    def close(self):
        self.go.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
