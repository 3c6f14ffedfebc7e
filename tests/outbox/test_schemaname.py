"""Names of schemas."""

import pytest

from outbox.errors import InvalidEvent
from outbox.limits import SCHEMA_MAX
from outbox.schemaname import check_schema_name


@pytest.mark.parametrize(
    "name", ["x", "xeno/sprint-assign@v1", "https://example.org/s.json#/a_b", "a+b:2", "n" * SCHEMA_MAX]
)
def test_names(name: str) -> None:
    check_schema_name(name)


@pytest.mark.parametrize(
    "text", ["", "/x", "a b", "a\n", "é", "a\x1b", '{"type":"object"}', "n" * (SCHEMA_MAX + 1)]
)
def test_anything_else_is_refused_with_what_a_name_is(text: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        check_schema_name(text)
    assert "@v1" in refused.value.hint
