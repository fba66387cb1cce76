"""A process that stops itself, and cannot be asked anything any more."""
# timeout: 1
# ends: timeout
# control: outlives

os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)
