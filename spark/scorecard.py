"""The objectives in the report: target, what was achieved, what is left of the budget, how fast it burns."""

from spark.charts import bar
from spark.markup import NOTHING, cell, duration, number, share, table, text
from spark.objectives import Measure, Objective, Share, Standing

_TIMES = "\u00d7"
_NBSP = "\u00a0"

BURNS_FAST = 14.4
"""At this rate two days use up four weeks; the usual threshold to wake somebody."""

_NOTE = (
    '<p class="sub">The budget is what may be missed. Burn is how fast it goes:'
    f" 1{_TIMES} uses it up exactly at the end of the window.</p>"
)

_IN_TIME = {
    Measure.ACCEPTED: "accepted within {}",
    Measure.PROCESSED: "processed within {} of acceptance",
    Measure.ANSWERED: "answered within {}",
    Measure.REPLIED: "replied to within {}",
}
_AT_ALL = {
    Measure.ACCEPTED: "accepted at all",
    Measure.PROCESSED: "processed without failure",
    Measure.ANSWERED: "answered without failure",
    Measure.REPLIED: "replied to",
}


def scorecard(standings: tuple[Standing, ...]) -> str:
    """The table; the missed ones are first, so that nobody has to look for them."""
    ordered = sorted(standings, key=_urgency)
    columns = (
        "objective",
        ("error budget left", "plot"),
        "target",
        "achieved",
        "missed",
        "of",
        "burn 1 h",
        "6 h",
    )
    shown = table(columns, [_row(standing) for standing in ordered], "No objectives.")
    return f"{shown}{_NOTE}" if ordered else shown


def _urgency(standing: Standing) -> tuple[bool, bool, float]:
    left = standing.budget_left
    return left is None, standing.met, left or 0.0


def _row(standing: Standing) -> str:
    target, whole = standing.objective.target, standing.whole
    burns = {share.window_ms: share for share in standing.recent}
    numbers = (
        ("target", f"{100 * target:.4g} %"),
        ("achieved", share(whole.kept, whole.judged)),
        ("missed", number(whole.missed)),
        ("of", number(whole.judged)),
        ("burn 1 h", _burn(burns.get(3_600_000), target)),
        ("burn 6 h", _burn(burns.get(21_600_000), target)),
    )
    return (
        f'<tr><td class="name">{_mark(standing)} {_name(standing.objective)}</td>'
        f'<td class="plot">{_budget(standing)}</td>{"".join(cell(*pair) for pair in numbers)}</tr>'
    )


def _mark(standing: Standing) -> str:
    if standing.whole.judged == 0:
        return '<span class="tag closed">no data</span>'
    return '<span class="tag met">met</span>' if standing.met else '<span class="tag critical">missed</span>'


def _name(objective: Objective) -> str:
    window = f"over {duration(objective.window_ms)}".replace(" ", _NBSP)
    title = f"<b>{text(objective.title)}</b> " if objective.title else ""
    return f'{title}{promise(objective)} <span class="sub">{window}</span>'


def promise(objective: Objective) -> str:
    """In words, escaped: ``message to coder answered within 5 min``."""
    fields = dict(objective.selected)
    words = [fields.get("kind", "every message")]
    for name, word in (
        ("type", "of type"), ("capability", "for"), ("fromAgent", "from"), ("fromNode", "from node"),
        ("agent", "to"), ("toAgent", "to"), ("toNode", "to node"),
    ):  # fmt: skip
        if name in fields:
            words += [word, fields[name]]
    limit_ms, measure = objective.limit_ms, objective.measure
    words.append(_AT_ALL[measure] if limit_ms is None else _IN_TIME[measure].format(duration(limit_ms)))
    return text(" ".join(words))


def _budget(standing: Standing) -> str:
    left = standing.budget_left
    if left is None:
        return NOTHING
    tone = "good" if left >= 0.5 else "wait" if left >= 0 else "bad"
    words = f"{100 * left:.3g} %" if left >= 0 else f"overdrawn {1 - left:.3g}{_TIMES}"
    return f'{bar(left if left >= 0 else 1.0, tone)}<span class="sub">{words}</span>'


def _burn(recent: Share | None, target: float) -> str:
    rate = recent.burn(target) if recent is not None else None
    if rate is None:
        return NOTHING
    shown = f"{rate:.3g}{_TIMES}"
    return f'<b class="bad-ink">{shown}</b>' if rate >= BURNS_FAST else shown
