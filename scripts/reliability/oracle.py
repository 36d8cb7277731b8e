"""What has to be stored after a crash, request by request, and what is."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

import bodies
import duckdb
from bodies import DAY_NS, EXPIRING, RETENTION_DAYS, STEP_NS, Points
from clock import Clock
from server import DATABASE, Server


class Fate(Enum):
    """What may have become of a request."""

    STORED = "stored"
    ABSENT = "absent"
    # Its connection broke, or nothing was promised: the whole of it or nothing.
    OPEN = "stored or absent"


def promise(status: int, answer: bytes) -> Fate:
    """Returns what the answer to a write says about it as a whole."""
    if status == 204:
        return Fate.STORED
    # 500 is among others the group whose sync failed: what is on disk is known after a restart.
    return Fate.ABSENT if status in (400, 413, 429, 503, 507) else Fate.OPEN


@dataclass
class Request:
    """A request that was sent, and what its answer promised."""

    points: Points
    tables: tuple[str, ...]
    fate: Fate = Fate.OPEN
    what: str = ""
    # Whether a delete of it was sent. The files have its rows until a merge leaves them out.
    deleted: bool = False


def may_expire(request: Request, clock: Clock) -> bool:
    """Whether all points are past their table's retention, by the latest time that the server has seen: they go as a whole, some time."""
    # The newest point of a day is within that day.
    age_days = (clock.latest_ns() - request.points.start_ns) // DAY_NS
    return request.tables == (EXPIRING,) and age_days > RETENTION_DAYS


# Of a request in a table: rows, smallest and largest number, sums of numbers and values, smallest and largest distance
# of the time from what the number says.
Facts = tuple[int, int, int, int, float, int, int]

QUERY = """
SELECT r, w, writer, count(*), min(n), max(n), sum(n), sum(v), min({time_ns} - n * {step}), max({time_ns} - n * {step})
FROM {table} GROUP BY r, w, writer
"""


def expected(request: Request) -> dict[str, Facts]:
    """Returns the facts of each table of a request that is stored."""
    points, facts = request.points, {}
    for place, table in enumerate(request.tables):
        step = len(request.tables)
        first = points.first + (place - points.first) % step
        numbers = range(first, points.first + points.count, step)
        if numbers:
            total = (numbers[0] + numbers[-1]) * len(numbers) // 2
            start = points.start_ns
            facts[table] = (len(numbers), numbers[0], numbers[-1], total, total / 2, start, start)
    return facts


class Oracle:
    """All requests of one data directory. Each check settles what was open: it must stay as it was found."""

    def __init__(self, clock: Optional[Clock] = None) -> None:
        self.clock = clock or Clock()
        self.requests: dict[int, Request] = {}
        self.violations: list[str] = []

    def add(self, requests: Iterable[Request]) -> None:
        self.requests.update((request.points.request, request) for request in requests)

    def check(
        self, answers: dict[str, list[list[Any]]], case: str, settle: bool = True, of_files: bool = False
    ) -> None:
        """Compares all requests with the rows of `QUERY` for each table.

        Without `settle` what is open stays open: a log that failed does not show what it may have. Rows `of_files` may be
        deleted ones.
        """
        found: dict[int, dict[str, Facts]] = {}
        for table, rows in answers.items():
            for r, w, writer, *facts in rows:
                request = self.requests.get(r)
                if request is None or w != request.points.writer or writer != f"w{w}":
                    self.violations.append(f"{case}: {table} has rows that nobody wrote: r={r} w={w} writer={writer}")
                elif table in found.setdefault(r, {}):
                    self.violations.append(f"{case}: {table}: rows of r={r} differ in what all have in common")
                else:
                    found[r][table] = as_facts(facts)
        for r, request in self.requests.items():
            if of_files and request.deleted:
                continue
            self._compare(request, found.get(r, {}), case, settle)

    def _compare(self, request: Request, found: dict[str, Facts], case: str, settle: bool) -> None:
        whole = expected(request)
        if found == whole:
            fate = Fate.STORED
        elif not found:
            fate = Fate.ABSENT
        else:
            self.violations.append(f"{case}: neither whole nor absent: {request}: found {found}, expected {whole}")
            return
        if request.fate is Fate.STORED and fate is Fate.ABSENT and may_expire(request, self.clock):
            request.fate = fate
            request.what += f", expired by {case}"
        if request.fate is Fate.OPEN:
            if settle:
                request.fate = fate
                request.what += f", found {fate.value} by {case}"
        elif request.fate is not fate:
            self.violations.append(f"{case}: {request} is {fate.value}")

    def stored_rows(self, table: str) -> int:
        stored = (request for request in self.requests.values() if request.fate is Fate.STORED)
        return sum(expected(request).get(table, (0,))[0] for request in stored)


def as_facts(cells: list[Any]) -> Facts:
    count, first, last, total, value, early, late = cells
    return int(count), int(first), int(last), int(total), float(value), int(early), int(late)


def ask_server(server: Server) -> dict[str, list[list[Any]]]:
    """Runs `QUERY` over every table by HTTP; over the small ones in few statements, for planning is most of the work."""
    query = QUERY.format(table="{table}", time_ns="CAST(time AS BIGINT)", step=STEP_NS)
    large = [table for table in bodies.TABLES if table not in bodies.SMALL]
    answers = {table: server.sql(query.format(table=table)) for table in large}
    known = {name for (name,) in server.sql(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'")}
    small = [table for table in bodies.SMALL if table in known]
    answers |= {table: [] for table in small}
    for first in range(0, len(small), 40):
        parts = [
            query.format(table=table).replace("SELECT", f"SELECT '{table}',", 1) for table in small[first : first + 40]
        ]
        for table, *row in server.sql(" UNION ALL ".join(parts)):
            answers[table].append(row)
    return answers


def ask_duckdb(data_dir: pathlib.Path, files: Optional[int]) -> tuple[dict[str, list[list[Any]]], list[str]]:
    """Runs `QUERY` over the Parquet files of a directory that was stopped in order, so that all rows are in files.

    `files` is how many of them the manifest lists. Returns the answers and what is wrong.
    """
    paths = sorted((data_dir / "data" / DATABASE).rglob("*.parquet"))
    # Those of other databases, as of the audit log, too.
    found = sum(1 for _ in (data_dir / "data").rglob("*.parquet"))
    wrong = [] if found == files else [f"{found} data files on disk, {files} in the manifest"]
    answers = {}
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for table in bodies.TABLES:
            own = [str(path) for path in paths if path.relative_to(data_dir).parts[2] == table]
            if not own:
                continue
            source = f"read_parquet({own!r}, union_by_name = true, hive_partitioning = false)"
            query = QUERY.format(table=source, time_ns="epoch_ns(time)", step=STEP_NS)
            answers[table] = [list(row) for row in connection.execute(query).fetchall()]
            distinct, count = connection.execute(f"SELECT count(DISTINCT (w, n)), count(*) FROM {source}").fetchall()[0]
            if distinct != count:
                wrong.append(f"{table}: {count} rows in files, {distinct} different points")
    return answers, wrong
