"""Grades a program: by its output for given inputs, or by tests. Every case runs in its own session, isolated from the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Union

from .aio import AsyncGlovebox
from .batch import BatchResult
from .client import Glovebox


@dataclass
class Case:
    """One case: the text that the program reads and the text that it must print, or `test`: code that runs after the program and
    raises when something is wrong."""

    stdin: str = ''
    expected: Optional[str] = None
    test: Optional[str] = None
    id: Any = None

    @classmethod
    def of(cls, case: Union['Case', str, Mapping[str, Any], tuple[str, str]]) -> 'Case':
        if isinstance(case, Case):
            return case
        if isinstance(case, str):
            return cls(test=case)
        return cls(**case) if isinstance(case, Mapping) else cls(case[0], case[1])


@dataclass
class CaseGrade:
    """The outcome of a case."""

    id: Any
    passed: bool
    reason: str
    status: str
    seconds: float  # of wall time
    cpu_seconds: float
    memory_bytes: int  # at its highest
    stdout: str = field(default='', repr=False)
    stderr: str = field(default='', repr=False)


@dataclass
class Grade:
    cases: list[CaseGrade]

    @property
    def passed(self) -> bool:
        return all(c.passed for c in self.cases)

    @property
    def score(self) -> float:
        """The fraction of the cases that passed."""
        return sum(c.passed for c in self.cases) / len(self.cases) if self.cases else 0.0


def items_of(code: str, cases: Iterable[Any], compare: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a batch that grades the code."""
    items = []
    for index, given in enumerate(cases):
        case = Case.of(given)
        item = {**fields, 'id': index, 'code': code, 'stdin': case.stdin}
        if case.test is not None:
            item['code'] = f'{code}\n\n{case.test}\n'
        if case.expected is not None:
            item.update(expected_output=case.expected, compare=compare)
        items.append(item)
    return items


def grade_of(case: Case, result: BatchResult) -> CaseGrade:
    seen = result.observation
    id = result.index if case.id is None else case.id
    if seen is None:
        return CaseGrade(id, False, (result.error or {}).get('detail', 'it did not run'), 'not_run', 0.0, 0.0, 0)
    usage = seen.raw.get('usage') or {}
    passed = result.verdict.passed if result.verdict else seen.raw['status'] == 'ok'
    reason = result.verdict.reason if result.verdict else ''
    if not passed and not reason and seen.error:
        reason = f'{seen.error.type}: {seen.error.message}'
    return CaseGrade(
        id=id,
        passed=passed,
        reason=reason,
        status=seen.raw['status'],
        seconds=(usage.get('wall_ms') or 0) / 1e3,
        cpu_seconds=(usage.get('cpu_ms') or 0) / 1e3,
        memory_bytes=usage.get('peak_memory_bytes') or 0,
        stdout=seen.raw.get('stdout') or '',
        stderr=seen.raw.get('stderr') or '',
    )


class _Grading:
    """What grade() and grade_async() share: the items of the batch, and the cases as their results come."""

    def __init__(self, code: str, cases: Iterable[Any], options: dict[str, Any]) -> None:
        compare, timeout, memory = options.pop('compare', 'trimmed'), options.pop('timeout', None), options.pop('memory', None)
        self.concurrency = options.pop('concurrency', None)
        if timeout is not None:
            options['timeout_s'] = timeout
        if memory is not None:
            options['limits'] = {**(options.get('limits') or {}), 'memory_bytes': memory}
        self.cases = [Case.of(c) for c in cases]
        self.items = items_of(code, self.cases, compare, options)
        self.found: dict[int, CaseGrade] = {}

    def take(self, result: BatchResult) -> None:
        self.found[result.index] = grade_of(self.cases[result.index], result)

    def grade(self) -> Grade:
        return Grade([self.found[i] for i in sorted(self.found)])


def grade(box: Glovebox, code: str, cases: Iterable[Any], **options: Any) -> Grade:
    """Runs the program for every case. A case is a Case, (stdin, expected), or a text: a test that runs after the program.

    timeout, memory   of one case
    compare           trimmed (the default), exact, tokens, numbers
    concurrency       cases at the same time
    Other fields of POST /v1/run (files, profile, packages, …) go by their names.
    """
    grading = _Grading(code, cases, options)
    for result in box.batch(grading.items, concurrency=grading.concurrency):
        grading.take(result)
    return grading.grade()


async def grade_async(box: AsyncGlovebox, code: str, cases: Iterable[Any], **options: Any) -> Grade:
    """As grade(), for asyncio."""
    grading = _Grading(code, cases, options)
    async for result in box.batch(grading.items, concurrency=grading.concurrency):
        grading.take(result)
    return grading.grade()
