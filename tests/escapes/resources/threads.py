"""More threads than the limit: they count as processes do."""
# limits: {"processes": 40}

import threading

stop, threads = threading.Event(), []
try:
    while len(threads) < 300:
        thread = threading.Thread(target=stop.wait, daemon=True)
        thread.start()
        threads.append(thread)
except RuntimeError:
    pass
stop.set()
if len(threads) > 40:
    got(f'{len(threads)} threads')
