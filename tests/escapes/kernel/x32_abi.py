"""The x32 numbers of the same calls: another table that a careless filter forgets."""
# arch: x86_64

X32 = 0x40000000
# mov eax, X32 | getpid; syscall; ret
outcome = in_child(machine_code(b'\xb8' + struct.pack('<I', X32 | 39) + b'\x0f\x05\xc3'))
if outcome != {'signal': signal.SIGSYS}:
    got(f'an x32 call came back with {outcome}')
