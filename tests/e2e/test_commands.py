"""The command line beyond single verbs: help, settings and which of them wins, completion, machine-readable answers."""

import json
import re
import subprocess

import pytest

import gb

VERBS = ['serve', 'run', 'shell', 'new', 'ps', 'kill', 'logs', 'doctor', 'version']


def test_help_names_every_verb():
    said = gb.cli('--help')
    assert said.returncode == 0
    for verb in VERBS:
        assert re.search(rf'^  {verb} ', said.stdout, re.M), verb
    assert gb.cli().returncode == 2 and gb.cli('help').stdout == said.stdout


@pytest.mark.parametrize('verb', VERBS)
def test_every_verb_explains_itself(verb):
    said = gb.cli(verb, '--help')
    assert said.returncode == 0 and said.stdout.startswith('glovebox') or 'sage' in said.stdout
    assert f'glovebox {verb}' in said.stdout
    assert gb.cli('help', verb).stdout == said.stdout


def test_serve_help_explains_every_setting():
    said = gb.cli('serve', '--help').stdout
    documented = (gb.ROOT / 'docs/configuration.md').read_text()
    flags = set(re.findall(r'--([a-z][a-z-]+)', said)) - {'help', 'no', 'check'}
    for flag in ('listen', 'token-file', 'preload', 'ready', 'timeout', 'memory', 'grace', 'drain', 'config'):
        assert flag in flags
    for flag in re.findall(r'^\| `([a-z-]+)` \|', documented, re.M):
        assert flag in flags, f'{flag} is documented and not in --help'


@pytest.mark.parametrize(
    'words, near',
    [(['sreve'], 'serve'), (['rnu'], 'run'), (['serve', '--tiemout', '5'], '--timeout'), (['ps', '--jsn'], '--json')],
)
def test_slips_are_answered_with_the_nearest_word(words, near):
    said = gb.cli(*words)
    assert said.returncode == 2 and near in said.stderr and said.stdout == ''


def settings_of(*args, env=None, config=None, tmp_path=None):
    """limits.timeout_s of a session of a daemon that is started so."""
    flags = list(args)
    if config is not None:
        path = tmp_path / 'glovebox.conf'
        path.write_text(config)
        flags += ['--config', path]
    with gb.running_daemon(
        '--preload', 'none', '--ready', '0', *flags, env=env, wait=False
    ) as daemon, daemon.api() as api:
        return api.session().get()['limits']['timeout_s']


def test_flag_wins_over_variable_over_file_over_default(tmp_path):
    config = '[cells]\ntimeout = 11\n'
    assert settings_of() == 30
    assert settings_of(config=config, tmp_path=tmp_path) == 11
    assert settings_of(config=config, tmp_path=tmp_path, env={'GLOVEBOX_TIMEOUT': '12s'}) == 12
    assert settings_of('--timeout', '13', config=config, tmp_path=tmp_path, env={'GLOVEBOX_TIMEOUT': '12'}) == 13
    assert settings_of(config=None, env={'GLOVEBOX_CONFIG': tmp_path / 'glovebox.conf'}) == 11


@pytest.mark.parametrize(
    'text, words',
    [
        ('[cells]\ntimeot = 5\n', ['line 2', 'timeot', 'timeout']),
        ('[cels]\n', ['line 1', 'cels']),
        ('timeout = x\n', ['line 1', 'timeout']),
        ('timeout\n', ['line 1']),
        ('timeout = 0\n', ['timeout']),
        ('memory = -5\n', ['memory']),
        ('listen = 300.1.1.1:80\n', ['listen']),
        ('max-sessions = 99999999999999999999\n', ['max-sessions']),
        ('\xff\xfe = 1\n', ['1']),
    ],
)
def test_mistakes_in_the_settings_file_are_located(tmp_path, text, words):
    path = tmp_path / 'bad.conf'
    path.write_bytes(text.encode('latin-1'))
    said = gb.cli('serve', '--config', path, '--check')
    assert said.returncode == 2, said.stderr
    for word in words:
        assert word in said.stderr, said.stderr


def test_check_accepts_the_documented_example(tmp_path):
    page = (gb.ROOT / 'docs/configuration.md').read_text()
    example = re.search(r'```ini\n(.*?)```', page, re.S)[1]
    tokens = tmp_path / 'tokens'
    tokens.write_text('0123456789abcdef0123\n')
    path = tmp_path / 'glovebox.conf'
    path.write_text(example.replace('/etc/glovebox/tokens', str(tokens)))
    said = gb.cli('serve', '--config', path, '--check')
    assert said.returncode == 0, said.stderr


# ---- machine-readable answers -------------------------------------------------------------


