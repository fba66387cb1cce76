"""GRPO with code rewards: what TRL and verl call, driven by a scripted model so that no GPU is needed.

With TRL the reward function is passed to the trainer as it is:

    from trl import GRPOTrainer
    GRPOTrainer(model=…, reward_funcs=CodeReward(box), train_dataset=dataset)   # the dataset has a column `cases`

With verl, custom_reward_function.path is this file and its name is compute_score; or give verl the address of
Glovebox's /run_code as its sandbox_fusion url (docs/sandboxfusion.md), which needs no code at all.
"""

import re
import statistics

from glovebox import Glovebox, grade

FENCE = re.compile(r'```(?:python)?\n(.*?)```', re.S)


def code_of(text):
    """The last block of code in an answer."""
    found = FENCE.findall(text)
    return found[-1] if found else text


class CodeReward:
    """A reward function as TRL calls it: completions, and a column of the dataset for each keyword."""

    __name__ = 'code_reward'

    def __init__(self, box, timeout=5.0):
        self.box, self.timeout = box, timeout

    def __call__(self, completions, cases, **columns):
        items, owners = [], []
        for owner, (completion, tests) in enumerate(zip(completions, cases)):
            text = completion if isinstance(completion, str) else completion[-1]['content']
            for stdin, expected in tests:
                items.append({'code': code_of(text), 'stdin': stdin, 'expected_output': expected, 'timeout_s': self.timeout})
                owners.append(owner)
        passed = [[] for _ in completions]
        for result in self.box.batch(items, deduplicate=True):
            passed[owners[result.index]].append(result.passed)
        return [sum(p) / len(p) if p else 0.0 for p in passed]


def compute_score(data_source, solution_str, ground_truth, extra_info=None, box=None):
    """A reward function as verl calls it: ground_truth is a list of [stdin, expected]."""
    with box or Glovebox.local() as server:
        return grade(server, code_of(solution_str), [tuple(case) for case in ground_truth], timeout=5).score


class ScriptedPolicy:
    """Stands for the model: a few answers, and how likely each is."""

    ANSWERS = (
        '```python\nprint(sum(map(int, input().split())))\n```',
        '```python\na, b = input().split()\nprint(a + b)\n```',
        '```python\nwhile True: pass\n```',
        'I do not know.',
    )

    def __init__(self):
        self.weights = [1.0] * len(self.ANSWERS)

    def generate(self):
        return list(self.ANSWERS)

    def learn(self, rewards):
        """What GRPO does: answers that are better than their group's mean become more likely."""
        mean, spread = statistics.fmean(rewards), statistics.pstdev(rewards) or 1.0
        self.weights = [max(0.01, w + (r - mean) / spread) for w, r in zip(self.weights, rewards)]


def main():
    cases = [('1 2', '3'), ('10 5', '15')]
    policy = ScriptedPolicy()
    with Glovebox.local() as box:
        reward = CodeReward(box, timeout=1.0)
        for step in range(2):
            completions = policy.generate()
            rewards = reward(completions, cases=[cases] * len(completions))
            policy.learn(rewards)
            print(f'step {step}: rewards {rewards}')
    best = max(range(len(policy.weights)), key=policy.weights.__getitem__)
    print('verl:', compute_score('sum', policy.ANSWERS[best], cases))
    print('most likely:', code_of(policy.ANSWERS[best]).strip())


if __name__ == '__main__':
    main()
