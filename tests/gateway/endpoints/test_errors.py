"""What the listeners refuse, and the status that each refusal is answered with."""

import msgspec
import pytest

from gateway.api.problem import Problem
from gateway.endpoints import errors
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
