from typing import ClassVar

from auth.redacted import Redacted


class Secret(Redacted, frozen=True):
    shown: ClassVar[tuple[str, ...]] = ("name",)
    name: str
    word: str


class Silent(Redacted, frozen=True):
    word: str


def test_only_named_fields_are_shown() -> None:
    assert repr(Secret("a", "hidden")) == "Secret(name='a', …)"
    assert repr([Silent("hidden")]) == "[Silent(…)]"
    assert Secret("a", "hidden").__rich_repr__() == [("name", "a")]
