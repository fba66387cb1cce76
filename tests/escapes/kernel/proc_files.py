"""Files of /proc that belong to the whole machine, and other processes' private ones."""

for path in (
    'kcore kallsyms kmsg keys key-users sysrq-trigger iomem ioports interrupts modules mounts-stats timer_list sched_debug slabinfo '
    'cmdline partitions diskstats swaps config.gz crypto bus/pci/devices '
    'sys/kernel/core_pattern sys/kernel/modprobe sys/kernel/random/boot_id sys/vm/overcommit_memory sys/fs/binfmt_misc/register '
    'sys/kernel/hostname acpi/wakeup irq/default_smp_affinity driver/rtc fs/ext4 tty/drivers sysvipc/shm pressure/cpu'
).split():
    if os.path.exists(f'/proc/{path}'):
        got(f'/proc/{path}')
machine = os.stat('/proc').st_dev  # files of the session's own lie on another file system and cannot be written
for name in 'cpuinfo meminfo version vmstat stat loadavg uptime filesystems'.split():
    if os.path.exists(f'/proc/{name}') and (os.stat(f'/proc/{name}').st_dev == machine or os.access(f'/proc/{name}', os.W_OK)):
        got(f"the kernel's own /proc/{name}")
for name in ('environ', 'auxv', 'maps', 'mem', 'syscall', 'stack', 'io', 'pagemap'):
    tries(f'/proc/1/{name}', os.open, f'/proc/1/{name}', os.O_RDONLY)
for name in ('cwd', 'root', 'exe', 'fd/0'):
    tries(f'/proc/1/{name}', os.readlink, f'/proc/1/{name}')
tries('wrote a user map', lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1'))
tries('wrote to the program that runs us', os.open, '/proc/self/exe', os.O_WRONLY)
