#!/usr/bin/env python3
"""Asks Arc what SQLite's sqllogictest asks, and compares its answers with those in the files.

    python scripts/reliability/logictests.py                        a share of the queries
    python scripts/reliability/logictests.py --all --processes 2    all of them, for hours
    python scripts/reliability/logictests.py --files evidence --all those of some files

SQLite runs what changes the state, in memory. Before a query, its tables are registered with Arc as
frames, and its views are written out as common table expressions. Arc gets every query that SQLite
gets, those for SQLite alone included. An answer or a refusal that differs is in `DESIGN` or
`TO_BE_MENDED`; any other is printed, and the program ends with status 1.
"""

from __future__ import annotations

import argparse
import collections
import fractions
import functools
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import arc
import duckdb
import pyarrow as pa
from logic_records import Query, Statement, is_expected, records, values_of

ARTIFACT, VERSION = "net.hydromatic:sql-logic-test", "0.3"
GET = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:get"
ENGINE = "sqlite"
"""The engine for which `skipif` and `onlyif` choose."""

TYPES = {"INTEGER": pa.int64(), "FLOAT": pa.float64()}
"""The types of columns by their declaration; all others are text."""
BRANCHES = r"\b(?:NULLIF|COALESCE|CASE)\b.*/|/.*\b(?:NULLIF|COALESCE|CASE)\b"
"""What has one type for all of its values, beside a division, which depends on that type."""

TYPED = (
    "SET integer_division = true",
    # With the common type of both, as in PostgreSQL.
    """CREATE MACRO nullif(one, other) AS
       CASE WHEN one = other THEN NULL WHEN false THEN other ELSE one END""",
)
"""Statements that let DuckDB divide and type as Arc does."""

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
HEAD_OF_VIEW = re.compile(r"\s*CREATE\s+(?:TEMP\w*\s+)?VIEW\s+\w+\s+AS\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    """A known difference: patterns of Arc's error, of the statement and of SQLite's own error.

    Without a pattern of an error, that engine has to answer. `check` is the name of a method of
    `Visit` that has to agree as well.
    """

    reason: str
    error: str = "^$"
    sql: str = ""
    sqlite: str = "^$"
    check: str = ""

    def covers(self, error: str, sql: str, sqlite: str) -> bool:
        return (
            re.search(self.error, error) is not None
            and re.search(self.sql, sql, re.IGNORECASE) is not None
            and re.search(self.sqlite, sqlite) is not None
        )


DESIGN = (
    Rule("a column that is not in GROUP BY", "must appear in the GROUP BY clause"),
    Rule("a division by zero", "^Divide by zero error", "/", check="has_null"),
    Rule("`+` before text", r"Unary operator '\+' only supports numeric"),
    Rule("`sum` and `avg` of text", r"No function matches .* '(?:sum|avg)\(Utf8\)'"),
    Rule("text or bytes beside numbers", r"Cannot cast string '\w+' to value of Int64"),
    Rule("text or bytes beside numbers", "expr type Binary can't cast to Int64 in InSubquery"),
    Rule("`IN ()`", r"sql parser error: Expected: an expression, found: \)", r"\bIN \(\)"),
    Rule("`IN table`", r"sql parser error: Expected: \(, found: t\d", r"\bIN t\d"),
    Rule("`NOT INDEXED`", "sql parser error: .*found: INDEXED", "NOT INDEXED"),
    Rule("`total` and `group_concat`", "Invalid function '(?:total|group_concat)'"),
    Rule("a sum that fits, of which a part does not", sqlite="^integer overflow$", sql="sum"),
    Rule("an integer that is a float beside one", sql=BRANCHES, check="is_of_duckdb"),
)
"""Differences by design. docs/reliability.md has them, too."""

TO_BE_MENDED = (
    Rule("a correlated subquery that compares by order", "compared with the row outside by more than ="),
    Rule("`IN (SELECT …)` or `EXISTS` as a value", r"(?:IN \(SELECT …\)|EXISTS) as a value: it can"),
)
"""Defects that are known. The commit that mends one takes it from here."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", default="", help="only files whose name matches this pattern")
    parser.add_argument("--share", type=fractions.Fraction, default=fractions.Fraction(1, 100))
    parser.add_argument("--all", action="store_true", help="every query, not a share of them")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of queries")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--differences", type=int, default=20, help="print at most so many")
    parser.add_argument("--strict", action="store_true", help="report what is to be mended, too")
    return parser.parse_args()


