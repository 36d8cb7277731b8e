"""Ways to ask for the same rows, and what is wrong where they do not agree."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Optional, Union

import comparison
from comparison import Answer
from statements import Select, Source
from terms import Expr


class Refused(Exception):
    """The server does not answer a statement."""


@dataclass(frozen=True)
class Way:
    """One way to ask for rows: statements whose rows are taken together."""

    statements: tuple[str, ...]
    # Values for placeholders.
    params: Optional[dict[str, Any]] = None
    # In what format the answer comes.
    form: str = "arrow"
    # How many columns are keys, and what makes one value of several in each column behind them.
    fold: Optional[tuple[int, tuple[str, ...]]] = None
    # Whether the last column is a condition: only the rows of which it is true count, and it is left out.
    is_tested: bool = False
    # Which of the rows: from here, to there.
    cut: tuple[int, Optional[int]] = (0, None)
    # Statements that change data, before and after.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def text(self) -> str:
        statements = "\n      and ".join((*self.before, *self.statements))
        marks = [self.form] if self.form != "arrow" else []
        marks += [json.dumps(self.params)] if self.params is not None else []
        marks += ["by key"] if self.fold else []
        marks += ["those whose last column is true"] if self.is_tested else []
        marks += [f"rows {self.cut[0]} to {self.cut[1]}"] if self.cut[1] is not None else []
        return statements + (f" ({', '.join(marks)})" if marks else "")


def way(*statements: str, **others: Any) -> Way:
    return Way(statements, **others)


Given = Union[Answer, Refused]
Ask = Callable[[Way], Given]
Ways = Callable[[Select], Optional[list[Way]]]


@dataclass
class Case:
    """A statement, and how it is asked in several ways. A statement made shorter may have none."""

    law: str
    select: Select
    ways: Ways
    is_ordered: bool = False
    layouts: set[str] = field(default_factory=set)

    def ask(self, ask: Ask) -> tuple[str, list[tuple[str, Given]]]:
        """Says what is wrong, or nothing, and what was given to whom."""
        ways = self.ways(self.select) or []
        given = [(one.text(), ask(one)) for one in ways]
        wrong = ""
        for _, other in given[1:]:
            wrong = wrong or self.compare(given[0][1], other)
        return wrong, given

    def compare(self, one: Given, other: Given) -> str:
        for given in (one, other):
            if isinstance(given, Refused) and not str(given).startswith("4"):
                return "no answer"
        if isinstance(one, Refused) or isinstance(other, Refused):
            said = [str(given) for given in (one, other) if isinstance(given, Refused)]
            may = len(said) == 2 or any(reason in said[0] for reason in ONE_SIDED)
            return "" if may else "only one of them is refused"
        for place, (kind, wanted) in enumerate(zip(one.kinds, other.kinds)):
            if kind != wanted and "null" not in (kind, wanted):
                return f"column {place} is {kind} and {wanted}"
        if self.is_ordered:
            return "" if one.rows == other.rows else "rows differ, or their order"
        rough = [item.is_rough for item in self.select.items] + [False] * len(one.kinds)
        return "" if comparison.same_rows(one.rows, other.rows, rough[: len(one.kinds)]) else "rows differ"

    def shorter(self) -> Iterator[Case]:
        return (replace(self, select=select) for select in self.select.shorter() if self.ways(select))


# What one way may be refused for and another one not: it depends on which rows or sums are computed.
ONE_SIDED = {
    "does not fit into": "a sum of all rows may be too large where those of parts are not",
    "verflow": "so may what is computed of rows that another order of conditions leaves out",
    "ivide by zero": "the same",
    "Cannot cast": "the same",
    "require unique expression names": "a cast and its column in GROUP BY: DataFusion's",
    "Aggregate functions are not allowed in the WHERE": "an aggregate of HAVING in a subquery there: DataFusion's",
    "Expected: ), found": "the parser takes ROLLUP ((a) IS NULL) for a list of one",
}

# Refusals that are not mended yet. Who mends one takes it from here.
TO_BE_MENDED = {
    "not supported for Null": "types of placeholders",
    "Conflicting types for id": "types of placeholders",
    "does not satisfy order requirements": "a column twice in a union",
    "not supported: GroupingSet": "placeholders in ROLLUP",
    "No field named": "placeholders in ROLLUP",
    "IN (SELECT …) as a value: it can": "IN (SELECT …) as a value",
    "EXISTS as a value: it can": "EXISTS as a value",
    "time_bucket: the bucket of a time begins": "time_bucket within days of the first time",
    "invalid digit found": "a float in an ORDER BY of an aggregate",
}


class LayoutCase(Case):
    """The same statement, of the same rows wherever they lie."""

    reference: Optional[Given] = None
    shown = ""

    def ask(self, ask: Ask) -> tuple[str, list[tuple[str, Given]]]:
        if self.reference is None:
            self.shown = self.select.text("arc", is_reference=True)
            self.reference = ask(way(self.shown))
        text = self.select.text("arc")
        given = ask(way(text))
        both_given = [(f"in another layout before: {self.shown}", self.reference), (text, given)]
        if isinstance(given, Refused) or isinstance(self.reference, Refused):
            return self.compare(self.reference, given), both_given
        rough = [item.is_rough for item in self.select.items]
        one = self.select
        wrong = comparison.compare(given, self.reference, len(rough), one.key_places(), one.limit, one.offset, rough)
        return wrong, both_given

    def shorter(self) -> Iterator[Case]:
        return iter(())


COLUMNS = {
    "host": "TEXT",
    "region": "TEXT",
    "n": "BIGINT",
    "f": "DOUBLE",
    "x": "DOUBLE",
    "i": "BIGINT",
    "j": "BIGINT",
    "u": "BIGINT UNSIGNED",
    "b": "BOOLEAN",
    "s": "TEXT",
    "t2": "TIMESTAMP",
}


class DeleteCase(Case):
    """A table with rows of another one, of which some are deleted: the rows that a SELECT has found before."""

    numbers = itertools.count()

    def __init__(self, law: str, condition: Expr, keys: tuple[str, ...], is_flushed: bool) -> None:
        super().__init__(law, Select((condition,), Source("", "")), lambda _: [])
        self.condition, self.keys, self.is_flushed = condition, keys, is_flushed
        self.table = ""
        self.given: list[tuple[str, Given]] = []

    def begin(self, ask: Ask) -> None:
        self.table = f"d{next(self.numbers)}"
        key = f", PRIMARY KEY ({', '.join(self.keys)}, time)" if self.keys else ""
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        create = f"CREATE TABLE {self.table} (time TIMESTAMP, {columns}{key})"
        names = f"time, {', '.join(COLUMNS)}"
        insert = f"INSERT INTO {self.table} ({names}) SELECT {names} FROM e"
        text = self.condition.arc
        kept = f"SELECT * FROM {self.table} WHERE NOT ({text}) OR ({text}) IS NULL"
        flush = ("flush",) if self.is_flushed else ()
        self.given = [(one.text(), ask(one)) for one in [way(kept, before=(create, insert, *flush))]]
        counted = way(f"SELECT count(*) FROM {self.table} WHERE {text}")
        self.given.append((counted.text(), ask(counted)))
        deleted = way(f"delete {self.table} {text}")
        self.given.append((deleted.text(), ask(deleted)))

    def ask(self, ask: Ask) -> tuple[str, list[tuple[str, Given]]]:
        if not self.table:
            self.begin(ask)
        rest = way(f"SELECT * FROM {self.table}")
        given = [*self.given, (rest.text(), ask(rest))]
        wrong = self.compare(given[0][1], given[3][1]) or self.compare(given[1][1], given[2][1])
        return wrong, given

    def shorter(self) -> Iterator[Case]:
        for part in self.condition.parts:
            if part.kind == "bool":
                yield DeleteCase(self.law, part, self.keys, self.is_flushed)
