"""Every call that came after Linux 5.0, and every number that is still free: each piece of kernel that ordinary programs do without."""

CLOSE_RANGE = 436  # subprocess uses it


def passed():
    return [nr for nr in range(424, 1024) if nr != CLOSE_RANGE and reached(nr, -1, -1, -1, -1, -1, -1)]


for nr in in_child(passed):
    got(str(nr))
