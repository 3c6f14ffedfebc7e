"""Reads a file of objectives."""

from pathlib import Path

from spark.errors import InvalidSlo, SparkMissing
from spark.objectives import Objective
from spark.openslo import parse_objectives


def read_objectives(path: Path) -> tuple[Objective, ...]:
    """The objectives of a YAML file. Raises InvalidSlo, SparkMissing."""
    try:
        return parse_objectives(path.read_text("utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSlo(f"{path} cannot be read: {error}", hint="name a text file") from None
    except ImportError as error:
        raise SparkMissing(f"PyYAML is not installed: {error}") from None
