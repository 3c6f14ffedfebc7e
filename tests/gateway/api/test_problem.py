import pytest

from gateway.api.problem import refusal_of
from gateway.errors import Denied, Unreachable


def test_a_problem_document_becomes_its_code() -> None:
    body = b'{"code":"token_already_used","detail":"the invite is used","hint":"ask","retryable":false,"x":1}'
    refusal = refusal_of("http://vps", 409, body)
    assert isinstance(refusal, Denied)
    assert (refusal.wire_code, str(refusal), refusal.hint) == (
        "token_already_used",
        "the invite is used",
        "ask",
    )
    assert not refusal.is_retryable


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"code":5}', b"\xff"])
def test_anything_else_is_no_gateway(body: bytes) -> None:
    assert isinstance(refusal_of("http://vps", 502, body), Unreachable)


def test_a_strangers_long_text_is_cut() -> None:
    body = b'{"code":"' + b"c" * 500 + b'","detail":"' + b"d" * 5000 + b'"}'
    refusal = refusal_of("http://vps", 400, body)
    assert isinstance(refusal, Denied)
    assert len(refusal.wire_code) == 80
    assert len(str(refusal)) == 300
