import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.errors import BadRange, BadRequest
from gateway.endpoints.ranges import Part, Stretch, part_of, range_of


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None),
        ("bytes=0-9", Stretch(0, 10)),
        ("bytes=3-", Stretch(3, 10)),
        ("bytes=3-3", Stretch(3, 4)),
        ("bytes=0-99", Stretch(0, 10)),
        ("bytes=-3", Stretch(7, 10)),
        ("bytes=-99", Stretch(0, 10)),
        ("bytes=5-3", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("bytes=", None),
        ("bytes=-", None),
    ],
)
def test_one_stretch_or_all_of_it(header: str | None, found: Stretch | None) -> None:
    assert range_of(header, 10) == found


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)])
def test_nothing_of_it_is_there(header: str, size: int) -> None:
    with pytest.raises(BadRange, match=str(size)):
        range_of(header, size)


@given(st.integers(1, 1 << 40), st.data())
def test_a_stretch_lies_inside(size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, size - 1))
    last = data.draw(st.integers(first, 1 << 41))
    found = range_of(f"bytes={first}-{last}", size)
    assert found == (first, min(size, last + 1))


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (None, None),
        ("bytes 0-4/5", Part(0, 5, 5)),
        ("bytes 2-3/9", Part(2, 4, 9)),
        ("bytes */9", Part(9, 9, 9)),
    ],
)
def test_a_part_says_what_it_is_of_what(header: str | None, part: Part | None) -> None:
    assert part_of(header) == part


@pytest.mark.parametrize("header", ["", "bytes 0-5/5", "bytes 3-2/9", "bytes */*", "bytes 0-4/*", "x 0-4/5"])
def test_a_part_that_makes_no_sense_is_refused(header: str) -> None:
    with pytest.raises(BadRequest):
        part_of(header)
