#!/usr/bin/env python3
"""Sets each type and each null through each door of the server, and compares what comes out of each, value by value.

    python scripts/reliability/doors.py                            one short run of a fixed seed
    python scripts/reliability/doors.py --rounds 50 --seed 7       more of them
    python scripts/reliability/doors.py --rounds 1 --seed 7.12     once more, what was found there

A round draws rows of all types: their ends, what is ordinary, empty and odd texts, nulls, a row without a value,
columns that are null or absent in a batch. Each door that writes has a table of its own, made by the write, by Arrow or
by CREATE TABLE. Each table is read by each door that reads, and asked for rows by a value in a literal, in JSON and
bound by ADBC: unflushed, replayed, flushed and merged. What has to come is the model's. What a door cannot carry by its
contract is in LIMITS, what is wrong and not mended in KNOWN. Ends with status 1 if something else came, or was refused.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import math
import pathlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Optional

import pyarrow as pa
from answers import wait_for_merges
from door_values import COLUMNS, Column, Drawn, Row
from doors_in import DATABASE, DOORS_IN, DoorIn, House, Table, arrow_table, everything, stream
from doors_out import FINDERS, FORMATS, OPERATORS, Finder, Refused, differing, found, read
from server import Ended, Server

# What comes of an answer whose values are not of their types.
BAD_VALUES = (ValueError, TypeError, AttributeError, KeyError, AssertionError, ArithmeticError, pa.ArrowException)
ALL = (*FORMATS, "Flight")
SETTINGS: dict[str, Any] = {"flush_after": "1h", "compaction_quiet": "0ms", "compaction_grace": "0ms"}


@dataclass(frozen=True)
class Limit:
    """What a door cannot carry by its contract, and what is there instead of it."""

    doors: tuple[str, ...]
    kinds: tuple[str, ...]
    when: Callable[[Any], bool]
    becomes: Any
    reason: str
    # Whether the value is sent as it is all the same.
    is_sent: bool = False

    def holds(self, door: str, table: Table, column: Column, value: Any) -> bool:
        is_meant = not self.doors or door in self.doors
        kind = "text" if column.kind == "tag" and not table.is_keyed else column.kind
        return is_meant and kind in self.kinds and self.when(value)


def is_no_number(value: Any) -> bool:
    return isinstance(value, float) and (value != value or abs(value) == float("inf"))


def is_long(value: Any) -> bool:
    return isinstance(value, Decimal) and len(value.as_tuple().digits) > 15


def has_line_feed(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def is_null(value: Any) -> bool:
    return value is None


JSON_INSERTS = ("INSERT list", "INSERT names")
LIMITS = (
    Limit(("line protocol",), ("float",), is_no_number, None, "arc-lp: a number without suffix is finite"),
    Limit(("line protocol",), ("tag",), has_line_feed, None, "arc-lp: LF ends a record"),
    Limit(JSON_INSERTS, ("float",), is_no_number, None, "docs/http.md: params are numbers, texts, truths and nulls"),
    Limit(JSON_INSERTS, ("binary", "span", "clock"), lambda _: True, None, "docs/sql.md: texts become dates and times"),
    Limit(JSON_INSERTS, ("list", "struct"), lambda _: True, None, "docs/http.md: numbers, texts, truths and nulls"),
    Limit(("INSERT VALUES",), ("list", "struct"), lambda _: True, None, "they have no literal of exactly their type"),
    Limit(JSON_INSERTS, ("decimal",), is_long, None, "docs/http.md: a number, which has 53 bits"),
    Limit(("CSV",), ("text",), is_null, "", "docs/http.md: in a column of strings an empty string", True),
    Limit((), ("tag",), lambda value: value == "", None, "docs/http.md: an empty or null tag is an absent one", True),
)


@dataclass(frozen=True)
class Known:
    """A fault of the server that is not mended yet; what is empty stands for all."""

    reason: str
    doors_in: tuple[str, ...] = ()
    doors_out: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    said: str = ""
    # Whether the value that came is a float beside the one that was due.
    is_beside: bool = False

    def holds(self, door_in: str, door_out: str, column: str, said: str, values: tuple[Any, ...]) -> bool:
        return (
            door_in in (self.doors_in or (door_in,))
            and door_out in (self.doors_out or (door_out,))
            and column in (self.columns or (column,))
            and self.said in said
            and (not self.is_beside or is_beside(values))
        )


def is_beside(values: tuple[Any, ...]) -> bool:
    """Whether these are two floats of which hardly another one is between."""
    if len(values) != 2 or not all(isinstance(value, float) and math.isfinite(value) for value in values):
        return False
    return bool(abs(values[0] - values[1]) <= 2 * math.ulp(values[0]))


KNOWN = (
    Known("decimals in MessagePack are not the nearest float", doors_out=("msgpack",), is_beside=True),
    Known(
        "a list in Parquet has an inner field `element`, and is no list of a table that Arrow made, where it is `item`",
        doors_in=("Parquet",),
        columns=("li", "names"),
        said="field: 'element'",
    ),
    Known(
        "a column of times that began within nanoseconds has no others, by design",
        columns=("ts_s", "ts_ms", "ts_us", "berlin", ""),
        said='is Timestamp(ns, \\"UTC\\")',
    ),
    Known(
        "the same, as Flight says it",
        columns=("ts_s", "ts_ms", "ts_us", "berlin", ""),
        said='is Timestamp(ns, "UTC") and cannot be',
    ),
    Known("a text is no time beyond 64 bits of nanoseconds, for columns that have more", said="Overflow converting"),
)


@dataclass
class Placed:
    """A table, the door that its rows came by, and the rows that are in it."""

    table: Table
    door: DoorIn
    columns: list[Column]
    rows: list[Row]
    # The doors that it comes out by, in the order of the states.
    forms: Sequence[str] = ()

    @property
    def asked(self) -> list[Column]:
        """The columns there are: a table that a write makes has those with a value."""
        is_made = self.table.shape != "bare"
        there = [one for one in self.columns if is_made or any(row[one.name] is not None for row in self.rows)]
        return everything(there)


class Visit:
    """One round: a server, and a table for each door."""

    def __init__(self, of: Round, number: str) -> None:
        self.round, self.number = of, number
        self.place_of_round = int(number.rpartition(".")[2])
        self.random = random.Random(number)
        self.drawn = Drawn(self.random)
        self.data_dir = of.parent / number
        self.server: Optional[Server] = None
        self.house: Optional[House] = None
        self.placed: list[Placed] = []

    def start(self, compaction: str = "false") -> House:
        self.server = Server(self.data_dir, **SETTINGS, compaction=compaction)
        self.server.wait_until_ready()
        self.house = House(self.server)
        return self.house

    def end(self) -> None:
        if self.house is not None:
            self.house.close()
        self.house = None

    def restart(self, kill: bool, compaction: str = "false") -> House:
        assert self.server is not None
        self.end()
        if kill:
            self.server.kill()
        else:
            self.server.stop()
        return self.start(compaction)

    def run(self) -> None:
        house = self.start()
        for door in DOORS_IN:
            self.place(house, door)
        is_flushed_between = self.random.random() < 0.5
        for place, rows in enumerate(self.drawn.batches):
            for placed in self.placed:
                present = [one for one in self.drawn.present[place] if one in placed.columns]
                self.send(house, placed, present, [dict(row) for row in rows])
            if is_flushed_between and place < len(self.drawn.batches) - 1:
                house.post("/api/v1/write/line-protocol/flush", b"")
        # Each table comes out by each door: by some of them before the flush, and by the others after it.
        self.check(house, "unflushed", slice(0, 4))
        house = self.restart(kill=True)
        self.check(house, "replayed", slice(0, 1))
        house.post("/api/v1/write/line-protocol/flush", b"")
        self.check(house, "flushed", slice(4, None))
        house = self.restart(kill=False, compaction="true")
        house.post("/api/v1/compaction/trigger", b"")
        assert self.server is not None
        wait_for_merges(self.server)
        self.check(house, "merged", slice(3, 4))
        errors = [line for line in self.server.log if '"level":"ERROR"' in line]
        if errors:
            raise RuntimeError(f"the log has {len(errors)} errors: {errors[0]}")

    def place(self, house: House, door: DoorIn) -> None:
        """Draws a table for a door, and makes it."""
        # Each in its turn, so that a few rounds have had all.
        turn = self.place_of_round + len(self.placed)
        shape, is_keyed = door.shapes[turn % len(door.shapes)], self.random.choice(door.keys)
        name = door.name.lower().replace(" ", "_")
        table = Table(f"t_{name}", shape, is_keyed)
        columns = [one for one in self.drawn.columns if door.can(one, shape)]
        placed = Placed(table, door, columns, self.make(house, table), self.random.sample(ALL, len(ALL)))
        self.placed.append(placed)

    def make(self, house: House, table: Table) -> list[Row]:
        """Makes a table with all columns that it can have; returns the rows in it."""
        if table.shape == "bare":
            return []
        if table.shape == "created":
            columns = ", ".join(f"{one.name} {one.sql}" for one in everything(COLUMNS) if one.sql)
            key = ", PRIMARY KEY (host, time)" if table.is_keyed else ""
            said = house.execute(f"CREATE TABLE {table.name} ({columns}{key})")
            rows = []
        else:
            rows = [{"n": -1, "time": 12_345, **{one.name: None for one in COLUMNS}}]
            tags = {"x_arc_tags": "host"} if table.is_keyed else {}
            body = stream(arrow_table(everything(COLUMNS), rows))
            said = house.refusal(f"/api/v1/write/arrow?table={table.name}", body, **tags)
        if said:
            raise RuntimeError(f"{table} cannot be made: {said}")
        return rows

    def send(self, house: House, placed: Placed, columns: list[Column], rows: list[Row]) -> None:
        """Sends rows; where they are refused one by one, and then without the values that are."""
        sent, left = [], []
        for row in rows:
            for column in placed.columns:
                limits = [one for one in LIMITS if one.holds(placed.door.name, placed.table, column, row[column.name])]
                if limits and not limits[0].is_sent:
                    row[column.name] = limits[0].becomes
            sent.append(row)
            left.append(self.kept(placed, columns, row))
        said = placed.door.put(house, placed.table, columns, sent)
        if not said:
            placed.rows += left
            return
        if len(rows) == 1:
            self.send_parts(house, placed, columns, sent[0], said)
            return
        assert self.server is not None
        stored = {n for (n,) in self.server.sql(f"SELECT n FROM {placed.table.name}", DATABASE)}
        placed.rows += [row for row in left if row["n"] in stored]
        reported = self.round.differences + sum(self.round.known.values())
        for row in sent:
            if row["n"] not in stored:
                self.send(house, placed, columns, [row])
        if reported == self.round.differences + sum(self.round.known.values()):
            together = f"rows {[row['n'] for row in sent]} are refused together, and none alone"
            self.report(placed, "", "", f"{together}: {said}")

    def kept(self, placed: Placed, columns: list[Column], row: Row) -> Row:
        """The row as it has to come out, where these columns were sent."""
        kept = dict(row)
        for column in columns:
            for limit in LIMITS:
                if limit.holds(placed.door.name, placed.table, column, row[column.name]):
                    kept[column.name] = limit.becomes
                    break
        return kept

    def send_parts(self, house: House, placed: Placed, columns: list[Column], row: Row, said: str) -> None:
        """Finds the values for which a row is refused."""
        table = Table(f"{placed.table.name}_{row['n']}", placed.table.shape, placed.table.is_keyed)
        self.make(house, table)
        refused = []
        for column in columns:
            why = placed.door.put(house, table, [column], [row])
            if why:
                self.report(placed, "", column.name, f"row {row['n']}: {row[column.name]!r} is refused: {why}")
                refused.append(column)
        # Some doors refuse a column even where it has no value.
        columns = [one for one in columns if one not in refused]
        row = {**row, **{column.name: None for column in refused}}
        again = placed.door.put(house, placed.table, columns, [row]) if refused else said
        if again:
            self.report(placed, "", "", f"row {row['n']} is refused: {again}")
        else:
            placed.rows.append(self.kept(placed, columns, row))

    def check(self, house: House, state: str, forms: slice) -> None:
        for placed in self.placed:
            placed.rows.sort(key=lambda row: row["n"])
            columns = placed.asked
            types = [column.type_in(placed.table.shape) for column in columns]
            names = ", ".join(column.name for column in columns)
            for form in placed.forms[forms]:
                self.round.cells += len(columns) * len(placed.rows)
                try:
                    answer = read(house, form, f"SELECT {names} FROM {placed.table.name} ORDER BY n", types)
                except (Refused, *BAD_VALUES) as error:
                    self.report(placed, form, "", f"{state}: {error!r}")
                    continue
                for column, said, values in differing(form, columns, placed.table.shape, placed.rows, answer):
                    self.report(placed, form, column, f"{state}: {said}", values)
            for finder in FINDERS if state == "unflushed" else self.random.sample(FINDERS, 1):
                self.find(house, placed, finder, self.random.choice(columns), state)

    def find(self, house: House, placed: Placed, finder: Finder, column: Column, state: str) -> None:
        """Asks for the rows with a value."""
        value = self.random.choice(placed.rows)[column.name]
        if not finder.can(column, value):
            return
        operator = self.random.choice(OPERATORS)
        expected = found(placed.rows, column, operator, value)
        self.round.found += 1
        try:
            given = finder.find(house, placed.table.name, operator, column, value)
        except Refused as error:
            self.report(placed, finder.name, column.name, f"{state}: {operator} {value!r}: {error}")
        else:
            if given != expected:
                said = f"{operator} {value!r}: rows {given}, not {expected}"
                self.report(placed, finder.name, column.name, f"{state}: {said}")

    def report(self, placed: Placed, door_out: str, column: str, said: str, values: tuple[Any, ...] = ()) -> None:
        self.round.report(self.number, placed, door_out, column, said, values)


class Round:
    """Rounds one after the other."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.parent = pathlib.Path(tempfile.mkdtemp(prefix="arc-doors-", dir=options.directory))
        self.began = time.monotonic()
        self.rounds = self.cells = self.found = self.differences = 0
        self.known: collections.Counter[str] = collections.Counter()
        self.told: collections.Counter[tuple[str, ...]] = collections.Counter()

    def run(self) -> int:
        seed, _, only = self.options.seed.partition(".")
        while self.rounds < self.options.rounds and time.monotonic() - self.began < self.options.seconds:
            visit = Visit(self, f"{seed}.{only or self.rounds}")
            try:
                visit.run()
            except (Ended, OSError, RuntimeError, http.client.HTTPException) as error:
                self.differences += 1
                print(f"DIFFERENCE seed {visit.number}: the server failed: {error!r}"[:2000], flush=True)
            finally:
                visit.end()
                if visit.server is not None:
                    visit.server.kill()
            self.rounds += 1
            if only:
                break
        for reason, count in self.known.items():
            print(f"known, {count} times: {reason}")
        print(self.summary())
        if not self.differences:
            shutil.rmtree(self.parent)
        return 1 if self.differences else 0

    def report(
        self, seed: str, placed: Placed, door_out: str, column: str, said: str, values: tuple[Any, ...] = ()
    ) -> None:
        door_in, table = placed.door.name, placed.table
        known = next((one for one in KNOWN if one.holds(door_in, door_out, column, said, values)), None)
        if known and not self.options.strict:
            self.known[known.reason] += 1
            return
        self.differences += 1
        kind = (door_in, door_out, column)
        self.told[kind] += 1
        if self.told[kind] <= 2:
            way = f"in by {door_in} ({table.shape}{', with a key' if table.is_keyed else ''})"
            out = f", out by {door_out}" if door_out else ""
            print(f"DIFFERENCE seed {seed}: {way}{out}, {f'column {column}, ' if column else ''}{said}", flush=True)

    def summary(self) -> str:
        took = time.monotonic() - self.began
        return (
            f"seed {self.options.seed}: {self.rounds} rounds, {self.cells} cells compared, {self.found} times asked by "
            f"a value, {sum(self.known.values())} known; {took:.0f} s, {self.differences} differences"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="end after so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="or after this time")
    parser.add_argument("--seed", default="1", help="of all random choices; with .N only that round")
    parser.add_argument("--strict", action="store_true", help="report what is known, too")
    parser.add_argument("--directory", type=pathlib.Path, default=None, help="parent of the data directories")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    return Round(options).run()


if __name__ == "__main__":
    sys.exit(main())
