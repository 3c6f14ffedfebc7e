import resource
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import HomeError
from gateway.home import SOCKET_PATH_BYTES_MAX, private_directory
from gateway.serving.limits import OPEN_FILES_MAX
from gateway.serving.sockets import bind_unix, listen_tcp


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_socket_is_the_users_own_and_replaces_a_dead_one(short_dir: Path) -> None:
    path = short_dir / "run" / "a.sock"
    bind_unix(path).close()
    with bind_unix(path) as bound, socket.socket(socket.AF_UNIX) as client:
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)
        bound.listen()
        client.connect(str(path))


def test_an_address_that_cannot_be_had_is_refused_with_its_cure() -> None:
    with listen_tcp("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        for host, cure in (
            ("127.0.0.1", "another port"),
            ("192.0.2.1", "no interface"),
            ("nowhere", "check"),
        ):
            with pytest.raises(HomeError, match=f"cannot listen on {host}:{port}") as refused:
                listen_tcp(host, port)
            assert cure in refused.value.hint


def test_what_is_no_socket_is_not_removed(short_dir: Path) -> None:
    path = short_dir / "run" / "a.sock"
    private_directory(path.parent)
    path.write_text("precious")
    with pytest.raises(HomeError, match="cannot bind"):
        bind_unix(path)
    assert path.read_text() == "precious"


def test_a_path_too_long_for_the_kernel_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / ("x" * SOCKET_PATH_BYTES_MAX)
    with pytest.raises(HomeError) as refused:
        bind_unix(path)
    assert "XDG_RUNTIME_DIR" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_the_longest_allowed_path_works(short_dir: Path) -> None:
    room = SOCKET_PATH_BYTES_MAX - len(str(short_dir)) - len("/r/")
    bind_unix(short_dir / "r" / ("x" * room)).close()


_ASK = """
import resource
from gateway.serving.sockets import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
granted = allow_open_files()
assert granted == resource.getrlimit(resource.RLIMIT_NOFILE)[0], granted
assert allow_open_files() == granted
print(granted)
"""


def test_a_gateway_may_open_as_many_files_as_the_system_grants() -> None:
    """In a process of its own: what is raised stays so."""
    asked = subprocess.run(
        [sys.executable, "-c", _ASK], capture_output=True, text=True, timeout=60, check=True
    )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    expected = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    assert 64 < int(asked.stdout) <= expected
