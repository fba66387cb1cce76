"""Every example, as a user would run it."""

import subprocess

import gb
import package_index
import pytest

EXAMPLES = gb.ROOT / 'examples'


def run(daemon, name, *args):
    env = gb.clean_env(GLOVEBOX_URL=daemon.url, PYTHONPATH=gb.ROOT / 'clients/python/src', PYTHONDONTWRITEBYTECODE='1')
    command = [gb.PYTHON, EXAMPLES / name, *args]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=gb.PATIENCE * 2, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_local_coding_env(daemon):
    lines = run(daemon, 'local_coding_env.py').splitlines()
    assert lines[0] == 'reset: 0' and 'Result: 8' in lines[1] and '2.828' in lines[2]
    assert lines[3].startswith('exit code 1') and 'this is kept' in lines[3] and 'undefined_variable' in lines[3]
    assert '[0, 1, 4, 9, 16]' in lines[4] and lines[5] == 'steps: 4 last exit code: 0'


def test_codeact_loop(daemon):
    said = run(daemon, 'codeact_loop.py')
    assert "step 1: line 5: KeyError: 'ada'" in said
    assert said.endswith("final answer: {'customer': 'ada', 'spent': 165}\n")


def test_tools(daemon):
    assert run(daemon, 'tools.py') == (
        "{'item': 'bolt', 'left': 100}\nmissing: 'no item called gear'\nHow many of an item there are.\nhere: {'bolt': 100, 'nut': 80}\n"
    )


def test_stdlib_filter(daemon):
    lines = run(daemon, 'stdlib_filter.py').splitlines()
    assert lines[:4] == ['part of Python: dataclasses, http, json', 'corrected: dataclass is dataclasses', 'corrected: httplib is http.client', 'installed: 0']
    assert lines[4] == 'allowed by the profile: ok: 3' and lines[5] == 'added by us: ok: {"a": 1}'
    assert 'Import of os is not allowed' in lines[6] and 'Import of subprocess is not allowed' in lines[7]


def test_backends(daemon, tmp_path):
    lines = run(daemon, 'backends.py', tmp_path).splitlines()
    for backend in ('smolagents', 'restrictedpython'):
        said = [line.partition(': ')[2] for line in lines if line.startswith(f'{backend}: ')]
        assert said[0] == 'prints: 0: total 45' and said[1].startswith('raises: 1: ') and 'ZeroDivisionError' in said[1] and said[2] == 'dataclass: 0: Ball(x=5, dx=2)'
        assert said[3] == 'remembers: 0: 46 Ball(x=1, dx=2)' and said[4] == 'imports math: 0: 6'
        assert 'Import of os is not allowed' in said[5] and 'ZeroDivisionError: division by zero' in said[6]
        from PIL import Image

        for what, colour in (('tkinter', (255, 215, 0)), ('matplotlib', (255, 0, 0))):
            picture = Image.open(tmp_path / f'{backend}-{what}.png').convert('RGB')
            assert colour in {c for _, c in picture.getcolors(1 << 24)}, f'{backend}: {what}'


def test_screenshot_capture(daemon, tmp_path):
    said = run(daemon, 'screenshot_capture.py', tmp_path / 'shot.png')
    assert said.splitlines()[0] == 'the loop returned' and 'png, settled: True' in said
    from PIL import Image

    picture = Image.open(tmp_path / 'shot.png').convert('RGB')
    assert (255, 243, 176) in {colour for _, colour in picture.getcolors(1 << 24)}


def test_ball_animation(daemon, tmp_path):
    lines = run(daemon, 'ball_animation.py', tmp_path).splitlines()
    assert len(lines) == 4 and lines[0].startswith('1 Ball(x=145')
    from PIL import Image

    frames = [Image.open(tmp_path / f'ball-{n}.png').convert('RGB') for n in range(1, 5)]
    assert len({f.tobytes() for f in frames}) == 4, 'it moves'
    assert all((255, 0, 0) in {c for _, c in f.getcolors(1 << 24)} for f in frames)


def test_dynamic_install():
    with package_index.Index() as index, gb.running_daemon('--preload', 'json', '--ready', '1', '--packages-index', index.url) as daemon:
        lines = run(daemon, 'dynamic_install.py', 'gbpure').splitlines()
    assert lines[0] == 'part of Python: json' and lines[1] == 'installed: gbpure' and lines[3] == 'gbpure imported'
    for profile in ('smolagents', 'restrictedpython'):
        assert f"{profile}: corrected [{{'from': 'dataclass', 'to': 'dataclasses'}}]" in lines
        assert f'{profile}: failed: no_such_module_at_all' in lines and f'{profile}: gbpure imported; os: refused' in lines


def test_every_example_is_run_here():
    tested = open(__file__).read()
    for path in EXAMPLES.glob('*.py'):
        assert f"'{path.name}'" in tested, f'{path.name} has no test'


@pytest.fixture(scope='module', autouse=True)
def no_leftovers():
    yield
    assert not list(EXAMPLES.glob('*.png'))


def test_time_travel(daemon, tmp_path):
    said = run(daemon, 'time_travel.py', tmp_path / 'plot.png', '2')
    assert said.startswith('best of 8, 2 steps: error ') and (tmp_path / 'plot.png').read_bytes().startswith(b'\x89PNG')


def test_grpo_code_rewards(daemon):
    lines = run(daemon, 'grpo_code_rewards.py').splitlines()
    assert lines[:2] == [f'step {i}: rewards [1.0, 0.0, 0.0, 0.0]' for i in range(2)]
    assert lines[2:] == ['verl: 1.0', 'most likely: print(sum(map(int, input().split())))']
