"""The report's tables by DuckDB: the peer, which answers the same question from the same Parquet files.

``python -m tests.bench.duck LAKE OUT MEMORY`` makes them and prints what it took, as JSON.

The aggregates and the rules are the job's own text in DuckDB's words; only where rows come from differs.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from outbox.timestamps import parse_rfc3339
from spark.deliveries import COLUMNS, EACH, EVIDENCE, OWN_DEAD, TOGETHER, _facts, _judgements, _of_one
from spark.events import _ANSWER_ROLES, _COLUMNS, _TO_SEVERAL, ROLE_OF, ROOT_KINDS, Role, quoted, struct
from spark.gaps import BUCKET
from spark.incidents import broken_rules
from spark.limits import CLOCK_SKEW_MS
from spark.schema import DISTRUSTED, Flag
from spark.sides import GATHERED, _aggregate, said
from spark.sla import DEFAULTS, DIMENSIONS, MEASURED
from spark.sources import EventFiles, event_files


def _call(sql: str, name: str, made: Callable[[Sequence[str]], str]) -> str:
    """Each call of a function in other words; its arguments are translated already."""
    while (found := re.search(rf"\b{name}\(", sql)) is not None:
        depth, start, parts = 1, found.end(), []
        place = start
        while depth:
            letter = sql[place]
            depth += (letter == "(") - (letter == ")")
            if (letter == "," and depth == 1) or depth == 0:
                parts.append(sql[start:place].strip())
                start = place + 1
            place += 1
        sql = sql[: found.start()] + made(parts) + sql[place:]
    return sql


def _struct(parts: Sequence[str]) -> str:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return "struct_pack(" + ", ".join(f"{name.strip(chr(39))} := {value}" for name, value in pairs) + ")"


def duck(sql: str) -> str:
    """Spark's SQL as DuckDB reads it."""
    sql = _call(sql, "named_struct", _struct)
    sql = _call(sql, "shiftleft", lambda p: f"({p[0]} << {p[1]})")
    sql = _call(sql, "timestamp_millis", lambda p: f"to_timestamp({p[0]} / 1000.0)")
    sql = _call(sql, "timestamp_micros", lambda p: f"make_timestamptz({p[0]})")
    sql = _call(sql, "unix_micros", lambda p: f"epoch_us({p[0]})")
    sql = _call(sql, "array_compact", lambda p: f"list_filter({p[0]}, lambda x: x is not null)")
    sql = _call(sql, "array_distinct", lambda p: f"list_distinct({p[0]})")
    sql = _call(sql, "collect_list", lambda p: f"list({p[0]}) filter ({p[0]} is not null)")
    sql = _call(sql, "filter", lambda p: f"list_filter({', '.join(p)})")
    sql = re.sub(r"(\w+) -> ", r"lambda \1: ", _call(sql, "get", lambda p: f"({p[0]})[{p[1]} + 1]"))
    sql = _call(sql, "array", lambda p: f"list_value({', '.join(p)})")
    sql = sql.replace(" div ", " // ").replace("as timestamp)", "as timestamptz)")
    sql = re.sub(r"\b(\d+)[LY]\b", r"\1", sql)
    return re.sub(r"\b(first|last|at|by)\b(?!\()", r'"\1"', sql)


def _statements() -> str:
    known = f"kind in ({quoted(ROOT_KINDS)})"
    answers = " ".join(f"when '{kind}' then {role:d}" for kind, role in _ANSWER_ROLES.items())
    several = f"({_TO_SEVERAL} or toNodes = '*' or contains(toNodes, ','))"
    said = f"""
        select *, toNodes as node, {Role.SENT:d} as role from trusted where {known} and not {several}
        union all by name
        select *, sourceNodeId as node, {Role.ROOT:d} as role from trusted where {known} and {several}
        union all by name
        select *, unnest(string_split(toNodes, ',')) as node,
            case when {_TO_SEVERAL} then {Role.ADDRESSED:d} else {Role.ROUTED:d} end as role
        from trusted where {known} and {several}
        union all by name
        select * replace (corrId as rootId), sourceNodeId as node, case kind {answers} end as role
        from trusted where kind in ({quoted(_ANSWER_ROLES)})
        union all by name
        select *, sourceNodeId as node, {ROLE_OF} as role from trusted where kind in ('ack', 'dead_letter')
        union all by name
        select *, toNodes as node, {Role.BURIED:d} as role from trusted
        where kind = 'dead_letter' and toNodes not in ('', '*') and not contains(toNodes, ',')
    """
    return f"select {', '.join(duck(column) for column in _COLUMNS)} from ({said}) where rootId is not null"


