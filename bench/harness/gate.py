"""The regression gate: ratios that were accepted, and whether a run lost against them by more than noise."""

import json

from harness.daemon import ROOT

PATH = ROOT / 'bench' / 'ratios.json'
SLACK = 1.15  # two runs on one machine differ by this much and more without any change
LARGER_IS_BETTER = 'MB/s', '1/s'


def ratios(sections):
    """name → (median, low, high, unit) of every ratio of a run that the noise did not hide."""
    found = {}
    for section in sections:
        for row in section.rows:
            ratio = row.ratio
            if ratio is not None and ratio.certain:
                name = f'{section.name}: {row.name} against {row.against.name}'
                found[name] = {
                    'ratio': round(ratio.value, 5), 'low': round(ratio.low, 5), 'high': round(ratio.high, 5),
                    'unit': row.unit,
                }  # fmt: skip
    return found


def accept(sections):
    """Takes the run's ratios as those to keep; parts that were not run keep theirs."""
    kept = json.loads(PATH.read_text()) if PATH.exists() else {}
    ran = tuple(f'{section.name}: ' for section in sections)
    kept = {name: value for name, value in kept.items() if not name.startswith(ran)}
    kept.update(ratios(sections))
    PATH.write_text(json.dumps(dict(sorted(kept.items())), ensure_ascii=False, indent=1) + '\n')


def losses(sections):
    """What got worse: a sentence each."""
    if not PATH.exists():
        raise SystemExit(f'there is no {PATH.relative_to(ROOT)}: `bench/run --accept` writes it')
    kept, lost = json.loads(PATH.read_text()), []
    for name, now in ratios(sections).items():
        before = kept.get(name)
        if before is None:
            continue
        if now['unit'] in LARGER_IS_BETTER:
            worse = now['high'] * SLACK < before['low']
        else:
            worse = now['low'] > before['high'] * SLACK
        if worse:
            lost.append(f'{name}: {now["ratio"]:.4g} now ({now["low"]:.4g} to {now["high"]:.4g}), '
                        f'accepted {before["ratio"]:.4g} ({before["low"]:.4g} to {before["high"]:.4g})')  # fmt: skip
    return lost
