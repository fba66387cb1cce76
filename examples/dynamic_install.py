"""A package that a session asks for: resolved and installed once, outside the session, read-only inside it.

    examples/dynamic_install.py [package [module]]

What is there already is not installed: the report says which was which.
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


def _names(entries):
    return [e if isinstance(e, str) else e.get('name', '') for e in entries]


if __name__ == '__main__':
    main(*sys.argv[1:])
