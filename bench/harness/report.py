"""The report: Markdown for people, JSON for programs."""

from harness.stats import Row


def number(value):
    """Three digits that matter."""
    if value is None:
        return '–'
    if abs(value) >= 100:
        return f'{value:,.0f}'
    if abs(value) >= 10:
        return f'{value:.1f}'
    if abs(value) >= 1:
        return f'{value:.2f}'
    return f'{value:.3g}'


def table(head, lines):
    yield '| ' + ' | '.join(head) + ' |'
    yield '|' + '|'.join(['---'] + ['---:'] * (len(head) - 1)) + '|'
    for line in lines:
        yield '| ' + ' | '.join(line) + ' |'


def _row(row: Row):
    succeeded = f'{len(row.samples)}/{row.attempts}'
    if not row.samples:
        return [f'{row.name} ({row.unit})', '–', '–', '–', '–', succeeded, '–']
    values = [number(v) for v in (row.median, row.p(95), row.p(99), row.best)]
    return [f'{row.name} ({row.unit})', *values, succeeded, _ratio(row)]


def _ratio(row):
    """No figure where the noise is larger than the difference: another run might say the opposite."""
    ratio = row.ratio
    if ratio is None:
        return ''
    if not ratio.certain:
        return f'not told apart from {row.against.name}'
    return f'{number(ratio.value)} × {row.against.name}'


def _curve(curve):
    """The points of a picture as a table: a column for each place along the way."""
    places = sorted({x for points in curve.lines.values() for x, _ in points})
    yield f'{curve.title} ({curve.unit})'
    yield ''
    yield from table(
        [curve.along, *(f'{x:,}' for x in places)],
        [
            [name, *(number(dict(points).get(x)) for x in places)]
            for name, points in curve.lines.items()
        ],
    )
    yield ''


def section_lines(section):
    yield f'### {section.title}'
    if section.remark:
        yield section.remark
    yield ''
    if not section.rows:
        return
    yield from table(
        ['', 'median', 'p95', 'p99', 'min', 'succeeded', 'median against'], map(_row, section.rows)
    )
    yield ''
    for curve in section.curves:
        yield from _curve(curve)
    for fact in section.facts:
        yield f'- {fact}'
    failures = [f for row in section.rows for f in row.failures]
    for text in list(dict.fromkeys(failures))[:3]:
        yield f'- a failure: {text}'
    if section.load is not None:
        yield f'- it took {section.seconds:.0f} s; load average when it ended: {section.load:.1f}'
    yield ''


def _target(target):
    sign = '≥' if target.at_least else '≤'
    measured = f'{number(target.measured)} {target.unit}'.strip()
    wanted = f'{sign} {number(target.limit)} {target.unit}'.strip()
    return [target.text, wanted, measured, 'yes' if target.met else '**no**']


def machine_lines(machine):
    modules = ', '.join(f'{name} {version}' for name, version in machine['modules'].items())
    yield f'{machine["processor"]}, {machine["cpus"]} CPUs, {machine["memory_gb"]} GB; {machine["system"]},'
    yield f'Linux {machine["kernel"]}, huge pages {machine["huge_pages"]};'
    yield f'load average {machine["load_average"]:.1f} before the start.'
    yield f'{machine["glovebox"]} (commit {machine["commit"]}), {machine["python"]}, {modules}.'
    yield ''


def target_lines(sections):
    targets = [target for section in sections for target in section.targets]
    yield '### Targets'
    yield ''
    yield from table(['', 'wanted', 'measured', 'met'], map(_target, targets))
    yield ''
