"""Data frames as columns, matplotlib figures as the numbers they were drawn from. Made only for cells that ask for it
(`data_forms`). Everything is read from objects of the session, so nothing here is trusted: no import, a budget of values,
and an object that does not look as expected gives no data."""

import re
from datetime import date
from math import isfinite

_TABLE = 'application/vnd.glovebox.table+json'
_CHART = 'application/vnd.glovebox.chart+json'
_UNIT = re.compile(r'\s\((.*?)\)|\[(.*?)\]')  # "time (s)", "length [m]"


def _data_of(value):
    """(mime, data) of a data frame or a figure, or None."""
    try:
        if _is_a(value, 'pandas.core.frame', 'DataFrame'):
            return _TABLE, _table(value, _Budget())
        if _is_figure(value):
            return _CHART, _chart_of_figure(value, _Budget())
    except Exception:
        pass  # too much of it, or it is not what it seems to be
    return None


class _Budget:
    """How many values may still be read; more raise an exception."""

    def __init__(self):
        self.left = MAX_DATA_VALUES

    def take(self, count):
        self.left -= count
        if self.left < 0:
            raise ValueError(f'more than {MAX_DATA_VALUES:,} values')


def _is_a(value, module, *names):
    kinds = [getattr(sys.modules.get(module), name, None) for name in names]
    return issubclass(type(value), tuple(kind for kind in kinds if isinstance(kind, type)))


def _simple(value):
    """A number, a text, a bool or None: what JSON has. NaN and infinities are None."""
    if type(value).__module__ == 'numpy' and hasattr(value, 'item'):
        value = _iso_of_numpy(value) if value.dtype.kind == 'M' else value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -_MAX_INT <= value < _MAX_INT else float(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, date):
        return None if value != value else value.isoformat()
    return None if value is getattr(sys.modules.get('pandas'), 'NA', None) else _fit(str(value), 1000)


def _iso_of_numpy(value):
    text = str(value.astype('datetime64[s]'))
    return None if text == 'NaT' else text


def _table(frame, budget):
    rows, columns = frame.shape
    budget.take(rows * columns)
    names = [_exact(str(name)) for name in frame.columns]
    return {name: [_simple(v) for v in frame.iloc[:, i].tolist()] for i, name in enumerate(names)}


# ---- figures -----------------------------------------------------------


def _chart_of_figure(figure, budget):
    axes = [ax for ax in figure.axes if ax.get_label() != '<colorbar>']
    if not axes:
        return None
    budget.take(len(axes))
    if len(axes) == 1:
        return _chart_of_axes(axes[0], budget)
    heading = figure._suptitle.get_text() if figure._suptitle is not None else None
    return {'type': 'superchart', 'title': heading or None, 'elements': [_chart_of_axes(ax, budget) for ax in axes]}


def _chart_of_axes(ax, budget):
    drawn = [a for a in ax.get_children() if a in ax._children and not _is_a(a, 'matplotlib.text', 'Text', 'Annotation')]
    budget.take(len(drawn))
    boxes = _boxes(ax, drawn, budget)
    if boxes is not None:
        return boxes
    lines = [a for a in drawn if _is_a(a, 'matplotlib.lines', 'Line2D')]
    if len(lines) == len(drawn):
        return _points_chart(ax, 'line', [_line(line, i, budget) for i, line in enumerate(lines) if not _is_ruler(ax, line)])
    shown = [a for a in drawn if not (a in lines and _is_ruler(ax, a))]
    if all(_is_a(a, 'matplotlib.collections', 'PathCollection') for a in shown):
        return _points_chart(ax, 'scatter', [_scatter(ax, a, budget) for a in shown])
    if all(_is_a(a, 'matplotlib.patches', 'Wedge') for a in shown):
        return {'type': 'pie', 'title': ax.get_title() or None, 'elements': [_wedge(a) for a in shown]}
    if all(_is_a(a, 'matplotlib.patches', 'Rectangle') for a in shown) and ax.containers:
        return _bars(ax, budget)
    return {'type': 'unknown', 'title': ax.get_title() or None, 'elements': []}


