"""Programs in the kernel, and counters on everything."""

array_map = (ctypes.c_uint32 * 32)(2, 4, 8, 1)  # BPF_MAP_TYPE_ARRAY, key 4, value 8, one entry
fd, _ = call('bpf', 0, array_map, ctypes.sizeof(array_map))
if fd >= 0:
    got('bpf: a map')
elif reached('bpf', 5, array_map, ctypes.sizeof(array_map)):
    got('bpf')
attributes = ctypes.create_string_buffer(struct.pack('IIQ', 1, 64, 0), 64)  # software, cpu clock
if reached('perf_event_open', attributes, 0, -1, -1, 0):
    got('perf_event_open')
if reached('syslog', 10, None, 0):
    got("the kernel's log")
