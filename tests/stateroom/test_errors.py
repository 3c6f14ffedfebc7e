import pytest

from stateroom.errors import InvalidMessage, InvalidRecord, InvalidUpdate


@pytest.mark.parametrize("kind", [InvalidRecord, InvalidUpdate, InvalidMessage])
def test_the_reason_is_a_word_for_counters_and_part_of_the_text(kind: type[InvalidRecord]) -> None:
    error = kind("too_long")
    assert error.reason == "too_long"
    assert str(error).endswith(": too_long")
    assert error.hint
