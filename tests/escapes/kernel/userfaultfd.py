"""Faults handled by the program itself: they make races in the kernel winnable."""

if reached('userfaultfd', 0o2000000):
    got('userfaultfd')
if reached('userfaultfd', 1):
    got('userfaultfd for user faults')
tries('/dev/userfaultfd', os.open, '/dev/userfaultfd', os.O_RDWR)
if reached('memfd_secret', 0):
    got('memfd_secret')
