"""Final answers that code prints, in the two forms that prompts ask models for."""

from __future__ import annotations

import re
from typing import Optional

_MARKED = re.compile(r'final_answer:[ \t]*(.*)', re.IGNORECASE)
_FIRST = re.compile(r'Answer:[ \t]*(.*)')


def has_final_answer(text: str) -> bool:
    """Whether the text has `final_answer:` somewhere, in any case, or begins with `Answer:`."""
    return 'final_answer:' in text.lower() or text.startswith('Answer:')


def printed_final_answer(text: str) -> Optional[str]:
    """The rest of the line behind the last `final_answer:`, or behind `Answer:` at the beginning; None without either."""
    marked = _MARKED.findall(text)
    if marked:
        return marked[-1].strip()
    found = _FIRST.match(text)
    return found[1].strip() if found else None
