#!/usr/bin/python3
"""Looks at built binaries for what makes faults in them hard to use. Prints TAP; arguments: the binaries."""

import platform
import re
import subprocess
import sys

ENDBR64 = bytes.fromhex('f30f1efa')
count = failed = 0


def readelf(path, *options):
    return subprocess.run(['readelf', '-W', *options, path], check=True, capture_output=True, text=True).stdout


def ok(condition, what):
    global count, failed
    count += 1
    failed += not condition
    print('ok' if condition else 'not ok', count, '-', what)


def segments(text):
    """[(type, file offset, address, size in the file, flags)]"""
    rows = re.findall(r'^  (\w+) +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ ([R ][W ][E ])', text, re.M)
    return [(kind, int(offset, 16), int(address, 16), int(size, 16), flags) for kind, offset, address, size, flags in rows]


def has_landing_pads(path, loads):
    """Whether indirect branches have marked targets in our own functions: (functions that others can call, those that are marked)."""
    rows = re.findall(r'^ *\d+: (\w+) +(\d+) FUNC +GLOBAL +\w+ +(\d+) (\S+)$', readelf(path, '-s'), re.M)
    functions = {int(address, 16) for address, size, _, name in rows if int(size) > 0 and not name.startswith('_')}
    with open(path, 'rb') as f:
        data = f.read()
    marked = 0
    for address in functions:
        for _, offset, start, size, _ in loads:
            if start <= address < start + size:
                at = offset + address - start
                marked += data[at : at + 4] == ENDBR64
    return len(functions), marked


def check(path):
    name = path.rsplit('/', 1)[-1]
    found, dynamic, symbols = segments(readelf(path, '-l')), readelf(path, '-d'), readelf(path, '-s')
    kinds = {kind: flags for kind, _, _, _, flags in found}
    loads = [s for s in found if s[0] == 'LOAD']

    ok('Type:                              DYN' in readelf(path, '-h'), f'{name}: can be loaded anywhere')
    ok(name.endswith('.so') or re.search(r'FLAGS_1.*PIE', dynamic), f'{name}: a program is position independent')
    ok('E' not in kinds.get('GNU_STACK', 'E'), f'{name}: its stack is not executable')
    ok(loads and not [s for s in loads if 'W' in s[4] and 'E' in s[4]], f'{name}: nothing is writable and executable')
    ok('GNU_RELRO' in kinds and re.search(r'BIND_NOW|FLAGS_1.*\bNOW\b', dynamic), f'{name}: its tables are read-only once it runs')
    # Packages bring their libraries in lib/glovebox, seen from the program or the module; no other path may be built in.
    paths = re.findall(r'\(R(?:UN)?PATH\).*\[(.*)\]', dynamic)
    ok('TEXTREL' not in dynamic and paths in ([], ['$ORIGIN' if name.endswith('.so') else '$ORIGIN/../lib/glovebox']),
       f'{name}: no code is changed at the start, no path is built in but that of its own libraries')
    ok('__stack_chk_fail' in symbols, f'{name}: stacks are protected')
    ok(re.search(r'__\w+_chk@', symbols), f'{name}: functions of libc that fill memory check its size')
    if platform.machine() == 'x86_64':
        functions, marked = has_landing_pads(path, loads)
        ok(functions and marked == functions, f'{name}: indirect branches have marked targets ({marked} of {functions})')


for binary in sys.argv[1:]:
    check(binary)
print(f'1..{count}')
sys.exit(1 if failed else 0)
