"""Homes as files: copied as an image of a machine holds them, put back, and journals kept for the judge."""

import shutil
from pathlib import Path

from gateway.home import Home

_STAYS = ("log", "lock", ".ballast", ".restoring")
"""Of the machine, not of the node: a run has one log a node, and its own ballast."""
_SAME = ("agents", "keys", "admin.token")
"""Never change, and agents look for them at any time."""
_ASIDE = "before-restore-*"
_JOURNAL = ("journal.db", "journal.db-wal")
"""Without its index in shared memory: whoever opens it makes one anew, as after a power cut."""


def copy_home(home: Home, target: Path) -> None:
    """Everything of a node into a new directory; its process must stand still or be gone."""
    shutil.copytree(home.root, target, ignore=shutil.ignore_patterns(*_STAYS, _ASIDE, "*-shm"))


def put_home(saved: Path, home: Home) -> None:
    """Everything of a node from a copy, in the place of what is there; its process must be gone."""
    for there in home.root.iterdir():
        if there.name not in (*_STAYS, *_SAME):
            shutil.rmtree(there) if there.is_dir() else there.unlink()
    shutil.copytree(saved, home.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_SAME))


def keep_journal(source: Path, target: Path) -> Path:
    """A copy of the journal that lies in a directory; its process must stand still or be gone."""
    target.mkdir(parents=True)
    for name in _JOURNAL:
        if (source / name).exists():
            shutil.copy(source / name, target / name)
    return target / _JOURNAL[0]


def take_aside(home: Home, target: Path) -> Path:
    """The journal that ``gateway restore`` has set aside, out of the home: its disk may be small."""
    (aside,) = home.root.glob(_ASIDE)
    shutil.move(aside, target)
    return target / _JOURNAL[0]
