"""The points that statements are asked about: written to Arc in several formats, and held as they have to be there."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Optional

import duckdb
import pyarrow as pa
from drawing import TableScope
from formats import ARROW, ONLY_ARROW, Row, arrow_body, as_line_can, finite, line, msgpack_body, sql_value
from server import Server
from terms import HOSTS, INTEGERS, REGIONS, TEXTS

DATABASE = "answers"
DAY_NS = 86_400 * 10**9
# Days that points are of: around 1970, at the ends of what people ask for, and neighbours of which one merges.
DAYS = (-25_567, -366, -1, 0, 1, 11_016, 19_723, 19_724, 19_725, 29_219)
WILD = (
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.1,
    1.5,
    -2.5,
    2.0,
)

# The fields of a wide table, by kind.
FIELDS = {
    "n": "small",
    "f": "nice",
    "g": "float",
    "x": "float",
    "i": "int",
    "j": "small",
    "u": "uint",
    "b": "bool",
    "s": "text",
    "t2": "time",
}


@dataclass
class Table:
    """A table and its rows as they have to be."""

    name: str
    # Without tags it appends: rows are told apart by their place.
    tags: tuple[str, ...]
    fields: dict[str, str]
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    appended: int = 0
    # The kind of each column so far; a table has the columns that were written.
    columns: dict[str, str] = field(default_factory=dict)

    def put(self, row: Row) -> None:
        """Stores a row: it replaces the fields that it has of one with the same tags and time."""
        key = (*(row.get(tag) for tag in self.tags), row["time"]) if self.tags else (self.appended,)
        self.appended += 1
        there = {name: value for name, value in row.items() if value is not None}
        self.rows[key] = {**self.rows.get(key, {}), **there}
        for name in there:
            self.columns.setdefault(
                name, "time" if name == "time" else "text" if name in self.tags else self.fields[name]
            )

    def scope(self) -> TableScope:
        return TableScope(self.name, dict(self.columns), (*self.tags, "time") if self.tags else ())


class World:
    """Tables with points, some written late, over others, as other types or deleted."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.has_nanoseconds = self.random.random() < 0.3
        self.number = 0
        self.days = self.random.sample(DAYS, 4)
        self.many = self.random.random() < 0.1
        self.tables = [
            Table("k", ("host", "region"), FIELDS),
            Table("e", (), {"host": "text", "region": "text", **FIELDS}),
            Table("c", ("host",), {"region": "text", **FIELDS}),
            # Its columns change their types later.
            Table("v", ("host",), {"n": "small", "a": "int", "w": "small", "s": "text"}),
        ]
        # With so many of them a flush writes a pack.
        self.small = [
            Table(f"p{place:02}", ("host",), {"n": "small", "f": "nice"})
            for place in range(70 if self.random.random() < 0.5 else 2)
        ]
        self.history: list[str] = []

    def all_tables(self) -> list[Table]:
        return self.tables + self.small

    def times_ns(self) -> list[int]:
        """Some times that points have, to be asked for."""
        times = [row["time"] for table in self.tables for row in table.rows.values()]
        return self.random.sample(times, min(20, len(times))) or [0]

    def time_ns(self) -> int:
        day = self.random.choice(self.days)
        # Few seconds, so that times are the same in several series, and series are written twice.
        second = self.random.choice((0, 1, 59, 60, 3_599, 3_600, 43_200, 86_399, self.random.randrange(86_400)))
        fine = self.random.choice((0, 0, 0, 123_456_000, 999_999_000)) + (
            self.random.choice((0, 1, 999)) if self.has_nanoseconds else 0
        )
        return day * DAY_NS + second * 10**9 + fine

    def value(self, kind: str, name: str) -> Any:
        chance = self.random
        if name == "n":
            self.number += 1
            return self.number
        if chance.random() < 0.12:
            return None
        if name == "g":
            return chance.uniform(0.001, 1000.0)
        if name in ("x", "v"):
            return chance.choice(WILD) if chance.random() < 0.5 else chance.uniform(-10, 10)
        if kind == "nice":
            return (
                chance.choice((0.0, -0.0, 0.25, -0.75, 1.5, 100.0))
                if chance.random() < 0.4
                else chance.randrange(-40_000, 40_000) / 4
            )
        if kind == "small":
            return chance.randrange(-5, 12)
        if kind == "int":
            return chance.choice(INTEGERS) if chance.random() < 0.6 else chance.randrange(-1000, 1000)
        if kind == "uint":
            return chance.choice((0, 1, 7, 2**63 - 1, 2**63, 2**64 - 1))
        if kind == "bool":
            return chance.random() < 0.5
        if kind == "time":
            return self.time_ns()
        return chance.choice(TEXTS)

    def row(self, table: Table, names: Optional[list[str]] = None) -> Row:
        chance = self.random
        row: Row = {"time": self.time_ns()}
        for tag in table.tags:
            row[tag] = chance.choice((*(HOSTS if tag == "host" else REGIONS), None))
        for name, kind in table.fields.items():
            if name == "n" or names is None or name in names:
                value = self.value(kind, name)
                if name in ("host", "region"):
                    value = chance.choice((*(HOSTS if name == "host" else REGIONS), None))
                row[name] = value
        return row

    # Writing.

    def begin(self, server: Server) -> None:
        """Writes the first points."""
        execute(server, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        for table in self.tables:
            size = self.random.choice((40, 150, 300))
            if self.many and table.name in ("k", "e"):
                size = 12_000
            if table.name == "c":
                self.create(server, table)
            # All columns from the beginning, so that statements can name them.
            self.write(server, table, [self.full_row(table)], "arrow")
            self.write_some(server, table, size)
        for table in self.small:
            self.write(server, table, [self.full_row(table) for _ in range(self.random.randint(1, 4))], "lines")

    def full_row(self, table: Table) -> Row:
        while True:
            row = self.row(table)
            if all(value is not None for value in row.values()):
                return row

    def go_on(self, server: Server) -> None:
        """Writes late and new points, over others as well, in part; deletes some."""
        for table in self.tables:
            if table.name == "v":
                # An integer column that gets floats, and then one that gets text.
                table.fields = {**table.fields, "a": "text", "w": "nice"}
                self.widen(server, table)
            self.write_some(server, table, self.random.choice((10, 60)))
            self.write_over(server, table)
            if self.random.random() < 0.7:
                self.delete(server, table)
                self.write_some(server, table, 5)
        for table in self.small:
            if self.random.random() < 0.5:
                self.write_some(server, table, 2)

    def write_some(self, server: Server, table: Table, count: int) -> None:
        """Writes new rows in a few requests, of a few formats, some without all the fields."""
        while count > 0:
            size = min(count, self.random.choice((1, 20, 5_000)))
            names = list(table.fields)
            chosen = (
                None if self.random.random() < 0.6 else self.random.sample(names, self.random.randint(1, len(names)))
            )
            # Lines would merge.
            formats = ["arrow", "msgpack", "insert"] + (["lines"] if table.tags else [])
            self.write(server, table, [self.row(table, chosen) for _ in range(size)], self.random.choice(formats))
            count -= size

    def write_over(self, server: Server, table: Table) -> None:
        """Writes some fields of rows that are there: they are late, and merge."""
        if not table.tags or not table.rows:
            return
        rows = []
        for key in self.random.sample(list(table.rows), min(20, len(table.rows))):
            name = self.random.choice([name for name in table.fields if name != "n"])
            rows.append(
                {
                    **dict(zip((*table.tags, "time"), key)),
                    "n": self.value("small", "n"),
                    name: self.value(table.fields[name], name),
                }
            )
        self.write(server, table, rows, self.random.choice(("arrow", "msgpack", "lines")))

    def write(self, server: Server, table: Table, rows: list[Row], how: str) -> None:
        if how == "lines":
            rows = [as_line_can(row) for row in rows]
            body = "\n".join(line(table, row) for row in rows).encode()
            path = f"/api/v1/write/line-protocol?db={DATABASE}"
        elif how == "insert":
            self.insert(server, table, [finite(row) for row in rows[:20]])
            return
        elif how == "msgpack":
            rows = [{name: value for name, value in row.items() if name not in ONLY_ARROW} for row in rows]
            body = msgpack_body(table, rows)
            path = f"/api/v1/write/msgpack?db={DATABASE}&precision=ns&tags={','.join(table.tags)}"
        else:
            body = arrow_body(table, rows)
            path = f"/api/v1/write/arrow?db={DATABASE}&measurement={table.name}&tags={','.join(table.tags)}"
        status, answer = server.request("POST", path, body, x_arc_durability="process")
        if status != 204:
            raise RuntimeError(f"{how} to {table.name}: {status} {answer!r}")
        for row in rows:
            table.put(row)
        self.history.append(f"{how} {table.name} {len(rows)} rows")

    def create(self, server: Server, table: Table) -> None:
        types = {
            "small": "BIGINT",
            "int": "BIGINT",
            "uint": "BIGINT UNSIGNED",
            "nice": "DOUBLE",
            "float": "DOUBLE",
            "text": "TEXT",
            "bool": "BOOLEAN",
            "time": "TIMESTAMP",
        }
        columns = ", ".join(f"{name} {types[kind]}" for name, kind in table.fields.items())
        execute(server, f"CREATE TABLE {table.name} (time TIMESTAMP, host TEXT, {columns}, PRIMARY KEY (host, time))")
        table.columns = {"time": "time", "host": "text", **table.fields}

    def insert(self, server: Server, table: Table, rows: list[Row]) -> None:
        names = ["time", *table.tags, *table.fields]
        values = ", ".join("(" + ", ".join(sql_value(row.get(name)) for name in names) + ")" for row in rows)
        execute(server, f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {values}")
        for row in rows:
            table.put(row)
        self.history.append(f"insert {table.name} {len(rows)} rows")

    def widen(self, server: Server, table: Table) -> None:
        """Makes floats of the integers of one column, and texts of those of another."""
        for row in table.rows.values():
            if "a" in row:
                row["a"] = str(row["a"])
            if "w" in row:
                row["w"] = float(row["w"])
        for name in ("a", "w"):
            table.columns[name] = table.fields[name]
        row = {**self.row(table, []), "a": "no number", "w": 0.25}
        self.write(server, table, [row], "lines")

    def delete(self, server: Server, table: Table) -> None:
        """Deletes by time, and by what may be a condition beside it."""
        times = sorted(row["time"] for row in table.rows.values())
        low = self.random.choice(times)
        high = low + self.random.choice((1, 10**9, 3_600 * 10**9))
        where, host = f"time >= {low} AND time < {high}", None
        if self.random.random() < 0.5:
            host = self.random.choice(HOSTS)
            where = f"host = '{host}'" + (f" AND time >= {low}" if self.random.random() < 0.5 else "")
            low, high = (low if "time" in where else -(2**63)), 2**63
        body = {"database": DATABASE, "measurement": table.name, "where": where, "confirm": True}
        status, answer = server.request("POST", "/api/v1/delete", json.dumps(body).encode())
        if status != 200:
            raise RuntimeError(f"delete of {table.name} where {where}: {status} {answer!r}")
        gone = [
            key
            for key, row in table.rows.items()
            if low <= row["time"] < high and (host is None or row.get("host") == host)
        ]
        counted = json.loads(answer)["deleted_count"]
        self.history.append(f"delete {table.name} where {where}: {len(gone)} rows")
        for key in gone:
            del table.rows[key]
        if counted != len(gone):
            raise RuntimeError(f"delete of {table.name} where {where} counted {counted} of {len(gone)} rows")

    # The other engine.

    def load(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Gives DuckDB the rows as they have to be."""
        unit = "ns" if self.has_nanoseconds else "us"
        for table in self.all_tables():
            rows = list(table.rows.values())
            columns = {}
            for name, kind in table.columns.items():
                values = [row.get(name) for row in rows]
                if kind == "time":
                    units = (
                        values
                        if self.has_nanoseconds
                        else [None if value is None else value // 1_000 for value in values]
                    )
                    columns[name] = pa.array(units, pa.timestamp(unit))
                else:
                    columns[name] = pa.array(values, ARROW[kind])
            data = pa.table(columns)
            connection.register("given", data)
            connection.execute(f"CREATE OR REPLACE TABLE {table.name} AS SELECT * FROM given")
            connection.unregister("given")
        microseconds = (
            "make_timestamp((epoch_ns(t) - ((epoch_ns(t) % 1000) + 1000) % 1000) // 1000)"
            if self.has_nanoseconds
            else "t"
        )
        connection.execute(f"CREATE OR REPLACE MACRO us(t) AS {microseconds}")


# Of DuckDB: what it calls otherwise, or rounds otherwise.
MACROS = (
    "CREATE MACRO trunc_divide(a, b) AS (a - a % b) // b",
    "CREATE MACRO floor_ns(t) AS epoch_ns(t)",
    "CREATE MACRO floor_us(t) AS (epoch_ns(t) - ((epoch_ns(t) % 1000) + 1000) % 1000) // 1000",
    "CREATE MACRO floor_ms(t) AS (epoch_ns(t) - ((epoch_ns(t) % 1000000) + 1000000) % 1000000) // 1000000",
)


def execute(server: Server, sql: str) -> None:
    status, answer = server.request("POST", f"/api/v1/query?db={DATABASE}", json.dumps({"sql": sql}).encode())
    if status != 200:
        raise RuntimeError(f"{sql[:300]}: {status} {answer!r}")
