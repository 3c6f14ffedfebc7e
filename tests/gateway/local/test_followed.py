"""What ``gateway report --follow`` says, and tells the mesh."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from gateway.cli.followed import teller
from tests.gateway.local.test_emission import AT, line, signals

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode

HOSTILE = line(9, from_agent="\x1b[31mred", detail="two\nlines")


def test_a_line_for_each_change_whose_text_cannot_speak_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell = teller(None, "jen", lambda: AT, as_json=False)
    tell([("opened", line(1)), ("changed", line(2, closed_at_ms=AT)), ("withdrawn", HOSTILE)])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("opened critical dead_letter -@vps")
    assert second.startswith("closed critical")
    assert "\\x1b[31mred@vps" in third
    assert "two lines" in third


def test_json_has_one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    teller(None, "jen", lambda: AT, as_json=True)([("opened", line(1)), ("opened", HOSTILE)])
    first, second = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert (first["change"], first["incident"]["class"]) == ("opened", "dead_letter")
    assert second["incident"]["detail"] == "two\nlines"


async def test_the_mesh_is_told_once_and_of_the_end_also_of_what_was_withdrawn(node: "LocalNode") -> None:
    tell = teller(node.home, "jen", lambda: AT + 5, as_json=True)
    for news in ([("opened", line(1))], [("opened", line(1))], [("withdrawn", line(1))], []):
        await asyncio.to_thread(tell, news)
    assert len(signals(node)) == 2
    assert not [row for row in node.reader.incidents(open_only=True) if row.kind == "reported"]
