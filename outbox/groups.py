"""Exception groups that end in one error: the first counts, the others follow from it."""

from typing import TypeVar

_Error = TypeVar("_Error", bound=BaseException)


def first_of(group: BaseExceptionGroup[_Error]) -> _Error:
    """The first error of a group, however deep it stands."""
    found = group.exceptions[0]
    return first_of(found) if isinstance(found, BaseExceptionGroup) else found
