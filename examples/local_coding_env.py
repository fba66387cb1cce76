"""An environment with reset, step and state, on this machine, without Docker."""

from glovebox import CodeAction, CodingEnv

STEPS = [
    'x = 5 + 3\nprint(f"Result: {x}")',
    'import math\nprint(round(math.sqrt(x), 3))',
    'print("this is kept")\nundefined_variable',
    'squares = [n * n for n in range(5)]\nprint(squares)',
]


def main():
    with CodingEnv.from_local(timeout_s=10) as env:
        result = env.reset()
        print('reset:', result.observation.exit_code)
        for code in STEPS:
            result = env.step(CodeAction(code=code))
            seen = result.observation
            last_line = seen.stderr.strip().splitlines()[-1:] or ['']
            print(f'exit code {seen.exit_code}, reward {result.reward}: {seen.stdout.strip()!r} {last_line[0]}')
        state = env.state()
        print('steps:', state.step_count, 'last exit code:', state.last_exit_code)


if __name__ == '__main__':
    main()
