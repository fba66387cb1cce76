"""The socket module in a session: errors that name the setting, and host names that lead through the proxy."""

import errno

_PROXY = ('127.77.0.1', 3128)  # jail/jail.h
_network = 'none'
_lookup = None  # the module's own getaddrinfo
_names, _fakes = {}, {}  # names ↔ addresses that stand for them: nothing is resolved in here
_MAX_NAMES = 60_000
_HANDSHAKE_SECONDS = 60  # of a socket that may not wait, as asyncio's
_CODE = 'network_not_allowed'


def set_network(mode):
    global _network
    _network = mode


def advise(exc):
    """(a word for programs, what to do) about an error, when it is one of ours; else None."""
    for _ in range(MAX_CHAIN):
        if exc is None:
            return None
        try:
            found = vars(exc).get('_glovebox_advice')
            if type(found) is tuple or 'network.allow' in str(exc):  # what the proxy says reaches us as text
                return found or (_CODE, _remedy(_asked_for(str(exc))))
            found = advise_missing(exc)
            if found is not None:
                return found
        except Exception:
            pass
        exc = _cause_of(exc) or _context_of(exc)
    return None


def _remedy(where=None):
    rule = 'HOST:PORT' if where is None else where if ':' in where else f'{where}:443'
    lo = '' if where else '"network": "loopback" for servers and clients inside it, or with '
    flag = '' if where else '--network loopback or '
    return f'Make the session with {lo}"network": {{"allow": ["{rule}"]}} (glovebox run: {flag}--allow {rule}).'


def _explain(error, what, remedy):
    """The same error with other words, and its own traceback."""
    text = f'{what}. {remedy}'
    error.strerror, error.args = text, (error.errno, text)
    error._glovebox_advice = (_CODE, remedy)


def _explain_unreachable(error, where, udp=False):
    if udp:
        _explain(error, f'{where} cannot be reached: no UDP leaves a session, whatever its network', 'Use TCP; names are resolved by the proxy.')
    elif _network == 'allow':
        _explain(error, f'{where} cannot be reached: only TCP leaves this session, to what its network.allow lists', _remedy(where))
    else:
        only = ', itself alone' if _network == 'loopback' else ''
        _explain(error, f'{where} cannot be reached: the network of this session is "{_network}"{only}', _remedy(where))


# ---- patches -----------------------------------------------------------


def _patch_socket(module):
    # As default arguments and closures: cells may do what they like to the module's names.
    kind, gaierror = module.socket, module.gaierror
    for name, make in (('__init__', _make_init), ('connect', _make_connect), ('connect_ex', _make_connect_ex), ('sendto', _make_sendto)):
        patched = make(getattr(kind, name), module)
        patched.__name__, patched.__qualname__, patched.__doc__ = name, f'socket.{name}', getattr(kind, name).__doc__
        patched.__module__ = module.__name__
        setattr(kind, name, patched)
    for name, make in (('getaddrinfo', _make_getaddrinfo), ('gethostbyname', _make_gethostbyname)):
        patched = make(getattr(module, name), module, gaierror)
        patched.__name__ = patched.__qualname__ = name
        patched.__module__, patched.__doc__ = module.__name__, getattr(module, name).__doc__
        setattr(module, name, patched)


def _make_init(original, module):
    unix = module.AF_UNIX

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        try:
            original(self, family, type, proto, fileno)
        except PermissionError as e:
            if _network == 'none' and family != unix:
                _explain(e, 'the network of this session is "none": it has unix sockets only', _remedy())
            elif family != unix:
                _explain(e, 'a session has sockets for TCP and UDP only, whatever its network', 'Use those.')
            raise

    return __init__


def _make_connect(original, module):
    def connect(self, address, /):
        target = _network == 'allow' and _beyond(self, address, module)
        if target:
            return _through_proxy(self, original, target, address[1], module)
        try:
            return original(self, address)
        except OSError as e:
            if e.errno == errno.ENETUNREACH:
                _explain_unreachable(e, _shown(address), self.type == module.SOCK_DGRAM)
            raise

    return connect


def _make_connect_ex(original, module):
    connect = module.socket.connect

    def connect_ex(self, address, /):
        target = _network == 'allow' and _beyond(self, address, module)
        if not target:
            return original(self, address)
        try:
            connect(self, address)
        except OSError as e:
            return e.errno or errno.EHOSTUNREACH
        return 0

    return connect_ex


def _make_sendto(original, module):
    def sendto(self, data, *args):
        try:
            return original(self, data, *args)
        except OSError as e:
            if e.errno == errno.ENETUNREACH:
                _explain_unreachable(e, _shown(args[-1]) if args else 'this', self.type == module.SOCK_DGRAM)
            raise

    return sendto


