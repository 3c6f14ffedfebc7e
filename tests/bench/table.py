"""A measured ratio beside what is wanted of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """``must``: below it the work is not done; ``goal``: what we are after. ``at_most``: less is better."""

    must: float
    goal: float
    at_most: bool = False


def show(name: str, value: float, target: Target) -> None:
    """One line: the figure, what it must be, what we are after, and which of them it reached."""
    sign = "<=" if target.at_most else ">="
    print(
        f"  {name:48} {value:10.2f}   must {sign} {target.must:<6g} goal {sign} {target.goal:<6g}"
        f" {verdict(value, target)}"
    )


def verdict(value: float, target: Target) -> str:
    """In a word."""
    if target.at_most:
        value, target = -value, Target(-target.must, -target.goal)
    return "goal" if value >= target.goal else "must" if value >= target.must else "BELOW MUST"
