"""Each layer of the wall taken away, for real, while the programs of kernel/ try to get out: either another layer holds, or the layer is
named here as the only one.

The jail is a real one (bare_jail.c); the filter is left out where the zygote would load it, Landlock by a kernel that seems to have none.
A program that gets through must be in ONLY, with what it reaches then: mostly code of the kernel's that no session needs, and never, by
what the other layers still hold, a file, a process or a network outside.
"""

import os
import subprocess
from pathlib import Path

import gb
import pytest
from test_escapes import PROGRAMS, lines, skip_on_other_machines
from test_forged import WITHOUT_LANDLOCK

BARE_JAIL = Path(gb.PROGRAM).parent / 'tests/unit/bare_jail'
KERNEL = [p for p in PROGRAMS if p.path.parent.name == 'kernel' and p.notes.get('exec', 'system') == 'system' and 'network' not in p.notes]

# layer → programs that only this layer stops, and what they reach without it.
ONLY = {
    'landlock': {},
    'filter': {
        'async_io': 'io_uring and aio, code of the kernel with a history of faults',
        'clone3': 'a user namespace of its own',
        'every_option': 'options of prctl, fcntl and setsockopt',
        'exec_memory': 'programs from files in memory (the kernel seals them only where root started the server)',
        'file_handles': 'names of files by handle; opening them is refused by the kernel',
        'flushes': 'flushes of the disk of the machine',
        'handles': 'what namespaces and processes answer about their relatives',
        'huge_pages': 'the huge pages that the machine has set aside',
        'i386_abi': 'system calls of another ABI',
        'ioctls': 'ioctls of descriptors it has',
        'keyrings': 'keys of its own user',
        'machine_wide': 'calls that the kernel refuses for want of a capability',
        'mounts_by_fd': 'a list of the mounts of the jail',
        'namespaces': 'namespaces of its own',
        'netlink_and_raw': 'netlink and vsock sockets of an empty network namespace',
        'new_calls': 'calls that are younger than the filter',
        'owners': 'attributes of its own files',
        'cached_files': 'RWF_NOWAIT, which tells what is in the page cache of the machine',
        'page_cache': 'files thrown out of the page cache of the machine',
        'peer_process': 'a handle of the process at the other end of a socket',
        'personality': 'another personality for itself',
        'prctl': 'options of its own process',
        'privileges': 'the filter itself',
        'ptrace': 'its own processes',
        'rare_calls': 'calls that no session needs',
        'signal_init': 'descriptors of the init; the kernel drops the signals',
        'socket_families': 'sockets of an empty network namespace',
        'socket_programs': 'programs that the kernel compiles for a socket',
        'splices': 'splices, the way of several faults into the page cache',
        'urgent_data': 'urgent data on unix sockets, the way of a fault of the kernel',
        'userfaultfd': 'faults of its own pages',
        'x32_abi': 'system calls of another ABI',
        'watches': 'watches that show who opens and reads the files of the system',
    },
}


def run(program, layer):
    command = [str(BARE_JAIL), 'none' if layer == 'filter' else 'filter', gb.PYTHON, '-I', '-c', program.text]
    if layer == 'landlock':
        command = [gb.PYTHON, '-c', WITHOUT_LANDLOCK, *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=gb.PATIENCE)
    assert done.returncode != 99, done.stderr
    return lines(done.stdout), done


@pytest.mark.parametrize('layer', ['none', *ONLY])
@pytest.mark.parametrize('program', KERNEL, ids=repr)
def test_without(program, layer):
    skip_on_other_machines(program)
    if os.geteuid() != 0:
        pytest.skip('jails of this test are made by root')
    said, done = run(program, layer)
    through = any(line.startswith('ESCAPED') for line in said)
    assert said or done.returncode != 0, (done.returncode, done.stderr[-1000:])
    assert not through or program.name in ONLY.get(layer, ()), said


def test_landlock_is_the_only_layer_for_nothing():
    assert ONLY['landlock'] == {}


def test_named_programs_exist():
    assert set(ONLY['filter']) <= {p.name for p in KERNEL}
