"""Fills a lake with generated history: realistic, of any size, and with a file that says what is wrong in it.

Beside what ``gateway.lake.plans`` plants in messages, outboxes get their own troubles: entries that are
missing, pages that were collected twice, epochs that begin anew, entries of which there are two.
"""

from collections import Counter
from collections.abc import Callable
from math import ceil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gateway.lake.blocks import EVENTS_PER_ROOT, SPACING_MS, TRUTH, Mesh, make_block
from gateway.lake.lake import disk_errors
from outbox.ids import Epoch, NodeId, Seq
from outbox.timestamps import rfc3339
from spark.errors import LakeNotEmpty
from spark.layout import EVENTS, FORKS, stream_dir
from spark.rules import IncidentClass
from spark.schema import arrow_schema
from spark.spans import Span

START_MS = 1_780_000_000_000
DAY_MS = 24 * 3600 * 1000
BLOCK_ROOTS = 40_000
"""Roots that are made at once: about 130,000 events, 100 MB."""
FILE_ROWS = 250_000
WAITING_ROWS_MAX = 1_000_000
"""Of all outboxes together, until they are a file: about 300 MB, however long the history is."""
BLOCKS_MIN = 8
"""A small history has several blocks as well, so that outboxes have troubles in it."""
REPEATED_SHARE = 500
"""Of a file's rows, one in so many stands at the beginning of the next one again."""
LOST = 7
"""Entries missing at once."""
FORKED = 3

TRUTH_TABLE = "truth/incidents.parquet"
TRUTH_ABOUT = "truth/about.json"

Progress = Callable[[int, int], None]
"""``progress(events done, events to make)``."""


class Generated(msgspec.Struct, frozen=True, rename="camel"):
    """What a lake was filled with; also its file ``truth/about.json``."""

    seed: int
    events: int
    """Rows; some of them twice."""
    roots: int
    as_of: str
    """The moment of judgement that the truth holds for."""
    incidents: dict[str, int]
    """Class → how many."""