def _is_ruler(ax, line):
    """A line across the whole axes (axhline, axvline): it shows a value and is no data. Such a line has the very transform
    of its axes. Transforms are not compared by value: before the axes have a scale, those of all lines are equal."""
    return any(line.get_transform() is t for t in (ax.get_xaxis_transform('grid'), ax.get_yaxis_transform('grid')))


def _plane(ax, kind, swapped=False):
    """What every chart with two axes says. Those of horizontal bars and boxes are told as if they stood upright."""
    labels = [ax.get_xlabel() or None, ax.get_ylabel() or None]
    units = [next((g for g in found.groups() if g), None) if found else None for found in (_UNIT.search(t or '') for t in labels)]
    x, y = (1, 0) if swapped else (0, 1)
    return {
        'type': kind,
        'title': ax.get_title() or None,
        'x_label': labels[x],
        'y_label': labels[y],
        'x_unit': units[x],
        'y_unit': units[y],
    }


def _points_chart(ax, kind, elements):
    chart = _plane(ax, kind)
    for name, axis in (('x', ax.xaxis), ('y', ax.yaxis)):
        labels = [text.get_text() for text in axis.get_majorticklabels()]
        chart[f'{name}_ticks'] = [_on_axis(axis, tick, None) for tick in axis.get_majorticklocs()]
        chart[f'{name}_tick_labels'] = labels
        chart[f'{name}_scale'] = _scale(axis)
    return {**chart, 'elements': elements}


def _converter(axis):
    return axis.get_converter() if hasattr(axis, 'get_converter') else axis.converter


def _is_dates(axis):
    names = ('DateConverter', '_SwitchableDateConverter')
    return _is_a(_converter(axis), 'matplotlib.dates', *names)


def _scale(axis):
    if _is_dates(axis):
        return 'datetime'
    if _is_a(_converter(axis), 'matplotlib.category', 'StrCategoryConverter'):
        return 'categorical'
    return axis.get_scale()


def _on_axis(axis, number, categories):
    """A number as the axis means it: a date, one of its categories, or itself."""
    if _is_dates(axis):
        return sys.modules['matplotlib.dates'].num2date(number).isoformat()
    return categories.get(number, _simple(number)) if categories else _simple(number)


def _categories(axis):
    mapping = getattr(axis.units, '_mapping', None) if _scale(axis) == 'categorical' else None
    return {float(number): name for name, number in (mapping or {}).items()}


def _line(line, number, budget):
    xs, ys = line.get_xdata(orig=True), line.get_ydata(orig=True)
    budget.take(2 * len(xs))
    label = _exact(str(line.get_label()))
    if label.startswith('_child'):
        label = f'Line {label[6:]}'
    return {'label': label, 'points': [[_simple(x), _simple(y)] for x, y in zip(xs, ys)]}


def _scatter(ax, collection, budget):
    offsets = collection.get_offsets()
    budget.take(2 * len(offsets))
    x_names, y_names = _categories(ax.xaxis), _categories(ax.yaxis)
    points = [[_on_axis(ax.xaxis, x, x_names), _on_axis(ax.yaxis, y, y_names)] for x, y in offsets.tolist()]
    return {'label': _exact(str(collection.get_label())), 'points': points}


def _wedge(wedge):
    return {
        'label': _exact(str(wedge.get_label())),
        'angle': _rounded(abs(wedge.theta2 - wedge.theta1)),
        'radius': _simple(wedge.r),
    }


def _rounded(number):
    """Without the last digits, in which the arithmetic of floats errs."""
    return float(f'{float(number):.5g}') if isfinite(number) else None


# ---- bars and boxes ----------------------------------------------------


def _bars(ax, budget):
    elements, swapped = [], False
    for container in ax.containers:
        patches = container.patches
        budget.take(len(patches))
        swapped = getattr(container, 'orientation', 'vertical') == 'horizontal'
        axis = ax.yaxis if swapped else ax.xaxis
        group = _exact(str(container.get_label()))
        if group.startswith('_container'):
            group = f'Group {group[10:]}'
        middles = [p.get_y() + p.get_height() / 2 if swapped else p.get_x() + p.get_width() / 2 for p in patches]
        for patch, label in zip(patches, _labels_at(axis, middles)):
            value = patch.get_width() if swapped else patch.get_height()
            elements.append({'label': label, 'group': group, 'value': _simple(value)})
    return {**_plane(ax, 'bar', swapped), 'elements': elements}


