"""The judge of blobs: what is known to be here is whole, and what is named is here."""

from collections.abc import Iterator

from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.gateway import SimHome
from outbox.blobref import named_blob
from outbox.ids import NodeId

_ALL = 1 << 40


def judge_blobs(name: NodeId, home: SimHome) -> Iterator[Finding]:
    """What one node has lost, or keeps and should not know."""
    for row in home.disk.blobs():
        if not home.blobs.holds(row.sha256):
            yield Finding(Promise.BLOBS_ARE_WHOLE, f"{name} knows blob {row.sha256[:8]} and does not hold it")
    head = home.disk.beginning()
    while (page := home.disk.read(head, _ALL, _ALL)) is not None:
        head = page.checkpoint.head
        for entry in page.entries:
            blob = named_blob(entry.body)
            if blob is not None and home.disk.blob(blob) is None:
                what = f"{name} names blob {blob[:8]} in entry {entry.seq} and has let it go"
                yield Finding(Promise.BLOBS_ARE_WHOLE, what)
