"""A package that a session asks for: resolved and installed once, outside the session, read-only inside it.

    examples/dynamic_install.py [package [module]]

What is there already is not installed, and a slip of the pen is corrected: the report says which was which. The same for code under the rules of
smolagents and of RestrictedPython, which may import what was asked for and nothing else.
"""

import sys

from glovebox import Glovebox


def main(package='six', module=None):
    module = module or package
    with Glovebox.local() as box, box.session(packages=[package, 'json']) as session:
        report = session.created['packages']
        print('part of Python:', ', '.join(_names(report['stdlib'])) or '-')
        print('installed:', ', '.join(_names(report['installed'])) or '-')
        print('there already:', ', '.join(_names(report['present'])) or '-')
        observation = session.run(f'import {module}\nprint({module}.__name__, "imported")', check=True)
        print(observation.stdout.strip())
        for profile in ('smolagents', 'restrictedpython'):
            with box.session(profile=profile, additional_imports=[module, 'dataclass', 'no_such_module_at_all']) as session:
                report = session.created['packages']
                print(f'{profile}: corrected {report["corrected"]}')
                print(f'{profile}: failed: {", ".join(_names(report["failed"]))}')
                seen = session.run(f'import {module}\nfrom dataclasses import dataclass\nprint("{module} imported")', check=True)
                print(f'{profile}: {seen.stdout.strip()}; os: {session.run("import os").status}')


def _names(entries):
    return [e if isinstance(e, str) else e.get('name', '') for e in entries]


if __name__ == '__main__':
    main(*sys.argv[1:])
