"""Pseudo-terminals: each session has its own."""


def test_openpty(session):
    code = """
import fcntl, os, pty, struct, termios
master, slave = pty.openpty()
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 99, 0, 0))
os.write(master, b'hello\\n')
answer = os.ttyname(slave), os.isatty(slave), tuple(os.get_terminal_size(slave)), os.read(slave, 100), os.read(master, 100)
try:
    fcntl.ioctl(slave, termios.TIOCSTI, b'x')
except OSError as e:
    answer += (e.errno,)
os.close(master); os.close(slave)
answer
"""
    assert eval(session.value(code)) == ('/dev/pts/0', True, (99, 33), b'hello\n', b'hello\r\n', 1)


def test_a_shell_in_a_terminal(session):
    code = """
import os, pty, signal
pid, fd = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', 'stty rows 20 cols 70; tty; read line; echo "got $line"; stty size; echo told > /dev/tty; kill -INT $$'])
os.write(fd, b'hello\\n')
said = b''
while True:
    try:
        said += os.read(fd, 1024)
    except OSError:
        break
os.close(fd)
said.replace(b'\\r', b'').decode().split('\\n'), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
    lines, status = eval(session.value(code))
    assert {'/dev/pts/0', 'got hello', '20 70', 'told'} <= set(lines) and status == -2


def test_spawn_and_script(session):
    code = """
import os, pty, subprocess
subprocess.run(['python3', '-c', 'import pty; pty.spawn(["sh", "-c", "test -t 1 && echo terminal"])'], capture_output=True, stdin=subprocess.DEVNULL).stdout, \\
    subprocess.run(['script', '-qc', 'test -t 0 && echo terminal', '/dev/null'], capture_output=True, stdin=subprocess.DEVNULL).stdout
"""
    assert [part.strip() for part in eval(session.value(code))] == [b'terminal', b'terminal']


def test_there_is_an_end_to_them(api):
    session, other = api.session(), api.session()
    code = """
import os
taken = []
try:
    while len(taken) < 1000:
        taken.append(os.openpty())
except OSError:
    pass
len(taken) < 100
"""
    assert session.value(code) == 'True'
    assert other.value('import os; os.ttyname(os.openpty()[1]), os.listdir("/dev/pts")') == "('/dev/pts/0', ['0', 'ptmx'])"


def test_no_terminal_without_one(session):
    assert session.execute('open("/dev/tty")').error['type'] == 'OSError'
