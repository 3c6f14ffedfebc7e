"""Sending, replying and ending turns over HTTP, on a real node."""

from typing import TYPE_CHECKING, Any

import pytest

from outbox.ids import EventId
from outbox.records import DeliveryState, TurnState

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode

JSON = {"Content-Type": "application/json"}


async def post(node: "LocalNode", name: str, path: str, body: object) -> tuple[int, Any]:
    async with node.http(name) as http:
        answer = await http.post(path, json=body)
    return answer.status_code, answer.json()


async def send(node: "LocalNode", **body: object) -> EventId:
    status, answer = await post(node, "jen", "/v1/enqueue", {"to": "bob", "text": "hi"} | body)
    assert status == 202, answer
    return EventId(answer["eventId"])


async def test_a_send_is_on_disk_and_accepted_when_it_is_answered(node: "LocalNode") -> None:
    status, answer = await post(
        node,
        "jen",
        "/v1/enqueue",
        {"to": "bob@vps", "envelope": {"id": "k1", "type": "greeting", "payload": {"a": 1.5}, "priority": 1}},
    )
    assert status == 202
    assert answer["to"] == {"agent": "bob", "node": "vps"}
    assert answer["duplicate"] is False
    row = node.reader.obligations(answer["eventId"])[0]
    assert row is not None
    assert row.state is DeliveryState.ACCEPTED
    assert row.thread_id == answer["threadId"]


async def test_the_same_id_and_request_sends_once_and_another_request_conflicts(node: "LocalNode") -> None:
    body = {"to": "bob", "envelope": {"id": "once", "payload": "x"}}
    first = await post(node, "jen", "/v1/enqueue", body)
    again = await post(node, "jen", "/v1/enqueue", body)
    other = await post(node, "jen", "/v1/enqueue", {"to": "bob", "envelope": {"id": "once", "payload": "y"}})
    assert again == (202, first[1] | {"duplicate": True})
    assert (other[0], other[1]["code"]) == (409, "idempotency_conflict")
    assert node.reader.count_received() == {TurnState.QUEUED: 1}


TRACED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"


async def test_schema_and_trace_are_shown_to_who_gets_it_and_to_who_asks_for_it(node: "LocalNode") -> None:
    envelope = {"payload": 1, "schema": "orders/new@v1", "traceparent": TRACED}
    event = await send(node, text=None, envelope=envelope)
    async with node.http("bob") as http:
        (row,) = (await http.get("/v1/inbox")).json()["items"]
        traced = (await http.get(f"/v1/trace/{event}")).json()
    for shown in (row, traced):
        assert (shown["schema"], shown["traceparent"]) == ("orders/new@v1", TRACED)
    async with node.client() as operator:
        bob = operator.agent("bob")
        await bob.reply(event, "yes", schema="orders/ok@v1")
    async with node.http("jen") as http:
        (answer,) = (await http.get("/v1/inbox")).json()["items"]
    assert (answer["schema"], answer["traceparent"]) == ("orders/ok@v1", TRACED)


@pytest.mark.parametrize(
    ("headers", "said", "carried"),
    [
        ([TRACED], None, TRACED),
        ([TRACED], OTHER, OTHER),
        (["broken"], None, None),
        (["broken"], OTHER, OTHER),
        ([TRACED, OTHER], None, None),
        ([], None, None),
    ],
)
async def test_the_header_counts_where_the_body_says_nothing_and_breaks_nothing(
    node: "LocalNode", headers: list[str], said: str | None, carried: str | None
) -> None:
    one = {"payload": 1} | ({"traceparent": said} if said is not None else {})
    traced = [("traceparent", line) for line in headers]
    async with node.http("jen") as http:
        alone = await http.post("/v1/enqueue", json={"to": "bob", "envelope": one}, headers=traced)
        many = await http.post("/v1/enqueue", json={"envs": [{"to": "bob", "envelope": one}]}, headers=traced)
    assert (alone.status_code, many.status_code) == (202, 202)
    async with node.http("bob") as http:
        rows = (await http.get("/v1/inbox")).json()["items"]
        plain = await http.post(
            "/v1/reply", json={"eventId": rows[0]["eventId"], "text": "x"}, headers=traced
        )
    assert plain.status_code == 202
    assert [row.get("traceparent") for row in rows] == [carried, carried]


@pytest.mark.parametrize(
    "wrong", [{"schema": "no name"}, {"schema": ""}, {"traceparent": ""}, {"traceparent": "x"}]
)
async def test_a_label_in_a_body_that_is_none_is_refused_with_a_hint(
    node: "LocalNode", wrong: dict[str, str]
) -> None:
    body = {"to": "bob", "envelope": {"payload": 1} | wrong}
    status, problem = await post(node, "jen", "/v1/enqueue", body)
    assert (status, problem["code"]) == (400, "invalid_event")
    assert problem["hint"]
    assert node.reader.count_received() == {}


