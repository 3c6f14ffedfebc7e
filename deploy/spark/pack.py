"""Packs the report job into a zip for ``spark-submit --py-files``: ``python pack.py JOB.zip``.

It holds the packages ``spark`` and ``outbox`` as they lie beside this directory. Times in it are fixed, so
that the same source makes the same bytes.
"""

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("spark", "outbox")
KEPT = {".py", ".css"}


def pack(target: Path) -> int:
    """Write the zip and return how many files it has."""
    files = sorted(
        path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in KEPT
    )
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in files:
            archive.writestr(ZipInfo(path.relative_to(ROOT).as_posix()), path.read_bytes())
    return len(files)


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
