"""Blobs as files."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.blobfiles import BlobFiles, is_blob
from outbox.blobref import BlobId
from outbox.errors import InvalidId, StorageFailed, StorageFull

CONTENT = bytes(range(256)) * 10
SHA = BlobId(sha256(CONTENT).hexdigest())


@pytest.fixture
def files(tmp_path: Path) -> BlobFiles:
    return BlobFiles(tmp_path / "blobs")


def kept(files: BlobFiles, content: bytes = CONTENT) -> BlobId:
    draft = files.draft("one")
    draft.write(content)
    draft.sync()
    name = BlobId(draft.digest())
    files.publish(draft, name)
    draft.close()
    return name


def test_a_blob_gets_its_name_when_it_is_whole(files: BlobFiles) -> None:
    assert files.size(SHA) is None
    assert files.read(SHA, 0, 10) == b""
    assert kept(files) == SHA
    assert files.size(SHA) == len(CONTENT)
    assert files.read(SHA, 2550, 100) == CONTENT[2550:]
    assert files.read(SHA, 9999, 100) == b""
    assert files.digest(SHA) == SHA
    assert [name for name, _ in files.entries()] == [SHA]
    assert files.root.stat().st_mode & 0o777 == 0o700
    assert files.path(SHA).stat().st_mode & 0o777 == 0o600
    files.drop(SHA)
    files.drop(SHA)
    assert files.size(SHA) is None


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_what_was_cut_short_is_gone_on_with(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    files, whole = BlobFiles(tmp_path_factory.mktemp("b")), b"".join(pieces)
    name = BlobId(sha256(whole).hexdigest())
    for place, piece in enumerate(pieces):
        draft = files.part(name)
        assert draft.offset == len(b"".join(pieces[:place])) == files.partial_size(name)
        draft.write(piece)
        draft.close()
    draft = files.part(name)
    assert draft.digest() == name
    draft.discard()
    draft.close()
    assert files.partial_size(name) == 0


def test_a_draft_without_a_name_begins_anew(files: BlobFiles) -> None:
    first = files.draft("word")
    first.write(b"half")
    first.close()
    second = files.draft("word")
    assert second.offset == 0
    second.close()
    second.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda files: files.path(BlobId("../x")),
        lambda files: files.part(BlobId("..")),
        lambda files: files.read(BlobId("a/b"), 0, 1),
    ],
)
def test_no_name_leads_out_of_the_directory(files: BlobFiles, ask: Callable[[BlobFiles], object]) -> None:
    with pytest.raises(InvalidId):
        ask(files)


def test_the_sweep_takes_what_is_unknown_and_old(files: BlobFiles) -> None:
    known, unknown = kept(files), kept(files, b"other")
    part = files.part(BlobId("00" * 32))
    part.close()
    changed = max(at for _, at in files.entries())
    assert files.sweep({known}, changed - 1000) == 0
    os.utime(files.path(unknown), (0, 0))
    assert files.sweep({known}, 1000) == 1
    assert files.sweep({known}, changed + 1000) == 1
    assert [name for name, _ in files.entries()] == [known]
    assert is_blob(known)
    assert not is_blob(part.path.name)


def test_a_full_disk_keeps_what_was_there_before(small_disk: Path) -> None:
    files = BlobFiles(small_disk / "blobs")
    draft = files.part(SHA)
    draft.write(CONTENT)
    with pytest.raises(StorageFull) as caught:
        draft.write(bytes(32 * 1024 * 1024))
    assert caught.value.retryable
    assert (draft.offset, draft.digest(), files.partial_size(SHA)) == (len(CONTENT), SHA, len(CONTENT))
    draft.write(b"x")
    draft.close()
    assert files.part(SHA).offset == len(CONTENT) + 1


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed):
        BlobFiles(tmp_path / "file" / "blobs")
