from auth.members import nobody
from outbox.ids import NodeId


def test_a_mesh_of_one_seed_knows_no_other_admissions() -> None:
    assert nobody(NodeId("mbp")) is None
