"""Keys of a simulated mesh: only the key makes a signature that it verifies."""

from auth.keys import readable_key
from gateway.harness.sim.signing import Keys
from outbox.ids import NodeId
from stateroom.index import Index


def test_a_signature_is_of_one_key_and_one_text() -> None:
    keys = Keys()
    one, other = keys.key("n1"), keys.key("n2")
    signature = one.sign(b"text")
    assert len(signature) == 64
    assert one.verify(signature, b"text")
    assert not one.verify(signature, b"another")
    assert not other.verify(signature, b"text")
    assert keys.verify_raw(one.raw, signature, b"text")
    assert not keys.verify_raw(b"\x00" * 32, signature, b"text")


def test_an_admission_counts_in_the_real_index_and_its_key_is_a_real_one() -> None:
    keys = Keys()
    index = Index(keys.mesh, keys.verify_raw)
    assert index.offer("admissions", "n1", keys.admission(NodeId("n1"))) is not None
    found = index.admitted("n1")
    assert found is not None
    assert found.public_key == keys.key("n1").raw
    assert readable_key(found.public_key) is not None
