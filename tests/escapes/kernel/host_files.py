"""What would tell which machine this is, and whose."""

import socket

# /var/cache/fontconfig is given: what was found in the fonts of /usr, which is given too
for path in (
    '/etc/machine-id /etc/shadow /etc/gshadow /etc/sudoers /etc/fstab /etc/resolv.conf /etc/ssh /etc/ssl/private /etc/crontab '
    '/root /home/* /var/lib /var/log /var/cache/[!f]* /var/spool /run/* /sys/class /sys/kernel /sys/fs/cgroup /boot /opt /srv /mnt /media '
    '/tmp/* /lost+found /proc/cmdline /proc/sys/kernel/random/boot_id /work'
).split():
    import glob

    for found in glob.glob(path)[:1]:
        if os.path.exists(found) and (not os.path.isdir(found) or os.listdir(found)):
            got(found)
if socket.gethostname() != 'sandbox' or os.uname().nodename != 'sandbox':
    got(f'the host name {socket.gethostname()}')
for line in open('/proc/self/mountinfo'):
    fields = line.split()
    if fields[4].startswith(('/home/', '/root', '/var/lib', '/sys')) or fields[4] == '/old':
        got(f'mount {fields[4]}')
users = [line.split(':')[0] for line in open('/etc/passwd')]
if set(users) - {'root', 'sandbox', 'nobody'}:
    got(f'{len(users)} users')
group = open('/proc/self/cgroup').read()
if any(line.split(':', 2)[2] not in ('/', '') and '..' not in line for line in group.splitlines()):
    got(f'the control group {group.split()[0]}')
