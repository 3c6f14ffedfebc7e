"""What the listeners refuse, the status that each refusal is answered with, and the same on a socket."""

from importlib import import_module
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.frames import ErrorRecord, ServerFrame
from gateway.api.problem import Problem
from gateway.endpoints import errors
from gateway.endpoints.frames import error_frame, frame_text
from gateway.endpoints.problems import problem_of, response_of
from gateway.errors import Busy, Denied
from outbox.errors import MeshError, NotFound, StorageFailed, StorageFull

REFUSALS = [
    errors.BadRequest("x"),
    errors.Unauthorized(),
    errors.Forbidden("x"),
    errors.ForeignOrigin("x"),
    errors.NoRoute("x"),
    errors.MethodRefused("x"),
    errors.BodyTooLarge("x"),
    errors.NotJson("x"),
    errors.Misdirected("x"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.code)
def test_a_refusals_own_status_is_the_one_of_the_table(error: errors.RequestError) -> None:
    assert problem_of(error).status == error.status


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        (NotFound("x"), 404, False),
        (StorageFull("x"), 507, True),
        (StorageFailed("x"), 503, True),
        (Busy("x"), 429, True),
        (Denied("idempotency_conflict", "x"), 409, False),
        (Denied("rate_limited", "x", retryable=True), 429, True),
        (Denied("a_code_of_a_newer_version", "x"), 400, False),
        (MeshError("x"), 500, False),
    ],
)
def test_any_error_of_the_mesh_has_a_document(error: MeshError, status: int, retryable: bool) -> None:
    response = response_of(error)
    problem = msgspec.json.decode(response.body, type=Problem)
    assert (problem.status, response.status_code, problem.retryable) == (status, status, retryable)
    assert ("retry-after" in response.headers) == (status == 429)
    assert problem.type.endswith(problem.code)


def test_the_end_of_a_subscription_says_how_to_close() -> None:
    assert errors.SubscriptionEnded(1012, "again").close_code == 1012


def every_error() -> list[type[MeshError]]:
    """The whole tree, with the branches of all packages that a gateway consists of."""
    root = Path(__file__).parents[3]
    for package in ("auth", "gateway", "outbox", "stateroom"):
        for path in sorted((root / package).rglob("errors.py")):
            import_module(".".join(path.relative_to(root).with_suffix("").parts))
    found: list[type[MeshError]] = [MeshError]
    for error in found:
        found += [sub for sub in error.__subclasses__() if sub not in found]
    return sorted(found, key=lambda error: (error.__module__, error.__name__))


def raised(error: type[MeshError]) -> MeshError:
    """One of them, whatever it wants to know when it is made."""
    made = error.__new__(error)
    MeshError.__init__(made, "what", hint="hint")
    return made


def on_a_socket(error: MeshError) -> ErrorRecord:
    """As it is written, and read again by a client."""
    record = msgspec.json.decode(frame_text(error_frame(error, 1)), type=ServerFrame).error
    assert record is not None
    return record


def assert_told_alike(error: MeshError) -> None:
    """Code, text, hint and whether it is retryable, over HTTP and over a socket."""
    problem, record = problem_of(error), on_a_socket(error)
    assert (record.code, record.message, record.hint, record.retryable) == (
        problem.code,
        problem.detail,
        problem.hint,
        problem.retryable,
    )


@pytest.mark.parametrize("error", [error for error in every_error() if error is not Denied])
def test_a_socket_tells_each_error_as_http_does(error: type[MeshError]) -> None:
    assert_told_alike(raised(error))
    assert on_a_socket(raised(error)).retryable == error.retryable


@given(st.text(min_size=1), st.text(), st.text(), st.booleans())
def test_a_socket_tells_what_another_gateway_refused_as_http_does(
    code: str, what: str, hint: str, retryable: bool
) -> None:
    denied = Denied(code, what, hint=hint, retryable=retryable)
    assert_told_alike(denied)
    assert on_a_socket(denied).retryable == retryable


def test_what_is_final_on_a_socket_says_nothing_and_what_old_gateways_said_is_final() -> None:
    assert "retryable" not in frame_text(error_frame(NotFound("x"), 1))
    old = b'{"error":{"code":"storage_full","message":"no space left","hint":"free some","reqId":7}}'
    record = msgspec.json.decode(old, type=ServerFrame).error
    assert record == ErrorRecord(code="storage_full", message="no space left", hint="free some", req_id=7)
    assert not record.retryable
