"""Lines of a notebook that are not Python: `%time f()`, `!ls`, `x = !ls`, `obj?`, and cells that begin with `%%`. They are asked about only when
a cell does not compile, and become calls of `__glovebox_magic__`, each in its own line."""

import re

_SHELL_LINE = re.compile(r'(\s*)(!!?)(.*)', re.S)
_MAGIC_LINE = re.compile(r'(\s*)%(\w+)[ \t]*(.*)', re.S)
_ASSIGNED = re.compile(r'(\s*[A-Za-z_][\w.,\s\[\]\'"]*=\s*)([!%])(.*)', re.S)
_HELP_AFTER = re.compile(r'(\s*)(%{0,2}[A-Za-z_][\w.]*)(\?\??)\s*')
_HELP_BEFORE = re.compile(r'(\s*)(\?\??)\s*(%{0,2}[A-Za-z_][\w.]*)\s*;?\s*')
_CELL_MAGIC = re.compile(r'%%(\w+)[ \t]*(.*)')
_CALL = '__glovebox_magic__'


def translate_cell(source):
    """The source as Python, or None when it has no such lines, or something else is wrong as well."""
    if not any(c in source for c in '%!?'):
        return None
    text = _whole_cell(source)
    if text is None:
        text = _line_by_line(source)
    if text is None:
        return None
    try:
        compile(text, _OURS, 'exec', 0x2000)  # with await at the top
    except (SyntaxError, ValueError):
        return None  # to be told with the lines as they were written
    builtins.__dict__[_CALL] = run_magic
    return text


def _whole_cell(source):
    """`%%name line` and all that follows it; comments and empty lines may come before."""
    lines = source.split('\n')
    for i, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith('%%'):
            match = _CELL_MAGIC.match(bare)
            body = '\n'.join(lines[i + 1 :])
            return match and '\n' * i + _magic_call('cell', match[1], match[2].strip(), body, i + 1)
        if bare and not bare.startswith('#'):
            return None
    return None


def _line_by_line(source):
    lines, found, at = source.split('\n'), [], 0
    scan = _Scan()
    changed = False
    while at < len(lines):
        line, used = lines[at], 1
        new = None
        if scan.at_statement():
            while line.endswith('\\') and _is_ours(line) and at + used < len(lines):
                line = line[:-1] + lines[at + used].lstrip()
                used += 1
            new = _one_line(line)
        if new is None:
            scan.feed(lines[at])
            found.append(lines[at])
            at += 1
            continue
        found.append(new)
        found += [''] * (used - 1)
        at += used
        changed = True
    return '\n'.join(found) if changed else None


def _is_ours(line):
    return bool(_SHELL_LINE.fullmatch(line) or _MAGIC_LINE.fullmatch(line) or _ASSIGNED.fullmatch(line))


def _one_line(line):
    match = _COMMAND.fullmatch(line.rstrip('\r'))
    if match:
        return match[1] + _magic_call('line', 'pip', match[2])  # however pip is started, the server installs
    match = _SHELL_LINE.fullmatch(line)
    if match:
        return match[1] + _magic_call('output' if match[2] == '!!' else 'shell', match[3].strip())
    match = _HELP_AFTER.fullmatch(line)
    if match:
        return match[1] + _magic_call('help', match[2], match[3])
    match = _HELP_BEFORE.fullmatch(line)
    if match:
        return match[1] + _magic_call('help', match[3], match[2])
    match = _MAGIC_LINE.fullmatch(line)
    if match:
        return match[1] + _magic_call('line', match[2], match[3].strip())
    match = _ASSIGNED.fullmatch(line)
    if match and match[2] == '!':
        return match[1] + _magic_call('output', match[3].strip())
    rest = match and re.fullmatch(r'(\w+)[ \t]*(.*)', match[3], re.S)
    return match[1] + _magic_call('line', rest[1], rest[2].strip()) if rest else None


def _magic_call(kind, *arguments):
    return f'{_CALL}({", ".join(map(repr, (kind, *arguments)))})'


class _Scan:
    """Whether the next line begins a statement: not inside brackets, not inside a string of several lines, not behind a backslash."""

    def __init__(self):
        self.quote, self.depth, self.continued = None, 0, False

    def at_statement(self):
        return not self.quote and self.depth <= 0 and not self.continued

    def feed(self, line):
        i, n = 0, len(line)
        self.continued = False
        while i < n:
            if self.quote:
                i = self._in_string(line, i)
                continue
            c = line[i]
            if c == '#':
                return
            if c in '"\'':
                self.quote = line[i : i + 3] if line[i : i + 3] == c * 3 else c
                i += len(self.quote)
                continue
            self.depth += (c in '([{') - (c in ')]}')
            i += 1
        self.continued = line.endswith('\\')
        if self.quote and len(self.quote) == 1:
            self.quote = None  # ends with its line; what is wrong about it Python tells

    def _in_string(self, line, i):
        if line[i] == '\\':
            return i + 2
        if line.startswith(self.quote, i):
            i += len(self.quote)
            self.quote = None
            return i
        return i + 1