def test_json_of_every_verb_that_lists_or_returns(daemon, api, tmp_path):
    env = gb.clean_env(GLOVEBOX_URL=daemon.url)
    name = f'json-{tmp_path.name}'
    session = api.session(name=name)
    session.execute('print("ä")\nimport sys; print("e", file=sys.stderr)').ok()
    listed = json.loads(gb.cli('ps', '--json', env=env).stdout)
    assert [s['name'] for s in listed if s['id'] == session.id] == [name]
    entries = [json.loads(line) for line in gb.cli('logs', '--json', name, env=env).stdout.splitlines()]
    assert [(e['stream'], e['text']) for e in entries] == [('stdout', 'ä\n'), ('stderr', 'e\n')]
    assert json.loads(gb.cli('version', '--json').stdout)['version'] == api.get('/version').json()['version']
    observation = json.loads(gb.cli('run', '--json', '-c', 'print(1); 2').stdout)
    assert set(observation) == set(session.execute('1')) and observation['result']['text/plain'] == '2'
    doctor = json.loads(gb.cli('doctor', '--json', '--quick').stdout)
    assert doctor
    assert json.loads(gb.cli('kill', '--json', name, env=env).stdout) == {'ended': [session.id]}
    missing = gb.cli('kill', '--json', name, env=env)
    assert missing.returncode == 1 and json.loads(missing.stdout) == {'ended': []} and name in missing.stderr


def test_verbs_say_when_no_server_answers():
    for words in (['ps'], ['kill', 'x'], ['logs', 'x']):
        said = gb.cli(*words, '--url', 'http://127.0.0.1:9')
        assert said.returncode == 1 and '127.0.0.1:9' in said.stderr and said.stdout == ''


def test_new_makes_a_session(daemon, api):
    env = gb.clean_env(GLOVEBOX_URL=daemon.url)
    said = gb.cli('new', '--env', 'A=b=c', '--memory', '512M', '--ttl', '90', 'made here', env=env)
    assert said.returncode == 0, said.stderr
    session = api.adopt(api.get(f'/v1/sessions/{said.stdout.strip()}').json())
    assert session.info['name'] == 'made here' and session.info['limits']['memory_bytes'] == 512 << 20 and session.info['ttl_s'] == 90
    assert session.value('__import__("os").environ["A"]') == "'b=c'"
    assert gb.cli('exec', 'made here', '--', 'echo', 'hello', env=env).stdout == 'hello\n'
    whole = json.loads(gb.cli('new', '--json', env=env).stdout)
    assert api.adopt(whole).value('6 * 7') == '42'
    for words, code in ((['--env', 'A'], 1), (['a', 'b'], 2), (['--profile', 'none-such'], 1)):
        refused = gb.cli('new', *words, env=env)
        assert refused.returncode == code and refused.stderr and not refused.stdout


def test_ps_lists_more_than_a_page():
    with gb.running_daemon('--preload', 'none', '--ready', '0') as daemon, daemon.api() as api:
        for _ in range(105):
            api.session()
        assert len(json.loads(gb.cli('ps', '--json', '--url', daemon.url).stdout)) == 105
        assert len(gb.cli('kill', '--all', '--url', daemon.url).stdout.split()) == 105
        assert gb.cli('ps', '--quiet', '--url', daemon.url).stdout == ''
        api.made.clear()


def test_logs_pages_through_all_of_it(daemon, api):
    session = api.session()
    session.execute('for i in range(200_000): print(f"{i:09}€")').ok()
    said = gb.cli('logs', session.id, '--url', daemon.url)
    assert said.stdout == ''.join(f'{i:09}€\n' for i in range(200_000))


# ---- run as python3 ------------------------------------------------------------------------


def same_as_python(tmp_path, code, *args, stdin=None):
    """(exit code, stdout, stderr) under the interpreter and under `glovebox run`."""
    path = tmp_path / 'prog.py'
    path.write_text(code)
    plain = subprocess.run(
        [gb.PYTHON, '-I', '-B', '-u', path, *args], input=stdin, capture_output=True, text=True, timeout=60
    )
    boxed = gb.cli('run', *(['--stdin', '-'] if stdin is not None else []), path, *args, input=stdin)
    return (plain.returncode, plain.stdout), (boxed.returncode, boxed.stdout)


