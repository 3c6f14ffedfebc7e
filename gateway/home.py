"""The directory of one node and its socket: where things are, and that nobody else can read them.

::

    $GATEWAY_HOME/             0700
        gateway.toml  journal.db  room.db  lock
        seed.jwt  seed.record  (a seed's)
        issuer.json            (a joined node's)
        new-epoch              (after a restore or a failed sync, until the next start)
        beats                  (above every heartbeat that was ever sent)
        keys/                  0700
        blobs/                 0700
        admin.token            0600
        agents/<name>.token    0600
        log/gateway.jsonl
    <runtime>/<name>.sock      0600 in a directory of 0700; a short name, since the kernel allows 107 bytes

The home is ``$GATEWAY_HOME``, else the user's data directory by XDG (on macOS ``~/Library/Application
Support``). The runtime directory is ``$XDG_RUNTIME_DIR/gateway-mesh``, else one of the user's own in
``$TMPDIR``.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
import platformdirs

from gateway.errors import HomeError
from outbox.ids import AgentId
from outbox.replacing import replace_file

_Record = TypeVar("_Record")

_APP = "gateway-mesh"
SOCKET_PATH_BYTES_MAX = 103 if sys.platform == "darwin" else 107
"""``sun_path`` has 104 bytes on macOS and 108 on Linux, the closing zero included."""


LOST_JOURNAL = (
    "repeat gateway init or join if that was cut short; if the journal was lost: gateway restore,"
    " or without a backup gateway join, with a new invite for this node"
)
"""A node that joins again begins a new epoch of its outbox; the others tell it what they know."""


class Home(msgspec.Struct, frozen=True):
    """Paths of one node; nothing is made by asking for them."""

    root: Path
    runtime: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Home":
        """The home that this environment names; it need not exist."""
        named = environ.get("GATEWAY_HOME")
        root = Path(named) if named else platformdirs.user_data_path(_APP)
        return cls(root.expanduser().absolute(), _runtime(environ))

    @property
    def config(self) -> Path:
        """Settings."""
        return self.root / "gateway.toml"

    @property
    def keys(self) -> Path:
        """Directory of the private keys."""
        return self.root / "keys"

    @property
    def journal(self) -> Path:
        """The database of everything that must be true together."""
        return self.root / "journal.db"

    @property
    def room(self) -> Path:
        """The state room's documents."""
        return self.root / "room.db"

    @property
    def certificate(self) -> Path:
        """A seed's certificate, signed by the mesh root."""
        return self.root / "seed.jwt"

    @property
    def admission(self) -> Path:
        """A seed's own admission record, signed by the mesh root."""
        return self.root / "seed.record"

    @property
    def issuer(self) -> Path:
        """Where a joined node was invited: how it finds the mesh again without a state room."""
        return self.root / "issuer.json"

    @property
    def blobs(self) -> Path:
        """Directory of what is too large for a message."""
        return self.root / "blobs"

    @property
    def log(self) -> Path:
        """The log of all levels."""
        return self.root / "log" / "gateway.jsonl"

    @property
    def lock(self) -> Path:
        """Held by the process that owns this home."""
        return self.root / "lock"

    @property
    def epoch_mark(self) -> Path:
        """A note that the next start has to begin a new epoch of the outbox."""
        return self.root / "new-epoch"

    @property
    def beats(self) -> Path:
        """A bound above every counter of a heartbeat."""
        return self.root / "beats"

    @property
    def agents(self) -> Path:
        """Directory of the agents' tokens."""
        return self.root / "agents"

    @property
    def admin_token(self) -> Path:
        """The operator's bearer token; on the Unix socket none is needed."""
        return self.root / "admin.token"

    def token(self, agent: AgentId) -> Path:
        """The bearer token of a local agent; its name was checked, so it stays inside."""
        return self.agents / f"{agent}.token"

    @property
    def socket(self) -> Path:
        """The local socket: a hash of the home keeps two homes apart and the path short."""
        return self.runtime / f"{sha256(os.fsencode(self.root)).hexdigest()[:12]}.sock"

    def create(self) -> None:
        """Make the directories, all 0700; what is there already is checked. Raises HomeError."""
        for directory in (self.root, self.keys, self.agents, self.log.parent):
            private_directory(directory)

    def check(self) -> None:
        """Raises HomeError unless it is there and private."""
        self.need_root()
        for directory in (self.root, self.keys):
            _check_private(directory)

    def need_root(self) -> None:
        """Raises HomeError unless there is a directory: the wrong one is named, or none was made yet."""
        if not self.root.is_dir():
            raise HomeError(f"{self.root} is no home of a node", hint="make one with: gateway init (or join)")

    def need_journal(self) -> None:
        """Raises HomeError unless a journal is there: it was lost, or this home was never made to its end."""
        if self.journal.exists():
            return
        if any(self.keys.glob("*.key")):
            raise HomeError(f"{self.root} has the keys of a node and no journal", hint=LOST_JOURNAL)
        raise HomeError(f"{self.root} is no home of a node", hint="make one with: gateway init (or join)")


def private_directory(path: Path) -> None:
    """Make a directory that only this user can enter, or check that it is one. Raises HomeError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError(
            f"cannot make {path}: {error.strerror}", hint="check the path and its owner"
        ) from None
    _check_private(path)


def write_private(path: Path, content: bytes) -> None:
    """Put a file of 0600 in place in one step: readers see the old content or the new. Raises HomeError."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise HomeError(
            f"cannot write {path}: {error.strerror}", hint="check the disk's free space"
        ) from None


def read_private(path: Path) -> bytes:
    """The content of a file of this user. Raises HomeError when it is open to others or missing."""
    try:
        _check_private(path)
        return path.read_bytes()
    except OSError as error:
        raise HomeError(f"cannot read {path}: {error.strerror}") from None


def read_text(path: Path) -> str:
    """The same as text, without the end of its line. Raises HomeError, also when it is none."""
    try:
        return read_private(path).decode("ascii").strip()
    except UnicodeDecodeError:
        raise damaged(path) from None


def read_record(path: Path, record: type[_Record]) -> _Record:
    """The same as a record in JSON. Raises HomeError, also when it is none."""
    try:
        return msgspec.json.decode(read_private(path), type=record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise damaged(path) from None


def damaged(path: Path) -> HomeError:
    """A file that does not hold what its name says."""
    return HomeError(f"{path} is damaged", hint="put it back as it was, or the home: gateway restore")


def _runtime(environ: Mapping[str, str]) -> Path:
    given = environ.get("XDG_RUNTIME_DIR")
    if given:
        return Path(given).absolute() / _APP
    return Path(environ.get("TMPDIR") or tempfile.gettempdir()).absolute() / f"{_APP}-{os.getuid()}"


def _check_private(path: Path) -> None:
    """By ``lstat``: a link that somebody planted in a shared directory is not followed."""
    try:
        found = path.lstat()
    except OSError as error:
        raise HomeError(f"cannot look at {path}: {error.strerror}") from None
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid():
        raise HomeError(f"{path} is a link or belongs to another user", hint="use a directory of your own")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = "700" if stat.S_ISDIR(found.st_mode) else "600"
        raise HomeError(f"{path} is open to other users", hint=f"chmod {mode} {path}")
