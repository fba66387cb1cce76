"""With exec none no program starts, in whatever way."""
# exec: none

import subprocess

TRUE = '/bin/true'


def by(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(99)
    return os.waitpid(pid, 0)[1] == 0


vector, nothing = (ctypes.c_char_p * 2)(b'true', None), (ctypes.c_char_p * 1)(None)
for name, function in {
    'execv': lambda: os.execv(TRUE, ['true']),
    'execveat': lambda: call('execveat', -100, TRUE.encode(), vector, nothing, 0),
    'the loader': lambda: os.execv('/lib64/ld-linux-x86-64.so.2', ['ld.so', TRUE]),
}.items():
    if by(function):
        got(name)
for name, function in {
    'subprocess': lambda: subprocess.run([TRUE], check=True),
    'a shell': lambda: subprocess.run('true', shell=True, check=True),
    'posix_spawn': lambda: os.waitpid(os.posix_spawn(TRUE, ['true'], {}), 0)[1] == 0 or [][0],
}.items():
    try:
        function()
        got(name)
    except (OSError, subprocess.CalledProcessError, IndexError):
        pass
if os.system('true') == 0:
    got('system')
