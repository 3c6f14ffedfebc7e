"""What ``doctor`` looks at: each check gives findings and never stops the next one."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from enum import StrEnum

import msgspec
import platformdirs

from auth.audit import AuditRow, verify_audit
from auth.keys import SigningKey
from auth.sqlite_ledger import SqliteLedger
from gateway.api.mesh import LinkState, StatusAnswer
from gateway.cli.homes import node_key, wait
from gateway.cli.limits import AUDIT_ROWS, CLOCK_AHEAD_MS
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.config import load
from gateway.home import SOCKET_PATH_BYTES_MAX, Home, read_private
from outbox.chain import Head
from outbox.database import Database
from outbox.envelope import decode_event
from outbox.errors import MeshError
from outbox.ids import Seq
from outbox.limits import PAGE_BYTES_MAX
from outbox.reader import JournalReader
from outbox.timestamps import parse_rfc3339, rfc3339

_2025_MS = 1_735_689_600_000


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """What one check saw."""

    check: str
    level: Level
    what: str
    do: str = ""


Check = Callable[[Home], Iterator[Finding]]


def examine(home: Home) -> list[Finding]:
    """All findings, in the order of the checks."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings += check(home)
        except MeshError as error:
            findings.append(Finding(name, Level.FAIL, str(error), error.hint))
        except OSError as error:
            what = f"cannot read {error.filename or home.root}: {error.strerror}"
            findings.append(Finding(name, Level.FAIL, what, "look at the disk, and at who owns the home"))
    return findings


def _home(home: Home) -> Iterator[Finding]:
    home.check()
    home.need_journal()
    yield Finding("home", Level.OK, f"{home.root} is there and private")


def _lock(home: Home) -> Iterator[Finding]:
    if not home.lock.exists():
        yield Finding("lock", Level.WARN, "no gateway has run here yet", "start it with: gateway run")
        return
    with home.lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield Finding("lock", Level.OK, f"held by process {file.read(20).decode().strip()}")
        else:
            yield Finding("lock", Level.WARN, "no gateway runs on this home", "start it with: gateway run")


def _keys(home: Home) -> Iterator[Finding]:
    yield Finding("keys", Level.OK, f"the node's key is {node_key(home).public.jkt}")


def _config(home: Home) -> Iterator[Finding]:
    loaded = load(home.config, os.environ, {})
    set_here = [setting.key for setting in loaded.effective() if setting.source != "default"]
    yield Finding("config", Level.OK, f"valid; set: {', '.join(set_here) or 'nothing, all defaults'}")


def _database(home: Home) -> Iterator[Finding]:
    key = node_key(home)
    with closing(Database.open_read_only(home.journal)) as database:
        found = database.rows("PRAGMA quick_check")
        if found != [("ok",)]:
            yield Finding("database", Level.FAIL, f"journal.db is damaged: {found[0][0]}", "restore a backup")
            return
    yield from _chain(home, key)


def _chain(home: Home, key: SigningKey) -> Iterator[Finding]:
    with closing(JournalReader.open(home.journal)) as reader:
        head = reader.verify_tail(key.public.verify)
        yield Finding("database", Level.OK, f"sound; {head.seq} events, the last ones verified")
        yield _clock(reader, head)


def _audit(home: Home) -> Iterator[Finding]:
    with closing(Database.open_read_only(home.journal)) as database:
        if not database.rows("SELECT 1 FROM sqlite_schema WHERE name = 'audit'"):
            yield Finding("audit", Level.OK, "empty: no gateway has run here yet")
            return
        length = verify_audit(_audit_rows(SqliteLedger(database)))
        yield Finding("audit", Level.OK, f"sound; {length} entries about invites, tickets and members")


def _audit_rows(ledger: SqliteLedger) -> Iterator[AuditRow]:
    after = 0
    while rows := ledger.audit(after, AUDIT_ROWS):
        yield from rows
        after = rows[-1].seq


