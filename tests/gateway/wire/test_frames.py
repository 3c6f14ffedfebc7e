import pytest

from gateway.wire.frames import VERSION, VERSIONS, Have, common_version
from outbox.chain import Head
from outbox.ids import Epoch, NodeId


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        ((VERSION,), VERSION),
        ((VERSION, VERSION + 1), VERSION),
        ((VERSION + 1,), None),
        ((VERSION + 7,), None),
    ],
)
def test_the_newest_version_that_both_know_is_spoken(offered: tuple[int, ...], agreed: int | None) -> None:
    assert common_version(offered) == agreed


def test_the_own_version_is_understood() -> None:
    assert max(VERSIONS) == VERSION


def test_a_have_is_a_head() -> None:
    have = Have(NodeId("vps"), Epoch("000001-0123456789ab"), 7, b"\x01" * 32)
    assert have.head == Head(have.epoch, 7, have.hash)
