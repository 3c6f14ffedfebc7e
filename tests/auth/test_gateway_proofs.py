from collections.abc import Callable

import msgspec
import pytest

from auth import jws
from auth.certificates import issue_certificate, mesh_id_of
from auth.errors import WrongGateway
from auth.gateway_proofs import GatewayProof, KnownGateway, Pin, check_gateway_proof, prove_gateway
from auth.keys import SigningKey
from outbox.ids import NodeId

VPS, MBP = NodeId("vps"), NodeId("mbp")


class Setting:
    def __init__(self, make_key: Callable[[str], SigningKey]) -> None:
        self.root, self.key, self.other = make_key("root"), make_key("vps"), make_key("other")
        self.mesh = mesh_id_of(self.root.public)
        self.claims = GatewayProof(
            client_nonce="c",
            node="mbp",
            nonce="n",
            gw="vps",
            mesh=self.mesh,
            cert=issue_certificate(self.root, VPS, self.key.public, 0),
        )
        self.pin = Pin(mesh=self.mesh, jkt=self.key.public.jkt)

    def check(self, proof: str, pin: Pin | None = None) -> KnownGateway:
        return check_gateway_proof(proof, pin or self.pin, client_nonce="c", node=MBP, nonce="n", gateway=VPS)


@pytest.fixture
def setting(make_key: Callable[[str], SigningKey]) -> Setting:
    return Setting(make_key)


def test_the_pinned_seed_is_known(setting: Setting) -> None:
    proof = prove_gateway(setting.claims, setting.key)
    assert setting.check(proof) == KnownGateway(VPS, setting.key.public)
    assert setting.check(proof, Pin(mesh=setting.mesh)).key == setting.key.public


@pytest.mark.parametrize("field", ["client_nonce", "node", "nonce", "gw", "mesh", "cert"])
def test_a_proof_about_anything_else_is_refused(field: str, setting: Setting) -> None:
    proof = prove_gateway(msgspec.structs.replace(setting.claims, **{field: "other"}), setting.key)
    with pytest.raises(WrongGateway):
        setting.check(proof)


def test_another_key_is_refused(setting: Setting) -> None:
    with pytest.raises(WrongGateway):
        setting.check(prove_gateway(setting.claims, setting.other))
    with pytest.raises(WrongGateway):
        setting.check(
            prove_gateway(setting.claims, setting.key), Pin(mesh=setting.mesh, jkt=setting.other.public.jkt)
        )


def test_a_certificate_of_another_node_or_root_is_refused(setting: Setting) -> None:
    for cert in (
        issue_certificate(setting.root, MBP, setting.key.public, 0),
        issue_certificate(setting.root, VPS, setting.other.public, 0),
        issue_certificate(setting.other, VPS, setting.key.public, 0),
        "",
    ):
        proof = prove_gateway(msgspec.structs.replace(setting.claims, cert=cert), setting.key)
        for pin in (setting.pin, Pin(mesh=setting.mesh)):
            with pytest.raises(WrongGateway):
                setting.check(proof, pin)


def test_a_member_is_known_by_its_admitted_key_alone(setting: Setting) -> None:
    proof = prove_gateway(msgspec.structs.replace(setting.claims, cert=""), setting.key)
    known = Pin(mesh=setting.mesh, jkt=setting.key.public.jkt, seed=False)
    assert setting.check(proof, known).key == setting.key.public
    with pytest.raises(WrongGateway):
        setting.check(proof, Pin(mesh=setting.mesh, jkt=None, seed=False))


def test_no_other_token_is_a_gateway_proof(setting: Setting) -> None:
    for proof in ("", "x.y.z", jws.sign("ansible-node-proof+jwt", setting.claims, setting.key)):
        with pytest.raises(WrongGateway):
            setting.check(proof)