def _clock(reader: JournalReader, head: Head) -> Finding:
    now_ms = Clock().wall_ms()
    page = reader.read(Head(head.epoch, Seq(max(0, head.seq - 1)), b""), 1, PAGE_BYTES_MAX)
    last_ms = parse_rfc3339(decode_event(page.entries[-1].body).created_at) if page is not None else 0
    set_it = "set the clock, and let NTP keep it"
    if now_ms < _2025_MS:
        return Finding("clock", Level.FAIL, f"it is {rfc3339(now_ms)} here", set_it)
    if last_ms > now_ms + CLOCK_AHEAD_MS:
        return Finding("clock", Level.WARN, f"the last event is from the future: {rfc3339(last_ms)}", set_it)
    return Finding("clock", Level.OK, f"it is {rfc3339(now_ms)}")


def _tokens(home: Home) -> Iterator[Finding]:
    files = sorted(home.agents.glob("*.token")) if home.agents.is_dir() else []
    for file in files:
        read_private(file)
    yield Finding("tokens", Level.OK, f"tokens of agents: {len(files)}, all private")


def _socket(home: Home) -> Iterator[Finding]:
    size = len(os.fsencode(home.socket))
    if size > SOCKET_PATH_BYTES_MAX:
        what = f"{home.socket} has {size} bytes, no socket can be there"
        yield Finding("socket", Level.FAIL, what, "set XDG_RUNTIME_DIR to a short path")
    elif not home.socket.exists():
        yield Finding("socket", Level.WARN, f"{home.socket} is not there", "start it with: gateway run")
    else:
        yield Finding("socket", Level.OK, str(home.socket))


def _gateway(home: Home) -> Iterator[Finding]:
    status = wait(_status(home))
    level, do = (Level.OK, "") if status.ready else (Level.FAIL, "see its log")
    what = f"{status.node} {'is ready' if status.ready else 'is not ready'}"
    yield Finding("gateway", level, f"{what}; engine.host is {status.process.engine_host}", do)
    if status.process.revoked:
        do = "ask the operator of a seed; with a new key and a new invite the machine can join again"
        yield Finding("gateway", Level.FAIL, f"the key of this node was revoked {status.process.revoked}", do)
    if status.storage_full:
        yield Finding("gateway", Level.FAIL, "the disk is full", "free some space; it goes on by itself")
    yield from _own_outbox(status)
    if status.incidents_open:
        do = "see them with: gateway incidents"
        yield Finding("incidents", Level.WARN, f"{status.incidents_open} are open", do)
    for link in status.links:
        up = link.state is LinkState.UP
        what = f"to {link.node}: {link.state}" + (
            f" ({link.last_error})" if link.last_error and not up else ""
        )
        do = "" if up else "is that node running, and reachable from here or we from there?"
        yield Finding("links", Level.OK if up else Level.WARN, what, do)


def _own_outbox(status: StatusAnswer) -> Iterator[Finding]:
    """Whether others may see it, and what this node has forgotten."""
    process, epoch = status.process, f"epoch {status.epoch}"
    shown = process.standing in {"alone", "proven"}
    do = "" if shown else "nothing new is shown before a peer has answered: see the links"
    yield Finding("outbox", Level.OK if shown else Level.WARN, f"{epoch}, {process.standing}", do)
    for node in process.awaited:
        do = "start that node, or wait no longer: gateway doubts end"
        yield Finding("outbox", Level.WARN, f"{node} has yet to say what was done for it", do)
    for fork in process.forked:
        do = "ask its operator whether it runs twice"
        yield Finding("outbox", Level.WARN, f"{fork} was written twice and is read no further", do)


async def _status(home: Home) -> StatusAnswer:
    async with GatewayClient.of_home(home) as gateway:
        return await gateway.status()


def _java(_home: Home) -> Iterator[Finding]:
    from spark.java import find_java

    try:
        java = find_java(os.environ, platformdirs.user_cache_path("gateway-mesh"))
    except MeshError as error:
        yield Finding("java", Level.WARN, f"reports cannot be made: {error}", error.hint)
    else:
        yield Finding("java", Level.OK, f"{java.home}")


CHECKS: dict[str, Check] = {
    "home": _home,
    "lock": _lock,
    "keys": _keys,
    "config": _config,
    "database": _database,
    "audit": _audit,
    "tokens": _tokens,
    "socket": _socket,
    "gateway": _gateway,
    "java": _java,
}
