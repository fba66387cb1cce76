"""The two backends of coding_env, side by side: what code may say under each, and pictures of the windows it shows.

    examples/backends.py [directory]
"""

import base64
import os
import sys
from pathlib import Path

from glovebox.executors import PyExecutor, RestrictedPythonExecutor

CHECKS = {
    'prints': 'total = sum(range(10))\nprint("total", total)',
    'raises': 'print("before")\n1 / 0',
    'dataclass': """
from dataclasses import dataclass

@dataclass
class Ball:
    x: int
    dx: int = 2

    def move(self):
        self.x += self.dx
        return self

print(Ball(3).move())
""",
    'remembers': 'print(total + 1, Ball(1))',
    'imports math': 'import math\nprint(math.floor(math.tau))',
    'imports os': 'import os',
    'helpers': 'try:\n    1 / 0\nexcept ZeroDivisionError:\n    print(safe_json_dumps({"last line": format_exc().strip().splitlines()[-1]}))',
}

WINDOWS = {
    'tkinter': """
import tkinter as tk
root = tk.Tk()
root.geometry('300x120+0+0')
tk.Label(root, text='Hello', font=('Helvetica', 24), bg='gold').pack(expand=True, fill='both')
""",
    'matplotlib': """
import matplotlib.pyplot as plt
plt.plot([1, 4, 9, 16], color='red', linewidth=5)
plt.title('squares')
""",
}


def main(directory='.'):
    for kind in (PyExecutor, RestrictedPythonExecutor):
        with kind(['tkinter', 'matplotlib', 'numpy'], url=os.environ.get('GLOVEBOX_URL')) as executor:
            for what, code in CHECKS.items():
                result = executor.run(code)
                said = result.stdout.strip() if result.exit_code == 0 else result.stderr.strip().splitlines()[-1].partition('. Authorized')[0]
                print(f'{kind.backend}: {what}: {result.exit_code}: {said}')
            for what, code in WINDOWS.items():
                executor.run(code, capture_screenshot=True)
                picture = base64.b64decode(executor.get_captured_screenshot())
                path = Path(directory) / f'{kind.backend}-{what}.png'
                path.write_bytes(picture)
                print(f'{kind.backend}: {what}: {len(picture)} bytes in {path.name}')


if __name__ == '__main__':
    main(*sys.argv[1:])
