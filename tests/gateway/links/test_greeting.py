import pytest

from gateway.links.errors import VersionRefused
from gateway.links.greeting import agreed_version
from gateway.wire.frames import VERSION, VERSIONS, Bye, Frame, Hello
from outbox.errors import BadFrame
from outbox.ids import MeshId, NodeId

PEER, MESH = NodeId("lab"), MeshId("m" * 43)


def test_the_newest_common_version_is_spoken() -> None:
    assert agreed_version(Hello(VERSION, VERSIONS, PEER, MESH, 0), PEER, MESH) == VERSION
    assert agreed_version(Hello(1, (1,), PEER, MESH, 0), PEER, MESH) == 1
    assert agreed_version(Hello(9, (VERSION, 9), PEER, MESH, 0), PEER, MESH) == VERSION


@pytest.mark.parametrize(
    "hello",
    [
        Bye("version"),
        Hello(VERSION, VERSIONS, NodeId("mbp"), MESH, 0),
        Hello(VERSION, VERSIONS, PEER, MeshId("n" * 43), 0),
    ],
    ids=["no-hello", "another-node", "another-mesh"],
)
def test_anybody_else_is_not_spoken_with(hello: Frame) -> None:
    with pytest.raises(BadFrame):
        agreed_version(hello, PEER, MESH)


def test_two_versions_apart_is_too_far() -> None:
    with pytest.raises(VersionRefused) as caught:
        agreed_version(Hello(9, (8, 9), PEER, MESH, 0), PEER, MESH)
    assert "update the older one" in caught.value.hint
