"""What psutil misses: its counters of networks are in /proc/net, which a session's /proc does not have. It is told that there are no interfaces. The figures of memory
and processors are in files of /proc, for every process of the session."""

_NO_INTERFACES = 'Inter-|   Receive                |  Transmit\n face |bytes    packets |bytes    packets\n'


def _patch_psutil(common):
    """Every reading of files in psutil goes through these two functions of psutil._common."""
    import io

    for name, wrap in (('open_binary', lambda text: io.BytesIO(text.encode())), ('open_text', io.StringIO)):
        plain = getattr(common, name, None)
        if plain is not None:
            setattr(common, name, _make_open(plain, wrap, name))


def _make_open(plain, wrap, name):
    def open_file(path, *args, **kwargs):
        try:
            return plain(path, *args, **kwargs)
        except FileNotFoundError:
            if str(path) != '/proc/net/dev':
                raise
            return wrap(_NO_INTERFACES)

    open_file.__name__ = open_file.__qualname__ = name
    return open_file
