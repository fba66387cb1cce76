"""Best of eight at every step of a search, with forks and without.

The "model" proposes eight ways to change a curve that is to fit some points; the best one is kept, and the next step starts from it. With forks each
attempt is a copy of the session as it is; without, every attempt starts a session of its own and runs all the earlier steps again. Both find the same
curve. The picture shows what they spent, step by step.
"""

import random
import sys
import time

from glovebox import Glovebox

STEPS, WIDTH = 6, 8
SETUP = """
import numpy as np
x = np.linspace(0, 10, 20_000)
y = np.sin(x) + 0.3 * x
curve = np.zeros_like(x)
def error(): return float(np.mean((curve - y) ** 2))
"""
PLOT = """
import matplotlib.pyplot as plt
plt.figure(figsize=(6, 3))
plt.plot(range(1, len(with_forks) + 1), with_forks, marker="o", label="forks")
plt.plot(range(1, len(again) + 1), again, marker="s", label="running the steps again")
plt.xlabel("step"); plt.ylabel("milliseconds"); plt.legend(); plt.tight_layout()
plt.savefig("time_travel.png")
"""


class ScriptedModel:
    """Proposes changes as a model would; the same ones for the same step."""

    def __call__(self, step):
        chance = random.Random(step)
        kinds = ['curve = curve + {a:.3f} * x', 'curve = curve + {a:.3f} * np.sin({b:.3f} * x)', 'curve = curve + {a:.3f}', 'curve = curve * {b:.3f}']
        return [chance.choice(kinds).format(a=chance.uniform(-1, 1), b=chance.uniform(0.5, 1.5)) for _ in range(WIDTH)]


def score(session, code):
    return session.run(f'{code}\nerror()').value


def search_with_forks(box, model, steps):
    session, took = box.session(), []
    session.run(SETUP)
    for step in range(steps):
        began = time.perf_counter()
        attempts = session.fork(WIDTH)
        scores = [score(attempt, code) for attempt, code in zip(attempts, model(step))]
        best = scores.index(min(scores))
        for attempt in [session, *attempts]:
            if attempt is not attempts[best]:
                attempt.close()
        session = attempts[best]
        took.append((time.perf_counter() - began) * 1e3)
    session.close()
    return min(scores), took


def search_again(box, model, steps):
    way, took = [SETUP], []
    for step in range(steps):
        began = time.perf_counter()
        scores = []
        for code in model(step):
            with box.session() as session:
                for earlier in way:
                    session.run(earlier)
                scores.append(score(session, code))
        way.append(model(step)[scores.index(min(scores))])
        took.append((time.perf_counter() - began) * 1e3)
    return min(scores), took


def main(picture='time_travel.png', steps=STEPS):
    model = ScriptedModel()
    with Glovebox.local() as box:
        error, with_forks = search_with_forks(box, model, steps)
        same, again = search_again(box, model, steps)
        assert error == same, 'both went the same way'
        print(f'best of {WIDTH}, {steps} steps: error {error:.4f}')
        print(f'{sum(with_forks):.0f} ms with forks, {sum(again):.0f} ms running the steps again')
        with box.session() as session:
            session.run(f'with_forks, again = {with_forks!r}, {again!r}\n{PLOT}')
            data = session.read_file('time_travel.png')
    with open(picture, 'wb') as f:
        f.write(data)
    print(f'wrote {picture}')
    return error


if __name__ == '__main__':
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
