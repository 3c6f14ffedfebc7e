"""What a connection that only reads makes of rows that are behind: it sees them where they will be.

A reader keeps those rows in temporary tables of its own, and views over both under the names of the tables,
so that every question finds them without knowing. Each question reads changes and tables at one moment.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from outbox.changes import BEHIND, unpack
from outbox.database import Database
from outbox.sql.rows import Rows, Tables, changes_after
from outbox.tables import RECEIVED, Row, Table, Value, Values, portions

_Behind = dict[Table[Any], dict[tuple[Value, ...], Any]]


class SeenRows(Rows):
    """Whole rows of one database as of its last commit."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._number = 0
        self._behind: _Behind = {table: {} for table in BEHIND}
        self._unlaid: _Behind = {table: {} for table in BEHIND}
        """Those of them that are not in the temporary tables yet, which only queries need."""
        database.rows("PRAGMA temp_store = MEMORY")
        for table in BEHIND:
            for statement in _shadow(table):
                database.execute(statement)

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        if table not in BEHIND:
            return super().find(table, *key)
        with self.moment():
            found: Row | None = self._behind[table].get(key)
            return found or super().find(table, *key)

    def ask(self, tables: Tables, sql: str, values: Sequence[Value] = ()) -> list[Values]:
        """All rows of a query that is bounded by its own text, and asks these tables."""
        if not any(table in BEHIND for table in tables):
            return super().ask(tables, sql, values)
        with self.moment():
            self._lay()
            return super().ask(tables, sql, values)

    def counts(self, table: Table[Row], column: str, *parts: str) -> dict[str, int]:
        """How many rows have each value of a column, in order, or those of several parts of the table.

        What is behind is counted beside the table: a look aside at each of its rows would take too long.
        """
        if table not in BEHIND:
            return super().counts(table, column, *parts)
        sql = " UNION ALL ".join(
            f"SELECT {column}, {sign}count(*) FROM {rows} {part} GROUP BY {column}"  # noqa: S608 - own names
            for part in parts or ("",)
            for sign, rows in (("", f"main.{table.name}"), ("-", _replaced(table)), ("", _behind(table)))
        )
        found: Counter[str] = Counter()
        for value, count in self.ask((table,), sql):
            found[str(value)] += int(count)
        return {value: found[value] for value in sorted(found) if found[value]}

    @contextmanager
    def moment(self) -> Iterator[None]:
        """One state of the database, with its changes; one inside another is the same."""
        inside = self.database.in_transaction
        if inside:
            yield
            return
        self.database.execute("BEGIN")
        try:
            self._learn()
            yield
        finally:
            if self.database.in_transaction:
                self.database.execute("COMMIT")

    def _learn(self) -> None:
        for number, value in changes_after(self.database, self._number):
            if value:
                for table, rows in unpack(value).items():
                    self._add(table, rows)
            else:
                self._clear()
            self._number = number

    def _clear(self) -> None:
        for table in BEHIND:
            self._behind[table].clear()
            self._unlaid[table].clear()
            self.database.execute(f"DELETE FROM {_behind(table)}")  # noqa: S608 - own names

    def _add(self, table: Table[Any], rows: Sequence[Any]) -> None:
        found = {table.key_of(row): row for row in rows}
        self._behind[table].update(found)
        self._unlaid[table].update(found)

    def _lay(self) -> None:
        for table, rows in self._unlaid.items():
            if not rows:
                continue
            for size, values in portions(table.encode_all(rows.values())):
                self.database.execute(table.upsert(size, _behind(table)), values)
            if table is RECEIVED:
                self._number_arrivals()
            rows.clear()

    def _number_arrivals(self) -> None:
        """As they will be numbered in the table."""
        self.database.execute(_KNOWN)
        last = self.database.rows(_LAST)[0][0]
        for arrival, (row,) in enumerate(self.database.rows(_NEW), last + 1):
            self.database.execute(
                "UPDATE temp.received_behind SET arrival = ? WHERE rowid = ?", (arrival, row)
            )


_KNOWN = """
UPDATE temp.received_behind SET arrival = (
    SELECT arrival FROM main.received AS known
    WHERE known.event_id = received_behind.event_id
        AND known.source = received_behind.source AND known.to_agent = received_behind.to_agent
) WHERE arrival IS NULL
"""
_LAST = """
SELECT max(coalesce((SELECT max(arrival) FROM main.received), 0),
    coalesce((SELECT max(arrival) FROM temp.received_behind), 0))
"""
_NEW = "SELECT rowid FROM temp.received_behind WHERE arrival IS NULL ORDER BY rowid"


def _behind(table: Table[Any]) -> str:
    return f"{table.name}_behind"


def _same(table: Table[Any], one: str, two: str) -> str:
    return " AND ".join(f"{one}.{column} = {two}.{column}" for column in table.key)


def _replaced(table: Table[Any]) -> str:
    """The rows of the table that one behind takes the place of."""
    return (
        f"(SELECT old.* FROM temp.{_behind(table)} AS new"  # noqa: S608 - own names
        f" CROSS JOIN main.{table.name} AS old ON {_same(table, 'old', 'new')})"
    )


def _shadow(table: Table[Any]) -> Iterator[str]:
    name, behind, key = table.name, _behind(table), ", ".join(table.key)
    yield f"CREATE TEMP TABLE {behind} AS SELECT * FROM main.{name} LIMIT 0"  # noqa: S608 - own names
    yield f"CREATE UNIQUE INDEX temp.{behind}_key ON {behind} ({key})"
    yield (
        f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} AS old"  # noqa: S608 - own names
        f" WHERE NOT EXISTS (SELECT 1 FROM temp.{behind} AS new WHERE {_same(table, 'new', 'old')})"
        f" UNION ALL SELECT * FROM temp.{behind}"
    )
