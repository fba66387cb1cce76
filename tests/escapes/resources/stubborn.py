"""Every signal ignored or blocked, every exception swallowed."""
# timeout: 1
# ends: timeout
# control: outlives

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
