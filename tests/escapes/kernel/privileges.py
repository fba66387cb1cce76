"""Capabilities, no_new_privs and the filter itself, here and in a program that was started."""

import subprocess

WANT = {'CapInh': 0, 'CapPrm': 0, 'CapEff': 0, 'CapBnd': 0, 'CapAmb': 0, 'NoNewPrivs': 1, 'Seccomp': 2}


def check(where, text):
    found = dict(line.split(':', 1) for line in text.splitlines() if ':' in line)
    for key, value in WANT.items():
        if int(found[key].strip(), 16) != value:
            got(f'{where}: {key} {found[key].strip()}')


check('here', open('/proc/self/status').read())
check('after exec', subprocess.run(['/bin/cat', '/proc/self/status'], capture_output=True, text=True).stdout)
if 0 in os.getresuid() + os.getresgid():
    got('an id is 0')
header, data = struct.pack('II', 0x20080522, 0), struct.pack('6I', 1 << 21, 1 << 21, 0, 0, 0, 0)
if in_child(lambda: call('capset', header, data)[0]) == 0:
    got('capset')
for name, args in {'setresuid': (0, 0, 0), 'setresgid': (0, 0, 0), 'setgroups': (0, None)}.items():
    if in_child(lambda: call(name, *args)[0]) == 0:
        got(name)
