import traceback

import pytest

from outbox import errors
from outbox.errors import (
    CallerError,
    InvalidId,
    LoopLimit,
    MeshError,
    PeerError,
    StillLeaving,
    UnknownRecipient,
    WorldError,
)


def tree(root: type[MeshError]) -> list[type[MeshError]]:
    """The classes of this package's tree."""
    below = [sub for sub in root.__subclasses__() if sub.__module__ == errors.__name__]
    return [root, *(found for sub in below for found in tree(sub))]


@pytest.mark.parametrize("error", tree(MeshError)[1:])
def test_the_docstring_draws_every_error_with_its_code(error: type[MeshError]) -> None:
    lines = [line.split() for line in (errors.__doc__ or "").splitlines() if error.__name__ in line.split()]
    assert len(lines) == 1
    if not error.__subclasses__():
        assert error.code in lines[0]


@pytest.mark.parametrize("error", tree(MeshError))
def test_every_error_is_of_one_kind(error: type[MeshError]) -> None:
    kinds = [kind for kind in (CallerError, PeerError, WorldError) if issubclass(error, kind)]
    assert len(kinds) == (0 if error is MeshError else 1)


def test_only_the_world_and_what_passes_are_worth_a_retry() -> None:
    assert all(
        issubclass(error, WorldError | LoopLimit | StillLeaving)
        for error in tree(MeshError)
        if error.retryable
    )


def test_an_error_says_what_and_hints() -> None:
    error = MeshError("it broke", hint="mend it")
    assert (str(error), error.hint, error.code) == ("it broke", "mend it", "internal")
    assert "".join(traceback.format_exception(error)).endswith("it broke\nwhat to do: mend it\n")
    assert "what to do" not in "".join(traceback.format_exception(MeshError("it broke")))


def test_an_invalid_id_quotes_little_and_suggests() -> None:
    error = InvalidId("node", "X" * 500, suggestion="x")
    assert len(str(error)) < 120
    assert "'x'" in error.hint
    assert InvalidId("agent", "é").hint.startswith("1-63")
    assert "32 of 0-9 a-f" in InvalidId("event", "é").hint
    assert InvalidId("lease", "é").hint == ""


def test_an_unknown_recipient_names_its_neighbours() -> None:
    assert UnknownRecipient("bbo", ("bob", "bo")).hint == "did you mean bob, bo?"
    assert "gateway agents" in UnknownRecipient("bbo", ()).hint
