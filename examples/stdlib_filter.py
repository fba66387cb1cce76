"""Which modules the code may import: those of its profile and those you add, misspelt ones under their right names. Modules of the standard library
are never asked of a package index. What the code reads when it tries others helps it to repair itself."""

from glovebox import Glovebox

CASES = {
    'allowed by the profile': 'import math, statistics\nprint(statistics.mean([1, 2, 6]))',
    'added by us': 'import json\nprint(json.dumps({"a": 1}))',
    'not allowed': 'import os\nprint(os.listdir("/"))',
    'not allowed either': 'import subprocess',
}


def main():
    with Glovebox.local() as box, box.session(profile='smolagents', additional_imports=['json', 'dataclass', 'httplib']) as session:
        report = session.created['packages']
        print('part of Python:', ', '.join(report['stdlib']))
        for name in report['corrected']:
            print(f'corrected: {name["from"]} is {name["to"]}')
        print('installed:', len(report['installed']))
        for what, code in CASES.items():
            observation = session.run(code)
            said = observation.stdout.strip() if observation.ok else observation.error.message.partition('. Authorized')[0]
            print(f'{what}: {observation.status}: {said}')


if __name__ == '__main__':
    main()
