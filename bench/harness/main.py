"""Runs the parts that are asked for, prints the report and keeps it."""

import argparse
import json
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from harness import gate, machine, plots, report, soak
from harness.daemon import ROOT, build_dir
from harness.stats import Section
from parts import ALONE, PARTS

# An installed program keeps its results where its user may write.
RESULTS = Path(os.environ.get('GLOVEBOX_BENCH_RESULTS', ROOT / 'bench' / 'results'))


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog='bench/run',
        description='Measures Glovebox beside what people would use instead. Prints a report in Markdown and keeps it, with '
        'all samples and pictures, in bench/results/. The program is taken from build/, or from the folder in '
        'GLOVEBOX_BUILD.',
        epilog='parts: '
        + '; '.join(f'{name}: {part.__doc__.splitlines()[0]}' for name, part in PARTS.items()),
    )
    parser.add_argument('parts', nargs='*', metavar='PART', help='only these parts (default: all)')
    parser.add_argument('--quick', action='store_true', help='a fifth of the samples: for trying things out')
    parser.add_argument('--json', action='store_true', help='print JSON instead of Markdown')
    parser.add_argument('--check', action='store_true', help='end with exit code 1 when a target is missed')
    parser.add_argument('--alone', action='store_true', help='only the parts that compare with nothing else installed')
    parser.add_argument('--explain', action='store_true', help='only where the time of a start and of a cell goes')
    parser.add_argument('--soak', metavar='MINUTES', type=float, help='instead: good and hostile cells for so long, then look for leaks')
    parser.add_argument('--accept', action='store_true', help='take the ratios of this run as those to keep (bench/ratios.json)')
    parser.add_argument('--gate', action='store_true', help='end with exit code 1 when a ratio got worse than the accepted one')
    parser.add_argument('--docs', metavar='FILE', help='put the report into FILE too, between its two marks, and pictures into img/bench beside it')
    arguments = parser.parse_args()
    if arguments.explain:
        arguments.parts = ['explain']
    if arguments.alone and not arguments.parts:
        arguments.parts = list(ALONE)
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f'there is no part {", ".join(unknown)}; there are {", ".join(PARTS)}')
    return arguments


class Effort:
    """How many samples a part takes of a thing."""

    def __init__(self, quick):
        self.quick = quick

    def __call__(self, n, least=2):
        return max(n // 5, least) if self.quick else n


def say(text):
    print(text, flush=True)


def run_part(name, part, effort):
    """The part's section; one that says what went wrong when it did, so that the others are still measured."""
    print(f'{name} …', file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        section = part(effort)
    except Exception:
        section = Section(name, f'{name}: could not be measured')
        section.trouble = traceback.format_exc()
        print(section.trouble, file=sys.stderr, flush=True)
    section.load, section.seconds = os.getloadavg()[0], time.monotonic() - began
    return section


def keep(stamp, where, sections, lines, seconds):
    RESULTS.mkdir(parents=True, exist_ok=True)
    facts = {
        'started': stamp,
        'seconds': round(seconds),
        'machine': where,
        'sections': [s.summary() for s in sections],
    }
    name = stamp.replace(':', '')
    (RESULTS / f'{name}.json').write_text(json.dumps(facts, ensure_ascii=False, indent=1) + '\n')
    (RESULTS / f'{name}.md').write_text('\n'.join(lines))
    return RESULTS / f'{name}.json'


BEGIN, END = '<!-- figures: begin -->', '<!-- figures: end -->'
# The pictures that are shown on the page: the rest is of interest to who looks for something.
SHOWN = {
    'others': 'How the times of a fresh sandbox are spread',
    'start': "How the times of a session's start are spread",
    'growth-sessions': 'The cost of a start and of a cell, with more sessions alive',
    'growth-memory': 'The memory of a session, with more sessions alive',
    'growth-heap': 'The cost of a cell and of the end, with more in the session',
    'episodes-rate': 'Episodes and single runs a second, with more clients',
}


def picture_lines(page, pictures):
    """Copies those that are shown beside the page; the lines that show them."""
    folder = Path(page).parent / 'img' / 'bench'
    for picture in (p for p in pictures if p.stem in SHOWN):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder / picture.name)
        yield f'![{SHOWN[picture.stem]}](img/bench/{picture.name})'
        yield ''


def put_into(path, lines):
    """Replaces what stands between the two marks of a page."""
    text = Path(path).read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f'{path} has no {BEGIN} … {END}')
    Path(path).write_text('\n'.join([before + BEGIN, *lines, END]) + after)


def measure(arguments, tell):
    """Runs the parts: (sections, the report's lines, where it is kept, its pictures)."""
    started, stamp = time.monotonic(), time.strftime('%Y-%m-%dT%H:%M:%S')
    where = machine.describe()
    head, lines, sections = list(report.machine_lines(where)), [], []
    tell('\n'.join(head))
    for name in arguments.parts or PARTS:
        sections.append(run_part(name, PARTS[name], Effort(arguments.quick)))
        part = list(report.section_lines(sections[-1]))
        tell('\n'.join(part))
        lines += part
    targets = list(report.target_lines(sections))
    tell('\n'.join(targets))
    kept = [*head, *targets, *lines]  # who reads the page wants to know first how it ended
    seconds = time.monotonic() - started
    path = keep(stamp, where, sections, kept, seconds)
    pictures = plots.draw(sections, path.with_suffix(''))
    tell(f'{seconds:.0f} s; all samples are in {path}, {len(pictures)} pictures beside it')
    return sections, kept, path, pictures


def main():
    # Whoever ends the bench ends its servers, also when a shell started it with `&`, which has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    arguments = parse_arguments()
    if not os.access(build_dir() / 'glovebox', os.X_OK):
        raise SystemExit(f'there is no {build_dir() / "glovebox"}: run make, or set GLOVEBOX_BUILD')
    if arguments.soak:
        return soak.soak(arguments.soak * 60, say)
    sections, lines, path, pictures = measure(arguments, (lambda text: None) if arguments.json else say)
    if arguments.json:
        say(path.read_text())
    if arguments.docs:
        put_into(arguments.docs, [*lines, *picture_lines(arguments.docs, pictures)])
    return judge(arguments, sections)


def judge(arguments, sections):
    """The exit code: trouble always counts, targets and losses when that was asked for."""
    failed = any(section.trouble for section in sections)
    if arguments.check:
        failed |= any(not target.met for section in sections for target in section.targets)
    if arguments.gate:
        lost = gate.losses(sections)
        say('\n'.join(f'worse: {text}' for text in lost) or 'no ratio got worse than the accepted ones')
        failed |= bool(lost)
    if arguments.accept and not failed:
        gate.accept(sections)
    return 1 if failed else 0
