from auth import errors
from auth.errors import AuthError, RateLimited
from outbox.errors import MeshError

TABLE = {
    "invalid_request": 400,
    "invalid_key": 400,
    "invalid_jws": 400,
    "bad_join_code": 400,
    "too_large": 413,
    "invalid_token": 401,
    "expired_token": 401,
    "node_mismatch": 403,
    "node_revoked": 403,
    "room_forbidden": 403,
    "token_already_used": 409,
    "replay_detected": 409,
    "invalid_ticket": 401,
    "expired_ticket": 401,
    "ticket_already_used": 409,
    "rate_limited": 429,
}


def tree(root: type[MeshError]) -> set[type[MeshError]]:
    return {root}.union(*map(tree, root.__subclasses__()))


def test_codes_and_statuses_are_those_of_the_contract() -> None:
    found = {kind.code: kind.status for kind in tree(AuthError) - {AuthError}}
    assert found == TABLE


def test_every_error_is_drawn_in_the_tree() -> None:
    here = [kind for kind in tree(MeshError) if kind.__module__ == errors.__name__]
    for kind in here:
        assert kind.__name__ in (errors.__doc__ or "")
        assert kind.code in (errors.__doc__ or "") or kind is AuthError


def test_throttling_says_how_long() -> None:
    assert RateLimited("slow down", retry_after_ms=700).retry_after_ms == 700
