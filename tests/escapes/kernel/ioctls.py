"""Requests that type into terminals or load code for them, plain and with high bits that the kernel ignores."""

r, w = os.pipe()
for name, code in {
    'TIOCSTI': 0x5412, 'TIOCLINUX': 0x541C, 'TIOCSETD': 0x5423, 'TIOCCONS': 0x541D,
    'FS_IOC_SETFLAGS': 0x40086602, 'FIFREEZE': 0xC0045877, 'KVM_CREATE_VM': 0xAE01, 'TUNSETIFF': 0x400454CA,
}.items():  # fmt: skip
    for high in (0, 1 << 32, 1 << 63):
        if reached('ioctl', r, code | high, 0):
            got(f'{name}{" with high bits" if high else ""}')
            break
