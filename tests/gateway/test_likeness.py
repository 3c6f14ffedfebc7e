"""Names that look alike: found among however many, by comparing few."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.likeness import alike
from gateway.limits import COMPARED_MAX

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{4,30}", fullmatch=True)
MANY = [f"agent-{place}-{number:04d}" for number in range(2_000) for place in ("lab", "vps")]


@given(NAMES, st.data())
def test_a_slip_of_the_finger_is_found_among_thousands(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abc019-_"))
    slips = [
        name[:at] + name[at + 1 :],
        name[:at] + letter + name[at:],
        name[:at] + letter + name[at + 1 :],
    ]
    for slip in slips:
        assert name in alike(slip, [*MANY, name, *MANY], 3)


@pytest.mark.parametrize(
    ("name", "found"), [("agent-vps-00017", "agent-vps-0017"), ("agnet-lab-1234", "agent-lab-1234")]
)
def test_the_likest_comes_first(name: str, found: str) -> None:
    assert alike(name, MANY, 3)[0] == found


def test_what_looks_like_nothing_is_like_nothing() -> None:
    assert alike("zzzzzzzz", MANY, 3) == ()
    assert alike("bob", [], 3) == ()
    assert alike("bob", ["bob-the-builder"], 3) == ()


def test_of_however_many_only_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    ratio = SequenceMatcher.real_quick_ratio

    def counted(matcher: SequenceMatcher[str]) -> float:
        compared.append(str(matcher.a))
        return ratio(matcher)

    monkeypatch.setattr(SequenceMatcher, "real_quick_ratio", counted)
    assert len(alike("agent-vps-0x17", MANY, 3)) == 3
    assert len(compared) == COMPARED_MAX
