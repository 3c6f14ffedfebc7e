import pytest

from gateway.wire.frames import VERSION, VERSIONS, Stock, common_version
from outbox.chain import Head
from outbox.ids import Epoch, NodeId


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        ((VERSION,), VERSION),
        ((VERSION, VERSION + 1), VERSION),
        ((VERSION - 1,), VERSION - 1),
        ((VERSION + 1,), None),
        ((VERSION + 7,), None),
    ],
)
def test_the_newest_version_that_both_know_is_spoken(offered: tuple[int, ...], agreed: int | None) -> None:
    assert common_version(offered) == agreed


def test_the_own_version_is_understood() -> None:
    assert max(VERSIONS) == VERSION


def test_a_stock_ends_in_a_head() -> None:
    stock = Stock(NodeId("vps"), Epoch("000001-0123456789ab"), 1, 7, b"\x01" * 32)
    assert stock.head == Head(stock.epoch, 7, stock.hash)
