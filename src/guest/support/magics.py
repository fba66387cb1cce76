"""Lines of a cell that are not Python but ask for packages: `%pip install x`, `!pip install x`."""

import re
import shlex

_COMMAND = re.compile(r'([ \t]*)[!%][ \t]*(?:(?:python3?|\{?sys\.executable\}?)[ \t]+-m[ \t]+|uv[ \t]+)?pip3?[ \t]+(.*)')
_QUIET = ('-q', '--quiet', '-v', '--verbose', '-U', '--upgrade', '--user', '--no-input', '--no-cache-dir', '--break-system-packages')
_QUIET_STARTS = ('--disable-pip-version-check', '--root-user-action', '--progress-bar=', '--no-warn', '--prefer-binary')


class PackageError(RuntimeError):
    """Packages that a cell asked for cannot be had."""


PackageError.__module__ = 'builtins'


def find_commands(source):
    """(the source without those lines, what they say), or None when it has none. Asked about what does not compile."""
    lines, commands = source.split('\n'), []
    for i, line in enumerate(lines):
        match = _COMMAND.fullmatch(line.rstrip('\r'))
        if match:
            commands.append(match[2])
            lines[i] = f'{match[1]}pass'
    text = '\n'.join(lines)
    try:
        compile(text, _OURS, 'exec', 0x2000)  # with await at the top
    except (SyntaxError, ValueError):
        return None  # something else is wrong as well, and is to be told with the lines as they were written
    return text, commands


def run_command(line):
    """`pip` and what follows it."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as e:
        raise PackageError(f'pip {line}: {e}') from None
    if not words or words[0] != 'install':
        raise PackageError(f'`pip {words[0] if words else ""}` is not possible here; `pip install NAME` is')
    names = list(_wanted(words[1:]))
    if not names:
        raise PackageError('`pip install` needs the names of packages')
    try:
        answer = _call_tool('%pip', {'packages': names})
    except ToolError as e:
        raise PackageError(str(e)) from None
    if answer.get('path'):
        _use_packages(answer['path'])
    _tell(answer.get('report') or {})


def _wanted(words):
    words = iter(words)
    for word in words:
        if word in ('-r', '--requirement'):
            yield from _from_file(next(words, ''))
        elif word.startswith('-') and (word in _QUIET or word.startswith(_QUIET_STARTS) or set(word[1:]) <= set('qvU')):
            continue
        elif word.startswith('-'):
            raise PackageError(f'pip install {word}: where packages come from is the setting of the server')
        else:
            yield word


def _from_file(path):
    try:
        with open(path, encoding='utf-8') as file:
            lines = file.read().split('\n')
    except (OSError, ValueError) as e:
        raise PackageError(f'pip install -r {path}: {e}') from None
    for line in lines:
        line = line.partition(' #')[0].strip()
        if line and not line.startswith(('#', '-')):
            yield line


def _tell(report):
    for name in report.get('stdlib', ()):
        print(f'{name} is part of the standard library')
    for one in report.get('present', ()):
        print(f'Requirement already satisfied: {one["name"]} {one.get("version") or ""}'.rstrip())
    installed = [f'{one["name"]}-{one["version"]}' for one in report.get('installed', ())]
    if installed:
        print('Successfully installed', *installed)
