"""A fork server without a jail, to compare with: imports numpy and pandas, prints its port, then forks for each POST and runs its code.

It is not a product: it reads a request with one recv() and keeps nothing apart.
"""

import io
import json
import os
import selectors
import signal
import socket
import sys

import numpy  # noqa: F401
import pandas  # noqa: F401


def answer(connection, request):
    sys.stdout = io.StringIO()
    exec(json.loads(request.partition(b'\r\n\r\n')[2])['code'], {'__name__': '__main__'})
    body = json.dumps({'stdout': sys.stdout.getvalue()}).encode()
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(body) + body)


def serve(connection, selector):
    request = connection.recv(65536)
    if not request:
        selector.unregister(connection)
        connection.close()
    elif os.fork() == 0:
        answer(connection, request)
        os._exit(0)


def reap(number, frame):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


listener = socket.create_server(('127.0.0.1', 0))
signal.signal(signal.SIGCHLD, reap)
print(listener.getsockname()[1], flush=True)
with selectors.DefaultSelector() as selector:
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            else:
                serve(key.fileobj, selector)
