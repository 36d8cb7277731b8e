"""Points that are written again and again, at every durability: which version of each has to be there.

A writer has points of its own, and numbers what it writes to them. After a crash each point shows what one request
gave it: none that is older than the last one promised, and never an older one where the same request shows elsewhere.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any, Optional

from bodies import DAY_NS, START_NS
from oracle import Fate
from server import Server

TABLES = ("late_0", "late_1")
POINTS = 40

# A point: its table, and its number in it.
Point = tuple[str, int]


@dataclass
class Version:
    """A request: the points that it writes, all with its number."""

    number: int
    points: list[Point]
    # Whether it has the second field, too; if not, that stays as it was.
    has_second: bool
    fate: Fate = Fate.OPEN
    what: str = ""


def ask(server: Server) -> dict[str, list[list[Any]]]:
    """Returns all points of each table. One that no request with the second field has reached yet lacks that."""
    has_second = {
        table for (table,) in server.sql("SELECT table_name FROM information_schema.columns WHERE column_name = 'b'")
    }
    second = {table: "b" if table in has_second else "NULL" for table in TABLES}
    return {table: server.sql(f"SELECT writer, p, a, v, s, {second[table]} FROM {table}") for table in TABLES}


class Versions:
    """The points of one writer. What was found after a crash stays so."""

    def __init__(self, writer: int, chance: random.Random) -> None:
        self.writer, self.random = writer, chance
        # Its day of today goes on being that one, so that the points stay the same.
        self.today = (time.time_ns() - START_NS) // DAY_NS
        self.number = 0
        self.sent: list[Version] = []
        # Of each point the numbers that its two fields had when they were looked at last.
        self.found: dict[Point, tuple[Optional[int], Optional[int]]] = {}

    def draw(self) -> tuple[Version, bytes]:
        """Draws the next request and its lines: points of today, which are packed, and of days before."""
        self.number += 1
        every = [(table, point) for table in TABLES for point in range(POINTS)]
        version = Version(
            self.number, self.random.sample(every, self.random.choice((1, 5, 40))), self.random.random() < 0.5
        )
        self.sent.append(version)
        second = f",b={version.number}i" if version.has_second else ""
        lines = []
        for table, point in version.points:
            time_ns = START_NS + (self.today if point % 2 else point % 3) * DAY_NS + point * 10**9
            fields = f'p={point}i,a={version.number}i,v={version.number / 2},s="x{version.number}"{second}'
            lines.append(f"{table},writer=w{self.writer} {fields} {time_ns}")
        return version, "\n".join(lines).encode()

    def check(self, rows: dict[str, list[list[Any]]], case: str) -> list[str]:
        """Compares the points with what was sent since they were looked at last; returns what is wrong."""
        wrong: list[str] = []
        found: dict[Point, tuple[Optional[int], Optional[int]]] = {}
        for table, cells in rows.items():
            for writer, point, a, v, s, b in cells:
                if writer != f"w{self.writer}":
                    continue
                if (table, point) in found:
                    wrong.append(f"{case}: {table} has point {point} of {writer} twice")
                if (v, s) != (a / 2, f"x{a}"):
                    wrong.append(
                        f"{case}: {table}, point {point} of {writer}: a={a} v={v} s={s} are of different requests"
                    )
                found[table, point] = a, b
        numbers = {version.number for version in self.sent if version.fate is not Fate.ABSENT}
        for point in {*self.found, *found}:
            was, is_ = self.found.get(point, (None, None)), found.get(point, (None, None))
            for before, after in zip(was, is_):
                if after != before and after not in numbers:
                    wrong.append(
                        f"{case}: {point} of w{self.writer} was {was} and is {is_}, which no request since gave it"
                    )
        for version in self.sent:
            wrong += self._of(version, found, case)
        self.found, self.sent = found, []
        return wrong

    def _of(self, version: Version, found: dict[Point, tuple[Optional[int], Optional[int]]], case: str) -> list[str]:
        shows, lacks = [], []
        for point in version.points:
            a, b = found.get(point, (None, None))
            fields = (a, b) if version.has_second else (a,)
            shows += [point for field in fields if field == version.number]
            lacks += [point for field in fields if (field or 0) < version.number]
        if shows and lacks:
            return [f"{case}: half of {version} by w{self.writer}: {shows[:3]} have it, {lacks[:3]} have older ones"]
        if lacks and version.fate is Fate.STORED:
            return [
                f"{case}: {version} by w{self.writer} is lost: {[(point, found.get(point)) for point in lacks[:3]]}"
            ]
        return []
