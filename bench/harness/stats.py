"""Samples and what is said of them."""

import random
import statistics

RESAMPLES = 400


def spread(values):
    """Medians that other runs of the same kind would give: drawn from these samples, sorted."""
    draw = random.Random(len(values))  # the same samples are judged the same way each time
    n = min(len(values), 500)
    return sorted(statistics.median(draw.choices(values, k=n)) for _ in range(RESAMPLES))


class Ratio:
    """One row's median against another's, with the range in which 95 of 100 such runs would find it."""

    def __init__(self, mine, theirs):
        self.value = statistics.median(mine) / statistics.median(theirs)
        # The two series are unrelated, so any resample of one may meet any of the other.
        ours, others = spread(mine), spread(theirs)
        random.Random(RESAMPLES).shuffle(others)
        drawn = sorted(a / b for a, b in zip(ours, others) if b)
        self.low, self.high = percentile(drawn, 2.5), percentile(drawn, 97.5)

    @property
    def certain(self):
        """Whether the difference is larger than the noise."""
        return not self.low <= 1 <= self.high


def percentile(values, p):
    """The smallest value that p percent of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -(-len(ordered) * p // 100)
    return ordered[max(int(rank), 1) - 1]


class Row:
    """One line of a table: samples of one thing, and how many attempts failed. Units: 'ms', 'µs', 'MB', 'MB/s', …"""

    def __init__(self, name, unit, against=None):
        self.name, self.unit, self.against = name, unit, against
        self.samples, self.failures = [], []

    def add(self, value):
        self.samples.append(value)

    def attempt(self, measure, *args):
        """Adds what measure() returns, or notes its failure. Returns the value or None."""
        try:
            value = measure(*args)
        except Exception as e:
            self.failures.append(f'{type(e).__name__}: {e}'[:300])
            return None
        self.add(value)
        return value

    @property
    def attempts(self):
        return len(self.samples) + len(self.failures)

    @property
    def median(self):
        return statistics.median(self.samples)

    @property
    def best(self):
        return min(self.samples)

    def p(self, percent):
        return percentile(self.samples, percent)

    @property
    def ratio(self):
        """Against the row it is compared with; None when there is nothing to compare, or too little."""
        if self.against is None or len(self.samples) < 2 or len(self.against.samples) < 2:
            return None
        return Ratio(self.samples, self.against.samples)

    def summary(self):
        facts = {'name': self.name, 'unit': self.unit, 'attempts': self.attempts, 'failures': self.failures}
        if self.samples:
            facts.update(
                min=self.best, median=self.median, p95=self.p(95), p99=self.p(99), max=max(self.samples)
            )
            if ratio := self.ratio:
                facts['against'] = self.against.name
                facts['ratio'] = {
                    'median': ratio.value, 'low': ratio.low, 'high': ratio.high, 'certain': ratio.certain
                }  # fmt: skip
        facts['samples'] = [round(s, 6) for s in self.samples]
        return facts


class Target:
    """A figure to be reached: `measured` must be at most (or, with at_least, at least) `limit`."""

    def __init__(self, text, measured, limit, unit, at_least=False):
        self.text, self.measured, self.limit, self.unit, self.at_least = text, measured, limit, unit, at_least

    @property
    def met(self):
        if self.measured is None:
            return False
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def summary(self):
        return {
            'text': self.text,
            'measured': self.measured,
            'limit': self.limit,
            'unit': self.unit,
            'at_least': self.at_least,
            'met': self.met,
        }


class Curve:
    """A cost against something that grows: lines of (x, y), drawn as a picture and kept as figures."""

    def __init__(self, name, title, along, unit):
        self.name, self.title, self.along, self.unit = name, title, along, unit
        self.lines = {}

    def point(self, line, x, y):
        self.lines.setdefault(line, []).append((x, y))

    def summary(self):
        return {'name': self.name, 'title': self.title, 'along': self.along, 'unit': self.unit, 'lines': self.lines}


class Section:
    """One part's outcome: rows, curves, remarks and targets."""

    def __init__(self, name, title, remark=''):
        self.name, self.title, self.remark = name, title, remark
        self.rows, self.curves, self.facts, self.targets = [], [], [], []
        self.load = self.seconds = self.trouble = None

    def row(self, name, unit, against=None):
        row = Row(name, unit, against)
        self.rows.append(row)
        return row

    def curve(self, *args):
        self.curves.append(Curve(*args))
        return self.curves[-1]

    def fact(self, text):
        self.facts.append(text)

    def target(self, *args, **kwargs):
        self.targets.append(Target(*args, **kwargs))

    def summary(self):
        return {
            'name': self.name,
            'title': self.title,
            'remark': self.remark,
            'load_average': self.load,
            'seconds': self.seconds,
            'trouble': self.trouble,
            'rows': [row.summary() for row in self.rows],
            'curves': [curve.summary() for curve in self.curves],
            'facts': self.facts,
            'targets': [target.summary() for target in self.targets],
        }