def archive() -> pathlib.Path:
    """Returns the jar of the tests: that of SQL_LOGIC_TEST, or Maven's, which fetches it.

    Exit status 77: there is none, and none to be had.
    """
    if named := os.environ.get("SQL_LOGIC_TEST"):
        return pathlib.Path(named)
    folder = (
        pathlib.Path.home() / ".m2/repository" / ARTIFACT.translate({46: "/", 58: "/"}) / VERSION
    )
    jar = folder / f"sql-logic-test-{VERSION}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            print(f"neither {jar.name} nor Maven is here; SQL_LOGIC_TEST names a jar")
            sys.exit(77)
        command = ["mvn", "-q", "-B", GET, f"-Dartifact={ARTIFACT}:{VERSION}", "-Dtransitive=false"]
        if subprocess.run(command, timeout=300, check=False).returncode != 0 or not jar.exists():
            print(f"Maven cannot fetch {ARTIFACT}:{VERSION}")
            sys.exit(77)
    return jar


Answer = list[str] | str
"""Values in the order in which they are compared, or an error."""


@dataclass
class Tally:
    """The outcome of some files."""

    files: int = 0
    statements: int = 0
    queries: int = 0
    differences: int = 0
    known: collections.Counter[str] = field(default_factory=collections.Counter)

    def add(self, other: Tally) -> None:
        self.files += other.files
        self.statements += other.statements
        self.queries += other.queries
        self.differences += other.differences
        self.known += other.known

    def summary(self) -> str:
        equal = self.queries - self.known.total() - self.differences
        return (
            f"{self.files} files, {self.statements} statements, {self.queries} queries: {equal} "
            f"equal, {self.known.total()} known differences, {self.differences} others"
        )

    def text(self) -> str:
        lines = [self.summary()]
        for title, rules in (("by design", DESIGN), ("to be mended", TO_BE_MENDED)):
            reasons = dict.fromkeys(rule.reason for rule in rules)
            lines += [f"  {title}: {self.known[reason]} {reason}" for reason in reasons]
        return "\n".join(lines)


class State:
    """The tables and views of one file: in SQLite, and in Arc once a query names them."""

    def __init__(self, engine: arc.Engine) -> None:
        self.engine = engine
        self.sqlite = sqlite3.connect(":memory:", isolation_level=None)
        self.is_changed = False
        self.stale: set[str] = set()
        self.views: dict[str, str] = {}

    def close(self) -> None:
        self.sqlite.close()

    def run(self, statement: Statement) -> str:
        """Runs a statement in SQLite; returns the problem if its outcome is not as expected."""
        self.is_changed = True
        try:
            self.sqlite.execute(statement.sql)
        except sqlite3.Error as error:
            return "" if statement.is_error else f"SQLite refuses it: {error}"
        return "SQLite accepts it" if statement.is_error else ""

    def ask_sqlite(self, query: Query) -> Answer:
        """Returns SQLite's values for a query, or its error."""
        try:
            return values_of(self.sqlite.execute(query.sql).fetchall(), query)
        except sqlite3.Error as error:
            return str(error)

    def ask_arc(self, query: Query) -> Answer:
        """Returns Arc's values for a query, or its error."""
        if self.is_changed:
            self.read_names()
        sql = self.with_views(query.sql)
        for name in self.stale.intersection(words(sql)):
            self.engine.register(name, self.frame(name))
            self.stale.discard(name)
        try:
            return values_of(self.engine.sql("logictest", sql).fetchall(), query)
        except arc.Error as error:
            return str(error)

    def ask_duckdb(self, query: Query) -> Answer:
        """Returns DuckDB's values for a query, or its error."""
        with duckdb.connect() as duck:
            for statement in TYPED:
                duck.execute(statement)
            sql = self.with_views(query.sql)
            for (name,) in self.sqlite.execute(TABLES):
                duck.register(name, self.frame(name))
            try:
                return values_of(duck.execute(sql).fetchall(), query)
            except duckdb.Error as error:
                return str(error)

    def read_names(self) -> None:
        """Reads which tables and views there are now; frames of before are stale."""
        objects = self.sqlite.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        self.stale = {name for type_, name, _ in objects if type_ == "table"}
        self.views = {
            name: HEAD_OF_VIEW.sub("", sql) for type_, name, sql in objects if type_ == "view"
        }
        self.is_changed = False

    def frame(self, table: str) -> pa.Table:
        columns = self.sqlite.execute(f"PRAGMA table_info({table})").fetchall()
        rows = self.sqlite.execute(f"SELECT * FROM {table}").fetchall()
        values = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = [
            pa.array(cells, TYPES.get(type_, pa.string()))
            for (_, _, type_, *_), cells in zip(columns, values, strict=True)
        ]
        return pa.table(arrays, names=[name for _, name, *_ in columns])

    def with_views(self, sql: str) -> str:
        """Returns a query with each view that it needs in front, those they need before them."""
        expressions: dict[str, str] = {}

        def add(text: str) -> None:
            for name in words(text):
                if name in self.views and name not in expressions:
                    add(self.views[name])
                    expressions[name] = f"{name} AS ({self.views[name]})"

        add(sql)
        return f"WITH {', '.join(expressions.values())} {sql}" if expressions else sql


