"""Functions of this process, called by code in the jail: they reach what the code cannot."""

from glovebox import Glovebox

STOCK = {'bolt': 120, 'nut': 80}


def in_stock(item: str) -> int:
    """How many of an item there are.

    Args:
        item: its name
    """
    if item not in STOCK:
        raise KeyError(f'no item called {item}')
    return STOCK[item]


def reserve(item: str, count: int = 1) -> dict:
    """Takes some out of the stock."""
    STOCK[item] -= count
    return {'item': item, 'left': STOCK[item]}


CODE = """
for item in ('bolt', 'nut', 'gear'):
    try:
        n = in_stock(item)
    except KeyError as e:
        print('missing:', e)
        continue
    if n > 100:
        print(reserve(item, count=n - 100))
print(in_stock.__doc__.splitlines()[0])
"""


def main():
    with Glovebox.local() as box, box.session(tools=[in_stock, reserve]) as session:
        print(session.run(CODE, check=True).stdout, end='')
        print('here:', STOCK)


if __name__ == '__main__':
    main()
