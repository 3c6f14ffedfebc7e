"""What only the twin promises: a simulation that runs again runs alike. All else is in ``test_store.py``."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from outbox.memory import MemoryStore

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import World
from outbox.memory import MemoryStore

world = World()
store = MemoryStore(world.identity)
for keep in (True, False, True):
    store.begin()
    for number in (5, 3, 9, 1, 7):
        seq = store.head().seq + 1
        world.append(store, world.entry(seq, seq, corr=number))
        store.put_delivery(world.delivery(number, next_at_ms=10, created_at_ms=1, seq=1))
        store.put_received(world.received(number))
    store.commit() if keep else store.rollback()
print(store.due_deliveries(10, 9), store.deliveries(["emitted"], 9), store.unanswered("mbp", 9, 9999, 9))
print(store.open_turns(), store.events_about(world.event(5)))
print(store.read(MemoryStore(world.identity).head(), 99, 9999))
"""


def answers(hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
    ).stdout


def test_answers_do_not_depend_on_the_process() -> None:
    assert answers("1") == answers("2") != ""


def test_a_store_in_use_can_be_asked_without_a_transaction(world: Any) -> None:
    store = MemoryStore(world.identity)
    world.fill(store, 2)
    before = store.head()
    store.rollback()
    assert store.head() == before
    assert store.read(before, 10, 1000) is None
