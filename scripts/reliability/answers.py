#!/usr/bin/env python3
"""Asks Arc and DuckDB the same statements about the same points, and Arc after each change of how the points lie.

    python scripts/reliability/answers.py --statements 2000 --seed 1

A world is a few tables with points of all types and extremes. Its statements are asked while nothing is flushed, after a kill
and a replay, from files, with late and deleted rows over them, while files are merged, after that, and from files that
were in packs. Each answer has to be DuckDB's, but for what SQL leaves open (the order of equal rows, which of them LIMIT
takes, the last bits of a sum of floats) and what differs by design. A statement that is answered otherwise is made shorter and
printed with both answers; `--seed S --world W` asks it again. Ends with status 1 then.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
from typing import Optional, Union

import comparison
import duckdb
import pyarrow as pa
from comparison import Answer
from drawing import Drawing
from server import Ended, Server, knows, unpack
from statements import Select
from worlds import DATABASE, MACROS, World

# Errors of Arc that are not mended yet; statements that may meet one are marked. Who mends one takes it from here. What
# differs by design is not here: expressions have a text for each engine, and docs/reliability.md says why.
TO_BE_MENDED = (
    "a column twice in a union",
    "NaN with a sign",
    "fractions of quantiles",
)

# What Arc says to what it refuses, and DuckDB answers: of the first two it is not mended yet, the third is by design (DuckDB
# has integers of 128 bits).
REFUSALS = {
    "does not satisfy order requirements": "a column twice in a union",
    "require unique expression names": "a cast and its column in GROUP BY",
    "does not fit into BIGINT": "sums beyond 64 bits, by design",
}

# The parser takes `ROLLUP ((a) IS NULL)` for a list of one.
KEY_IN_PARENTHESES = re.compile(r"(?:ROLLUP|CUBE|GROUPING SETS) ?\((?:.*, )?\(")

# What the servers of all worlds have in common.
SETTINGS = {"flush_after": "1h", "compaction_quiet": "0ms", "compaction_grace": "0ms", "on_conflict": "widen"}


class Refused(Exception):
    """An engine does not answer a statement."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=2_000, help="end after so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="or after this time")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random choices")
    parser.add_argument("--world", type=int, default=None, help="only this world of the seed")
    parser.add_argument("--per-world", type=int, default=200, help="statements about one world")
    parser.add_argument("--layouts", type=int, default=3, help="in how many layouts each statement is asked")
    parser.add_argument("--differences", type=int, default=5, help="end after so many")
    parser.add_argument("--strict", action="store_true", help="report what is to be mended, too")
    parser.add_argument("--directory", type=pathlib.Path, default=None, help="parent of the data directories")
    return parser.parse_args()


class Asked:
    """A statement, where it is to be asked, and what it has to give."""

    def __init__(self, select: Select, layouts: set[str]) -> None:
        self.select, self.layouts = select, layouts
        self.reference: Union[Answer, Refused, None] = None
        self.types: Optional[list[str]] = None


class Round:
    """Worlds one after the other."""

    visit: type[Visit]

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.parent = pathlib.Path(tempfile.mkdtemp(prefix="arc-answers-", dir=options.directory))
        self.began = time.monotonic()
        self.worlds = self.statements = self.answers = self.refused = self.rows = 0
        self.known: collections.Counter[str] = collections.Counter()
        self.layouts: collections.Counter[str] = collections.Counter()
        self.differences = 0

    def is_late(self) -> bool:
        return time.monotonic() - self.began > self.options.seconds

    def is_over(self) -> bool:
        return (
            self.is_late() or self.statements >= self.options.statements or self.differences >= self.options.differences
        )

    def report(self) -> int:
        """Runs, says what came of it, and returns the status to end with."""
        self.run()
        print("asked: " + ", ".join(f"{count} {layout}" for layout, count in self.layouts.items()))
        print(self.summary())
        if not self.differences:
            shutil.rmtree(self.parent)
        return 1 if self.differences else 0

    def run(self) -> None:
        number = self.options.world or 0
        while not self.is_over():
            before = self.differences
            visit = self.visit(self, number)
            try:
                visit.run()
            except (Ended, OSError, RuntimeError, http.client.HTTPException) as error:
                self.differences += 1
                log = [line for line in (visit.server.log if visit.server else []) if '"DEBUG"' not in line][-10:]
                print(
                    f"DIFFERENCE seed {self.options.seed} world {number}: the server failed: {error}\n" + "".join(log)
                )
            finally:
                visit.end(keep=self.differences > before)
            self.worlds += 1
            number += 1
            if self.worlds % 50 == 0:
                print(self.summary(), flush=True)
            if self.options.world is not None:
                break

    def summary(self) -> str:
        known = ", ".join(f"{count} with {mark}" for mark, count in sorted(self.known.items())) or "none"
        return (
            f"seed {self.options.seed}: {self.statements} statements about {self.worlds} worlds, {self.answers} answers of "
            f"{self.rows} rows, {self.refused} refused by both, known differences: {known}; "
            f"{time.monotonic() - self.began:.0f} s, {self.differences} differences"
        )


