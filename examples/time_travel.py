"""Best of eight at every step of a search, with forks and without.

A "model" (here: a script) proposes eight ways to go on from where the search stands; each is tried, the best is kept, and the next step starts from it. With forks each
attempt is a copy of the session as it is. Without, every attempt needs a session of its own that runs all the earlier steps again. Both find the same answer; the picture
shows what they paid. Cells are marked with `# %%`, so editors that know them run the file piece by piece.
"""

# %% What both ways share
import random
import sys
import time

from glovebox import Glovebox

STEPS, WIDTH = 6, 8

# The state of the search: measurements that took a while to read in, and the curve so far as a sum of terms.
SETUP = """
import numpy as np
rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 10, 40_000))
table = "\\n".join(f"{a:.4f},{b:.4f}" for a, b in zip(t, np.sin(1.3 * t) + 0.25 * t + 0.4 * np.cos(3.1 * t) + rng.normal(0, 0.1, t.size)))
x, y = np.array([line.split(",") for line in table.splitlines()], dtype=float).T
terms = [np.ones_like(x)]
def error():
    columns = np.column_stack(terms)[::20]
    weights, *_ = np.linalg.lstsq(columns, y[::20], rcond=None)
    return float(np.sqrt(np.mean((columns @ weights - y[::20]) ** 2)))
"""


class ScriptedModel:
    """Proposes terms as a model would; the same ones for the same step."""

    def __call__(self, step):
        chance = random.Random(step)
        kinds = ['np.sin({f:.2f} * x)', 'np.cos({f:.2f} * x)', 'x ** {p}', 'np.exp(-(x - {c:.1f}) ** 2)']
        return [
            'terms.append(' + chance.choice(kinds).format(f=chance.uniform(0.5, 3.5), p=chance.randint(1, 3), c=chance.uniform(0, 10)) + ')' for _ in range(WIDTH)
        ]


def score(session, code):
    return session.run(f'{code}\nerror()', check=True).value


# %% With forks: an attempt is a copy of the session


def search_with_forks(box, model, steps):
    session, took, scores = box.session(), [], []
    session.run(SETUP, check=True)
    for step in range(steps):
        began = time.perf_counter()
        attempts = session.fork(WIDTH)
        scores.append([score(attempt, code) for attempt, code in zip(attempts, model(step))])
        best = scores[-1].index(min(scores[-1]))
        for attempt in [session, *attempts]:
            if attempt is not attempts[best]:
                attempt.close()
        session = attempts[best]
        took.append(time.perf_counter() - began)
    session.close()
    return scores, took


# %% Without: an attempt runs everything again


def search_again(box, model, steps):
    way, took, scores = [SETUP], [], []
    for step in range(steps):
        began = time.perf_counter()
        scores.append([])
        for code in model(step):
            with box.session() as session:
                for earlier in way:
                    session.run(earlier, check=True)
                scores[-1].append(score(session, code))
        way.append(model(step)[scores[-1].index(min(scores[-1]))])
        took.append(time.perf_counter() - began)
    return scores, took


# %% The picture: what was tried, and what it cost
PLOT = """
import itertools
import matplotlib.pyplot as plt
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
steps = range(1, len(scores) + 1)
for step, tried in zip(steps, scores):
    left.scatter([step] * len(tried), tried, s=18, color="0.7", label="tried" if step == 1 else None)
left.plot(steps, [min(tried) for tried in scores], marker="o", color="C0", label="kept")
left.set(title="the search", xlabel="step", ylabel="error", ylim=(0, None), xticks=list(steps)); left.legend(frameon=False)
for took, name, marker in ((again, "running the steps again", "s"), (with_forks, "forks", "o")):
    right.plot(steps, list(itertools.accumulate(took)), marker=marker, label=f"{name}: {sum(took):.1f} s", color="C1" if marker == "s" else "C0")
right.set(title="what it took, step by step", xlabel="step", ylabel="seconds", ylim=(0, None), xticks=list(steps)); right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("time_travel.png", dpi=110)
"""


def main(picture='time_travel.png', steps=STEPS):
    model = ScriptedModel()
    with Glovebox.local() as box:
        scores, with_forks = search_with_forks(box, model, steps)
        same, again = search_again(box, model, steps)
        assert scores == same, 'both went the same way'
        error = min(scores[-1])
        print(f'best of {WIDTH}, {steps} steps: error {error:.4f}')
        print(f'{sum(with_forks):.2f} s with forks, {sum(again):.2f} s running the steps again')
        with box.session() as session:
            session.run(PLOT, variables={'scores': scores, 'with_forks': with_forks, 'again': again}, check=True)
            data = session.read_file('time_travel.png')
    with open(picture, 'wb') as f:
        f.write(data)
    print(f'wrote {picture}')
    return error


if __name__ == '__main__':
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
