"""``gateway init``: make the home of a mesh's first node."""

from pathlib import Path

import msgspec

from auth.certificates import issue_certificate, mesh_id_of
from auth.keyring import Keyring
from auth.keys import SigningKey
from gateway.clock import Clock
from gateway.errors import HomeError
from gateway.home import LOST_JOURNAL, Home, write_private
from outbox.ids import MeshId, NodeId, make_epoch
from outbox.journal import Journal
from outbox.lock import HomeLock
from outbox.records import Identity
from stateroom.bodies import ROOT, AdmissionBody, RoomMap
from stateroom.records import sign_record

_EPOCH_BYTES = 6


class Founded(msgspec.Struct, frozen=True):
    """A home that was just made."""

    mesh: MeshId
    node: NodeId
    home: Path


def found(home: Home, node: NodeId, clock: Clock, settings: dict[str, object]) -> Founded:
    """Make keys, journal and settings of a new mesh. Raises HomeError, HomeLocked, StorageFailed."""
    home.create()
    _need_nobodys(home)  # before the lock, which a gateway that runs here holds: that is not what is wrong
    with HomeLock(home.lock):
        _need_nobodys(home)
        if home.issuer.exists():
            raise HomeError(f"{home.root} has joined a mesh, and its journal is gone", hint=LOST_JOURNAL)
        keyring = Keyring(home.keys)
        root = keyring.make_root_key(clock.entropy)
        key = keyring.node_key(clock.entropy)
        mesh = mesh_id_of(root.public)
        certificate = issue_certificate(root, node, key.public, clock.wall_ms())
        write_private(home.certificate, certificate.encode())
        write_private(home.admission, _admission(root, mesh, node, key).encode())
        write_settings(home, settings)
        # Last: until the journal is there this home is nobody's, and all of it can be repeated.
        Journal.create(home.journal, new_identity(mesh, node, clock)).close()
    return Founded(mesh, node, home.root)


def _need_nobodys(home: Home) -> None:
    if Journal.made(home.journal):
        raise HomeError(f"{home.root} is the home of a node already", hint="use another GATEWAY_HOME")


def new_identity(mesh: MeshId, node: NodeId, clock: Clock) -> Identity:
    """A node at the beginning of its first epoch."""
    return Identity(mesh, node, make_epoch(1, clock.entropy(_EPOCH_BYTES)))


def write_settings(home: Home, settings: dict[str, object]) -> None:
    """``gateway.toml`` with these settings, for people to edit."""
    lines = ["# Settings of this gateway; `gateway doctor` checks them.\n"]
    section = ""
    for key, value in sorted(settings.items()):
        name, _, rest = key.partition(".")
        if name != section:
            lines.append(f"\n[{name}]\n")
            section = name
        lines.append(f"{rest} = {_toml(value)}\n")
    write_private(home.config, "".join(lines).encode())


def _toml(value: object) -> str:
    # JSON's numbers, booleans, strings and arrays of strings are TOML's as well.
    return msgspec.json.encode(value).decode()


def _admission(root: SigningKey, mesh: MeshId, node: NodeId, key: SigningKey) -> str:
    return sign_record(
        root.sign,
        mesh=mesh,
        room_map=RoomMap.ADMISSIONS,
        key=node,
        signer=ROOT,
        epoch=1,
        counter=1,
        body=AdmissionBody(public_key=key.public.text, role="seed"),
        root_key=root.public.raw,
    )
