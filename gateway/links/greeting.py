"""The first frame of a link: who is there, and in which version the two will speak."""

from gateway.links.errors import VersionRefused
from gateway.wire.frames import VERSIONS, Frame, Hello, common_version
from outbox.errors import BadFrame
from outbox.ids import MeshId, NodeId


def agreed_version(hello: Frame, peer: NodeId, mesh: MeshId) -> int:
    """What both understand. Raises BadFrame when it is not the peer's hello, VersionRefused."""
    if not isinstance(hello, Hello) or (hello.node, hello.mesh) != (peer, mesh):
        raise BadFrame(f"the first frame is not the hello of {peer}")
    version = common_version(hello.versions)
    if version is None:
        raise VersionRefused(
            f"{peer} speaks versions {hello.versions}",
            hint=f"this gateway speaks {VERSIONS}: update the older one",
        )
    return version
