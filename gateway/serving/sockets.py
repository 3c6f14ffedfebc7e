"""The sockets that a gateway listens on: TCP, and a Unix socket that nobody else can open."""

import contextlib
import errno
import os
import resource
import socket
from pathlib import Path

from gateway.errors import HomeError
from gateway.home import SOCKET_PATH_BYTES_MAX, private_directory
from gateway.serving.limits import BACKLOG, OPEN_FILES_TRIES, STALLED_READER_MS

_LISTEN_HINTS = {
    errno.EADDRINUSE: "is another gateway running there? set listen.port (or local.port) to another port",
    errno.EADDRNOTAVAIL: "no interface of this machine has that address (is the tunnel up?): see listen.host",
    errno.EACCES: "ports below 1024 are the system's: set listen.port (or local.port) to a higher one",
}


def allow_open_files() -> int:
    """Let this process open as many files and sockets as the system grants; returns how many that is.

    Each link, room and agent takes one, and the default of a shell is meant for programs that hold a few.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in OPEN_FILES_TRIES:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and most > soft:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
                return most
    return soft


def listen_tcp(host: str, port: int) -> socket.socket:
    """A listening socket; a reader that takes nothing for a while is cut off by the kernel.

    uvicorn's own keepalive closes such a connection only after it was flushed, which never happens.
    Raises HomeError when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_READER_MS)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        hint = _LISTEN_HINTS.get(error.errno or 0, "check the address and the port")
        raise HomeError(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from None
    return bound


def bind_unix(path: Path) -> socket.socket:
    """A bound Unix socket of 0600, not listening yet; a dead one at this path is replaced.

    Only the holder of the home's lock may call it: that is why an existing socket is dead. Raises HomeError.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        hint = "set XDG_RUNTIME_DIR to a short path"
        raise HomeError(
            f"{path} is longer than {SOCKET_PATH_BYTES_MAX} bytes, no socket can be there", hint=hint
        )
    private_directory(path.parent)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            path.unlink()
        bound.bind(os.fspath(path))
        path.chmod(0o600)
    except OSError as error:
        bound.close()
        raise HomeError(
            f"cannot bind {path}: {error.strerror}", hint="remove what is there, if it is not ours"
        ) from None
    return bound
