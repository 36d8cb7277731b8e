"""A relation as a lazy frame of polars.

Conditions that SQL has the same meaning for become a part of the query; polars applies all of them once more, so that what
is left out here costs time and changes no answer.
"""

from __future__ import annotations

import _thread
import json
import math
import weakref
from collections.abc import Iterator
from time import sleep
from typing import TYPE_CHECKING, Any

from arc.relation import quoted

if TYPE_CHECKING:
    import polars

    from arc._arc import Table
    from arc.relation import Relation
    from arc.store import AnswerLike

COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
LOOK_EVERY = 0.1
"""Seconds between two looks for Ctrl-C."""
UNITS = {"Nanoseconds": 1, "Microseconds": 10**3, "Milliseconds": 10**6}


class Untranslated(Exception):
    """A part of a condition that has no SQL here."""


def lazy(relation: Relation) -> polars.LazyFrame:
    """Returns the rows of a relation as a lazy frame."""
    import polars
    from polars.io.plugins import register_io_source

    schema = polars.DataFrame(relation.limit(0).table()).schema
    floats = {name for name, type_ in schema.items() if type_.is_float()}

    def rows(
        with_columns: list[str] | None, predicate: polars.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        # Polars counts rows first: of a condition that comes before ``head`` it says no number.
        wanted, is_exact = relation if n_rows is None else relation.limit(n_rows), True
        if predicate is not None:
            condition, is_exact = condition_of(predicate, floats)
            wanted = wanted.filter(condition) if condition else wanted
        needed = with_columns
        if needed is not None and predicate is not None and not is_exact:
            needed = list(dict.fromkeys([*needed, *predicate.meta.root_names()]))
        if needed:
            wanted = wanted.select(*map(quoted, needed))
        for batch in interruptible(wanted):
            frame = polars.DataFrame(batch).cast({name: schema[name] for name in (needed or schema)})
            if predicate is not None and not is_exact:
                frame = frame.filter(predicate)
            if with_columns is not None:
                frame = frame.select(with_columns)
            yield frame

    return register_io_source(rows, schema=schema, validate_schema=False)


class Reading:
    """An answer that is being read."""

    __slots__ = ("answer", "__weakref__")

    def __init__(self, answer: AnswerLike) -> None:
        self.answer = answer


def interruptible(relation: Relation) -> Iterator[Table]:
    """Yields the rows part by part; Ctrl-C ends the wait for one of them.

    Polars reads on a thread of its own, where Python delivers no signals, and waits for it on the
    main thread without looking for them.
    """
    reading = Reading(relation._open())
    # Neither a `Thread` nor a `finally`: both run Python where polars drops this generator, on the
    # main thread. The signal would raise there, and be lost.
    _thread.start_new_thread(watch, (weakref.ref(reading),))
    while (batch := relation._store._read_next(reading.answer, relation.query)) is not None:
        yield batch


def watch(reading: weakref.ref[Reading]) -> None:
    """Ends an answer at Ctrl-C, which polars raises in each of its calls once a signal has come.

    Does not keep the answer alive, for its end is what frees the data directory.
    """
    import polars

    one = polars.Series([1])
    try:
        while reading() is not None:
            sleep(LOOK_EVERY)
            one.sum()
    except KeyboardInterrupt:
        found = reading()
        if found is not None:
            found.answer.cancel()


def condition_of(predicate: polars.Expr, floats: set[str]) -> tuple[str, bool]:
    """Returns a condition in SQL that every wanted row meets, and whether no other row does."""
    try:
        tree = json.loads(_serialized(predicate))
    except Exception:  # Of a form that this version of polars does not write.
        return "", False
    parts, is_exact = [], True
    for part in conjuncts(tree):
        try:
            parts.append(sql_of(part, floats))
        except (Untranslated, KeyError, TypeError, ValueError, IndexError, AttributeError):
            is_exact = False
    return " AND ".join(parts), is_exact


def _serialized(predicate: polars.Expr) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(predicate.meta.serialize(format="json"))


def conjuncts(tree: Any) -> list[Any]:
    """Returns the parts of which all have to be true."""
    binary = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if binary and binary["op"] in ("And", "LogicalAnd"):
        return conjuncts(binary["left"]) + conjuncts(binary["right"])
    return [tree]


def sql_of(tree: Any, floats: set[str]) -> str:
    """Returns a condition as SQL."""
    ((kind, body),) = tree.items()
    if kind == "BinaryExpr":
        operator = body["op"]
        if operator in ("And", "LogicalAnd", "Or", "LogicalOr"):
            word = "OR" if operator.endswith("Or") else "AND"
            return f"({sql_of(body['left'], floats)} {word} {sql_of(body['right'], floats)})"
        left, right = body["left"], body["right"]
        names = {side["Column"] for side in (left, right) if "Column" in side}
        if names & floats and operator != "Eq":
            # NaN is the greatest number of polars, and of SQL here, too; -0.0 and casts are left to polars all the same.
            raise Untranslated
        if len(names) != 1 or (not names & floats and any(is_float(side) for side in (left, right))):
            raise Untranslated
        return f"({operand(left)} {COMPARISONS[operator]} {operand(right)})"
    if kind == "Function":
        (name,) = [body["function"]] if isinstance(body["function"], str) else [next(iter(body["function"].values()))]
        if name in ("IsNull", "IsNotNull"):
            (value,) = body["input"]
            return f"({operand(value)} IS {'NOT ' if name == 'IsNotNull' else ''}NULL)"
    raise Untranslated


def is_float(tree: Any) -> bool:
    """Returns whether a side of a comparison is a number that may have a fraction."""
    return "Literal" in tree and "Float" in json.dumps(tree["Literal"])


def operand(tree: Any) -> str:
    """Returns a column or a value as SQL."""
    ((kind, body),) = tree.items()
    if kind == "Column":
        return quoted(body)
    if kind != "Literal":
        raise Untranslated
    while isinstance(body, dict) and next(iter(body)) in ("Dyn", "Scalar"):
        (body,) = body.values()
    ((type_, value),) = body.items()
    if type_ == "Datetime":
        count, unit, zone = value
        if zone not in ({"inner": "UTC"}, "UTC"):
            raise Untranslated
        return time_literal(count * UNITS[unit])
    if type_ in ("String", "Str", "StringOwned"):
        if "\0" in value:
            raise Untranslated
        return "'" + str(value).replace("'", "''") + "'"
    if type_ == "Boolean":
        return "TRUE" if value else "FALSE"
    if type_.startswith(("Int", "UInt")) and isinstance(value, int):
        return str(value)
    if type_.startswith("Float") and isinstance(value, (int, float)) and math.isfinite(value):
        return repr(float(value))
    raise Untranslated


def time_literal(nanoseconds: int) -> str:
    """Returns a time as SQL, to the nanosecond."""
    from datetime import timedelta

    from arc.columns import EPOCH

    at = EPOCH + timedelta(seconds=nanoseconds // 10**9)
    return f"TIMESTAMP '{at:%Y-%m-%dT%H:%M:%S}.{nanoseconds % 10**9:09d}Z'"
