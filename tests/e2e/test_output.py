"""stdout and stderr: apart, in order, kept on every outcome, capped; and the log that keeps more."""

import signal
import time

import pytest

import gb


def test_streams_are_apart(session):
    seen = session.execute('import sys\nprint("one")\nprint("two", file=sys.stderr)\nprint("three")').ok()
    assert seen.stdout == 'one\nthree\n' and seen.stderr == 'two\n'


def test_output_is_kept_when_the_cell_fails(session):
    seen = session.execute('print("kept", end="")\nraise ValueError("x")')
    assert seen.stdout == 'kept' and seen.status == 'error'
    assert seen.stderr == '', 'the traceback is in the error, not in stderr'


def test_subprocesses_and_python_write_in_order(session):
    seen = session.execute(
        'import subprocess, os, sys\nfor i in range(5):\n'
        '  print("py", i)\n  subprocess.run(["echo", "sub", str(i)])\n'
        '  os.system(f"echo sh {i}")\n  os.write(1, b"fd %d\\n" % i)\n  sys.stdout.buffer.write(b"buf %d\\n" % i)'
    ).ok()
    assert seen.stdout.split('\n')[:-1] == [f'{w} {i}' for i in range(5) for w in ('py', 'sub', 'sh', 'fd', 'buf')]


def test_stderr_of_subprocesses(session):
    seen = session.execute('import subprocess\nsubprocess.run(["sh", "-c", "echo out; echo err >&2"])').ok()
    assert (seen.stdout, seen.stderr) == ('out\n', 'err\n')


def test_c_code_that_writes_to_stdout(session):
    seen = session.execute(
        'import ctypes\nlibc = ctypes.CDLL(None)\nprint("a")\nlibc.puts(b"from C")\nlibc.fflush(None)\n'
        'libc.printf(b"not flushed\\n")\nlibc.write(2, b"err\\n", 4)\n0;'
    ).ok()
    assert set(seen.stdout.splitlines()) == {'a', 'from C', 'not flushed'}
    assert seen.stderr == 'err\n'


def test_what_is_left_unflushed_comes_with_the_cell(session):
    seen = session.execute('import sys; sys.stdout.write("no newline"); sys.stderr.write("either");').ok()
    assert (seen.stdout, seen.stderr) == ('no newline', 'either')
    assert session.execute('1').stdout == ''


def test_bytes_that_are_no_text(session):
    seen = session.execute('import os; os.write(1, b"a\\xff\\xfeb\\xc3"); os.write(1, b"\\xa9\\n");').ok()
    assert seen.stdout == 'a��bé\n'
    seen = session.execute('print("\\ud800 lone")').ok()
    assert 'lone' in seen.stdout
    seen = session.execute('print("\\0\\x01\\x1b[31m\\x7f")').ok()
    assert seen.stdout == '\0\x01\x1b[31m\x7f\n'


def test_characters_split_between_writes(session):
    code = 'import os, time\nfor byte in "ä€😀".encode():\n  os.write(1, bytes([byte])); time.sleep(0.02)'
    assert session.execute(code).ok().stdout == 'ä€😀'
    texts = [data['text'] for event, data in session.events(code) if event == 'stdout']
    assert ''.join(texts) == 'ä€😀'
    assert all('�' not in text for text in texts)


def test_cap_keeps_head_and_tail(session):
    seen = session.execute('for i in range(400_000): print(f"line {i:07}")').ok()
    whole = 400_000 * 13
    left_out = seen.truncated['stdout']
    head, gap, tail = seen.stdout.partition(f'\n… {left_out} bytes left out …\n')
    assert gap
    assert head.startswith('line 0000000\n') and tail.endswith('line 0399999\n')
    assert len(head) + len(tail) + left_out == whole
    assert 1_000_000 < len(head) + len(tail) <= 1 << 20
    assert seen.truncated['stderr'] == 0


def test_output_at_the_cap_is_whole(api):
    session = api.session(limits={'output_bytes': 10_000})
    seen = session.execute('print("x" * 9_999)').ok()
    assert len(seen.stdout) == 10_000 and seen.truncated['stdout'] == 0
    seen = session.execute('print("x" * 10_000)').ok()
    assert seen.truncated['stdout'] == 1


