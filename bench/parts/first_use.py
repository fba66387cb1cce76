"""The first and the second time something large is used in a fresh session: time, and memory that it copies."""

import contextlib
import time

from harness import memory
from harness.daemon import Daemon
from harness.peers import Worker
from harness.stats import Section

PAUSE = 0.15  # longer than a new guest waits before it uses its idle time
IMPORTS = """
import io, json, math, random
import numpy as np, pandas as pd, matplotlib
matplotlib.use('agg')
import matplotlib.pyplot as plt
"""
# As a cell, and as the same work in plain python3 (where nobody draws the figure unless it is asked to).
PLOT = 'fig, ax = plt.subplots()\nax.plot([1, 2, 3], [1, 4, 9])\nax.set_title("Squares")\n'
DRAWN = 'out = io.BytesIO()\nfig.savefig(out, format="png", bbox_inches="tight")\nplt.close("all")\n'
USES = {
    'nothing: x = 1': ('x = 1', 'x = 1'),
    'numpy: solve': ('import numpy as np\nnp.linalg.solve(np.eye(3) * 2, np.ones(3))',) * 2,
    'pandas: sum of a column': ('import pandas as pd\npd.DataFrame({"a": [1, 2, 3]})["a"].sum()',) * 2,
    'pandas: groupby and describe': (
        'import pandas as pd\ndf = pd.DataFrame({"g": ["x", "y", "x"], "n": [1, 2, 3]})\n'
        'df.groupby("g")["n"].mean()\nrepr(df.describe())',
    )
    * 2,
    'matplotlib: a line and a title': ('import matplotlib.pyplot as plt\n' + PLOT, PLOT + DRAWN),
}


def first_use(effort):
    """the first pandas or plot cell of a session, beside a python3 that has the modules loaded"""
    section = Section(
        'first_use',
        'First use of large modules in a fresh session',
        'CPU time of the first and the second such cell, and memory that the guest no longer shared after '
        'the first. For comparison: the first and the second run of the same code in a python3 that has imported the modules.',
    )
    rows = {}
    for name in USES:
        before = section.row(f'{name}: python3, first', 'ms')
        again = section.row(f'{name}: python3, second', 'ms')
        first = section.row(f'{name}: session, first', 'ms', before)
        second = section.row(f'{name}: session, second', 'ms', again)
        rows[name] = before, again, first, second, section.row(f'{name}: memory copied', 'MB')
    with Daemon() as daemon, contextlib.closing(daemon.connect()) as connection:
        for _ in range(effort(7, 3)):
            for name, (code, outside) in USES.items():
                before, again, first, second, copied = rows[name]
                time.sleep(PAUSE)
                session = connection.create()
                start = memory.private(session['pid'])
                first.attempt(lambda: connection.cell(session['id'], code)['usage']['cpu_ms'])
                copied.add((memory.private(session['pid']) - start) / 1e6)
                second.attempt(lambda: connection.cell(session['id'], code)['usage']['cpu_ms'])
                connection.delete(session['id'])
                with Worker() as worker:
                    worker.run(IMPORTS)
                    before.attempt(lambda: _cpu(worker, outside))
                    again.attempt(lambda: _cpu(worker, outside))
    return section


def _cpu(worker, code):
    """CPU milliseconds of one run in the worker."""
    return (
        worker.run(f'import time\nbegan = time.process_time()\n{code}\nanswer = time.process_time() - began')[
            1
        ]
        * 1e3
    )
