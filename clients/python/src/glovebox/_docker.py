"""A server in a container: how the image of deploy/Dockerfile is started, and with which rights.

A provider starts containers for CodingEnv.from_docker_image(): start_container(image, **kwargs) returns the address of the server in it,
wait_for_ready(base_url, timeout_s) returns when that server is ready, stop_container() ends it. OpenEnv's own providers fit.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
import time
from typing import Any, Iterable, Iterator, Mapping, Optional

from ._net import Address, Http
from .errors import ConnectionFailed, GloveboxError

# What no container should do to its host. Namespaces and mounts are allowed, because jails are made of them: the same list as
# deploy/seccomp.json, for programs that have the client alone.
_REFUSED = """
acct add_key adjtimex bpf clock_adjtime clock_settime create_module delete_module finit_module get_kernel_syms init_module
io_uring_enter io_uring_register io_uring_setup ioperm iopl kexec_file_load kexec_load keyctl lookup_dcookie nfsservctl
open_by_handle_at perf_event_open query_module quotactl quotactl_fd reboot request_key settimeofday stime swapoff swapon sysfs syslog
_sysctl userfaultfd uselib ustat vm86 vm86old
"""


def seccomp_profile() -> dict[str, Any]:
    rule = {'names': _REFUSED.split(), 'action': 'SCMP_ACT_ERRNO', 'errnoRet': 1}
    return {'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X86_64'], 'syscalls': [rule]}


@contextlib.contextmanager
def _rights(docker_args: Optional[Iterable[str]]) -> Iterator[list[str]]:
    """The caller's arguments, or what the image needs for its jails (docs/docker.md says why)."""
    if docker_args is not None:
        yield list(docker_args)
        return
    with tempfile.NamedTemporaryFile('w', prefix='glovebox-seccomp-', suffix='.json') as file:
        json.dump(seccomp_profile(), file)
        file.flush()
        options = (f'seccomp={file.name}', 'apparmor=unconfined', 'systempaths=unconfined')
        yield [word for option in options for word in ('--security-opt', option)]


def start_container(
    image: str, settings: Mapping[str, str], port: Optional[int] = None, docker_args: Optional[Iterable[str]] = None
) -> tuple[str, int]:
    """Starts a container of the image; returns its id and the port of this machine where it is reached."""
    port = port or _free_port()
    command = ['docker', 'run', '-d', '--rm', '-p', f'127.0.0.1:{port}:8000']
    if not {'GLOVEBOX_TOKEN', 'GLOVEBOX_TOKEN_FILE', 'KG_AUTH_TOKEN'} & set(settings):
        command += ['-e', 'GLOVEBOX_ALLOW_ANONYMOUS=yes']  # the port is published on the loopback address alone
    for name, value in settings.items():
        command += ['-e', f'{name}={value}']
    with _rights(docker_args) as more:
        try:
            done = subprocess.run([*command, *more, image], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except FileNotFoundError as e:
            raise GloveboxError('docker is not installed; CodingEnv.from_local() needs none') from e
    if done.returncode:
        raise GloveboxError(f'docker run failed: {done.stderr.strip()[-1000:]}')
    return done.stdout.strip(), port


def stop_container(id: str) -> None:
    subprocess.run(['docker', 'rm', '-f', id], capture_output=True, stdin=subprocess.DEVNULL)


def container_log(id: str) -> str:
    """The end of what it said; '' when it is gone."""
    done = subprocess.run(['docker', 'logs', '--tail', '20', id], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).strip() if done.returncode == 0 else ''


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_for_ready(address: Address, timeout_s: float) -> None:
    """Returns when the server says that it is ready, which it is not before its packages are installed."""
    http, end = Http(address), time.monotonic() + timeout_s
    said = 'it does not answer'
    try:
        while True:
            try:
                answer = http.request('GET', '/readyz')
                if answer.status == 404:  # a server that is not Glovebox
                    answer = http.request('GET', '/health')
                if answer.status == 200:
                    return
                said = f'it answers {answer.status}: {answer.body[:500].decode("utf-8", "replace")}'
            except ConnectionFailed as e:
                said = str(e)
            if time.monotonic() > end:
                raise GloveboxError(f'the server at {address.url} did not become ready within {timeout_s:g} s: {said}')
            time.sleep(0.05)
    finally:
        http.close()


class LocalDockerProvider:
    """Containers of the docker on this machine."""

    def __init__(self) -> None:
        self.container: Optional[str] = None

    def start_container(
        self, image: str, port: Optional[int] = None, env_vars: Optional[Mapping[str, str]] = None,
        docker_args: Optional[Iterable[str]] = None, **kwargs: Any,
    ) -> str:  # fmt: skip
        if kwargs:
            raise TypeError(f'start_container() has no argument {sorted(kwargs)[0]!r}; it knows port, env_vars, docker_args')
        self.container, port = start_container(image, env_vars or {}, port, docker_args)
        return f'http://127.0.0.1:{port}'

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        try:
            wait_for_ready(Address(base_url), timeout_s)
        except GloveboxError as e:
            log = container_log(self.container) if self.container else ''
            raise GloveboxError(f'{e}; the container said:\n{log}' if log else f'{e}; the container ended') from e

    def stop_container(self) -> None:
        container, self.container = self.container, None
        if container:
            stop_container(container)
