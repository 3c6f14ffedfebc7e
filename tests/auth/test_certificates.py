from collections.abc import Callable

import msgspec
import pytest

from auth import jws
from auth.certificates import _Claims, issue_certificate, mesh_id_of, read_certificate
from auth.errors import InvalidJws
from auth.keys import SigningKey
from outbox.ids import MeshId, NodeId


def test_the_root_names_a_seed_and_its_key(key: SigningKey, make_key: Callable[[str], SigningKey]) -> None:
    root = make_key("root")
    text = issue_certificate(root, NodeId("vps"), key.public, 5000)
    certificate = read_certificate(text, mesh_id_of(root.public))
    assert (certificate.node, certificate.key, certificate.issued_at_s) == ("vps", key.public, 5)


def test_another_root_certifies_nothing_here(key: SigningKey, make_key: Callable[[str], SigningKey]) -> None:
    root, other = make_key("root"), make_key("other root")
    mesh = mesh_id_of(root.public)
    with pytest.raises(InvalidJws):
        read_certificate(issue_certificate(other, NodeId("vps"), key.public, 0), mesh)
    claims = _Claims(mesh=mesh, node="vps", key=key.public.text, role="seed", iat=0)
    for forged in (
        jws.sign("ansible-seed+jwt", claims, other),
        jws.sign("ansible-node-proof+jwt", claims, root),
        jws.sign("ansible-seed+jwt", msgspec.structs.replace(claims, mesh="x"), root),
        jws.sign("ansible-seed+jwt", msgspec.structs.replace(claims, role="member"), root),
        jws.sign("ansible-seed+jwt", msgspec.structs.replace(claims, key="AQ"), root),
        "",
    ):
        with pytest.raises(InvalidJws):
            read_certificate(forged, mesh)
    with pytest.raises(InvalidJws):
        read_certificate(issue_certificate(root, NodeId("vps"), key.public, 0), MeshId("x"))
