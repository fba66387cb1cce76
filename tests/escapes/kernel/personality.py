"""Execution domains: memory without randomness, pages that are executable by being readable."""

for name, bits in {'ADDR_NO_RANDOMIZE': 0x40000, 'READ_IMPLIES_EXEC': 0x400000, 'MMAP_PAGE_ZERO': 0x100000, 'PER_LINUX32': 8}.items():
    if in_child(lambda: call('personality', bits)[0]) not in (-1, None):
        got(name)
    if in_child(lambda: call('personality', bits | 1 << 35)[0]) not in (-1, None):
        got(f'{name} with a high bit')
