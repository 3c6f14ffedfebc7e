import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.scopes import Admin, AsAgent
from auth.tokens import Holder, hash_token, is_token, make_token, scope_of_token
from outbox.ids import AgentId

ADMIN, JANE = make_token(bytes(32)), make_token(b"j" * 32)
HOLDERS = [Holder(hash_token(ADMIN.text), Admin()), Holder(hash_token(JANE.text), AsAgent(AgentId("jane")))]


def test_a_bearer_has_the_scope_of_its_token() -> None:
    assert scope_of_token(ADMIN.text, HOLDERS) == Admin()
    assert scope_of_token(JANE.text, HOLDERS) == AsAgent(AgentId("jane"))


@given(
    st.text(alphabet=st.characters(codec=None))
    | st.sampled_from([ADMIN.text + "\n", ADMIN.text[:-1], JANE.text.upper()])
)
def test_any_other_text_is_nobodys(text: str) -> None:
    assert scope_of_token(text, HOLDERS) is None


@given(st.binary(min_size=32, max_size=48))
def test_a_token_has_the_form_of_one(entropy: bytes) -> None:
    assert is_token(make_token(entropy).text)


@pytest.mark.parametrize(
    "text",
    ["", "secret", ADMIN.text + "\n", ADMIN.text[:-1], ADMIN.text + "A", "inv" + ADMIN.text[3:]],
)
def test_other_texts_have_not(text: str) -> None:
    assert not is_token(text)


def test_a_hash_is_not_a_token() -> None:
    assert scope_of_token(hash_token(ADMIN.text).hex(), HOLDERS) is None


def test_repr_shows_no_secret() -> None:
    assert ADMIN.text.startswith("gwt_")
    assert len(ADMIN.text) == 47
    assert ADMIN.text[4:] not in repr(ADMIN)
