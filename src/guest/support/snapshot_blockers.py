"""Who else is in a session when a copy of it is to be taken: the words for threads, and the generators that draw its random numbers."""

_LOOK_AT = 2048  # objects on the way to generators; a heap of millions is not walked, for a copy would have to be made of all it touches
_DEAD_ENDS = (str, bytes, int, float, bool, type(None))  # lead to nothing
_ITEMS = 256  # of one container
_NAMES = 3  # of threads, in an error


def threads_text(count):
    """What `count` threads beside the main one are, and what to do about them."""
    threading = sys.modules.get('threading')
    threads = [t for t in threading.enumerate() if t is not threading.main_thread()] if threading else []
    names = [t.name for t in threads]
    if any(type(t).__name__ == '_ExecutorManagerThread' for t in threads):
        return 'a ProcessPoolExecutor is open: end it (shutdown)'
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


def child_text(pid):
    """What the child process is, where its name says nothing; else None."""
    tracker = sys.modules.get('multiprocessing.resource_tracker')
    if tracker and pid == tracker._resource_tracker._pid:
        return "multiprocessing's resource tracker is running: close and unlink shared memory, then multiprocessing.resource_tracker._resource_tracker._stop()"


def reap_children():
    """Reaps ended processes that nobody holds any more, as the modules that started them do before they start another."""
    for name in ('subprocess', 'multiprocessing.process'):
        if name in sys.modules:
            sys.modules[name]._cleanup()


def _count(n, what):
    return f'1 {what} is' if n == 1 else f'{n} {what}s are'


def _reachable(namespace):
    """(path, value) of what the variables hold and lead to: items of containers, attributes of objects, defaults and closures of functions."""
    seen, left = set(), _LOOK_AT
    todo = [(name, value) for name, value in namespace.items() if not name.startswith('__') and type(value) not in _DEAD_ENDS]
    for path, value in todo:
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield path, value
        try:
            for n, (part, inner) in enumerate(_parts(path, value)):
                if n == _ITEMS or not left:
                    break
                left -= 1
                if type(inner) not in _DEAD_ENDS:
                    todo.append((part(), inner))
        except Exception:
            pass  # an object that does not let itself be looked at


def _enclosed(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # not filled yet


def _parts(path, value):
    """(what tells the path, value) of what lies in a value, one by one: whoever looks at an object copies its page."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        yield from ((lambda i=i: f'{path}[{i}]', v) for i, v in enumerate(value))
    elif kind is dict:
        yield from ((lambda k=k: f'{path}[{k!r}]' if type(k) in (str, int) else f'{path}[…]', v) for k, v in value.items())
    elif kind is type(_parts):
        yield from ((lambda: f'{path}()', v) for v in (*(value.__defaults__ or ()), *_enclosed(value)))
    elif isinstance(value, type):
        if value.__module__ == '__main__':
            yield from ((lambda k=k: f'{path}.{k}', v) for k, v in vars(value).items())
    elif not isinstance(value, type(sys)):
        yield from ((lambda k=k: f'{path}.{k}', v) for k, v in getattr(value, '__dict__', {}).items())


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