@pytest.mark.parametrize(
    'code',
    [
        'print("hello")',
        'import sys; sys.exit(7)',
        'import sys; sys.exit("text")',
        'raise SystemExit',
        '1/0',
        'import os; os._exit(9)',
        'import sys; print(sys.argv[1:]); print(__name__)',
        'def main():\n  print("main")\nif __name__ == "__main__":\n  main()',
        'x = = 1',
        '5 + 5',
        'import subprocess; print("a"); subprocess.run(["echo", "b"]); print("c")',
        'print("no newline", end="")',
        'import threading\ngo = threading.Event()\ndef later():\n  go.wait(); print("thread done")\nthreading.Thread(target=later).start()\nprint("main done"); go.set()',
        'import atexit; atexit.register(print, "at exit"); print("body")',
        'import asyncio\nasync def main(): print("async")\nasyncio.run(main())',
        'from concurrent.futures import ThreadPoolExecutor\nimport time\nex = ThreadPoolExecutor(1)\n'
        'for i in range(3): ex.submit(lambda i=i: (time.sleep(0.1), print(i)))',
        'import multiprocessing, os\nr, w = os.pipe()\ndef work():\n  os.read(r, 1); print("child", flush=True)\n'
        'multiprocessing.get_context("fork").Process(target=work).start()\nprint("parent", flush=True); os.write(w, b"x")',
        'import os, sys\nif os.fork() == 0: sys.exit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))',
        'import os, sys\nif os.fork() == 0: 1/0\nprint(os.waitstatus_to_exitcode(os.wait()[1]))',
        'import sys, atexit; atexit.register(print, "bye"); sys.exit(4)',
        # exit functions of modules of the template: kept apart, and called when they have something to do
        'import logging.handlers, sys\nm = logging.handlers.MemoryHandler(99, target=logging.StreamHandler(sys.stdout))\n'
        'logging.getLogger().addHandler(m)\nlogging.error("kept until the end")',
        'import weakref\nclass C: pass\nc = C()\nweakref.finalize(c, print, "finalized")',
        'import tempfile, atexit, os\nt = tempfile.TemporaryDirectory()\natexit.register(lambda: print(os.path.exists(t.name)))',
        'import atexit, logging, sys\nclass H(logging.Handler):\n  def close(self): print("closed")\nh = H()\natexit.register(print, "first")',
        'import atexit, logging, sys\nclass H(logging.Handler):\n  def close(self): print("closed")\nh = H()\natexit.unregister(logging.shutdown)',
        'import atexit, logging\nclass H(logging.Handler):\n  def close(self): print("closed")\nh = H()\natexit._clear()',
        'import atexit\nprint(atexit.register is atexit.register, type(atexit.register).__name__, atexit.unregister(print))',
        'import threading, atexit\natexit.register(lambda: print(threading.main_thread().is_alive()))',
        'import sys; sys.stdout.buffer.write("bytes ä\\n".encode())',
        '\ufeffprint("byte order mark")',
    ],
)  # fmt: skip
def test_run_is_as_python(tmp_path, code):
    """Output and exit code; errors are compared elsewhere."""
    plain, boxed = same_as_python(tmp_path, code, 'one', 'two words')
    assert boxed == plain


def test_run_reads_stdin_as_python(tmp_path):
    plain, boxed = same_as_python(
        tmp_path, 'import sys\nprint(input().upper())\nprint(len(sys.stdin.read()))', stdin='abc\n' + 'x' * 1000
    )
    assert boxed == plain


# ---- completion ----------------------------------------------------------------------------


def completions(words, env=None):
    """What bash offers for the last word."""
    script = (
        f'source {gb.ROOT}/completions/glovebox.bash; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
        'if [ "${COMP_WORDS[COMP_CWORD]}" = __EMPTY__ ]; then COMP_WORDS[COMP_CWORD]=; fi; _glovebox; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    said = subprocess.run(
        ['bash', '--norc', '-c', script], capture_output=True, text=True, timeout=gb.PATIENCE, env=env or gb.clean_env()
    )
    assert said.stderr == ''
    return said.stdout.split()


def test_completion_of_verbs_and_flags():
    program = str(gb.PROGRAM)
    assert set(VERBS) <= set(completions([program, '__EMPTY__']))
    assert set(completions([program, 'v'])) == {'version', 'volumes'}
    assert {'--listen', '--token-file', '--timeout'} <= set(completions([program, 'serve', '--']))
    assert set(completions([program, 'run', '--mem'])) == {'--memory'}
    assert 'debug' in completions([program, 'serve', '--log-level', '__EMPTY__'])


def test_completion_of_sessions(daemon, api):
    session = api.session()
    env = gb.clean_env(GLOVEBOX_URL=daemon.url)
    assert session.id in completions([str(gb.PROGRAM), 'kill', '__EMPTY__'], env=env)
    assert session.id in completions([str(gb.PROGRAM), 'logs', session.id[:6]], env=env)
    assert (
        completions([str(gb.PROGRAM), 'kill', '__EMPTY__'], env=gb.clean_env(GLOVEBOX_URL='http://127.0.0.1:9')) == []
    )
