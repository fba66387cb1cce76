"""What the measurements make of their samples, and that the verb measures this program."""
import json
import random
import subprocess
import sys

import pytest

import gb

sys.path.insert(0, str(gb.ROOT / 'bench'))

from harness import gate, soak  # noqa: E402
from harness.stats import Row, Section, percentile  # noqa: E402


def rows(*series, unit='ms'):
    """A section with a row for each series, all compared with the first."""
    section = Section('part', 'A part')
    for i, samples in enumerate(series):
        row = section.row(f'row {i}', unit, section.rows[0] if section.rows else None)
        row.samples = list(samples)
    return section


def noisy(middle, spread, n=100, seed=1):
    draw = random.Random(seed)
    return [middle + draw.uniform(-spread, spread) for _ in range(n)]


def test_percentiles_are_nearest_rank():
    values = list(range(1, 101))
    assert [percentile(values, p) for p in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert percentile([7], 99) == 7


def test_a_ratio_is_told_only_when_it_is_larger_than_the_noise():
    section = rows(noisy(10, 1), noisy(20, 1, seed=2), noisy(10.05, 3, seed=3))
    assert section.rows[1].ratio.certain and 1.9 < section.rows[1].ratio.value < 2.1
    assert not section.rows[2].ratio.certain
    assert section.rows[0].ratio is None
    assert Row('alone', 'ms').ratio is None


def test_failures_are_counted():
    row = Row('a row', 'ms')
    assert row.attempt(lambda: 3) == 3
    assert row.attempt(lambda: 1 / 0) is None
    assert (row.attempts, len(row.failures)) == (2, 1)


def test_the_gate_sees_a_loss_and_no_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, 'PATH', tmp_path / 'ratios.json')
    gate.accept([rows(noisy(10, 1), noisy(20, 1, seed=2))])
    assert gate.losses([rows(noisy(11, 1), noisy(22, 1, seed=4))]) == []
    lost = gate.losses([rows(noisy(10, 1), noisy(30, 1, seed=2))])
    assert len(lost) == 1 and 'part: row 1 against row 0' in lost[0]
    # more is better here
    gate.accept([rows(noisy(10, 1), noisy(20, 1, seed=2), unit='MB/s')])
    assert gate.losses([rows(noisy(10, 1), noisy(30, 1, seed=2), unit='MB/s')]) == []
    assert gate.losses([rows(noisy(10, 1), noisy(12, 1, seed=2), unit='MB/s')])


@pytest.mark.parametrize('name', [*soak.GOOD, *soak.HOSTILE])
def test_cells_of_the_soak_end_as_it_expects(api, name):
    cell = (soak.GOOD | soak.HOSTILE)[name]
    session = api.session(limits=soak.LIMITS)
    for again in range(1 if cell.last else 2):
        seen = session.execute(**cell.request())
        assert seen.status in cell.right, (again, seen)
    if not cell.last:
        session.execute(**soak.GOOD['pandas'].request()).ok()


def test_cpu_time_counts_children_that_have_ended():
    """In a process of its own: below this one are daemons, whose processes end when they like."""
    busy = 'import time\nwhile time.process_time() < 0.3: pass'
    code = (
        f'import os, subprocess, sys\nsys.path.insert(0, {str(gb.ROOT / "bench")!r})\nfrom harness import cpu\n'
        f'before = cpu.below(os.getpid())\nsubprocess.run([sys.executable, "-c", {busy!r}], check=True)\n'
        'spent = cpu.below(os.getpid()) - before\nprint(spent.ms, spent.faults)'
    )
    ms, faults = subprocess.run([sys.executable, '-c', code], check=True, capture_output=True, text=True).stdout.split()
    assert float(ms) >= 250 and int(faults) > 100


@pytest.mark.parametrize('kind', ('run', 'episode'))
def test_the_load_client_counts_answers(api, kind):
    load = [gb.PROGRAM.parent / 'bench-load', api.url.rpartition(':')[2], '2', '6', kind, 'print(6*7)']
    done = subprocess.run([*load, '42'], capture_output=True, text=True, timeout=gb.PATIENCE)
    assert done.stdout.split()[:2] == ['6', '0'], done.stderr


def test_the_load_client_counts_failures(api):
    load = [gb.PROGRAM.parent / 'bench-load', api.url.rpartition(':')[2], '2', '6', 'run', 'print(6*7)']
    done = subprocess.run([*load, 'no such text'], capture_output=True, text=True, timeout=gb.PATIENCE)
    assert done.stdout.split()[:2] == ['0', '6'] and done.returncode == 1


def test_the_soak_names_what_grew():
    before = {'processes': 14, 'daemon MB': 10.0}
    assert soak.leaks(before, {'processes': 14, 'daemon MB': 11.0}) == []
    assert soak.leaks(before, {'processes': 15, 'daemon MB': 40.0}) == ['processes', 'daemon MB']


def test_the_verb_measures_this_program(tmp_path):
    done = subprocess.run(
        [gb.PROGRAM, 'bench', '--quick', '--json', 'steps'], capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL, env={'PATH': '/usr/bin:/bin', 'HOME': str(tmp_path), 'GLOVEBOX_BENCH_RESULTS': str(tmp_path / 'results')},
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts['sections'][0]['name'] == 'steps'
    assert all(row['samples'] and not row['failures'] for row in facts['sections'][0]['rows'])
    assert list((tmp_path / 'results').glob('*/steps.svg'))


@pytest.mark.parametrize('words', (['nosuchpart'], ['--nosuchflag']))
def test_the_verb_refuses_what_it_does_not_know(words):
    done = subprocess.run([gb.PROGRAM, 'bench', *words], capture_output=True, text=True, timeout=gb.PATIENCE)
    assert done.returncode == 2 and 'nosuch' in done.stderr
