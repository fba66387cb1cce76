"""A fresh sandbox for one line of Python, beside other ways to have one."""

import contextlib
import time

from harness.client import Refused, request_bytes
from harness.daemon import Daemon
from harness.sandboxes import Node, Pyodide, all_contenders
from harness.stats import Section

BARE = 'print(6 * 7)'
LIBRARIES = 'import numpy, pandas, matplotlib.pyplot\nprint(pandas.DataFrame({"a": [40, 2]})["a"].sum())'
ANSWER = '42'
PAUSE = 0.12  # in which the daemon has the next guest ready, as it would between two wishes of one agent


def by_server(connection, code):
    """Milliseconds of one `POST /v1/run`: a session made, used and ended."""
    request = request_bytes('POST', '/v1/run', {'code': code})
    began = time.perf_counter()
    status, body = connection.ask(request)
    took = (time.perf_counter() - began) * 1e3
    if status != 200 or b'"stdout":"42\\n"' not in body.replace(b'": "', b'":"'):
        raise Refused(f'{status} {body[:300]!r}')
    return took


def takes_part(contender, stack, section):
    """Starts what it needs and has it answer once; the report says why when it does not."""
    why = contender.missing()
    try:
        if not why:
            stack.enter_context(contender)
            contender.once(BARE, ANSWER)
    except Exception as e:
        why = str(e).strip()
    if why:
        section.fact(f'not measured: {contender.name} ({why[-200:]})')
    return not why


def others(effort):
    """a fresh sandbox for one line: bubblewrap, firejail, nspawn, runc, podman, docker, Pyodide, Monty"""
    section = Section(
        'others',
        'A fresh sandbox for one line, beside others',
        f'`{BARE}`, and the same answer by numpy, pandas and matplotlib, in a new sandbox that is removed afterwards. All '
        'run this machine’s python3; Pyodide and Monty have their own Python, without these libraries.',
    )
    with contextlib.ExitStack() as stack:
        contenders = [c for c in all_contenders() if takes_part(c, stack, section)]
        daemon = stack.enter_context(Daemon())
        connection = stack.enter_context(contextlib.closing(daemon.connect()))
        ours = section.row('glovebox, POST /v1/run', 'ms')
        rows = [(c, section.row(c.name, 'ms', ours)) for c in contenders]
        ours_libraries = section.row('with libraries: glovebox, POST /v1/run', 'ms')
        with_libraries = [
            (c, section.row(f'with libraries: {c.name}', 'ms', ours_libraries))
            for c in contenders
            if not isinstance(c, Node)
        ]
        for turn in range(effort(12, 3)):
            ours.attempt(by_server, connection, BARE)
            for contender, row in rows:
                if turn % 4 == 0 or not isinstance(contender, Pyodide):  # seconds each
                    row.attempt(contender.once, BARE, ANSWER)
            time.sleep(PAUSE)
            ours_libraries.attempt(by_server, connection, LIBRARIES)
            if turn % 4 == 0:  # half a second and more each
                for contender, row in with_libraries:
                    row.attempt(contender.once, LIBRARIES, ANSWER)
            time.sleep(PAUSE)
    return section
