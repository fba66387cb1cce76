"""Files and directories outside the session's own: making, opening for writing, changing."""

NAME = f'.glovebox-escape-{os.getpid()}'
for place in '/ /etc /usr /usr/bin /usr/lib /usr/local /usr/local/lib /var /var/tmp /run /home /dev /root /opt /srv /mnt /boot'.split():
    path = os.path.join(place, NAME)
    for what, make, remove in (
        ('a file', lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)), os.unlink),
        ('a directory', lambda: os.mkdir(path), os.rmdir),
        ('a link', lambda: os.symlink('/', path), os.unlink),
        ('an unnamed file', lambda: os.close(os.open(place, os.O_TMPFILE | os.O_WRONLY)), None),
    ):
        if os.path.isdir(place) and tries(f'{what} in {place}', lambda: (make(), 1)) and remove:
            remove(path)
for path in ('/etc/passwd', '/etc/hosts', '/etc/ld.so.cache', '/usr/bin/python3', '/bin/sh', os.__file__):
    if not os.path.exists(path):
        continue
    tries(f'open {path} for writing', lambda: os.close(os.open(path, os.O_WRONLY)) or 1)
    now = os.stat(path)
    tries(f'set the times of {path}', lambda: os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns)) or 1)
    tries(f'set the mode of {path}', lambda: os.chmod(path, stat.S_IMODE(now.st_mode)) or 1)