def _make_getaddrinfo(original, module, gaierror):
    global _lookup
    _lookup = original

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
        try:
            return original(host, port, family, type, proto, flags)
        except gaierror as e:
            name = _name_of(host)
            if name is None or flags & module.AI_NUMERICHOST:
                raise
            if _network != 'allow':
                _explain_unreachable(e, name)
                raise
        six = family == module.AF_INET6
        fake = _fake_for(name, six)
        found = original('::1' if six else '127.0.0.1', port, family, type, proto)
        return [(*rest, (fake, *address[1:])) for *rest, address in found]

    return getaddrinfo


def _make_gethostbyname(original, module, gaierror):
    def gethostbyname(host, /):
        try:
            return original(host)
        except gaierror as e:
            name = _name_of(host)
            if name is None:
                raise
            if _network != 'allow':
                _explain_unreachable(e, name)
                raise
        return _fake_for(name, False)

    return gethostbyname


# ---- through the proxy -------------------------------------------------


def _asked_for(text):
    """The HOST:PORT that the proxy's refusal begins with, behind what an HTTP client put before it."""
    before, found, _ = text.partition(' is not in network.allow')
    word = before.rpartition(' ')[2]
    return word if found and ':' in word else None


def _shown(address):
    return f'{address[0]}:{address[1]}' if type(address) is tuple and len(address) >= 2 else 'this address'


def _name_of(host):
    """A host name as the proxy takes it; None when it is no name."""
    try:
        if isinstance(host, str):
            return _exact(host).encode('ascii' if host.isascii() else 'idna').decode().rstrip('.').lower() or None
        return bytes(host).decode('ascii').rstrip('.').lower() or None
    except Exception:
        return None


def _fake_for(name, six):
    """An address of the ranges that are reserved for benchmarks (RFC 2544, RFC 5180); the same for the same name."""
    number = _names.get(name)
    if number is None:
        number = len(_names) + 1
        if number > _MAX_NAMES:
            raise OSError(errno.ENOBUFS, 'too many different host names in one session')
        _names[name] = number
        _fakes[f'198.18.{number >> 8}.{number & 255}'] = _fakes[f'2001:2::{number:x}'] = name
    return f'2001:2::{number:x}' if six else f'198.18.{number >> 8}.{number & 255}'


def _beyond(self, address, module):
    """The host the proxy is to be asked for; None for what is inside the session."""
    if self.family not in (module.AF_INET, module.AF_INET6) or self.type != module.SOCK_STREAM:
        return None
    if type(address) is not tuple or len(address) < 2 or not isinstance(address[0], str):
        return None
    host = _exact(address[0])
    if host in _fakes:
        return _fakes[host]
    for family in (module.AF_INET, module.AF_INET6):
        try:
            packed = module.inet_pton(family, host)
        except OSError:
            continue
        local = packed[0] in (0, 127) if family == module.AF_INET else packed[:15] == bytes(15) or packed[:13] == _MAPPED_LOCAL
        return None if local else host
    try:
        _lookup(host, None)
    except OSError:
        return _name_of(host)
    return None


_MAPPED_LOCAL = bytes(10) + b'\xff\xff\x7f'


def _through_proxy(self, connect, host, port, module):
    waiting = self.gettimeout()
    if waiting == 0:
        self.settimeout(_HANDSHAKE_SECONDS)  # the caller wanted not to wait; its next look finds the socket connected
    try:
        connect(self, ('::ffff:' + _PROXY[0], _PROXY[1]) if self.family == module.AF_INET6 else _PROXY)
        code = _handshake(self, host, port, module)
    finally:
        if waiting == 0:
            self.settimeout(waiting)
    where = f'[{host}]:{port}' if ':' in host else f'{host}:{port}'
    if code == 2:
        error = PermissionError(errno.EPERM, '')
        _explain(error, f'{where} is not in network.allow of this session, or leads to an address that must be in it as well', _remedy(where))
        raise error
    if code:
        raise OSError(errno.EHOSTUNREACH, f'{where} is allowed but cannot be reached: no such host, or nobody listens there')


def _handshake(self, host, port, module):
    """SOCKS 5: the reply's code, 0 when the connection stands."""
    send, receive = module.SocketType.sendall, module.SocketType.recv
    if ':' in host:
        where = b'\x04' + module.inet_pton(module.AF_INET6, host.partition('%')[0])
    else:
        where = bytes((3, len(host))) + host.encode('ascii')
    send(self, b'\x05\x01\x00\x05\x01\x00' + where + int(port).to_bytes(2, 'big'))
    answer = b''
    while len(answer) < 12:
        more = receive(self, 12 - len(answer))
        if not more:
            return answer[3] if len(answer) > 3 else 1
        answer += more
    return answer[3]