def _lifecycle(as_of_ms: int) -> str:
    gathered = ", ".join(f'{duck(_aggregate(how))} as "{name}"' for name, how in GATHERED.items())
    together = ", ".join(f'{duck(how)} as "{name}"' for name, how in TOGETHER.items())
    columns = ", ".join(duck(column) for column in COLUMNS)
    facts, judgements = (", ".join(map(duck, found)) for found in (_facts(), _judgements(DEFAULTS)))
    each = duck(f"collect_list(case when {said(Role.ADDRESSED)} then {struct(EACH)} end)")
    of_one = ", ".join(duck(column) for column in _of_one(tuple(TOGETHER), tuple(EACH)))
    return f"""
        with sides as (select rootId, node, {gathered} from ({_statements()}) group by rootId, node),
        lives as (select rootId, {together}, {each} as each_one from sides group by rootId),
        own as (select * replace ({duck(OWN_DEAD)} as dead) from lives where root is not null),
        apart as (select *, unnest(coalesce(each_one, [null])) as one from own),
        known as (select *, {facts} from (select {of_one} from apart)),
        judged as (select *, {judgements} from known),
        broken as (select *, {duck(broken_rules(as_of_ms))} as incidents from judged),
        shown as (select *, case when incidents is not null then {duck(EVIDENCE)} end as evidence from broken)
        select {columns}, incidents from shown
    """


def make_tables(files: EventFiles, out: Path, as_of_ms: int, memory: str) -> None:
    """Write the tables that the report writes."""
    import duckdb

    out.mkdir(parents=True, exist_ok=True)
    paths = ", ".join(f"'{path}'" for path in files.paths)
    lies = " or ".join(f"contains(flags, '{flag}')" for flag in DISTRUSTED)
    time = f"case when flags is null or not contains(flags, '{Flag.CREATED_AT}') then createdAt end"
    with duckdb.connect() as duck_db:
        ask = duck_db.execute
        ask(
            f"set memory_limit = '{memory}'; set threads = 2; set timezone = 'UTC';"
            " set preserve_insertion_order = false;"
            f" set temp_directory = '{out}/tmp'"
        )
        ask(f"create view events as select * from read_parquet([{paths}], hive_partitioning = false)")
        whole = "replace (coalesce(toNodes, '') as toNodes)"
        honest = f"flags is null or not ({lies})"
        ask(f'create view trusted as select * {whole}, {time} as "at" from events where {honest}')

        def write(name: str, query: str) -> None:
            ask(f"copy ({query}) to '{out}/{name}.parquet' (format parquet, compression zstd)")
            ask(f"create view {name} as select * from read_parquet('{out}/{name}.parquet')")

        write("lifecycle", _lifecycle(as_of_ms))
        known = "subject, fromNode, toNode, capabilityId, delegationVersion, executorVersion, state, evidence"
        hits = "select *, unnest(incidents, recursive := true) from lifecycle where incidents is not null"
        write("incidents", f'select class, severity, "openedAt", "closedAt", {known} from ({hits})')
        skills = "capabilityId, delegationVersion, executorVersion"
        counted = "count(*) as incidents, min(subject) as sample"
        known = "from incidents where capabilityId is not null group by all"
        write("reviews", f"select {skills}, class, {counted} {known}")
        write("states", "select kind, state, count(*) as events from lifecycle group by all")
        write("latency", " union all ".join(
            f"select '{name}' as dimension, {source} as source, {target} as target, count(*) as events, "
            + ", ".join(f"quantile_disc({measure}, [0.5, 0.95, 0.99]) as {measure}" for measure in MEASURED)
            + " from lifecycle group by all"
            for name, (source, target) in DIMENSIONS.items()
        ))  # fmt: skip
        bucket = f"sourceNodeId, epoch, (seq - 1) // {BUCKET} as bucket"
        held = "count(distinct seq) as held, max(seq) as last"
        write("gaps", f"select {bucket}, {held} from events group by all")
        pairs = "fromNode, toNode, count(*) as acks, min(acceptMs) as least"
        apart = "acceptMs is not null and fromNode <> toNode"
        behind = f"least < -{CLOCK_SKEW_MS}"
        write("skew", f"select {pairs} from lifecycle where {apart} group by all having {behind}")
        strange = f"contains(flags, '{Flag.UNKNOWN_KIND}')"
        who = "sourceNodeId, kind, count(*) as events"
        write("strangers", f"select {who} from events where {strange} group by all")


def main(lake: Path, out: Path, memory: str) -> None:
    import duckdb

    about = json.loads((lake / "truth" / "about.json").read_text())
    began, cpu = time.monotonic(), time.process_time()
    make_tables(event_files(lake), out, parse_rfc3339(about["asOf"]), memory)
    took, used = time.monotonic() - began, time.process_time() - cpu
    found = dict(duckdb.sql(f"select class, count(*) from '{out}/incidents.parquet' group by all").fetchall())
    of_messages = {name: count for name, count in about["incidents"].items() if name in found}
    print(json.dumps({"tables_s": took, "cpu_s": used, "right": found == of_messages}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
