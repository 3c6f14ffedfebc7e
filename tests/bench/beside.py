"""Meshes of two working trees, in turns: what a change does to round trips on a machine that is not idle.

::

    python -m tests.bench.beside TREE OTHER [--in-flight 1,100] [--slices 9]

Both run all the time, and each is asked for a second at a time. Read the ratios of neighbouring slices: the
middle one, and how far the others are from it. Processor time is that of all four processes of a mesh.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import msgspec
import uvloop

SECONDS = 1.0


class Slice(TypedDict):
    """A second of one mesh."""

    per_s: float
    p50_ms: float
    cpu_us: dict[str, float]
    """A round trip, of each process."""


def cpu_s(pid: int) -> float:
    """Processor time of all threads so far, by Linux."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


async def serve() -> None:
    """Run the mesh of the tree that is on the path; a line in is a number in flight, a line out a slice."""
    from tests.bench.measuring import measure
    from tests.bench.mesh import mesh_pair

    with tempfile.TemporaryDirectory(prefix="beside") as folder:
        async with mesh_pair(Path(folder) / "mesh") as mesh:
            pids = {**mesh.processes, "asker": os.getpid()}
            await measure(mesh.ask, 20, SECONDS)
            print("ready", flush=True)
            while line := await asyncio.to_thread(sys.stdin.readline):
                before = {name: cpu_s(pid) for name, pid in pids.items()}
                sample = await measure(mesh.ask, int(line), SECONDS)
                trips = sample.per_s * SECONDS
                spent = {name: (cpu_s(pid) - before[name]) / trips * 1e6 for name, pid in pids.items()}
                slice_ = Slice(per_s=sample.per_s, p50_ms=sample.p50_ms, cpu_us=spent)
                print(msgspec.json.encode(slice_).decode(), flush=True)


class Tree:
    """A working tree and its mesh."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # -P: the folder of this file has modules that are named like packages
        words = [sys.executable, "-P", __file__, "--serve"]
        environ = {**os.environ, "PYTHONPATH": str(folder)}
        self._mesh = subprocess.Popen(
            words, cwd=folder, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if self._line() != "ready\n":
            raise SystemExit(f"no mesh of {folder}: see above")

    def slice(self, in_flight: int) -> Slice:
        """One second."""
        assert self._mesh.stdin is not None
        print(in_flight, file=self._mesh.stdin, flush=True)
        return msgspec.json.decode(self._line(), type=Slice)

    def stop(self) -> None:
        """End the mesh."""
        assert self._mesh.stdin is not None
        self._mesh.stdin.close()
        self._mesh.wait(60)

    def _line(self) -> str:
        assert self._mesh.stdout is not None
        return self._mesh.stdout.readline()


def middle(values: Sequence[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


def show(tree: Tree, in_flight: int, slices: list[Slice]) -> None:
    """One line of a tree."""
    each = {name: middle([one["cpu_us"][name] for one in slices]) for name in slices[0]["cpu_us"]}
    print(
        f"{in_flight:5} in flight {middle([one['per_s'] for one in slices]):8,.0f} /s"
        f"  p50 {middle([one['p50_ms'] for one in slices]):7.2f} ms"
        f"  processor {sum(each.values()):6,.0f} us ({', '.join(f'{k} {v:.0f}' for k, v in each.items())})"
        f"  {tree.folder}"
    )


def ratios(name: str, values: Sequence[float]) -> None:
    """Of the second tree to the first, the lowest first."""
    print(f"      {name:10} {middle(values):.2f}  of {' '.join(f'{value:.2f}' for value in sorted(values))}")


def compare(first: Tree, second: Tree, in_flight: int, slices: int) -> None:
    """Slices in turns, who begins too."""
    ours: list[Slice] = []
    theirs: list[Slice] = []
    for number in range(slices):
        pair = [(first, ours), (second, theirs)]
        for tree, into in pair if number % 2 == 0 else pair[::-1]:
            into.append(tree.slice(in_flight))
    show(first, in_flight, ours)
    show(second, in_flight, theirs)
    pairs = list(zip(ours, theirs, strict=True))
    ratios("rate", [b["per_s"] / a["per_s"] for a, b in pairs])
    ratios("processor", [sum(b["cpu_us"].values()) / sum(a["cpu_us"].values()) for a, b in pairs])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs=2, type=Path)
    parser.add_argument("--in-flight", default="1,100")
    parser.add_argument("--slices", type=int, default=9)
    asked = parser.parse_args()
    trees = [Tree(folder.resolve()) for folder in asked.trees]
    try:
        for in_flight in map(int, asked.in_flight.split(",")):
            compare(trees[0], trees[1], in_flight, asked.slices)
    finally:
        for tree in trees:
            tree.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        uvloop.run(serve())
    else:
        main()
