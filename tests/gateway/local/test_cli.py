"""The command line: exit codes, outputs, and the ten-line walk-through as real processes."""

import asyncio
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from gateway.cli import main
from gateway.cli.exits import Exit
from gateway.cli.main import cli
from gateway.cli.output import table
from outbox.lock import HomeLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.gateway.local.conftest import LocalNode

GATEWAY = Path(sys.executable).with_name("gateway")


async def command(node: "LocalNode", *words: str, text: str = "", **env: str) -> tuple[int, str, str]:
    """Run a real process against a running node."""
    environ = os.environ | {"GATEWAY_HOME": str(node.home.root), "NO_COLOR": "1"} | env
    environ["XDG_RUNTIME_DIR"] = str(node.home.runtime.parent)
    process = await asyncio.create_subprocess_exec(
        str(GATEWAY),
        *words,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def home(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which nothing runs."""
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GATEWAY_HOME", str(short_dir / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_dir))
    return short_dir / "home"


def test_help_loads_nothing_heavy() -> None:
    heavy = ("asyncio", "aiohttp", "httpx", "websockets", "starlette", "rich", "sqlite3", "pyspark")
    code = (
        "import sys; from gateway.cli import main; main(['--help']);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    for name in ("init", "run", "invite", "join", "send", "inbox", "trace", "doctor", "demo"):
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize(
    "group", ["", *sorted(name for name, found in cli.commands.items() if isinstance(found, click.Group))]
)
def test_no_line_of_help_is_cut(group: str, capfd: pytest.CaptureFixture[str]) -> None:
    main([*group.split(), "--help"])
    listed = capfd.readouterr().out.partition("Commands:")[2]
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], Exit.OK),
        (["colour"], Exit.USAGE),
        (["send"], Exit.USAGE),
        (["inbox"], Exit.USAGE),
        (["init", "Not A Name"], Exit.USAGE),
        (["invite", "--ttl", "soon"], Exit.USAGE),
        (["send", "bob", "x", "--as", "JEN"], Exit.USAGE),
        (["join", "--invite", "ansj1_nonsense"], Exit.REFUSED),
        (["join", "--invite", "@/does/not/exist"], Exit.USAGE),
        (["invite", "--ttl", "8d"], Exit.USAGE),
        (["send", "bob", "", "--as", "jen"], Exit.USAGE),
        (["status"], Exit.UNREACHABLE),
        (["outbox", "verify"], Exit.FAILED),
        (["doctor"], Exit.FAILED),
        (["node", "revoke", "pi", "--yes"], Exit.UNREACHABLE),
    ],
)
def test_exit_codes_without_a_gateway(home: Path, words: list[str], code: Exit) -> None:
    assert main(words) == code
    assert not home.exists(), "nothing is made by looking"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Callable[[str], int]]":
    """What somebody types at a terminal that is the command's input."""
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield lambda text: os.write(keyboard, text.encode())
    os.close(keyboard)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("n\n", Exit.FAILED),
        ("\n", Exit.FAILED),
        ("what?\nno\n", Exit.FAILED),
        ("\x04", Exit.INTERRUPTED),
        ("y\n", Exit.UNREACHABLE),
    ],
    ids=["no", "no answer", "no after all", "end of input", "yes"],
)
def test_no_node_is_revoked_before_somebody_says_yes(
    answer: str,
    code: Exit,
    home: Path,
    typed: "Callable[[str], int]",
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nothing is asked of a gateway before: here is none, and only a yes finds that out."""
    typed(answer)
    assert main(["node", "revoke", "pi", "--json"]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert "cannot be taken back" in err
    assert "Revoke pi? [y/N]:" in err
    assert ("pi was not revoked" in err) is (code == Exit.FAILED)
    assert not home.exists()


def test_a_script_that_revokes_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where nobody can be asked nothing is done, whatever stands in the input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["node", "revoke", "pi"]) == Exit.USAGE
    assert "say --yes" in capfd.readouterr().err
    assert main(["node", "revoke", "pi", "--yes"]) == Exit.UNREACHABLE


def test_an_error_says_what_why_and_what_to_do(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["status"])
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert [line.split(":")[0].strip() for line in lines] == ["gateway", "why", "do"]
    assert "gateway init" in lines[2], "starting what does not exist would not help"
    assert main(["init", "vps", "--port", "0"]) == Exit.OK
    capfd.readouterr()
    main(["status"])
    assert "do: start it with: gateway run" in capfd.readouterr().err


def test_a_home_that_lost_its_key_is_not_given_another(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "vps", "--port", "0"]) == Exit.OK
    (home / "keys" / "node.key").unlink()
    assert main(["run"]) == Exit.FAILED
    assert "node.key is missing" in capfd.readouterr().err
    assert not (home / "keys" / "node.key").exists()


@pytest.mark.parametrize(("width", "lines"), [(200, 3), (80, 3)])
def test_an_id_is_never_broken(
    width: int, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    event = "evt_" + "0" * 32
    table(("event", "from", "text"), [(event, "bob@vps", "word " * 12)], empty="")
    out = capsys.readouterr().out.splitlines()
    assert len(out) == lines
    assert any(event in line for line in out)
    assert "word word" in out[-1]


def test_init_makes_a_home_once(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "vps", "--port", "0", "--json"]) == Exit.OK
    made = json.loads(capfd.readouterr().out)
    assert (made["node"], made["home"]) == ("vps", str(home))
    with HomeLock(home / "lock"):  # as of a gateway that runs: to stop it would not help
        assert main(["init", "vps"]) == Exit.FAILED
    assert "is the home of a node already" in capfd.readouterr().err
    assert main(["init", "vps"]) == Exit.FAILED
    assert "is the home of a node already" in capfd.readouterr().err
    assert main(["outbox", "verify"]) == Exit.OK
    assert "vps: sound up to 000001-" in capfd.readouterr().out


def test_a_member_that_lost_its_journal_is_not_made_the_first_node_of_another_mesh(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "mbp", "--port", "0"]) == Exit.OK
    (home / "issuer.json").write_text("{}")  # as a member's home has
    for file in home.glob("journal.db*"):
        file.unlink()
    for words in (
        ["init", "mbp"],
        ["run"],
        ["status"],
        ["backup", str(home / "x.tar")],
        ["outbox", "verify"],
    ):
        capfd.readouterr()
        assert main(words) in {Exit.FAILED, Exit.UNREACHABLE}, words
        assert "gateway restore" in capfd.readouterr().err, words
    assert not list(home.glob("journal.db*"))


async def test_the_log_is_shown_exported_and_pruned(node: "LocalNode") -> None:
    for text in ("one", "two", "three"):
        assert (await command(node, "send", "bob", text, "--as", "jen"))[0] == Exit.OK
    code, out, _ = await command(node, "outbox", "export", "--from", "2", "--to", "3")
    assert code == Exit.OK
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [2, 3]
    _, everything, _ = await command(node, "outbox", "export")
    _, tail, _ = await command(node, "outbox", "tail", "--json", "--lines", "2")
    assert tail.splitlines() == everything.splitlines()[-2:]
    for force in ([], ["--force"]):
        code, out, _ = await command(node, "outbox", "prune", "--json", *force)
        assert code == Exit.OK
        left = json.loads(out)
        assert (left["floorSeq"], left["entries"]) == (0, len(everything.splitlines())), (
            "all of it is young and owed"
        )


async def test_send_inbox_reply_and_trace(node: "LocalNode") -> None:
    hostile = "hello \x1b[31mred\u202e"
    labels = ("--schema", "greeting@v1", "--traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    code, event, _ = await command(node, "send", "bob", "--as", "jen", *labels, text=hostile)
    assert code == Exit.OK
    event = event.strip()
    code, out, _ = await command(node, "inbox", GATEWAY_AGENT="bob")
    assert code == Exit.OK
    assert event in out
    assert "\\x1b[31mred\\u202e" in out
    assert "\x1b" not in out
    code, out, _ = await command(node, "inbox", "--as", "bob", "--json")
    assert json.loads(out)[0]["payload"] == {"text": hostile}
    code, out, _ = await command(node, "reply", event, "yes", "--as", "bob", "--json")
    assert (code, json.loads(out)["to"]) == (Exit.OK, {"agent": "jen", "node": "vps"})
    code, out, err = await command(node, "trace", event)
    assert code == Exit.OK
    assert [line.split()[0] for line in out.splitlines()[2:]] == [
        "emitted",
        "accepted",
        "engaged",
        "replied",
        "processed",
    ]
    assert "replied" in err
    assert "schema greeting@v1" in err
    assert f"traceparent {labels[3]}" in err
    code, out, _ = await command(node, "outbox", "tail", "--json")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [1, 2, 3, 4, 5]


async def test_maintenance_is_announced_shown_and_ended(node: "LocalNode") -> None:
    on = ("maintenance", "on", "--until", "2099-01-01T00:00:00+01:00", "--reason", "a\x1bb")
    code, _, err = await command(node, *on)
    assert (code, "until 2098-12-31T23:00:00.000Z" in err) == (Exit.OK, True)
    _, out, _ = await command(node, "nodes", "--json")
    said = {row["node"]: row["maintenance"] for row in json.loads(out)}
    assert (said["lab"], said["vps"]["untilMs"]) == (None, 4_070_905_200_000)
    _, out, _ = await command(node, "nodes")
    assert "\x1b" not in out
    assert (await command(node, "maintenance", "on", "--until", "2020-01-01T00:00:00Z"))[0] != Exit.OK
    before_ms = node.clock.wall_ms()
    assert (await command(node, "maintenance", "on", "--until", "2h"))[0] == Exit.OK
    _, out, _ = await command(node, "nodes", "--json")
    until_ms = next(row["maintenance"]["untilMs"] for row in json.loads(out) if row["node"] == "vps")
    assert before_ms <= until_ms - 7_200_000 <= node.clock.wall_ms()
    code, _, err = await command(node, "maintenance", "on", "--until", "soon")
    assert (code, "like 2026-11-27T12:00:00Z" in err, "like 2h" in err) == (Exit.USAGE, True, True)
    code, out, _ = await command(node, "maintenance", "off", "--json")
    assert (code, json.loads(out)["duplicate"]) == (Exit.OK, False)
    _, out, _ = await command(node, "nodes", "--json")
    assert all(row["maintenance"] is None for row in json.loads(out))


async def test_trace_shows_what_an_agent_expects_and_obeys_nothing_of_it(node: "LocalNode") -> None:
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("bob", "do it")
        async with gateway.agent("bob").turns() as turns:
            turn = await anext(turns)
            await turn.extend(60_000, plan="first\nvps expects \x1b[31m")
    code, _, err = await command(node, "trace", sent.event_id)
    assert code == Exit.OK
    assert "vps expects at -: first vps expects \\x1b[31m" in err.splitlines()


async def test_a_turn_or_a_read_reply_is_cleared_by_ack(node: "LocalNode") -> None:
    _, event, _ = await command(node, "send", "bob", "fyi", "--as", "jen")
    _, other, _ = await command(node, "send", "bob", "do it", "--as", "jen")
    assert (await command(node, "ack", event.strip(), "--as", "bob"))[0] == Exit.OK
    code, _, err = await command(node, "ack", event.strip(), "--as", "bob")
    assert (code, "over before" in err) == (Exit.OK, True)
    assert (await command(node, "ack", other.strip(), "--as", "bob", "--failed", "no hands"))[0] == Exit.OK
    code, out, _ = await command(node, "inbox", "--as", "bob", "--json")
    assert json.loads(out) == []
    code, out, _ = await command(node, "trace", other.strip(), "--json")
    assert json.loads(out)["steps"][-1]["error"] == "no hands"


async def test_send_waits_and_says_when_it_stays_queued(node: "LocalNode") -> None:
    async def answer() -> None:
        async with node.client() as gateway, gateway.agent("bob").turns("s") as turns:
            await (await anext(turns)).reply("42")
            await (await anext(turns)).failed("tired")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(answer())
        code, out, _ = await command(node, "send", "bob", "?", "--as", "jen", "--wait-for", "reply")
        assert (code, out.splitlines()[1]) == (Exit.OK, "42")
        code, out, err = await command(node, "send", "bob", "?", "--as", "jen", "--wait-for", "processed")
        assert (code, "tired" in err) == (Exit.FAILED, True)
    code, out, err = await command(
        node, "send", "bob", "?", "--as", "jen", "--wait-for", "processed", "--timeout", "10ms"
    )
    assert (code, out.startswith("evt_"), "stays queued" in err) == (Exit.TIMED_OUT, True, True)


async def test_refusals_and_nothing_found(node: "LocalNode") -> None:
    code, event, _ = await command(node, "send", "gone", "x", "--as", "jen")
    code, out, _ = await command(node, "incidents")
    assert (code, "dead_letter" in out, event.strip() in out) == (Exit.OK, True, True)
    code, out, err = await command(node, "send", "bobb", "x", "--as", "jen")
    assert (code, out) == (Exit.REFUSED, "")
    assert "did you mean bob?" in err
    assert (await command(node, "trace", "evt_" + "0" * 32))[0] == Exit.NOTHING
    code, _, err = await command(node, "trace", "evt_nope")
    assert (code, "32 of 0-9 a-f" in err) == (Exit.USAGE, True)
    code, _, err = await command(node, "send", "bob", "x", "--as", "jenn")
    assert (code, "did you mean jen?" in err) == (Exit.NOTHING, True)
    assert (await command(node, "invites", "revoke", "inv_nope"))[0] == Exit.NOTHING
    assert (await command(node, "reply", "evt_" + "0" * 32, "x", "--as", "bob"))[0] == Exit.NOTHING
    node.home.token(node.reader.agents()[0].name).write_text("gwt_wrong\n")
    assert (await command(node, "inbox", "--as", "bob"))[0] == Exit.REFUSED


@pytest.mark.parametrize(
    ("to", "shown"), [("*", "to everybody: "), ("jen,bob", "to jen,bob: "), ("bob", "to bob@vps: ")]
)
async def test_a_trace_says_whom_it_was_for(node: "LocalNode", to: str, shown: str) -> None:
    _, event, _ = await command(node, "send", to, "all of you", "--as", "jen")
    code, _, err = await command(node, "trace", event.strip())
    assert (code, shown in err, "None" in err) == (Exit.OK, True, False), err


async def test_reads_have_a_json_form_and_one_for_people(node: "LocalNode") -> None:
    reads = (
        ["status"],
        ["nodes"],
        ["agents"],
        ["invites", "list"],
        ["dead", "list"],
        ["incidents"],
        ["inbox", "--as", "jen"],
    )
    answers = await asyncio.gather(*(command(node, *words, "--json") for words in reads))
    for code, out, _ in answers:
        assert code == Exit.OK
        json.loads(out)
    _, out, _ = await command(node, "status")
    assert re.search(r"^link down +lab: refused\s*$", out, re.MULTILINE), "and why"
    _, out, _ = await command(node, "agents")
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [
        ["bob", "vps"],
        ["far", "lab"],
        ["gone", "-"],
        ["jen", "vps"],
    ]


async def test_status_waits_for_a_gateway_that_is_about_to_start(stopped: "LocalNode") -> None:
    """As in a script: ``gateway run &``, and the next line needs it."""
    async with stopped.serving():
        pass  # now there is a home to wait for
    waiting = asyncio.create_task(command(stopped, "status", "--ready-within", "60s"))
    code, _, err = await command(stopped, "status", "--ready-within", "1ms")
    assert (code, "gateway run" in err) == (Exit.UNREACHABLE, True)
    stopped.room_loaded = False
    async with stopped.serving():
        code, _, err = await command(stopped, "status", "--ready-within", "1ms")
        assert (code, "not ready" in err, "gateway doctor" in err) == (Exit.TIMED_OUT, True, True)
        assert not waiting.done()
        stopped.room_loaded = True
        code, out, _ = await waiting
    assert code == Exit.OK
    assert "agents reach" in out


async def test_dead_letters_and_agents_from_the_command_line(node: "LocalNode") -> None:
    _, event, _ = await command(node, "send", "gone", "x", "--as", "jen")
    event = event.strip()
    code, out, _ = await command(node, "dead", "show", event, "--json")
    assert (code, json.loads(out)["state"]) == (Exit.OK, "dead_letter")
    assert (await command(node, "dead", "redrive", event))[0] == Exit.NOTHING
    assert (await command(node, "dead", "prune"))[0] == Exit.USAGE
    code, out, _ = await command(node, "dead", "prune", event, "--json")
    assert (code, json.loads(out)) == (Exit.OK, {"count": 1})
    code, _, err = await command(node, "send", "gone", "x", "--as", "jen", "--wait")
    assert (code, "waits for one" in err) == (Exit.OK, True)
    assert (await command(node, "agent", "set", "bob", "--group", "ops", "--no-group"))[0] == Exit.USAGE
    code, _, err = await command(node, "agent", "set", "bob", "--fallback", "lab", "--grace", "30s")
    assert (code, "after 30 s lab stands in" in err) == (Exit.OK, True)
    assert "is called lab" not in err
    code, _, err = await command(node, "agent", "set", "bob", "--fallback", "nowhere")
    assert (code, "no node of this mesh is called nowhere" in err) == (Exit.OK, True)
    code, out, _ = await command(node, "agent", "set", "bob", "--no-fallback", "--json")
    assert (code, json.loads(out)["fallback"]) == (Exit.OK, [])


async def test_watch_follows_and_an_interrupt_is_130(node: "LocalNode") -> None:
    environ = os.environ | {"GATEWAY_HOME": str(node.home.root), "GATEWAY_AGENT": "bob"}
    environ["XDG_RUNTIME_DIR"] = str(node.home.runtime.parent)
    watching = await asyncio.create_subprocess_exec(
        str(GATEWAY), "watch", "--json", env=environ, stdout=subprocess.PIPE
    )
    assert watching.stdout is not None
    line = asyncio.ensure_future(watching.stdout.readline())
    async with node.client() as gateway, asyncio.timeout(60):
        while not line.done():
            await gateway.agent("jen").send("bob", "look")
            await asyncio.wait({line}, timeout=0.1)
    assert json.loads(await line)["payload"] == {"text": "look"}
    watching.send_signal(signal.SIGINT)
    async with asyncio.timeout(60):
        assert await watching.wait() == Exit.INTERRUPTED


# --- the walk-through, with nothing but the command


@pytest.fixture
def walk(short_dir: Path) -> "Iterator[Walk]":
    started = Walk(short_dir)
    yield started
    started.stop()


class Walk:
    """Two homes, two gateways, real processes."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._running: list[subprocess.Popen[str]] = []

    def environ(self, name: str) -> dict[str, str]:
        return os.environ | {"GATEWAY_HOME": str(self._place / name), "XDG_RUNTIME_DIR": str(self._place)}

    def do(self, name: str, *words: str, text: str | None = None) -> str:
        done = subprocess.run(
            [str(GATEWAY), *words],
            env=self.environ(name),
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def run(self, name: str) -> None:
        process = subprocess.Popen(
            [str(GATEWAY), "run"], env=self.environ(name), stderr=subprocess.PIPE, text=True
        )
        self._running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("ready:"):
                return
        raise AssertionError("it never became ready")

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
            process.communicate(timeout=60)


def test_two_nodes_by_the_commands_of_the_readme(walk: Walk) -> None:
    walk.do("a", "init", "vps", "--port", "0")
    walk.run("a")
    code = walk.do("a", "invite", "lab")
    walk.do("b", "join", "--invite", "-", "--port", "0", text=code + "\n")
    walk.run("b")
    walk.do("a", "agent", "add", "jen")
    walk.do("b", "agent", "add", "bob")
    event = ""
    for _ in range(200):
        if any(row["name"] == "bob" and row["node"] for row in json.loads(walk.do("a", "agents", "--json"))):
            event = walk.do("a", "send", "bob", "hello", "--as", "jen", "--wait-for", "accepted")
            break
    assert event.startswith("evt_")
    assert "hello" in walk.do("b", "inbox", "--as", "bob")
    walk.do("b", "reply", event, "hi jen", "--as", "bob")
    there = json.loads(walk.do("b", "trace", event, "--json"))
    assert [step["stage"] for step in there["steps"]] == [
        "emitted",
        "accepted",
        "engaged",
        "replied",
        "processed",
    ]
    findings = json.loads(walk.do("a", "doctor", "--json"))
    assert {finding["level"] for finding in findings} <= {"ok", "warn"}
    assert next(finding for finding in findings if finding["check"] == "audit")["what"].startswith("sound; ")
    lake = str(walk._place / "lake")
    walk.do(
        "a", "collect", "--lake", lake, "--home", str(walk._place / "a"), "--home", str(walk._place / "b")
    )


def test_ctrl_c_after_the_end_changes_nothing() -> None:
    """Python takes a while to go away, and dies of the signal if nobody has told it otherwise."""
    code = (
        "import atexit, os, signal, sys; atexit.register(os.kill, os.getpid(), signal.SIGINT);"
        "from gateway.cli import run; sys.argv[1:] = ['--version']; sys.exit(run())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
