"""closing.c finds a cell's closing expression without Python's parser: here both are asked, about Debian's own library cut into cells."""

import ast
import os
import random
import subprocess
import sysconfig
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning', 'ignore::SyntaxWarning')  # of what is parsed

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / os.environ.get('BUILD', 'build') / 'tests' / 'unit' / 'test_last_expression'
UNSURE, STATEMENT, EXPRESSION = range(3)
NOISE = list('()[]{}\'"#=:;\\\n\n ,.@*f') + ['==', ':=', ' lambda x=1: x', '"""', 'if ', 'else', '\nx = 1', '\nx', '\n  ', 'f"{x=}"', '>>=', '<=']


def parse(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def bodies(tree, lines):
    """Lists of statements, each with the lines they are in as a module of its own."""
    yield tree.body, lines
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.body[0].lineno > node.lineno:
            text = textwrap.dedent('\n'.join(lines[node.body[0].lineno - 1 : node.body[-1].end_lineno]))
            body = parse(text)
            if body:
                yield body.body, text.split('\n')


def cells():
    """Neighbouring statements of a library, as texts."""
    for path in sorted(Path(sysconfig.get_path('stdlib')).glob('*.py')):
        text = path.read_text()
        tree = parse(text) if '\f' not in text and '\r' not in text else None
        for body, lines in bodies(tree, text.split('\n')) if tree else ():
            for one, two in zip(body, body[1:]):
                yield '\n'.join(lines[one.lineno - 1 : two.end_lineno])


def spoilt(texts, rng):
    """What still is Python after small changes."""
    for text in texts:
        for _ in range(4):
            at = rng.randrange(len(text) + 1)
            changed = text[:at] + rng.choice(NOISE) + text[at + rng.choice((0, 0, 1, 2)) :]
            if parse(changed):
                yield changed


def ask(texts):
    data = b''.join(b'%d\n%s' % (len(t), t) for t in (text.encode() for text in texts))
    done = subprocess.run([PROGRAM, '-'], input=data, capture_output=True, check=True)
    answers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers


def check(text, verdict, start):
    body = ast.parse(text).body
    expression = bool(body) and isinstance(body[-1], ast.Expr)
    if verdict == STATEMENT:
        assert not expression, text
    elif verdict == EXPRESSION:
        assert expression, text
        before, after = text.encode()[:start], text.encode()[start:]
        lines = before.count(b'\n')
        assert (body[-1].lineno, body[-1].col_offset) == (lines + 1, 0), text
        value = ast.parse(b'\n' * lines + after.rstrip(b' \t\n'), mode='eval').body
        parts = [*ast.parse(before).body, ast.Expr(value)]
        assert [ast.dump(node, include_attributes=not isinstance(node, ast.Expr)) for node in parts] == [
            ast.dump(node, include_attributes=not isinstance(node, ast.Expr)) for node in body
        ], text
        assert ast.dump(value, include_attributes=True) == ast.dump(body[-1].value, include_attributes=True), text


def test_it_agrees_with_the_parser():
    texts = list(cells())
    assert len(texts) > 10_000
    answers = ask(texts)
    for text, answer in zip(texts, answers):
        check(text, *answer)
    verdicts = [verdict for verdict, _ in answers]
    assert verdicts.count(EXPRESSION) > 1000 and verdicts.count(STATEMENT) > 5000
    assert verdicts.count(UNSURE) < len(texts) / 3


def test_it_agrees_about_spoilt_cells():
    rng = random.Random(7)
    texts = list(spoilt(rng.sample(list(cells()), 8000), rng))
    assert len(texts) > 2000
    for text, answer in zip(texts, ask(texts)):
        check(text, *answer)
