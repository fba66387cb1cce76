"""Kernel keyrings: they belong to user ids, not to namespaces, and outlive processes."""

KEYCTL_GET_KEYRING_ID, KEYCTL_JOIN_SESSION_KEYRING, PROCESS_KEYRING = 0, 1, -2
if in_child(lambda: call('add_key', b'user', b'glovebox-test', b'x', 1, PROCESS_KEYRING)[0]) not in (-1, None):
    got('add_key')
if in_child(lambda: call('keyctl', KEYCTL_JOIN_SESSION_KEYRING, None)[0]) not in (-1, None):
    got('keyctl')
if reached('request_key', b'user', b'glovebox-test', None, 0):
    got('request_key')
tries('read /proc/keys', lambda: open('/proc/keys').read())
