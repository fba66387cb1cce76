"""An agent that acts by writing code: each step runs in one session, its outcome is what the model sees next.

The model here is a script, so that the example runs anywhere; put yours in the place of `ScriptedModel`.
"""

from glovebox import Glovebox

TASK = 'Which customer spent most, and how much?'
ORDERS = 'customer,amount\nada,120\nbob,80\nada,45\ncyd,150\n'


class ScriptedModel:
    """Answers as a model would: the second step repairs what went wrong in the first."""

    def __init__(self):
        self.replies = iter(
            [
                'import csv\nrows = list(csv.DictReader(open("orders.csv")))\ntotals = {}\nfor r in rows:\n    totals[r["customer"]] += int(r["amount"])',
                'from collections import defaultdict\ntotals = defaultdict(int)\nfor r in rows:\n    totals[r["customer"]] += int(r["amount"])\nprint(dict(totals))',
                'best = max(totals, key=totals.get)\nfinal_answer({"customer": best, "spent": totals[best]})',
            ]
        )

    def __call__(self, messages):
        return next(self.replies)


def observe(observation):
    """What the model reads: prints, the value, the error in a line."""
    parts = [observation.stdout.strip()]
    if observation.text:
        parts.append(observation.text)
    if observation.error:
        parts.append(f'line {observation.error.line}: {observation.error.type}: {observation.error.message}')
    return '\n'.join(p for p in parts if p) or '(no output)'


def main(model=None, max_steps=6):
    model = model or ScriptedModel()
    messages = [{'role': 'user', 'content': TASK}]
    with Glovebox.local() as box, box.session(timeout=10) as session:
        session.write_file('orders.csv', ORDERS)
        for step in range(1, max_steps + 1):
            code = model(messages)
            observation = session.run(code)
            seen = observe(observation)
            print(f'step {step}: {seen}')
            if observation.is_final_answer:
                print('final answer:', observation.final_answer)
                return observation.final_answer
            messages += [{'role': 'assistant', 'content': code}, {'role': 'user', 'content': seen}]
    return None


if __name__ == '__main__':
    main()
