"""Settings of the process that would loosen the jail."""

for name, args in {
    'SET_SECCOMP': (22, 2, None),
    'SET_PTRACER': (0x59616D61, -1),
    'SET_MM': (35, 99, 0),
    'CAP_AMBIENT': (47, 2, 99),
    'SET_SECUREBITS': (28, 1 << 30),
    'SET_CHILD_SUBREAPER': (36, 0),
    'SET_TIMING': (14, 0),
    'SET_KEEPCAPS': (8, 0),
    'SCHED_CORE': (62, 9),
}.items():
    if in_child(lambda: reached('prctl', *args, 0, 0)):
        got(name)
if in_child(lambda: reached('seccomp', 2, 0)):
    got('seccomp')
