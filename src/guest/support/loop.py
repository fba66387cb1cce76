"""Top-level await: one event loop for a session, so that tasks of one cell go on while a later one awaits."""

_loop = None
_IS_COROUTINE = 0x80  # CO_COROUTINE of a code object compiled with PyCF_ALLOW_TOP_LEVEL_AWAIT
_MISSING = object()


def run_async(coro):
    """Runs a coroutine to its end and returns its value or raises its exception."""
    global _loop
    import asyncio

    if _loop is None or _loop.is_closed():
        _loop = asyncio.new_event_loop()
    asyncio.set_event_loop(_loop)
    run = _Run(_loop, coro)
    try:
        run.to_the_end()
        run.keep_context()
        if run.error is not None:
            raise run.error
        return run.value
    finally:
        run.error = None  # its traceback holds this frame


def loop_descriptors():
    """The sockets by which the loop wakes itself; a copy of the session goes on with them."""
    if _loop is None or _loop.is_closed():
        return []
    return [s.fileno() for s in (getattr(_loop, '_ssock', None), getattr(_loop, '_csock', None)) if s is not None]


def part_ways(new_numbers):
    """In a copy that becomes a session of its own: an event loop of its own at the next await, and random numbers. The names of what keeps its
    seed, as text."""
    global _loop
    if _loop is not None and not _loop.is_closed():
        import asyncio

        if asyncio.all_tasks(_loop):
            raise RuntimeError('tasks are pending')
        # Closed piece by piece: a proper close would take its parent's descriptors out of the poll they still share.
        for part in (getattr(_loop._selector, '_selector', None), _loop._ssock, _loop._csock):
            if part is not None:
                part.close()
        _loop._ssock = _loop._csock = None
        _loop._closed = True
    _loop = None
    return ', '.join(_reseed_all()) if new_numbers else ''


def run_async_cell(body, last, namespace):
    """Runs a cell that awaits somewhere: its statements and its last expression, two code objects of which either
    may be None. Both run on the loop, also the one without await: it may start what the other waits for."""

    async def cell():
        value = None
        for code in (body, last):
            if code is not None:
                value = eval(code, namespace)
                if code.co_flags & _IS_COROUTINE:
                    value = await value
        return None if last is None else value

    return run_async(cell())


class _Run:
    """One coroutine on the loop. Its exceptions are carried by hand: past the frames of asyncio, and SystemExit
    and KeyboardInterrupt without stopping the loop in the middle of other tasks."""

    def __init__(self, loop, coro):
        self.loop = loop
        self.value = self.error = self.context = None
        self.interrupts = 0
        self.task = loop.create_task(self.drive(coro))

    async def drive(self, coro):
        import contextvars

        try:
            self.value = await coro
        except BaseException as e:
            self.error = e
        self.context = contextvars.copy_context()

    def keep_context(self):
        """What the cell set in context variables is there for the next one too: a task only has a copy."""
        for var, value in self.context.items() if self.context is not None else ():
            if var.get(_MISSING) is not value:
                var.set(value)

    def to_the_end(self):
        restore = self.catch_interrupts()
        try:
            self.loop.run_until_complete(self.task)
        except BaseException as e:
            # Something else on the loop ended it: an interrupt or sys.exit() in another task, or loop.stop().
            self.cancel()
            tb = _past_asyncio(e.__traceback__) or (self.error and self.error.__traceback__)
            self.error = e.with_traceback(tb)
        finally:
            restore()
        if self.interrupts and type(self.error).__name__ == 'CancelledError':
            self.error = KeyboardInterrupt().with_traceback(self.error.__traceback__)

    def cancel(self):
        """Lets the task clean up for a moment; one that does not end stays on the loop."""
        import asyncio

        try:
            if not self.task.done() and not self.loop.is_closed():
                self.task.cancel()
                self.loop.run_until_complete(asyncio.wait([self.task], timeout=0.5))
        except BaseException:
            pass  # interrupted again

    def catch_interrupts(self):
        """While code of a task runs, SIGINT raises KeyboardInterrupt there as usual. While the loop waits, the cell's
        task is cancelled instead, so that the exception does not hit asyncio's own code. The second is always raised.
        """
        import asyncio
        import signal

        def on_sigint(signum, frame):
            self.interrupts += 1
            if self.interrupts > 1 or asyncio.current_task(self.loop) is not None:
                raise KeyboardInterrupt
            self.task.cancel()
            self.loop.call_soon_threadsafe(int)  # wakes the loop

        try:
            if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                return int  # the cell has its own idea of SIGINT
            signal.signal(signal.SIGINT, on_sigint)
        except ValueError:
            return int  # not in the main thread
        return lambda: signal.signal(signal.SIGINT, signal.default_int_handler)


def _past_asyncio(tb):
    """The first entry of a traceback that is neither the loop's nor ours."""
    import asyncio
    import selectors

    folder = asyncio.__file__.rpartition('/')[0] + '/'
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if not (name == _OURS or name == selectors.__file__ or name.startswith(folder)):
            break
        tb = tb.tb_next
    return tb
