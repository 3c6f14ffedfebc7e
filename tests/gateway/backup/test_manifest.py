"""A backup says what it holds, and nothing else gets into a home by it."""

import msgspec
import pytest

from gateway.backup.errors import BackupFailed
from gateway.backup.manifest import BlobList, Manifest, Member, check_blobs, may_hold, read_manifest
from outbox.blobref import BlobId

MEMBER = Member(3, "0" * 64)
MANIFEST = Manifest(
    mesh="m" * 43,
    node="vps",
    epoch="000001-0123456789ab",
    seq=7,
    made_at_ms=1,
    with_keys=False,
    files={"journal.db": MEMBER, "gateway.toml": MEMBER},
)


def test_a_manifest_comes_back_as_it_went() -> None:
    assert read_manifest(msgspec.json.encode(MANIFEST)) == MANIFEST


@pytest.mark.parametrize(
    "name",
    [
        "journal.db",
        "room.db",
        "gateway.toml",
        "seed.jwt",
        "issuer.json",
        "admin.token",
        "keys/node.key",
        "agents/bob.token",
    ],
)
def test_what_belongs_into_a_home(name: str) -> None:
    assert may_hold(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lock",
        "new-epoch",
        "journal.db-wal",
        "../journal.db",
        "/etc/passwd",
        "keys",
        "keys/",
        "keys/../../x",
        "keys/a/b",
        "keys/.hidden",
        "agents/bob",
        "log/gateway.jsonl",
        "agents/../admin.token",
    ],
)
def test_nothing_else_is_put_into_a_home(name: str) -> None:
    assert not may_hold(name)
    with pytest.raises(BackupFailed, match="no place in a home"):
        read_manifest(
            msgspec.json.encode(msgspec.structs.replace(MANIFEST, files={**MANIFEST.files, name: MEMBER}))
        )


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", b'{"version":1}'])
def test_what_is_no_manifest(raw: bytes) -> None:
    with pytest.raises(BackupFailed, match="no backup"):
        read_manifest(raw)


def test_a_backup_without_a_journal_is_none() -> None:
    bare = msgspec.structs.replace(MANIFEST, files={"gateway.toml": MEMBER})
    with pytest.raises(BackupFailed, match="no journal"):
        read_manifest(msgspec.json.encode(bare))


def test_a_backup_of_a_later_version_says_so_whatever_else_is_in_it() -> None:
    with pytest.raises(BackupFailed, match="version 3") as refused:
        read_manifest(b'{"version":3,"news":true}')
    assert "later" in refused.value.hint


@pytest.mark.parametrize("name", ["../../evil", "A" * 64, "", "ab/" + "0" * 61])
def test_a_list_names_blobs_alone(name: str) -> None:
    good = BlobList(whole={BlobId("0" * 64): 3, BlobId("1" * 64): 4})
    assert check_blobs(msgspec.json.encode(good)) == good
    assert good.bytes == 7
    with pytest.raises(BackupFailed, match="list of blobs"):
        check_blobs(msgspec.json.encode(BlobList(whole={BlobId(name): 3})))


def test_bytes_of_a_blob_are_never_negative() -> None:
    with pytest.raises(BackupFailed, match="list of blobs"):
        check_blobs(msgspec.json.encode(BlobList(whole={BlobId("0" * 64): -3})))
