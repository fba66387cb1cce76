"""For all suites."""

import signal

# What a shell starts with & ignores interrupts, and so would everything that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