def words(sql: str) -> list[str]:
    return re.findall(r"\w+", sql)


class Visit:
    """One file: its records, and how Arc answers its queries."""

    def __init__(self, engine: arc.Engine, file: str, options: argparse.Namespace) -> None:
        self.file, self.options = file, options
        self.state = State(engine)
        self.tally = Tally(files=1)
        self.random = random.Random(f"{options.seed} {file}")

    def run(self, text: str) -> Tally:
        for record in records(text, ENGINE):
            if isinstance(record, Statement):
                self.tally.statements += 1
                if problem := self.state.run(record):
                    self.report(record.sql, problem)
            elif self.options.all or self.random.random() < self.options.share:
                self.tally.queries += 1
                self.compare(record)
        self.state.close()
        return self.tally

    def compare(self, query: Query) -> None:
        given = self.state.ask_arc(query)
        if isinstance(given, list) and is_expected(given, query.expected):
            return
        theirs = self.state.ask_sqlite(query)
        # A query that fails has no answer in the file.
        if isinstance(given, str) and isinstance(theirs, str) and not query.expected:
            return
        if reason := self.known(query, given, theirs):
            self.tally.known[reason] += 1
            return
        lines = [f"{query.types} {query.sort}"]
        answers = {"expected": list(query.expected), "Arc": given, "SQLite here": theirs}
        for name, answer in answers.items():
            lines.append(f"  {name}: {answer[:40] if isinstance(answer, list) else answer[:1_000]}")
        self.report(query.sql, "\n".join(lines))

    def known(self, query: Query, given: Answer, theirs: Answer) -> str:
        """Returns why an answer differs, if that is known and SQLite's is as expected."""
        if isinstance(theirs, list) and not is_expected(theirs, query.expected) and query.expected:
            return ""
        error, their_error = (one if isinstance(one, str) else "" for one in (given, theirs))
        for rule in DESIGN if self.options.strict else DESIGN + TO_BE_MENDED:
            if not rule.covers(error, query.sql, their_error):
                continue
            if not rule.check or getattr(self, rule.check)(query, given, theirs):
                return rule.reason
        return ""

    def has_null(self, query: Query, given: Answer, theirs: Answer) -> bool:
        """Returns whether SQLite has null for what Arc refuses, or no rows because of it."""
        return not theirs or "NULL" in theirs

    def is_of_duckdb(self, query: Query, given: Answer, theirs: Answer) -> bool:
        return self.state.ask_duckdb(query) == given

    def report(self, sql: str, problem: str) -> None:
        self.tally.differences += 1
        if self.tally.differences <= self.options.differences:
            print(f"DIFFERENCE {self.file}: {sql}\n  {problem}", flush=True)


def run(options: argparse.Namespace, jar: pathlib.Path, files: list[str]) -> Tally:
    """Runs some files one after the other, with an engine of their own."""
    tally = Tally()
    with (
        zipfile.ZipFile(jar) as texts,
        tempfile.TemporaryDirectory(prefix="arc-logictests-") as folder,
        arc.open(folder) as engine,
    ):
        engine.replacement_scans = False
        for file in files:
            tally.add(Visit(engine, file, options).run(texts.read(file).decode()))
            if tally.files % 100 == 0:
                print(tally.summary(), flush=True)
    return tally


def main() -> int:
    options = arguments()
    jar, tally, began = archive(), Tally(), time.monotonic()
    with zipfile.ZipFile(jar) as texts:
        names = sorted(name for name in texts.namelist() if name.endswith(".test"))
    files = [name for name in names if re.search(options.files, name)]
    share = "all queries" if options.all else f"seed {options.seed}, share {options.share}"
    print(f"{len(files)} of {len(names)} files, {share}", flush=True)
    parts = [files[place :: options.processes] for place in range(options.processes)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        for part in pool.map(functools.partial(run, options, jar), parts):
            tally.add(part)
    print(f"{tally.text()}\n{tally.queries / (time.monotonic() - began):.0f} queries a second")
    return 1 if tally.differences or not tally.queries else 0


if __name__ == "__main__":
    sys.exit(main())
