"""Limits in the words of container engines, as the limits of a session."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Union

_UNITS = {'': 1, 'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}


def size(value: Union[int, float, str]) -> int:
    """Bytes of 268435456, "256m", "256MB", "1.5g"."""
    if not isinstance(value, str):
        return int(value)
    found = re.fullmatch(r'\s*(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?\s*', value.lower())
    if not found:
        raise ValueError(f'{value!r} is not a size: write bytes, or a number with k, m or g behind it such as "256m"')
    return int(float(found[1]) * _UNITS[found[2]])


def session_limits(
    memory: Union[int, str, None] = None, cpu_quota: Optional[int] = None, cpu_period: Optional[int] = None,
    cpus: Optional[float] = None, pids: Optional[int] = None,
) -> dict[str, Any]:  # fmt: skip
    """The `limits` of a session. cpu_quota is microseconds of processor time in every cpu_period."""
    limits: dict[str, Any] = {}
    if memory is not None:
        limits['memory_bytes'] = size(memory)
    if cpus is None and cpu_quota is not None and cpu_quota > 0:
        cpus = cpu_quota / (cpu_period or 100_000)
    if cpus is not None:
        limits['cpus'] = cpus
    if pids is not None and pids > 0:
        limits['processes'] = pids
    return limits


def merged(given: Optional[Mapping[str, Any]], found: Mapping[str, Any]) -> Optional[dict[str, Any]]:
    """Limits given by their own names win."""
    return {**found, **(given or {})} or None
