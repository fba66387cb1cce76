"""32-bit calls from a 64-bit program by int 0x80."""
# arch: x86_64

# mov eax, 20 (getpid); int 0x80; ret
outcome = in_child(machine_code(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3'))
if not isinstance(outcome, dict):
    got(f'a 32-bit call came back with {outcome}')
