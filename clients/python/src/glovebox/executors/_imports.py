"""Import statements of code, found in its syntax tree."""

from __future__ import annotations

import ast
from typing import Optional


def tree_of(code: str) -> Optional[ast.Module]:
    """The syntax tree; None when the code is not Python."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return None


def is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == '__future__'


def imports_of(code: str) -> list[str]:
    """The import statements at the top level of the code, each as one line."""
    tree = tree_of(code)
    return [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))] if tree else []


def without_future_imports(code: str) -> str:
    """The code with `pass` in place of its `from __future__` statements; the numbers of its lines stay the same."""
    tree = tree_of(code)
    lines = code.split('\n')
    for node in reversed(tree.body if tree else []):
        if not is_future(node):
            continue
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        rest = lines[last][node.end_col_offset :]
        lines[first : last + 1] = [lines[first][: node.col_offset] + 'pass' + rest] + [''] * (last - first)
    return '\n'.join(lines)


def assigns(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of the names the code assigns at its top level, in the order of `names`."""
    tree = tree_of(code)
    if tree is None:
        return []
    bound = {target.id for node in tree.body for target in _targets(node) if isinstance(target, ast.Name)}
    return [name for name in names if name in bound]


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []
