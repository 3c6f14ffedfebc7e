"""Reading, placing and scaling conversations; every error names its line."""

import json
from collections import Counter
from importlib.resources import files
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.conversation import parse, scaled
from gateway.demo.errors import InvalidConversation
from gateway.demo.limits import LINES_MAX, TEXT_BYTES_MAX
from outbox.ids import agent_id
from outbox.limits import HOPS_MAX

NODES = ("vps", "mbp", "lab")


def written(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def row(sender="al", recipient="bo", text="hi", at_ms=0, **more):
    return {"from": sender, "to": recipient, "text": text, "at_ms": at_ms, **more}


def refused(*rows, line):
    with pytest.raises(InvalidConversation) as caught:
        parse(written(*rows), NODES)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")
    return str(caught.value)


names = st.sampled_from([f"agent-{n}" for n in range(9)])


@st.composite
def conversations(draw):
    """Rows with some agents placed at some of their mentions, and answers to earlier rows."""
    homes = draw(st.dictionaries(names, st.sampled_from(NODES)))

    def address(name):
        return f"{name}@{homes[name]}" if name in homes and draw(st.booleans()) else name

    rows, at_ms = [], 0
    for number in range(draw(st.integers(1, 30))):
        at_ms += draw(st.integers(0, 5_000))
        question = draw(st.none() | st.integers(1, number)) if number else None
        if question is None:
            pair = draw(names), draw(names)
        else:
            pair = rows[question - 1]["to"].partition("@")[0], rows[question - 1]["from"].partition("@")[0]
        rows.append(row(address(pair[0]), address(pair[1]), draw(st.text(min_size=1)), at_ms))
        if question is not None:
            rows[-1]["reply_to"] = question
    return rows


def depth(rows, number):
    question = rows[number - 1].get("reply_to")
    return 0 if question is None else 1 + depth(rows, question)


@given(conversations().filter(lambda rows: all(depth(rows, n + 1) <= HOPS_MAX for n in range(len(rows)))))
def test_every_line_is_kept_and_every_agent_has_one_home(rows):
    conversation = parse(written(*rows), NODES)
    assert [line.text for line in conversation.lines] == [row["text"] for row in rows]
    assert [line.reply_to for line in conversation.lines] == [row.get("reply_to") for row in rows]
    mentioned = [address.partition("@") for row in rows for address in (row["from"], row["to"])]
    assert set(conversation.homes) == {name for name, _, _ in mentioned}
    for name, at, node in mentioned:
        assert not at or conversation.homes[name] == node
    assert set(conversation.homes.values()) <= set(NODES)
    answers = [line for lines in conversation.replies().values() for line in lines]
    assert sorted(line.number for line in answers) == [
        n for n, row in enumerate(rows, 1) if "reply_to" in row
    ]


@given(st.integers(1, 30))
def test_agents_without_a_node_are_spread_evenly(count):
    rows = [row(f"a{n}", f"a{n}") for n in range(count)]
    crowd = Counter(parse(written(*rows), NODES).homes.values())
    assert max(crowd.values()) - min(crowd[node] for node in NODES) <= 1


@given(st.lists(st.integers(0, 10**7), min_size=1).map(sorted), st.integers(1, 10**6))
def test_scaling_keeps_the_order_and_ends_at_the_duration(times, duration_ms):
    conversation = parse(written(*(row(at_ms=at_ms) for at_ms in times)), NODES)
    made = [line.at_ms for line in scaled(conversation, duration_ms).lines]
    assert all(early <= late for early, late in pairwise(made))
    assert made[-1] == (duration_ms if times[-1] else 0)


def test_an_id_may_be_answered_as_well_as_a_number():
    rows = (row(id="q"), row("bo", "al", reply_to="q"), row("al", "bo", reply_to=2))
    assert [line.reply_to for line in parse(written(*rows), NODES).lines] == [None, 1, 2]


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"from": "al", "to": "bo", "text": "hi"}, "at_ms"),
        (row(mood="gay"), "mood"),
        (row(text=""), "text"),
        (row(at_ms=-1), "at_ms"),
        (row(at_ms="soon"), "at_ms"),
        (row(sender="Al Green"), "Al Green"),
        (row(recipient="bo@@lab"), "@lab"),
        (row(recipient="bo@moon"), "no node"),
        (row(text="x" * (TEXT_BYTES_MAX + 1)), "bytes"),
        (row("bo", "al", reply_to=2), "no earlier line"),
        (row("bo", "al", reply_to="lost"), "lost"),
        (row("al", "bo", reply_to=1), "which al wrote to bo"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(wrong, what):
    assert what in refused(row(), wrong, line=2)


def test_times_may_not_fall():
    assert "before the line above" in refused(row(at_ms=10), row(at_ms=9), line=2)


def test_an_agent_lives_on_one_node():
    assert "lives on lab" in refused(row("al@lab"), row(), row("bo", "al@vps"), line=3)


def test_an_id_names_one_line():
    assert "line 1 has the id" in refused(row(id="q"), row(id="q"), line=2)


def test_answers_in_a_row_are_bounded_as_the_mesh_bounds_them():
    pairs = (("al", "bo"), ("bo", "al"))
    rows = [row(), *(row(*pairs[number % 2], reply_to=number) for number in range(1, HOPS_MAX + 2))]
    assert parse(written(*rows[:-1]), NODES).lines[-1].reply_to == HOPS_MAX
    refused(*rows, line=HOPS_MAX + 2)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"[]\n", b"{\n", b'{"from": "al"\xff}\n', written(row()) + b"\n"]
)
def test_what_is_no_conversation_is_refused(text):
    with pytest.raises(InvalidConversation):
        parse(text, NODES)


def test_too_many_lines_are_refused():
    with pytest.raises(InvalidConversation, match=str(LINES_MAX)):
        parse(written(row()) * (LINES_MAX + 1), NODES)


def test_a_line_separator_inside_a_text_ends_no_line():
    assert parse(written(row(text="a\u2028b\u0085c")), NODES).lines[0].text == "a\u2028b\u0085c"


def test_the_conversation_that_comes_with_the_package_is_worth_playing():
    content = (files("gateway.demo") / "conversation.jsonl").read_bytes()
    conversation = parse(content, NODES)
    texts = [line.text for line in conversation.lines]
    sizes = [len(text.encode()) for text in texts]
    assert len(texts) > 250
    assert len(set(texts)) == len(texts)
    assert sum(line.reply_to is not None for line in conversation.lines) > 80
    assert max(sizes) > 30_000
    assert sum(size > 5_000 for size in sizes) >= 4
    assert min(Counter(conversation.homes.values())[node] for node in NODES) >= 2
    assert all(agent_id(agent) for agent in conversation.homes)
    letters = set("".join(texts))
    assert {"ب", "ב", "水", "ज", "\u031b", "🎉", "\n"} <= letters