async def test_an_incident_is_told_once_and_opens_here_as_well(node: "LocalNode") -> None:
    body = {"id": "fork:x", "class": "fork", "severity": "critical", "openedAt": "2026-11-27T12:00:00Z"}
    first = await post(node, "jen", "/v1/incidents", body | {"detail": "two heads"})
    again = await post(node, "jen", "/v1/incidents", body)
    assert first[0] == 202
    assert again == (202, first[1] | {"duplicate": True})
    (row,) = [row for row in node.reader.incidents(open_only=True) if row.kind == "reported"]
    assert (row.subject, row.detail) == ("vps/fork:x", "critical fork: two heads")
    async with node.client() as operator:
        told = await operator.agent("jen").tell_incident(
            "fork:x", "fork", "critical", closed_at="2026-11-27T13:00:00Z"
        )
    assert not told.duplicate
    assert not [row for row in node.reader.incidents(open_only=True) if row.kind == "reported"]


async def test_an_incident_that_is_not_one_is_refused(node: "LocalNode") -> None:
    good = {"id": "x", "class": "fork", "severity": "critical"}
    for bad in ({"severity": "fatal"}, {"id": ""}, {"ref": "evt"}, {"openedAt": "now"}, {"klass": "fork"}):
        status, answer = await post(node, "jen", "/v1/incidents", good | bad)
        assert status == 400, answer


async def test_many_messages_in_one_request_are_done_or_refused_each_by_itself(node: "LocalNode") -> None:
    envs = [
        {"to": "bob", "text": "one"},
        {"to": "bobb", "text": "nobody"},
        {"to": "bob", "envelope": {"id": "k", "payload": 2}},
        {"to": "bob"},
        {"to": "bob", "envelope": {"id": "k", "payload": 2}},
    ]
    status, answer = await post(node, "jen", "/v1/enqueue", {"envs": envs})
    results = answer["results"]
    assert status == 202
    assert [result.get("error", {}).get("code") for result in results] == [
        None,
        "unknown_recipient",
        None,
        "invalid_request",
        None,
    ]
    assert results[4] == results[2] | {"duplicate": True}
    assert node.reader.count_received() == {TurnState.QUEUED: 2}


async def test_a_batch_is_refused_whole_when_it_is_none(node: "LocalNode") -> None:
    hi = {"to": "bob", "text": "x"}
    for body in ({"envs": []}, {"envs": [hi | {"agent": "bob"}]}, {"envs": [hi], "to": "bob"}):
        assert (await post(node, "jen", "/v1/enqueue", body))[1]["code"] == "invalid_request"
    assert node.reader.count_received() == {}


async def test_a_name_nobody_knows_is_refused_with_near_matches(node: "LocalNode") -> None:
    status, problem = await post(node, "jen", "/v1/enqueue", {"to": "bobb", "text": "hi"})
    assert (status, problem["code"]) == (404, "unknown_recipient")
    assert "bob" in problem["hint"]
    assert node.reader.count_deliveries() == {}


async def test_an_agent_without_owner_gets_a_dead_letter(node: "LocalNode") -> None:
    event = await send(node, to="gone")
    async with node.http("jen") as http:
        dead = (await http.get("/v1/dead")).json()
    assert [(row["eventId"], row["state"], row["error"]) for row in dead] == [
        (event, "dead_letter", "no_owner")
    ]


NO_EVENT = "evt_" + "0" * 32

WRONG: list[tuple[str, object, int, str]] = [
    ("/v1/enqueue", {"to": "bob"}, 400, "invalid_request"),
    ("/v1/enqueue", {"to": "bob", "text": "x", "envelope": {"payload": 1}}, 400, "invalid_request"),
    ("/v1/enqueue", {"to": "bob", "text": "x", "form": "jen"}, 400, "invalid_request"),
    (
        "/v1/enqueue",
        {"to": "bob", "envelope": {"payload": 1, "expiresInMs": 1 << 60}},
        400,
        "invalid_request",
    ),
    ("/v1/enqueue", {"to": "bob", "envelope": {"payload": 1, "priority": 9}}, 400, "invalid_event"),
    ("/v1/enqueue", {"to": "Bob!", "text": "x"}, 400, "invalid_id"),
    ("/v1/enqueue", {"to": "bob", "text": "x", "agent": "bob"}, 403, "forbidden"),
    ("/v1/enqueue", {"to": "bob", "text": "x" * 270_000}, 413, "too_large"),
    ("/v1/reply", {"eventId": "evt_1", "text": "x"}, 400, "invalid_id"),
    ("/v1/reply", {"eventId": NO_EVENT, "text": "x"}, 404, "not_found"),
    ("/v1/reply", {"eventId": NO_EVENT}, 400, "invalid_request"),
    ("/v1/ack", {"eventId": NO_EVENT}, 404, "not_found"),
    ("/v1/ack", {"eventId": NO_EVENT, "outcome": "refused"}, 400, "invalid_request"),
    ("/v1/nack", {"eventId": NO_EVENT, "leaseId": "x"}, 404, "not_found"),
    ("/v1/nack", {"eventId": NO_EVENT}, 400, "invalid_request"),
    ("/v1/extend", {"eventId": NO_EVENT, "leaseId": "x", "leaseMs": True}, 400, "invalid_request"),
]

