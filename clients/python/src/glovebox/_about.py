"""The version of this client: that of the wheel it came in, or that of the source tree it is in."""

from __future__ import annotations

import importlib
from pathlib import Path


def version() -> str:
    try:
        return str(importlib.import_module('glovebox._version').VERSION)  # written into wheels and packages
    except ImportError:
        tree = Path(__file__).resolve().parents[4] / 'VERSION'
        return tree.read_text().strip()
