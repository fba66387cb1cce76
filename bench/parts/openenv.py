"""OpenEnv's protocol: a step, an episode, and many environments at once."""

import contextlib
import json
import selectors
import time

from harness.client import Refused, request_bytes
from harness.daemon import Daemon
from harness.stats import Section
from harness.websocket import WebSocket
from parts.cell import timed_cell

CODE = 'x = 1 + 1'
CHUNK = 50
AT_ONCE = 64
STEPS = 10
PAUSE = 0.15  # longer than a new guest waits before it uses its idle time

STEP = WebSocket.frame(json.dumps({'type': 'step', 'data': {'code': CODE}}))
RESET = WebSocket.frame(json.dumps({'type': 'reset', 'data': {}}))


def check(answer):
    data = json.loads(answer)
    if data['type'] != 'observation' or data['data']['observation']['exit_code'] != 0:
        raise Refused(repr(answer[:300]))


def timed(env, frame):
    """Milliseconds of one message and its answer."""
    began = time.perf_counter()
    answer = env.ask(frame)
    took = time.perf_counter() - began
    check(answer)
    return took * 1e3


def timed_http(connection, request):
    began = time.perf_counter()
    status, body = connection.ask(request)
    took = time.perf_counter() - began
    if status != 200 or json.loads(body)['observation']['exit_code'] != 0:
        raise Refused(f'{status} {body[:300]!r}')
    return took * 1e3


def episode(env):
    began = time.perf_counter()
    check(env.ask(RESET))
    for _ in range(STEPS):
        check(env.ask(STEP))
    return (time.perf_counter() - began) * 1e3


def together(envs, frame, rounds):
    """Steps a second when every environment sends its next one as soon as it has the answer to the last."""
    left = {env: rounds for env in envs}
    began = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for env in envs:
            selector.register(env, selectors.EVENT_READ, env)
            env.send(frame)
        while left:
            for key, _ in selector.select():
                env = key.data
                check(env.receive())
                left[env] -= 1
                if left[env]:
                    env.send(frame)
                else:
                    del left[env]
                    selector.unregister(env)
    return len(envs) * rounds / (time.perf_counter() - began)


def openenv(effort):
    """OpenEnv's protocol: a step, a reset, an episode of ten steps, 64 environments at once"""
    section = Section(
        'openenv',
        "OpenEnv's protocol",
        f'Steps are `{CODE}`. OpenEnv\'s own server, on another machine: 1.41 ms over its WebSocket, 2.91 ms over HTTP.',
    )
    native = section.row('our own API: a cell over HTTP', 'ms')
    socket_step = section.row('step over /ws', 'ms', native)
    free_step = section.row('step over /ws, profile python', 'ms', native)
    http_step = section.row('POST /step: an environment for each request', 'ms', native)
    reset = section.row('reset over /ws, a guest is ready', 'ms', native)
    episodes = section.row(f'episode: reset and {STEPS} steps, one after another', 'ms')
    parallel = section.row(f'{AT_ONCE} environments at once', 'steps/s')
    with Daemon('--ready', '8') as daemon, contextlib.ExitStack() as stack:

        def connect():
            return stack.enter_context(contextlib.closing(WebSocket(daemon.port, '/ws')))

        connection = stack.enter_context(contextlib.closing(daemon.connect()))
        session = connection.create()['id']
        cell = request_bytes('POST', f'/v1/sessions/{session}/execute', {'code': CODE})
        single = request_bytes('POST', '/step', {'action': {'code': CODE}})
        env, free = connect(), connect()
        free.ask(WebSocket.frame(json.dumps({'type': 'reset', 'data': {'profile': 'python'}})))
        for _ in range(effort(12)):
            for _ in range(CHUNK):
                native.attempt(lambda: timed_cell(connection, cell, 'ok') / 1e3)
                socket_step.attempt(timed, env, STEP)
                free_step.attempt(timed, free, STEP)
            for _ in range(3):
                time.sleep(PAUSE)
                reset.attempt(timed, env, RESET)
                check(env.ask(STEP))
                http_step.attempt(timed_http, connection, single)
            for _ in range(4):
                episodes.attempt(episode, env)
        envs = [connect() for _ in range(AT_ONCE)]
        for each in envs:
            check(each.ask(STEP))
        for _ in range(effort(5, 2)):
            parallel.attempt(together, envs, STEP, 40)
    section.target('a step over /ws, median', socket_step.median, 0.4, 'ms')
    section.fact(
        'A reset takes a session from the guests that are ready; episodes one after another need them faster than they are forked, '
        'so their reset is mostly the fork of a new guest.'
    )
    return section