def a_mesh(nodes: int = 20) -> Mesh:
    """Twenty nodes, a hundred agents; two clocks are five seconds behind."""
    return Mesh(
        nodes=tuple(f"node-{number:02d}" for number in range(nodes)),
        agents=tuple(f"agent-{number:03d}" for number in range(100)),
        capabilities=tuple(f"cap.skill-{number:02d}" for number in range(40)),
        behind_ms=tuple(5000 if number in {nodes // 2, nodes - 1} else 0 for number in range(nodes)),
    )


class _Stream:
    """One node's outbox on its way into files."""

    def __init__(self, lake: Path, node: NodeId, number: int, seed: int) -> None:
        self._lake, self.node, self._number, self._seed = lake, node, number, seed
        self._ordinal, self._seq = 1, 0
        self._pending: list[pa.Table] = []
        self.waiting = 0
        self._repeated: pa.Table | None = None
        self.events = 0
        self.lost: set[Epoch] = set()
        self.last: pa.Table | None = None

    @property
    def epoch(self) -> Epoch:
        return Epoch(f"{self._ordinal:06d}-{(self._seed * 1009 + self._number) % 16**12:012x}")

    def lose(self) -> None:
        """Some entries never reach the lake; noticed as soon as later ones do."""
        if self._seq:
            self._seq += LOST
            self.lost.add(self.epoch)

    def restart(self) -> None:
        """A new epoch."""
        self.flush()
        self._ordinal, self._seq, self._repeated = self._ordinal + 1, 0, None

    def add(self, rows: pa.Table) -> None:
        first = self._seq + 1
        self._seq += len(rows)
        placed = rows.append_column("epoch", pa.repeat(pa.scalar(self.epoch), len(rows)))
        placed = placed.append_column("seq", pa.array(range(first, self._seq + 1)))
        self._pending.append(placed.select(arrow_schema().names).cast(arrow_schema()))
        self.waiting += len(rows)
        if self.waiting >= FILE_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        fresh = pa.concat_tables(self._pending)
        self._pending, self.waiting = [], 0
        rows = fresh if self._repeated is None else pa.concat_tables([self._repeated, fresh])
        self._write(EVENTS, rows)
        self.events += len(rows)
        self.last = _own(fresh.slice(0, FORKED))
        self._repeated = _own(fresh.slice(len(fresh) - ceil(len(fresh) / REPEATED_SHARE)))

    def fork(self) -> None:
        """A second copy of some entries, which says something else."""
        assert self.last is not None, "a stream has rows"
        rows = self.last
        other = pa.array([f"evt_{self._number:032x}"] * len(rows))
        self._write(FORKS, rows.set_column(rows.schema.get_field_index("eventId"), "eventId", other))

    def _write(self, where: str, rows: pa.Table) -> None:
        places = rows["seq"]
        span = Span(Seq(places[0].as_py()), Seq(places[-1].as_py()))
        path = self._lake / where / stream_dir(self.node, self.epoch) / span.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.cast(arrow_schema()), path, compression="zstd")


def generate(lake: Path, events: int, seed: int, *, progress: Progress) -> Generated:
    """Fill an empty lake with about so many events. Raises LakeNotEmpty, StorageFailed."""
    if (lake / EVENTS).exists():
        raise LakeNotEmpty(f"{lake} holds events", hint="generated history goes into a directory of its own")
    with disk_errors():
        return _generate(lake, events, seed, progress)


def _generate(lake: Path, events: int, seed: int, progress: Progress) -> Generated:
    mesh = a_mesh()
    roots = max(1, round(events / EVENTS_PER_ROOT))
    size = min(BLOCK_ROOTS, ceil(roots / BLOCKS_MIN))
    streams = [_Stream(lake, NodeId(node), number, seed) for number, node in enumerate(mesh.nodes)]
    truth, made = [], 0
    for number, first in enumerate(range(0, roots, size)):
        block = make_block(mesh, seed, number, min(size, roots - first), START_MS + first * SPACING_MS)
        truth.append(block.truth)
        _append(streams, block.rows, number)
        made += len(block.rows)
        progress(made, max(made, events))
    for stream in streams:
        stream.flush()
    for stream in streams[::7]:
        stream.fork()
        truth.append(_one(IncidentClass.FORK, f"{stream.node}/{stream.epoch}"))
    for stream in streams:
        truth += [_one(IncidentClass.SEQ_GAP, f"{stream.node}/{epoch}") for epoch in sorted(stream.lost)]
    return _tell(lake, pa.concat_tables(truth), seed, sum(stream.events for stream in streams), roots)


def _append(streams: list[_Stream], rows: pa.Table, block: int) -> None:
    """Give each node its rows of a block, after the troubles that are due at its beginning."""
    counts = {found["values"]: found["counts"] for found in rows["node"].value_counts().to_pylist()}
    start = 0
    for number, stream in enumerate(streams):
        count = counts.get(number, 0)
        if count:
            if (number + block) % 13 == 12:
                stream.restart()
            if (number * 7 + block * 3) % 11 == 1:
                stream.lose()
            stream.add(_own(rows.slice(start, count).drop_columns(["node"])))
        start += count
    while sum(stream.waiting for stream in streams) > WAITING_ROWS_MAX:
        max(streams, key=lambda stream: stream.waiting).flush()


def _own(slice_of: pa.Table) -> pa.Table:
    """A copy of a slice: the slice itself would keep the whole table that it is a part of."""
    return slice_of.take(pa.array(range(len(slice_of))))


def _one(name: IncidentClass, subject: str) -> pa.Table:
    return pa.table([[name.value], [subject]], schema=TRUTH)


def _tell(lake: Path, truth: pa.Table, seed: int, events: int, roots: int) -> Generated:
    known = (
        truth.group_by(TRUTH.names).aggregate([]).sort_by([("class", "ascending"), ("subject", "ascending")])
    )
    counts = Counter(known["class"].to_pylist())
    as_of_ms = START_MS + roots * SPACING_MS + DAY_MS
    made = Generated(seed, events, roots, rfc3339(as_of_ms), dict(sorted(counts.items())))
    (lake / TRUTH_TABLE).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(known, lake / TRUTH_TABLE, compression="zstd")
    (lake / TRUTH_ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(made)))
    return made
