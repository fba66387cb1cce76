"""The machine's own device files: their times and modes are not a session's to change, nor a place to leave marks for others."""

for name in ('null', 'zero', 'full', 'random', 'urandom'):
    path = f'/dev/{name}'
    before = os.stat(path).st_mtime_ns
    try:
        os.utime(path)
        if os.stat(path).st_mtime_ns != before:
            got(f'the time of {path}')
    except OSError:
        pass
    try:
        os.chmod(path, os.stat(path).st_mode)
        got(f'the mode of {path}')
    except OSError:
        pass
assert os.write(os.open('/dev/null', os.O_WRONLY), b'x') == 1 and len(open('/dev/urandom', 'rb').read(4)) == 4
