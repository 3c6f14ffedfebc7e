"""A real object store for tests: SeaweedFS on loopback, with one key."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KEY = {"AWS_ACCESS_KEY_ID": "collector", "AWS_SECRET_ACCESS_KEY": "a-key-of-tests"}
_SERVERS = ("master", "volume", "filer", "s3")
_STARTS_WITHIN_S = 60.0


def _weed() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    return found or pytest.skip("SeaweedFS (requirements-objects.lock) is not installed")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def address(port: int, prefix: str) -> str:
    """Of a lake in the store at a port."""
    return f"s3://lakes/{prefix}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


@contextmanager
def object_store(place: Path) -> Iterator[int]:
    """The port of a store with an empty bucket ``lakes``; its files are in ``place``."""
    rights = {"accessKey": KEY["AWS_ACCESS_KEY_ID"], "secretKey": KEY["AWS_SECRET_ACCESS_KEY"]}
    who = {"name": "collector", "credentials": [rights], "actions": ["Admin", "Read", "Write", "List"]}
    config = place / "identities.json"
    config.write_text(json.dumps({"identities": [who]}))
    ports = _free_ports(2 * len(_SERVERS))
    named = zip(
        (name for server in _SERVERS for name in (f"{server}.port", f"{server}.port.grpc")),
        ports,
        strict=True,
    )
    options = [f"-{name}={port}" for name, port in named]
    command = [
        _weed(), f"-logdir={place}", "server", f"-dir={place}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-filer", "-s3", f"-s3.config={config}", "-master.volumeSizeLimitMB=64", "-volume.max=8", *options,
    ]  # fmt: skip
    with (place / "store.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            port = ports[-2]
            _wait_for_bucket(server, port, place / "store.log")
            yield port
        finally:
            server.kill()


def _wait_for_bucket(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    from pyarrow.fs import FileSystem

    files, _ = FileSystem.from_uri(address(port, "").replace("/?", "?") + "&allow_bucket_creation=true")
    ends = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            files.create_dir("lakes")
            with files.open_output_stream("lakes/ready") as file:
                file.write(b"1")
            files.delete_file("lakes/ready")
        except OSError as error:
            if server.poll() is not None or time.monotonic() > ends:
                pytest.fail(f"{error}\n{log.read_text(errors='replace')[-2000:]}")
        else:
            return
