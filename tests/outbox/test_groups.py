from outbox.groups import first_of


def test_the_first_counts_however_deep() -> None:
    first, second = KeyError("first"), KeyError("second")
    nested = ExceptionGroup("", [ExceptionGroup("", [ExceptionGroup("", [first])]), second])
    assert first_of(nested) is first
    assert first_of(ExceptionGroup("", [second, first])) is second
