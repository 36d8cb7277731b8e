#!/usr/bin/env python3
"""Lives of tables as people have them, read through every door and compared with what was written.

    python scripts/reliability/hunt.py --seconds 600
    python scripts/reliability/hunt.py --lives 1 --seed 7.12     once more, what was found there

A life is a table over some days: tags come and go, a column is called as a folder is, points are late, written twice,
deleted, brought back; by line protocol, Arrow, CSV and INSERT through ADBC, whose answers are not fetched. After each
step questions are asked of the server and of a reader beside it, by each format of HTTP, by Flight and by Python where
the wheel is installed, about now and about steps before; and DuckDB reads the data files. DuckDB answers the same
questions over what was written. Ends with status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import duckdb
import pyarrow as pa
from answers import wait_for_merges
from doors_in import DATABASE, House, moment, stream
from doors_out import FORMATS, read
from server import Server, knows

DAY_NS = 86_400 * 10**9
SETTINGS: dict[str, Any] = {
    "flush_after": "1h", "compaction_quiet": "0ms", "compaction_grace": "0ms", "history": "1h",
}  # fmt: skip
SWITCHES = {"ARC_DELETE_ENABLED": "true"}
TAGS = ("host", "room", "day", "Rack")
YEARS = (-1, 0, 1, 1677, 1969, 2024, 2262, 2263, 3_000, 9_999)
COMPARED = ("<", "<=", ">", ">=", "<>", "IS DISTINCT FROM")
FAR = ("0001-01-01", "1500-06-01", "9999-12-31", "2024-01-02T12:00")
Key = tuple[Any, ...]


def spelled(form: str) -> Callable[[int], str]:
    return lambda nanoseconds: time.strftime(form, time.gmtime(nanoseconds // 10**9))


TIME_FORMS: tuple[Callable[[int], str], ...] = (
    moment,
    *(spelled(form) for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00", "%Y/%m/%d %H:%M:%S", "%d %b %Y %H:%M:%S")),
    *(lambda nanoseconds, unit=unit: str(nanoseconds // unit) for unit in (10**9, 10**6, 10**3, 1)),
)  # fmt: skip


@dataclass
class State:
    """What a table had at a moment: its columns in their order, and its rows by their primary key."""

    columns: tuple[str, ...]
    rows: dict[Key, dict[str, Any]]
    at_ns: int = 0

    def table(self) -> pa.Table:
        """The rows for DuckDB."""
        # Whole seconds: DuckDB compares nanoseconds with no far year.
        types = {"time": pa.timestamp("us", "UTC"), "n": pa.int64(), "v": pa.float64()}
        columns = {
            name: pa.array([self.cell(row, name) for row in self.rows.values()], types.get(name, pa.string()))
            for name in self.columns
        }
        return pa.table(columns)

    def cell(self, row: dict[str, Any], name: str) -> Any:
        return row[name] // 1000 if name == "time" else row.get(name)


Door = Callable[[str, list[pa.DataType]], pa.Table]


class World:
    """A server, a reader of its directory, and the doors of both."""

    def __init__(self, folder: pathlib.Path, seed: str) -> None:
        self.data_dir = folder / "data"
        unit = {"time_unit": random.Random(f"{seed} unit").choice(["ns", "us", "ms"])} if knows("time-unit") else {}
        self.servers = [Server(self.data_dir, SWITCHES, **SETTINGS, **unit)]
        self.servers[0].wait_until_ready()
        self.servers.append(Server(self.data_dir, {"ARC_READER": "true"}))
        self.servers[1].wait_until_ready()
        self.house, self.reader = (House(server) for server in self.servers)
        self.doors: dict[str, Door] = {}
        for of, house in (("server", self.house), ("reader", self.reader)):
            for form in (*FORMATS, "Flight"):
                self.doors[f"{form} of the {of}"] = partial(read, house, form)
        if importlib.util.find_spec("arc"):
            self.add_python()
        else:
            print("skipped: Python, whose wheel is not installed")

    def add_python(self) -> None:
        import arc

        engines = {"a reader": arc.open(str(self.data_dir), mode="r"), "a client": arc.connect(f"http://{self.servers[0].address}")}
        for of, engine in engines.items():
            self.doors[f"Python as {of}"] = lambda sql, _, engine=engine: engine.sql(DATABASE, sql).arrow()

    def end(self) -> None:
        self.house.close()
        self.reader.close()
        for server in self.servers:
            server.process.kill()


class Life:
    """One table of a world."""

    def __init__(self, world: World, name: str, draw: random.Random) -> None:
        self.world, self.house, self.name, self.draw = world, world.house, name, draw
        self.state = State(("time",), {})
        self.past: list[State] = []
        self.tags: list[str] = []
        self.number = 0
        self.wrong: list[str] = []
        self.history: list[str] = []

    # Writing.

    def live(self) -> None:
        """Some days; stops at what is wrong first."""
        for day in range(self.draw.randint(2, 5)):
            self.tags = self.draw.sample(TAGS, self.draw.randint(0, 2))
            for _ in range(self.draw.randint(1, 3)):
                self.write(day)
                if self.draw.random() < 0.3:
                    self.delete()
                self.settle()
                self.check()
                if self.wrong:
                    return

    def points(self, day: int) -> list[dict[str, Any]]:
        made = []
        for _ in range(self.draw.choice((1, 1, 3, 40))):
            self.number += 1
            of_day = day if self.draw.random() < 0.8 else self.draw.randint(0, day)
            row: dict[str, Any] = {
                "time": 19_723 * DAY_NS + of_day * DAY_NS + self.draw.randrange(50) * 10**9,
                "n": self.number,
            }
            if self.draw.random() < 0.7:
                row["v"] = self.draw.randrange(-40, 40) / 4
            row |= {tag: self.draw.choice("abc") for tag in self.tags if self.draw.random() < 0.9}
            made.append(row)
        # A columnar write has no row twice.
        return list({self.key(row): row for row in reversed(made)}.values())

    def key(self, row: dict[str, Any]) -> Key:
        return (row["time"], *(row.get(tag) for tag in TAGS))

    def write(self, day: int) -> None:
        rows = self.points(day)
        ways = (self.lines, self.lines, self.arrow, self.csv, self.insert)
        # A table that lines make has a primary key.
        way = self.draw.choice(ways) if self.past else self.lines
        self.history.append(f"{way.__name__} {rows}")
        if refused := way(rows):
            self.wrong.append(f"refused: {refused}")
            return
        for row in rows:
            self.put(row)

    def put(self, row: dict[str, Any]) -> None:
        key = self.key(row)
        self.state.rows[key] = {**self.state.rows.get(key, {}), **row}
        known = set(self.state.columns)
        self.state.columns += tuple(name for name in row if name not in known)

    def lines(self, rows: list[dict[str, Any]]) -> str:
        texts = []
        for row in rows:
            tags = "".join(f",{tag}={row[tag]}" for tag in TAGS if tag in row)
            value = f",v={row['v']}" if "v" in row else ""
            texts.append(f"{self.name}{tags} n={row['n']}i{value} {row['time']}")
        return self.house.refusal("/write", "\n".join(texts).encode())

    def columns_of(self, rows: list[dict[str, Any]]) -> list[str]:
        return [name for name in ("time", "n", "v", *TAGS) if any(name in row for row in rows)]

    def arrow(self, rows: list[dict[str, Any]]) -> str:
        names = self.columns_of(rows)
        data = pa.table({
            name: pa.array([row.get(name) for row in rows], pa.timestamp("ns") if name == "time" else None)
            for name in names
        })  # fmt: skip
        return self.house.refusal(f"/api/v1/write/arrow?table={self.name}", stream(data), **self.said(names))

    def said(self, names: list[str]) -> dict[str, str]:
        tags = ",".join(name for name in names if name in TAGS)
        return {"x_arc_tags": tags} if tags else {}

    def csv(self, rows: list[dict[str, Any]]) -> str:
        """As a spreadsheet, a logger or pandas writes it, with its index in a column without a name."""
        names = self.columns_of(rows)
        delimiter, decimal = self.draw.choice(((",", "."), (";", "."), (";", ","), ("\t", "."), ("|", ".")))
        spell_time, absent = self.draw.choice(TIME_FORMS), self.draw.choice(("", "", "NA", "null", "-"))

        def cell(row: dict[str, Any], name: str) -> str:
            if name == "time":
                return spell_time(row[name])
            # Among texts these words are texts.
            value = row.get(name, absent if name == "v" else "")
            return str(value).replace(".", decimal)

        texts = [delimiter.join(("", *names))]
        texts += [delimiter.join((str(place), *(cell(row, name) for name in names))) for place, row in enumerate(rows)]
        text = self.draw.choice(("\n", "\r\n")).join(texts) + self.draw.choice(("", "\n"))
        encoded = text.encode(self.draw.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16")))
        self.history.append(repr(text[:120]))
        mark = "rows-of-a-form"
        start = f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="rows.csv"\r\n\r\n'
        body = start.encode() + encoded + f"\r\n--{mark}--\r\n".encode()
        tags = ",".join(name for name in names if name in TAGS)
        path = f"/api/v1/import/csv?measurement={self.name}" + (f"&tags={tags}" if tags else "")
        return self.house.refusal(path, body, content_type=f"multipart/form-data; boundary={mark}")

    def insert(self, rows: list[dict[str, Any]]) -> str:
        """Each row by a cursor of its own, of which nothing is fetched."""
        known = [name for name in ("time", "n", "v", *TAGS) if name in self.state.columns]
        if set(self.columns_of(rows)) - set(known):
            # What has no column yet is no tag.
            return self.lines(rows)
        try:
            for row in rows:
                names = [name for name in known if name in row]
                values = ", ".join(
                    f"'{moment(row[name])}'" if name == "time" else repr(row[name]) for name in names
                )
                quoted = ", ".join(f'"{name}"' for name in names)
                with self.house.flight().cursor() as cursor:
                    cursor.execute(f"INSERT INTO {self.name} ({quoted}) VALUES ({values})")
        except flight_sql.Error as error:
            return str(error)[:300]
        return ""

    def delete(self) -> None:
        """Deletes some rows, or brings back what was."""
        if self.past and self.draw.random() < 0.4:
            was = self.draw.choice(self.past)
            self.history.append(f"restore {was.at_ns}")
            refused = self.house.execute(f"RESTORE TABLE {self.name} AS OF '{moment(was.at_ns)}'")
            self.state = State(self.state.columns, dict(was.rows))
        else:
            second = self.draw.randrange(50)
            bound = 19_723 * DAY_NS + second * 10**9
            self.history.append(f"delete {bound}")
            body = {"database": DATABASE, "measurement": self.name, "where": f"time < {bound}", "confirm": True}
            refused = self.house.refusal("/api/v1/delete", json.dumps(body).encode())
            rows = {key: row for key, row in self.state.rows.items() if row["time"] >= bound}
            self.state = State(self.state.columns, rows)
        if refused:
            self.wrong.append(f"refused: {refused}")

    def settle(self) -> None:
        """Has rows lie in memory, in files, or in merged ones."""
        where = self.draw.choice(("memory", "files", "files", "merged"))
        self.history.append(where)
        if where != "memory":
            self.house.refusal("/api/v1/write/line-protocol/flush", b"")
        if where == "merged":
            self.house.refusal("/api/v1/compaction/trigger", b"")
            wait_for_merges(self.house.server)
        # Clocks of both sides are one; a write of the same moment is on either side of it.
        time.sleep(0.002)
        self.past.append(State(self.state.columns, dict(self.state.rows), time.time_ns()))
        time.sleep(0.002)

    # Asking.

    def check(self) -> None:
        if not self.state.rows:
            return
        for sql in self.questions():
            self.ask(sql, self.state, self.name)
        was = self.draw.choice(self.past)
        as_of = f"{self.name} FOR SYSTEM_TIME AS OF '{moment(was.at_ns)}'"
        if was.rows and len(was.columns) == len(self.state.columns):
            self.ask("SELECT n, time FROM {t} ORDER BY n", was, as_of)
        if self.history[-1] == "merged":
            self.check_files()

    def questions(self) -> list[str]:
        few, year, sign = self.draw.randint(1, 4), self.draw.choice(YEARS), self.draw.choice(COMPARED)
        tags = [f'"{name}"' for name in self.state.columns if name in TAGS]
        # With the tags before the fields, as the table has them.
        names = ", ".join(["time", *tags, *(name for name in self.state.columns if name in ("n", "v"))])
        tag = self.draw.choice(tags) if tags else "n"
        asked = [
            f"SELECT {names} FROM {{t}} ORDER BY n",
            f"SELECT {names} FROM {{t}} ORDER BY time DESC, n LIMIT {few}",
            f"SELECT {names} FROM {{t}} ORDER BY time, n LIMIT {few} OFFSET 1",
            f"SELECT DISTINCT ON ({tag}) {tag}, n FROM {{t}} ORDER BY {tag} NULLS LAST, n",
            f"SELECT {tag}, count(*), min(n), max(n) FROM {{t}} GROUP BY {tag} ORDER BY 3",
            f"SELECT count(*) FROM {{t}} WHERE extract(year FROM time) {sign} {year}",
            f"SELECT count(*) FROM {{t}} WHERE time {sign} TIMESTAMP '{self.draw.choice(FAR)}'",
            f"SELECT n, {tag} FROM {{t}} WHERE n % 2 = 0 UNION ALL SELECT n, {tag} FROM {{t}} WHERE n % 2 = 1 ORDER BY n LIMIT {few}",
            f"SELECT n, row_number() OVER (PARTITION BY {tag} ORDER BY n) AS r FROM {{t}} ORDER BY n LIMIT {few}",
            f"SELECT l.n, r.n AS next FROM {{t}} l LEFT JOIN {{t}} r ON l.{tag} = r.{tag} AND r.n = l.n + 1 ORDER BY l.n",
        ]
        return self.draw.sample(asked, 4)

    def ask(self, sql: str, state: State, table: str) -> None:
        expected = answered(state.table(), sql)
        types = [field.type for field in expected.schema]
        # A reader has the state of now only.
        doors = [name for name in self.world.doors if table == self.name or "server" in name]
        for door in self.draw.sample(doors, min(3, len(doors))):
            asked = sql.format(t=table)
            try:
                found = self.world.doors[door](asked, types)
            except Exception as error:
                self.wrong.append(f"{door}: {asked}: {error!r}"[:800])
                continue
            if cells(found) != cells(expected):
                self.wrong.append(f"{door}: {asked}: {cells(found)}, not {cells(expected)}")

    def check_files(self) -> None:
        """What DuckDB finds in the files of the table, which has no row twice after a merge."""
        files = self.world.data_dir / "data" / DATABASE / self.name
        if not list(files.glob("*/*.parquet")):
            return
        with duckdb.connect() as connection:
            source = f"read_parquet('{files}/*/*.parquet', union_by_name = true"
            # A column that is null in all rows of a file is not in it.
            known = connection.sql(f"SELECT * FROM {source}, hive_partitioning = false)").columns
            names = ", ".join(f'"{name}"' for name in (*TAGS, "n") if name in known)
            found = connection.sql(f"SELECT {names} FROM {source}) ORDER BY n").fetchall()
        expected = answered(self.state.table(), f"SELECT {names} FROM {{t}} ORDER BY n")
        if [list(row) for row in found] != cells(expected):
            self.wrong.append(f"files: {found}, not {cells(expected)}")


def answered(model: pa.Table, sql: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("model", model)
        return connection.sql(sql.format(t="model")).to_arrow_table()


def cells(table: pa.Table) -> list[list[Any]]:
    """The rows as lists, times as nanoseconds."""

    def plain(column: pa.ChunkedArray) -> list[Any]:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
        return column.to_pylist()

    return [list(row) for row in zip(*(plain(column) for column in table.columns))]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lives", type=int, default=1 << 30)
    parser.add_argument("--seed", default=str(random.randrange(1 << 31)))
    return parser.parse_args()


def main() -> int:
    options = arguments()
    seed, _, only = options.seed.partition(".")
    print(f"seed {seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="arc-hunt-"))
    world, until, lives, found = World(folder, seed), time.monotonic() + options.seconds, 0, 0
    try:
        while lives < options.lives and time.monotonic() < until:
            number = int(only or 0) + lives
            lives += 1
            life = Life(world, f"t{number}", random.Random(f"{seed}.{number}"))
            life.live()
            if life.wrong:
                found += 1
                print(f"--seed {seed}.{number}: {life.wrong[0][:1500]}", flush=True)
                print("\n".join(f"    {step[:300]}" for step in life.history), flush=True)
    finally:
        world.end()
    print(f"{lives} lives, {found} of them with something wrong")
    if not found:
        shutil.rmtree(folder)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