def _labels_at(axis, middles):
    """The label of the tick in the middle of each bar. Bars that stand beside their ticks have them in order."""
    ticks = [float(tick) for tick in axis.get_majorticklocs()]
    labels = [text.get_text() for text in axis.get_majorticklabels()]
    at = {round(tick, 9): label for tick, label in zip(ticks, labels)}
    if all(at.get(round(m, 9)) for m in middles):
        return [at[round(m, 9)] for m in middles]
    if len(labels) == len(middles) and all(labels):
        return labels
    return [str(_on_axis(axis, _rounded(m), None)) for m in middles]


def _boxes(ax, drawn, budget):
    """A chart of boxes, upright or lying; None when this is none."""
    shapes = []
    for a in drawn:
        if _is_a(a, 'matplotlib.patches', 'PathPatch'):
            shapes.append((a, a.get_path().vertices.tolist()))
        elif _is_a(a, 'matplotlib.lines', 'Line2D'):
            budget.take(2 * len(a.get_xdata(orig=False)))
            shapes.append((a, list(zip(a.get_xdata(orig=False).tolist(), a.get_ydata(orig=False).tolist()))))
        else:
            return None
    for lying in (False, True):
        elements = _complete_boxes(ax.yaxis if lying else ax.xaxis, _turned(shapes) if lying else shapes)
        if elements:
            return {**_plane(ax, 'box_and_whisker', lying), 'elements': elements}
    return None


def _turned(shapes):
    return [(artist, [(y, x) for x, y in points]) for artist, points in shapes]


def _complete_boxes(axis, shapes):
    boxes = [_Box(points) for artist, points in shapes if len(points) >= 5 and _is_closed(artist, points)]
    if not 0 < len(boxes) <= MAX_BOXES:
        return None
    for artist, points in shapes:
        box = next((b for b in boxes if points and b.left <= points[0][0] <= b.right), None)
        if box is not None:
            box.add(artist, points)
    if any(None in (b.median, b.low, b.high) for b in boxes):
        return None
    labels = _labels_at(axis, [(b.left + b.right) / 2 for b in boxes])
    return [b.element(label) for b, label in zip(boxes, labels)]


def _is_closed(artist, points):
    return points[0] == points[-1] or _is_a(artist, 'matplotlib.patches', 'PathPatch')


class _Box:
    def __init__(self, points):
        if points[-1] == (0.0, 0.0) or points[-1] == [0.0, 0.0]:
            points = points[:-1]  # of a patch: the point of CLOSEPOLY means nothing
        xs, ys = [x for x, _ in points], [y for _, y in points]
        self.left, self.right, self.bottom, self.top = min(xs), max(xs), min(ys), max(ys)
        self.median = self.low = self.high = None
        self.width = 0  # of the line that is the median
        self.outliers = []

    def add(self, artist, points):
        """A line that belongs to this box: the median, a whisker, a cap, or outliers."""
        ys = [y for _, y in points]
        if len(points) == 2 and artist.get_linestyle() != 'None' and points[0] != points[1]:
            if ys[0] == ys[1] and self.bottom <= ys[0] <= self.top and points[0][0] != points[1][0]:
                # a cap is at the edge of the box when its whisker has no length; the median is wider
                width = abs(points[0][0] - points[1][0])
                self.median, self.width = (ys[0], width) if width > self.width else (self.median, self.width)
            elif points[0][0] == points[1][0] and max(ys) == self.bottom:
                self.low = min(ys)
            elif points[0][0] == points[1][0] and min(ys) == self.top:
                self.high = max(ys)
        elif len(points) == 2 and points[0] == points[1]:  # a whisker without length
            self.low = ys[0] if ys[0] == self.bottom else self.low
            self.high = ys[0] if ys[0] == self.top else self.high
        elif _is_a(artist, 'matplotlib.lines', 'Line2D') and artist.get_linestyle() == 'None':
            self.outliers += [_rounded(y) for y in ys]

    def element(self, label):
        return {
            'label': label,
            'min': _rounded(self.low),
            'first_quartile': _rounded(self.bottom),
            'median': _rounded(self.median),
            'third_quartile': _rounded(self.top),
            'max': _rounded(self.high),
            'outliers': self.outliers,
        }
