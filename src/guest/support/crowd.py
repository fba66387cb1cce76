"""Who else is in a session when a copy of it is to be taken: the words for threads, and the generators that draw its random numbers."""

_LOOK_AT = 2048  # objects on the way to generators; a heap of millions is not walked, for a copy would have to be made of all it touches
_ITEMS = 256  # of one container
_NAMES = 3  # of threads, in an error


def threads_text(count):
    """What `count` threads beside the main one are, and what to do about them."""
    threading = sys.modules.get('threading')
    names = [t.name for t in threading.enumerate() if t is not threading.main_thread()] if threading else []
    if any('_handle_workers' in name for name in names):
        return 'a multiprocessing pool is open: end it (close or terminate, then join)'
    if names and all(name.startswith('ThreadPoolExecutor') for name in names):
        return f'a ThreadPoolExecutor is open ({_count(len(names), "thread")} running): end it (shutdown)'
    if names:
        shown = ', '.join(names[:_NAMES]) + (', …' if len(names) > _NAMES else '')
        return f'{_count(len(names), "thread")} running beside the cell\'s ({shown}): end {"it" if len(names) == 1 else "them"} (join)'
    if 'tkinter' in sys.modules or '_tkinter' in sys.modules:
        return 'a thread of Tcl is running, which tkinter keeps from its first window on: take checkpoints before that, and go back to one'
    return '1 thread of a library is running: end what started it' if count == 1 else f'{count} threads of libraries are running: end what started them'


def _count(n, what):
    return f'1 {what} is' if n == 1 else f'{n} {what}s are'


def _reachable(namespace):
    """(path, value) of what the variables hold and lead to: items of containers, attributes of objects, defaults and closures of functions."""
    seen, todo = set(), [(name, value) for name, value in namespace.items() if not name.startswith('__')]
    for path, value in todo:
        if id(value) in seen or len(seen) >= _LOOK_AT:
            continue
        seen.add(id(value))
        yield path, value
        try:
            todo += _parts(path, value) if len(todo) < _LOOK_AT else ()
        except Exception:
            pass  # an object that does not let itself be looked at


def _enclosed(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # not filled yet


def _parts(path, value):
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        inside = [(f'{path}[{i}]', v) for i, v in enumerate(value) if i < _ITEMS] if len(value) <= _LOOK_AT else []
    elif kind is dict:
        inside = [(f'{path}[{k!r}]' if type(k) in (str, int) else f'{path}[…]', v) for i, (k, v) in enumerate(value.items()) if i < _ITEMS]
    elif kind is type(_parts):
        inside = [(f'{path}()', v) for v in (*(value.__defaults__ or ()), *_enclosed(value))]
    elif isinstance(value, type):
        inside = [(f'{path}.{k}', v) for k, v in vars(value).items()] if value.__module__ == '__main__' else []
    elif isinstance(value, type(sys)):
        inside = []
    else:
        inside = [(f'{path}.{k}', v) for k, v in list(getattr(value, '__dict__', {}).items())[:_ITEMS]]
    return [(p, v) for p, v in inside if type(v) not in (str, bytes, int, float, bool, type(None))]


def _reseed_all():
    """Gives everything that draws random numbers in the session others; the names of what it could not."""
    reseed(None)
    kept = [name for name in ('torch', 'tensorflow', 'jax') if name in sys.modules]
    random, numpy = sys.modules.get('random'), sys.modules.get('numpy.random')
    for path, value in _reachable(sys.modules['__main__'].__dict__):
        try:
            if random is not None and isinstance(value, random.Random):
                value.seed()
            elif numpy is not None and isinstance(value, numpy.Generator):
                value.bit_generator.state = type(value.bit_generator)().state
            elif numpy is not None and isinstance(value, numpy.BitGenerator):
                value.state = type(value)().state
            elif numpy is not None and isinstance(value, numpy.RandomState):
                value.seed()
            elif type(value).__module__.partition('.')[0] in ('torch', 'jax', 'tensorflow') and 'enerator' in type(value).__name__:
                kept.append(path)
        except Exception:
            kept.append(path)
    return kept