def test_cap_does_not_split_characters(api):
    session = api.session(limits={'output_bytes': 1024})
    for shift in range(4):
        seen = session.execute(f'print("a" * {shift} + "€" * 1000, end="")').ok()
        assert '�' not in seen.stdout
        kept = seen.stdout.count('€') * 3 + seen.stdout.count('a') - seen.stdout.count('a', seen.stdout.index('…'))
        assert seen.truncated['stdout'] > 0
        head, _, tail = seen.stdout.partition(f'\n… {seen.truncated["stdout"]} bytes left out …\n')
        assert len((head + tail).encode()) + seen.truncated['stdout'] == shift + 3000
        assert kept


def test_a_gigabyte_of_printing(api, daemon):
    """Ends normally, with head and tail, and the daemon's memory stays flat."""
    session = api.session(limits={'total_output_bytes': 2 << 30})
    session.execute('1').ok()
    before = daemon.rss()
    seen = session.execute(
        'import sys\npiece = "0123456789abcde\\n" * 65536\nfor i in range(1024): sys.stdout.write(piece)\n'
        'print("the end")',
        timeout_s=120,
        timeout=140,
    ).ok()
    assert seen.stdout.startswith('0123456789abcde\n') and seen.stdout.endswith('the end\n')
    assert seen.truncated['stdout'] > (1 << 30) - (1 << 20)
    assert daemon.rss() - before < 24 << 20
    assert session.value('"still here"') == "'still here'"


def test_flood_does_not_slow_others_much(api):
    loud, quiet = api.session(limits={'total_output_bytes': 1 << 40}), api.session()
    quiet.execute('1').ok()
    running = loud.in_background('while True: print("x" * 1000)', timeout_s=60)
    gb.wait_until(lambda: loud.logs(limit=1)['entries'], 'it prints')
    for _ in range(20):
        quiet.execute('1').ok()
    assert loud.interrupt() and running.result().status == 'interrupted', 'all twenty while it printed'


def test_flood_of_a_subprocess_that_outlives_the_cell(session):
    """The answer does not wait for a writer that never stops."""
    seen = session.execute('import subprocess\nprint("started")\np = subprocess.Popen(["yes"])', timeout_s=20).ok()
    assert seen.stdout.startswith('started\n')
    assert session.execute('p.kill(); p.wait()', timeout_s=20).ok().text == '-9'
    assert session.execute('print("quiet")').ok().stdout.endswith('quiet\n')


def test_background_threads_print_between_cells(session):
    session.execute(
        'import threading, time\nstop = threading.Event()\ndef work():\n  time.sleep(0.1)\n  print("from the thread", flush=True)\n'
        '  stop.set()\nthreading.Thread(target=work).start()'
    ).ok()
    gb.wait_until(
        lambda: 'from the thread\n' in ''.join(e['text'] for e in session.logs()['entries']),
        'the thread\'s output is in the log',
    )
    seen = session.execute('print("next")').ok()
    assert seen.stdout == 'from the thread\nnext\n'
    assert session.execute('1').stdout == ''


def test_background_threads_reach_the_next_stream_of_events(session):
    session.execute(
        'import threading, time\ndef work():\n  time.sleep(0.1)\n  print("early", flush=True)\n'
        't = threading.Thread(target=work)\nt.start()'
    ).ok()
    gb.wait_until(lambda: 'early\n' in ''.join(e['text'] for e in session.logs()['entries']), 'the thread printed')
    text = ''.join(data['text'] for event, data in session.events('print("late")') if event == 'stdout')
    assert text == 'early\nlate\n'


def test_output_before_a_crash_is_kept(session):
    for death in ('import os; os._exit(4)', 'import os; os.abort()', 'import os; os.kill(os.getpid(), 9)'):
        seen = session.execute(
            f'print("last words")\n{death}' if 'kill' not in death else f'print("last words", flush=True)\n{death}'
        )
        assert seen.status == 'killed' and seen.stdout == 'last words\n', death


def test_many_small_writes(session):
    seen = session.execute('for i in range(200_000): print(i, end=" ")').ok()
    assert seen.stdout.startswith('0 1 2 ') and seen.stdout.endswith('199999 ')


def test_threads_do_not_mix_their_lines(session):
    seen = session.execute(
        'import threading\ndef say(c):\n  for _ in range(2000): print(c * 40)\n'
        'ts = [threading.Thread(target=say, args=(c,)) for c in "abcd"]\n[t.start() for t in ts]; [t.join() for t in ts];'
    ).ok()
    assert_whole(seen.stdout, 2000)


