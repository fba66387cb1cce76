"""Files of /proc that belong to the whole machine, and other processes' private ones."""

for path in (
    'kcore kallsyms kmsg keys key-users sysrq-trigger iomem ioports interrupts modules mounts-stats timer_list sched_debug slabinfo '
    'cmdline cpuinfo meminfo version partitions diskstats vmstat stat loadavg uptime swaps config.gz crypto bus/pci/devices '
    'sys/kernel/core_pattern sys/kernel/modprobe sys/kernel/random/boot_id sys/vm/overcommit_memory sys/fs/binfmt_misc/register '
    'sys/kernel/hostname acpi/wakeup irq/default_smp_affinity driver/rtc fs/ext4 tty/drivers sysvipc/shm pressure/cpu'
).split():
    if os.path.exists(f'/proc/{path}'):
        got(f'/proc/{path}')
for name in ('environ', 'auxv', 'maps', 'mem', 'syscall', 'stack', 'io', 'pagemap'):
    tries(f'/proc/1/{name}', os.open, f'/proc/1/{name}', os.O_RDONLY)
for name in ('cwd', 'root', 'exe', 'fd/0'):
    tries(f'/proc/1/{name}', os.readlink, f'/proc/1/{name}')
tries('wrote a user map', lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1'))
tries('wrote to the program that runs us', os.open, '/proc/self/exe', os.O_WRONLY)