class Visit:
    """One world: its server, its points in DuckDB, and the statements about it."""

    def __init__(self, of: Round, number: int) -> None:
        self.round, self.number = of, number
        seed = f"{of.options.seed} {number}"
        self.random = random.Random(f"{seed} statements")
        self.units = random.Random(f"{seed} units")
        self.world = World(seed)
        self.data_dir = of.parent / f"{number:05}"
        self.duck = duckdb.connect()
        self.duck.execute("SET threads = 1")
        # As in PostgreSQL and DataFusion.
        self.duck.execute("SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'")
        for macro in MACROS:
            self.duck.execute(macro)
        self.server: Optional[Server] = None
        self.connection: Optional[http.client.HTTPConnection] = None

    def start(self, **settings: str) -> Server:
        self.server = Server(
            self.data_dir, {"ARC_DELETE_ENABLED": "true"}, **{**SETTINGS, "compaction": "false", **settings}
        )
        self.server.wait_until_ready()
        self.connection = self.server.connect()
        return self.server

    def restart(self, kill: bool = False, **settings: str) -> Server:
        assert self.server is not None
        if kill:
            self.server.kill()
        else:
            self.server.stop()
        # The unit of times in files changes nothing that is answered. Columns that are there keep theirs.
        unit = {"time_unit": self.units.choice(["ns", "us", "ms"])} if knows("time-unit") else {}
        return self.start(**unit, **settings)

    def end(self, keep: bool) -> None:
        if self.server is not None:
            self.server.kill()
        self.duck.close()
        if keep:
            print(f"kept {self.data_dir}")
        else:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def run(self) -> None:
        half = self.round.options.per_world // 2
        self.world.begin(self.start())
        asked = self.draw(half, ("unflushed", "replayed", "flushed"))
        self.ask(asked, "unflushed")
        self.restart(kill=True)
        self.ask(asked, "replayed")
        server = self.restart()
        self.ask(asked, "flushed")
        self.world.go_on(server)
        asked = self.draw(half, ("late", "late, replayed", "late, flushed", "merging", "merged", "unpacked"))
        self.ask(asked, "late")
        self.restart(kill=True)
        self.ask(asked, "late, replayed")
        self.restart()
        self.ask(asked, "late, flushed")
        server = self.restart(compaction="true")
        server.request("POST", "/api/v1/compaction/trigger")
        self.ask(asked, "merging")
        wait_for_merges(server)
        self.ask(asked, "merged")
        server.stop()
        unpack(self.data_dir)
        self.start()
        self.ask(asked, "unpacked")

    def draw(self, count: int, layouts: tuple[str, ...]) -> list[Asked]:
        """Gives DuckDB the points as they are to be now, and draws statements about them."""
        self.world.load(self.duck)
        tables = [table.scope() for table in self.world.tables + self.world.small[:2]]
        drawing = Drawing(self.random, tables, self.world.times_ns(), self.world.has_nanoseconds)
        count = min(count, self.round.options.statements - self.round.statements)
        self.round.statements += count
        share = min(self.round.options.layouts, len(layouts))
        return [Asked(drawing.draw(), set(self.random.sample(layouts, share))) for _ in range(count)]

    def ask(self, asked: list[Asked], layout: str) -> None:
        for one in asked:
            if layout not in one.layouts or self.round.differences >= self.round.options.differences:
                continue
            if one.reference is None:
                one.reference = self.of_duckdb(one.select)
            given = self.of_arc(one.select)
            self.round.layouts[layout] += 1
            wrong = self.compare(one.select, given, one.reference)
            if isinstance(given, Refused):
                self.round.refused += not wrong
            elif not wrong:
                self.round.answers += 1
                self.round.rows += len(given.rows)
                if one.types not in (None, given.types):
                    wrong = f"types were {one.types} in another layout"
                one.types = given.types
            if wrong:
                # Once is enough.
                one.layouts = set()
                self.differs(one.select, layout, wrong)

    def of_duckdb(self, select: Select) -> Union[Answer, Refused]:
        try:
            return Answer(self.duck.sql(select.text("duck", is_reference=True)).to_arrow_table())
        except (duckdb.Error, AttributeError) as error:
            return Refused(str(error))

    def of_arc(self, select: Select) -> Union[Answer, Refused]:
        assert self.connection is not None
        body = json.dumps({"sql": select.text("arc")}).encode()
        self.connection.request("POST", f"/api/v1/query/arrow?db={DATABASE}", body)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            return Refused(f"{answer.status} {data.decode()}")
        return Answer(pa.ipc.open_stream(data).read_all())

    def compare(self, select: Select, given: Union[Answer, Refused], reference: Union[Answer, Refused]) -> str:
        """Says how an answer differs, or nothing."""
        if isinstance(given, Refused) and not str(given).startswith("4"):
            return "no answer"
        if isinstance(given, Refused) or isinstance(reference, Refused):
            if isinstance(given, Refused) and isinstance(reference, Refused):
                return ""
            return "only Arc refuses it" if isinstance(given, Refused) else "only DuckDB refuses it"
        rough = [item.is_rough for item in select.items]
        return comparison.compare(given, reference, len(rough), select.key_places(), select.limit, select.offset, rough)

    def differs(self, select: Select, layout: str, wrong: str) -> None:
        """Reports a difference, if it is none that is known."""
        known = select.marks.intersection(TO_BE_MENDED)
        again = self.of_arc(select)
        if isinstance(again, Refused):
            known = {name for said, name in REFUSALS.items() if said in str(again)}
            if "Expected: ), found:" in str(again) and KEY_IN_PARENTHESES.search(select.text("arc")):
                known.add("a key of a set that begins with a parenthesis")
        is_design = "sums beyond 64 bits, by design" in known
        if is_design or known and not self.round.options.strict:
            self.round.known[sorted(known)[0]] += 1
            return
        self.round.differences += 1
        less = self.shorten(select)
        print(f"DIFFERENCE seed {self.round.options.seed} world {self.number}, {layout}: {wrong}")
        print(f"  drawn: {select.text('arc')}")
        print(f"  shorter: {less.text('arc')}\n  for DuckDB: {less.text('duck')}")
        for name, answer in (("Arc", self.of_arc(less)), ("DuckDB, all rows", self.of_duckdb(less))):
            print(f"  {name}:\n{answer.text() if isinstance(answer, Answer) else '  ' + str(answer)[:500]}")
        print("  written: " + "; ".join(self.world.history[-12:]), flush=True)

    def shorten(self, select: Select) -> Select:
        """Leaves out what the difference does not need."""
        tries = 300
        is_shorter = True
        while is_shorter:
            is_shorter = False
            for less in select.shorter():
                tries -= 1
                if tries < 0:
                    return select
                if self.compare(less, self.of_arc(less), self.of_duckdb(less)):
                    select, is_shorter = less, True
                    break
        return select


Round.visit = Visit


def wait_for_merges(server: Server) -> None:
    """Returns once compaction has nothing to do any more."""
    idle = 0
    while idle < 3:
        time.sleep(0.02)
        status = json.loads(server.request("GET", "/api/v1/compaction/status")[1])
        idle = 0 if status["manager"]["active_jobs"] else idle + 1


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    return Round(options).report()


if __name__ == "__main__":
    sys.exit(main())
