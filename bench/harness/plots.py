"""Pictures of a run, as SVG: how latencies are spread, what a thing costs as something grows."""

import os

os.environ.setdefault('MPLBACKEND', 'Agg')

MOST_LINES = 12


def _figure(title, unit):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout='constrained')
    axes = figure.add_subplot()
    axes.set_title(title, loc='left', fontsize=11)
    axes.set_xlabel(unit)
    axes.grid(alpha=0.3)
    axes.spines[['top', 'right']].set_visible(False)
    return figure, axes


def spread(section, unit, rows, path):
    """The share of samples that were at most so large, one line for each row; the axis is logarithmic."""
    figure, axes = _figure(section.title, f'{unit} (logarithmic)')
    for row in rows[:MOST_LINES]:
        values = sorted(row.samples)
        axes.step(
            values, [(i + 1) / len(values) * 100 for i in range(len(values))], where='post', label=row.name
        )
    axes.set_xscale('log')
    axes.set_ylabel('percent of the samples')
    axes.legend(fontsize=8, frameon=False, loc='center left', bbox_to_anchor=(1, 0.5))
    figure.savefig(path)


def growth(curve, path):
    """A cost against what grows; both axes logarithmic when they span more than a decade."""
    figure, axes = _figure(curve.title, curve.along)
    for name, points in curve.lines.items():
        axes.plot([x for x, _ in points], [y for _, y in points], marker='o', label=name)
    xs = [x for points in curve.lines.values() for x, _ in points]
    axes.set_xscale('symlog' if min(xs) == 0 else 'log')
    axes.set_ylim(bottom=0)
    axes.set_ylabel(curve.unit)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(path)


def draw(sections, folder):
    """All pictures of a run. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for section in sections:
        by_unit = {}
        for row in section.rows:
            if len(row.samples) >= 5 and row.unit in ('ms', 'µs'):
                by_unit.setdefault(row.unit, []).append(row)
        for unit, rows in by_unit.items():
            name = section.name + ('' if len(by_unit) == 1 else '-' + unit.replace('µ', 'u'))
            spread(section, unit, rows, folder / f'{name}.svg')
            paths.append(folder / f'{name}.svg')
        for curve in section.curves:
            growth(curve, folder / f'{section.name}-{curve.name}.svg')
            paths.append(folder / f'{section.name}-{curve.name}.svg')
    return paths