NOT_THE_JSON_EXPECTED = [
    b"",
    b"{",
    b"[]",
    b'{"to":"bob","text":"\xff"}',
    b'{"to":"bob","envelope":{"payload":"\\ud800"}}',
    b'{"to":"bob","envelope":{"payload":NaN}}',
    b'{"to":"bob","envelope":{"payload":' + b"[" * 100 + b"]" * 100 + b"}}",
    b'{"to":"bob","envelope":{"payload":' + b"[" * 50_000,
    b'\xef\xbb\xbf{"to":"bob","text":"x"}',
]


async def test_what_is_wrong_is_refused_with_its_code(node: "LocalNode") -> None:
    for path, body, status, code in WRONG:
        got, problem = await post(node, "jen", path, body)
        assert (got, problem["code"], problem["status"]) == (status, code, status), (path, body)


async def test_bytes_that_are_not_the_json_expected_are_refused(node: "LocalNode") -> None:
    async with node.http("jen") as http:
        for raw in NOT_THE_JSON_EXPECTED:
            answer = await http.post("/v1/enqueue", content=raw, headers=JSON)
            assert answer.status_code == 400, raw
            assert answer.headers["content-type"] == "application/problem+json"
    assert node.reader.count_deliveries() == {}


async def test_a_reply_ends_the_turn_and_reaches_the_asker(node: "LocalNode") -> None:
    event = await send(node)
    status, answer = await post(node, "bob", "/v1/reply", {"eventId": event, "text": "yes", "id": "r1"})
    again = await post(node, "bob", "/v1/reply", {"eventId": event, "text": "yes", "id": "r1"})
    assert (status, answer["to"]) == (202, {"agent": "jen", "node": "vps"})
    assert again == (202, answer | {"duplicate": True})
    row = node.reader.obligations(event)[0]
    assert row is not None
    assert row.state in {DeliveryState.REPLIED, DeliveryState.PROCESSED}
    async with node.http("jen") as http:
        items = (await http.get("/v1/inbox")).json()["items"]
    assert [(item["kind"], item["corrId"], item["payload"]) for item in items] == [
        ("reply", event, {"text": "yes"})
    ]


async def test_an_ack_ends_a_turn_and_the_same_end_twice_is_no_error(node: "LocalNode") -> None:
    event = await send(node)
    failed = {"eventId": event, "outcome": "failed", "error": "no disk"}
    first = await post(node, "bob", "/v1/ack", failed)
    again = await post(node, "bob", "/v1/ack", failed)
    other = await post(node, "bob", "/v1/ack", {"eventId": event})
    assert first == (200, {"eventId": event, "duplicate": False})
    assert again == (200, {"eventId": event, "duplicate": True})
    assert (other[0], other[1]["code"]) == (409, "conflict")
    row = node.reader.obligations(event)[0]
    assert row is not None
    assert (row.outcome, row.error) == ("failed", "no disk")


async def test_an_agent_touches_no_turn_of_another(node: "LocalNode") -> None:
    event = await send(node)
    status, problem = await post(node, "jen", "/v1/ack", {"eventId": event})
    assert (status, problem["code"]) == (404, "not_found")
    (row,) = node.reader.ledger(event)
    assert row.state is TurnState.QUEUED


async def test_the_operator_acts_for_local_agents_only(node: "LocalNode") -> None:
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("bob", {"n": 1})
        assert sent.to.agent == "bob"
        for name, code in (("far", "not_found"), ("nobody", "not_found")):
            with pytest.raises(Exception, match="does not live on this node") as caught:
                await gateway.agent(name).send("bob", "x")
            assert getattr(caught.value, "wire_code", None) == code


@pytest.mark.parametrize(
    "field",
    ["type", "schema", "traceparent", "thread", "priority", "expiresInMs", "cause", "id", "payloadRef"],
)
async def test_a_field_that_may_be_left_out_may_be_null_as_well(node: "LocalNode", field: str) -> None:
    envelope = {"payload": 1, field: None}
    status, answer = await post(node, "jen", "/v1/enqueue", {"to": "bob", "envelope": envelope})
    assert status == 202 or (status, answer["code"]) == (400, "invalid_request"), answer
    assert len(node.reader.count_received()) == (status == 202), "it was sent and said so, or neither"


@pytest.mark.parametrize(
    ("to", "arrives"),
    [
        ("bob", True),
        ("bob@vps", True),
        ("agents/bob/inbox", True),
        ("Bob", False),
        ("bob/", False),
        ("bob ", False),
        ("agents/bob/inbox/", False),
        ("bob@VPS", False),
    ],
)
async def test_a_name_in_another_form_is_the_same_inbox_or_refused(
    node: "LocalNode", to: str, arrives: bool
) -> None:
    status, answer = await post(node, "jen", "/v1/enqueue", {"to": to, "text": "hi"})
    async with node.http("bob") as http:
        listed = (await http.get("/v1/inbox")).json()
    found = [row["eventId"] for row in (listed["items"] if isinstance(listed, dict) else listed)]
    assert found == ([answer["eventId"]] if arrives else []), (status, answer)
    assert (status == 202) is arrives
