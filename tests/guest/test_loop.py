"""run_async(): top-level await."""

import sys
import textwrap

import pytest


def test_await_and_value(guest):
    outcome = guest('import asyncio\nawait asyncio.sleep(0, 5)', 'x = await asyncio.sleep(0, 6)', 'x')
    assert guest.cells[0].result[0][2] == '5' and outcome.result[0][2] == '6'


def test_one_loop_and_background_tasks(guest):
    guest(
        'import asyncio\nlog = []\nasync def work():\n    for i in range(3):\n        log.append(i)\n        await asyncio.sleep(0.01)\n'
        'task = asyncio.create_task(work())\nloop = asyncio.get_running_loop()\nawait asyncio.sleep(0)',
        'log',
        'await task\nlog',
        'asyncio.get_running_loop() is loop, await asyncio.sleep(0)',
    )
    assert [cell.result[0][2] for cell in guest.cells[1:]] == ['[0]', '[0, 1, 2]', '(True, None)']


def test_async_statements_and_comprehensions(guest):
    outcome = guest(
        'import asyncio, contextlib\n@contextlib.asynccontextmanager\nasync def ctx():\n    yield 7\nasync def gen():\n    for i in range(3):\n        yield i',
        'got = []\nasync with ctx() as c:\n    got.append(c)\nasync for i in gen():\n    got.append(i)\n    if i: break\ngot + [i async for i in gen()]',
    )
    assert outcome.result[0][2] == '[7, 0, 1, 0, 1, 2]'


def test_asyncio_run_still_works(guest):
    guest(
        'import asyncio\nasync def f(): return 1\nawait f()',
        'asyncio.run(f())',
        'await f()',
        'asyncio.run(f())',
        'asyncio.get_event_loop().run_until_complete(f()) if False else await f()',
    )
    assert [cell.result and cell.result[0][2] for cell in guest.cells] == ['1'] * 5, [
        c.error for c in guest.cells
    ]


def test_traceback_shows_only_the_users_frames(guest):
    outcome = guest(
        'import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0', 'x = 1\nawait f()'
    )
    name, message, text, line, notes = outcome.error
    assert line == 2
    frames = [row for row in text.splitlines() if row.startswith('  File')]
    assert frames == ['  File "<cell 2>", line 2, in <module>', '  File "<cell 1>", line 4, in f']
    assert 'During handling' not in text


def test_exit_and_cancel(guest):
    guest(
        'import asyncio, sys',
        'await asyncio.sleep(0)\nsys.exit(3)',
        'raise asyncio.CancelledError\nawait 1',
        'await asyncio.sleep(0, 1)',
    )
    assert [cell.error and cell.error[0] for cell in guest.cells] == [
        None,
        'SystemExit',
        'asyncio.exceptions.CancelledError',
        None,
    ]


def test_context_variables_stay(guest):
    outcome = guest(
        'import asyncio, contextvars\nv = contextvars.ContextVar("v", default=0)',
        'v.set(1)\nawait asyncio.sleep(0)\nv.set(v.get() + 1)',
        'v.get()',
        'v.set(5)',
        'await asyncio.sleep(0)\nv.get()',
    )
    assert guest.cells[2].result[0][2] == '2' and outcome.result[0][2] == '5'


INTERRUPT = """
    import asyncio, os, signal, threading, time
    ready = threading.Event()
    def later(times=1):
        def send():
            ready.wait()
            for n in range(times):
                while len(log) < n: time.sleep(0.01)
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send, daemon=True).start()
    log = []
"""


@pytest.mark.parametrize(
    'code, expected_log',
    [
        ('later()\ntry:\n    ready.set()\n    await asyncio.sleep(60)\nfinally:\n    log.append("cleaned")', ['cleaned']),
        ('later()\nasync def busy():\n    ready.set()\n    while True: pass\nawait busy()', []),
        (
            'later()\nasync def other():\n    ready.set()\n    while True: pass\nt = asyncio.create_task(other())\nawait asyncio.sleep(60)',
            [],
        ),
        ('later()\nready.set()\nawait asyncio.gather(asyncio.sleep(60), asyncio.sleep(50))', []),
    ],
)
def test_interrupt(guest, code, expected_log):
    guest(
        textwrap.dedent(INTERRUPT),
        code,
        'log[:1], await asyncio.sleep(0, "alive")',
        'signal.getsignal(signal.SIGINT) is signal.default_int_handler',
    )
    error = guest.cells[1].error
    assert error[0] == 'KeyboardInterrupt', error[2]
    assert 'File "<cell 2>"' in error[2] and 'base_events' not in error[2]
    assert guest.cells[2].error is None, guest.cells[2].error[2]
    assert guest.cells[2].result[0][2] == repr((expected_log, 'alive'))
    assert guest.cells[3].result[0][2] == 'True'


def test_interrupt_of_code_that_refuses_it(guest):
    guest(
        textwrap.dedent(INTERRUPT),
        'later(2)\nwhile not log or log[-1] != "end":\n    try:\n        ready.set()\n        await asyncio.sleep(60)\n'
        '    except asyncio.CancelledError:\n        log.append("refused")',
        'await asyncio.sleep(0, log[0])',
    )
    assert guest.cells[1].error[0] == 'KeyboardInterrupt'
    assert 'asyncio' not in guest.cells[1].error[2]
    assert guest.cells[2].result[0][2] == "'refused'"


def test_interrupt_shows_where_it_waited(guest):
    guest(textwrap.dedent(INTERRUPT), 'later(); ready.set()\n\nawait asyncio.sleep(60)')
    assert guest.cells[1].error[3] == 3
    assert 'CancelledError' not in guest.cells[1].error[2]


def test_a_closed_or_stopped_loop_is_replaced(guest):
    guest(
        'import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(60)',
        'await asyncio.sleep(0, 1)',
        'asyncio.get_event_loop().close()',
        'await asyncio.sleep(0, 2)',
    )
    assert guest.cells[0].error[0] == 'RuntimeError'
    assert [cell.error for cell in guest.cells[1:]] == [None] * 3
    assert guest.cells[3].result[0][2] == '2'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='task groups came with Python 3.11')
def test_task_group_errors(guest):
    outcome = guest(
        'import asyncio\nasync def f(n): raise ValueError(n)',
        'async with asyncio.TaskGroup() as g:\n    g.create_task(f(1))\n    g.create_task(f(2))',
    )
    assert outcome.error[0] == 'ExceptionGroup' and 'ValueError: 2' in outcome.error[2]
