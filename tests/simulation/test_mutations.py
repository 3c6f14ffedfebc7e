"""Planted bugs: a simulation that does not see them would not see real ones."""

from pathlib import Path

import pytest

from tests.simulation.mutant import MUTATIONS, first_failing_seed, plant, read_mutation

SAMPLE = (
    "ack-before-append",
    "cursor-without-ledger",
    "effects-before-commit",
    "lost-wake-up-after-reconnect",
)
"""Seen within seconds; the others are `long`."""


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(MUTATIONS) >= 20
    assert all(path.read_text().startswith("# ") for path in MUTATIONS)
    assert {*SAMPLE} <= {path.stem for path in MUTATIONS}


@pytest.mark.parametrize("path", MUTATIONS, ids=lambda path: path.stem)
def test_every_mutation_still_fits_the_code(path: Path) -> None:
    mutation = read_mutation(path)
    assert (Path(__file__).parents[2] / mutation.file).read_text().count(mutation.old) == 1
    assert mutation.old != mutation.new


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in SAMPLE else pytest.mark.long, id=path.stem)
        for path in MUTATIONS
    ],
)
@pytest.mark.timeout(900)
def test_the_simulation_sees_it(path: Path, tmp_path: Path) -> None:
    mutation = read_mutation(path)
    plant(mutation, tmp_path)
    assert first_failing_seed(tmp_path, mutation.seeds) is not None