def assert_whole(text, lines):
    """print() writes the text and the newline apart, as in CPython: whole texts must stay whole."""
    text = text.replace('\n', '')
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    assert all(piece == piece[0] * 40 for piece in pieces)
    assert {c: pieces.count(c * 40) for c in 'abcd'} == dict.fromkeys('abcd', lines)


def test_threads_do_not_overwrite_what_a_slow_reader_has_not_seen():
    """The main thread waits, so the timer makes it write; others print meanwhile, and nobody reads for a while."""
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--max-output', '16M') as daemon, daemon.api() as api:
        session = api.session(limits={'output_bytes': 16 << 20})
        running = session.in_background(
            'import threading\ndef say(c):\n  for _ in range(20_000): print(c * 40)\n'
            'ts = [threading.Thread(target=say, args=(c,)) for c in "abcd"]\n[t.start() for t in ts]; [t.join() for t in ts];',
            timeout_s=60,
        )
        while running.thread.is_alive():
            daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            daemon.process.send_signal(signal.SIGCONT)
            time.sleep(0.005)
        assert_whole(running.result().ok().stdout, 20_000)


# ---- the log -----------------------------------------------------------------------------


def read_log(session, **query):
    """All entries, page by page."""
    entries, after = [], 0
    while True:
        page = session.logs(after=after, **query)
        entries += page['entries']
        if page['end']:
            return entries
        assert page['next'] > after
        after = page['next']


def test_log_has_everything_the_observation_left_out(session):
    session.execute('for i in range(300_000): print(f"line {i:07}")').ok()
    text = ''.join(e['text'] for e in read_log(session))
    assert text == ''.join(f'line {i:07}\n' for i in range(300_000))


def test_log_names_cell_and_stream(session):
    session.execute('print("a")').ok()
    session.execute('import sys; print("b", file=sys.stderr)').ok()
    entries = session.logs()['entries']
    assert [(e['cell'], e['stream'], e['text']) for e in entries] == [(1, 'stdout', 'a\n'), (2, 'stderr', 'b\n')]
    assert entries[0]['time'] <= entries[1]['time']
    assert [e['text'] for e in session.logs(cell=2)['entries']] == ['b\n']
    assert [e['text'] for e in session.logs(stream='stdout')['entries']] == ['a\n']


def test_log_pages_by_limit(session):
    for i in range(5):
        session.execute(f'print({i})').ok()
    entries = list(read_log(session, limit=2))  # a slow machine may cut a line into two entries
    assert len(entries) >= 5 and ''.join(e['text'] for e in entries) == '0\n1\n2\n3\n4\n'


def test_log_as_plain_text(session, api):
    session.execute('print("grüße")').ok()
    answer = api.get(f'{session.path}/logs', headers={'Accept': 'text/plain'})
    assert answer.headers['Content-Type'].startswith('text/plain')
    assert answer.content.decode() == 'grüße\n'
    assert int(answer.headers['X-Next-After']) > 0 and answer.headers['X-Log-End'] == 'true'


def test_log_keeps_characters_across_pages(session):
    session.execute('import sys\nfor i in range(20): print("€" * 50_000, end="", flush=True)').ok()
    for query in ({}, {'limit': 1}, {'limit': 3}):
        assert ''.join(e['text'] for e in read_log(session, **query)) == '€' * 1_000_000, query


def test_log_says_what_it_dropped(api):
    session = api.session(limits={'log_bytes': 2048})
    session.execute('for i in range(100): print("x" * 99, flush=True)').ok()
    page = session.logs()
    kept = sum(len(e['text']) for e in page['entries'])
    assert page['dropped_bytes'] + kept == 10_000 and kept <= 2048


@pytest.mark.parametrize(
    'query', ['after=1', 'after=-1', 'limit=0', 'stream=both', 'cell=x', 'nosuch=1', 'after=99999999']
)
def test_log_refuses_bad_queries(session, api, query):
    session.execute('print("x" * 100)').ok()
    answer = api.get(f'{session.path}/logs?{query}')
    assert answer.status_code == 400
    assert answer.json()['code'] in ('invalid_parameter', 'invalid_field', 'unknown_parameter', 'unknown_field')
