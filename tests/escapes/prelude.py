"""Put in front of every program in this folder: system calls by name, and the one line that says how it went.

A program calls got() for each thing that must not work and did; verdict() is called behind its last line.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import stat
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == 'x86_64'

# Numbers on x86-64, and behind the slash on arm64 where they differ (-: there is no such call).
_TABLE = """
acct=163/89 add_key=248/217 adjtimex=159/171 bpf=321/280 capset=126/91 chroot=161/51 clock_settime=227/112
clone=56/220 clone3=435 delete_module=176/106 execveat=322/281 fanotify_init=300/262 fchownat=260/54
fcntl=72/25 finit_module=313/273 fsmount=432 fsopen=430 getpid=39/172 gettid=186/178 init_module=175/105
inotify_add_watch=254/27 inotify_init1=294/26 io_setup=206/0 io_uring_setup=425 ioctl=16/29 ioperm=173/- iopl=172/- ioprio_set=251/30
kcmp=312/272 kexec_load=246/104 keyctl=250/219 kill=62/129 landlock_create_ruleset=444 listmount=458
lsm_get_self_attr=459 mbind=237/235 memfd_create=319/279 memfd_secret=447 migrate_pages=256/238
mknodat=259/33 mlock=149/228 mlockall=151/230 modify_ldt=154/- mount=165/40 mount_setattr=442 move_mount=429
move_pages=279/239 mq_open=240/180 mseal=462 msgget=68/186 name_to_handle_at=303/264
open_by_handle_at=304/265 open_tree=428 openat2=437 perf_event_open=298/241 personality=135/92
pidfd_getfd=438 pidfd_open=434 pidfd_send_signal=424 pivot_root=155/41 pkey_alloc=330/289 prctl=157/167 preadv2=327/286
prlimit64=302/261 process_madvise=440 process_mrelease=448 process_vm_readv=310/270
process_vm_writev=311/271 ptrace=101/117 quotactl=179/60 quotactl_fd=443 reboot=169/142 recvmmsg=299/243
remap_file_pages=216/234 request_key=249/218 rt_sigqueueinfo=129/138 rt_tgsigqueueinfo=297/240
sched_setattr=314/274 sched_setparam=142/118 sched_setscheduler=144/119 seccomp=317/277 semget=64/190
sendfile=40/71 sendmmsg=307/269 set_mempolicy=238/237 setdomainname=171/162 setgroups=116/159
sethostname=170/161 setns=308/268 setresgid=119/149 setresuid=117/147 settimeofday=164/170 setxattr=188/5
shmat=30/196 shmctl=31/195 shmget=29/194 signalfd4=289/74 socket=41/198 socketpair=53/199 splice=275/76
statmount=457 swapoff=168/225 swapon=167/224 syncfs=306/267 syslog=103/116 tee=276/77 tgkill=234/131
timer_create=222/107 tkill=200/130 umount2=166/39 unshare=272/97 userfaultfd=323/282 vmsplice=278/75
"""
CALLS = {}
for _entry in _TABLE.split():
    _name, _, _numbers = _entry.partition('=')
    _x86, _, _arm = _numbers.partition('/')
    _number = _x86 if X86 else _arm or _x86
    CALLS[_name] = -1 if _number == '-' else int(_number)

escapes = []


def got(what):
    escapes.append(what)


def verdict():
    os.write(1, (f'\nESCAPED {"; ".join(escapes)}\n' if escapes else '\nCONTAINED\n').encode())


def call(name, *args):
    """(result, errno) of a system call, without what libc puts before it."""
    number = name if isinstance(name, int) else CALLS[name]
    if number < 0:
        return -1, errno.ENOSYS
    ctypes.set_errno(0)
    ready = [a if isinstance(a, (bytes, ctypes.Array, ctypes.Structure)) or a is None else ctypes.c_ulong(a & (2**64 - 1)) for a in args]
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *ready)
    return result, ctypes.get_errno() if result == -1 else 0


def reached(name, *args):
    """Whether the call got past every filter: the kernel's own code then complains about the arguments, if at all."""
    result, error = call(name, *args)
    return result != -1 or error not in (errno.EPERM, errno.ENOSYS, errno.EACCES)


def in_child(function):
    """What function() returns in a child process (anything JSON can say), or {'signal': n} when a signal ended it."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(w, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(w)
    with open(r, 'rb') as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return {'signal': os.WTERMSIG(status)}
    return json.loads(data) if data else None


def tries(what, function, *args, **kwargs):
    """got(what) when the function does not raise OSError; returns its value, else None."""
    try:
        value = function(*args, **kwargs)
    except (OSError, ValueError):
        return None
    got(what)
    return value


def machine_code(code):
    """A function of machine code that takes nothing and returns a long."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    function = ctypes.CFUNCTYPE(ctypes.c_long)(address)
    function.page = page
    return function
