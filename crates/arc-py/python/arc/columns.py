"""Columns of Python's values: which Arrow type holds all values of one, and who is to blame where none does.

Needs no other library. Called for parameters of statements, rows of a writer, lists of dicts and dicts of lists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

from arc._arc import Table
from arc.errors import InvalidInputError
from arc.unstorable import refuse_name, refuse_surrogates

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EXPECTED = "int, float, bool, str, bytes, datetime or None"
EXACT_INTEGERS = 2**53
"""Up to this every integer is a float as well."""


def kind_of(value: object) -> str:
    """Returns the kind of column that a value belongs into; ``""`` if there is none."""
    if value is None:
        return "null"
    kind = KINDS.get(type(value))
    if kind is not None:
        return kind
    for base, inherited in BASES:
        if isinstance(value, base):
            return inherited
    return "time" if type(value).__name__ == "datetime64" else ""


KINDS = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    bytes: "bytes",
    datetime: "time",
    date: "date",
    type(None): "null",
}
BASES = [(bool, "bool"), (int, "int"), (float, "float"), (str, "text"), (bytes, "bytes"), (datetime, "time"), (date, "date")]


def column(name: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Returns the kind of a column, and its values as that kind has them."""
    types = set(map(type, values))
    if any(type_.__module__ == "numpy" for type_ in types):
        values = [plain(value) for value in values]
    if any(type_.__name__ in ("NaTType", "NAType") for type_ in types):
        values = [None if type(value).__name__ in ("NaTType", "NAType") else value for value in values]
    firsts: dict[str, int] = {}
    for at, value in enumerate(values) if len(set(map(type, values))) > 1 else enumerate(values[:1]):
        kind = kind_of(value)
        if not kind:
            raise InvalidInputError(
                f"column {name!r} has a {type(value).__name__} in row {at}; {EXPECTED} was expected"
            )
        firsts.setdefault(kind, at)
    firsts.pop("null", None)
    kinds = frozenset(firsts)
    if not kinds:
        return "null", values
    if kinds == {"int"}:
        return integers(name, values)
    if kinds == {"int", "float"}:
        return "float", floats(name, values)
    if kinds <= {"time", "date"}:
        return "time", times(name, values)
    if len(kinds) > 1:
        (first, at), (second, then) = list(firsts.items())[:2]
        raise InvalidInputError(
            f"column {name!r} has values of two types: {type(values[at]).__name__} in row {at}, "
            f"{type(values[then]).__name__} in row {then}"
        )
    return next(iter(kinds)), values


def integers(name: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Returns integers as signed ones, or as unsigned ones where they need it."""
    present = [value for value in values if value is not None]
    least, most = min(present), max(present)
    if -(2**63) <= least and most < 2**63:
        return "int", values
    if least >= 0 and most < 2**64:
        return "uint", values
    at = values.index(most if most >= 2**63 else least)
    raise InvalidInputError(f"column {name!r} has an integer of more than 64 bits in row {at}: {values[at]}")


def floats(name: str, values: list[Any]) -> list[Any]:
    """Returns integers among floats as floats; refuses those that are none."""
    for at, value in enumerate(values):
        if isinstance(value, int) and abs(value) > EXACT_INTEGERS and int(float(value)) != value:
            raise InvalidInputError(f"column {name!r} has floats, and in row {at} an integer that is none: {value}")
    return values


def times(name: str, values: list[Any]) -> list[Any]:
    """Returns times as nanoseconds since 1970. One without a zone is UTC, as everywhere; not beside one that has a zone."""
    zones: dict[bool, int] = {}
    found: list[Any] = []
    for at, value in enumerate(values):
        if value is None or value != value:
            found.append(None)
            continue
        zones.setdefault(isinstance(value, datetime) and value.tzinfo is not None, at)
        if len(zones) > 1:
            raise InvalidInputError(
                f"column {name!r} has times with a zone (row {zones[True]}) and without one (row {zones[False]}); "
                "give all of them a zone, or none"
            )
        nanoseconds = time_ns(value)
        if not -(2**63) <= nanoseconds < 2**63:
            raise InvalidInputError(f"column {name!r} has a time outside of 1677 to 2262 in row {at}: {value}")
        found.append(nanoseconds)
    return found


def time_ns(value: Any) -> int:
    """Returns the nanoseconds from 1970 to a time, or to the first midnight of a date, however large a number that is."""
    if type(value).__name__ == "datetime64":
        return numpy_ns(value)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    if value.tzinfo is None:
        value = value.replace(tzinfo=timezone.utc)
    span = value - EPOCH
    # A time of pandas has three digits more.
    nanoseconds = int(getattr(value, "nanosecond", 0))
    if type(span) is not timedelta:
        span = timedelta(days=span.days, seconds=span.seconds, microseconds=span.microseconds)
    return (span.days * 86_400 + span.seconds) * 10**9 + span.microseconds * 1_000 + nanoseconds


UNITS_NS = {"W": 7 * 86_400 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1_000, "ns": 1}


def numpy_ns(value: Any) -> int:
    """Returns the nanoseconds from 1970 to a time of numpy, whose own conversions wrap around; what is finer is cut off."""
    import numpy

    unit, steps = numpy.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        value, unit, steps = value.astype("datetime64[D]"), "D", 1
    count = int(value.astype("int64")) * steps
    finer = {"ps": 10**3, "fs": 10**6, "as": 10**9}
    return count // finer[unit] if unit in finer else count * UNITS_NS[unit]


def plain(value: Any) -> Any:
    """Returns a scalar of numpy as Python's. A time stays, for Python's has no nanoseconds, and so does a span, which is no number."""
    if type(value).__module__ != "numpy":
        return value
    return value if type(value).__name__ in ("datetime64", "timedelta64") else value.item()


def of_columns(columns: Mapping[str, list[Any]], *, keep: Sequence[str] = ()) -> Table:
    """Returns a table of lists of one length. A column without a value is left out, but for those of ``keep``."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        first, *others = lengths.items()
        (name, length) = next(other for other in others if other[1] != first[1])
        raise InvalidInputError(f"columns have different lengths: {first[0]!r} has {first[1]} values, {name!r} {length}")
    built = []
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InvalidInputError(f"a name of a column is a {type(name).__name__}, str was expected: {name!r}")
        refuse_name(name)
        kind, values = column(name, values)
        if kind == "text":
            refuse_surrogates(name, values)
        if kind == "null" and not values and name in keep[:1]:
            kind = "time"
        if kind != "null" or name in keep:
            built.append((name, kind, values))
    return Table.build(built, next(iter(lengths.values()), 0))


def of_rows(rows: Iterable[Any], *, keep: Sequence[str] = ()) -> Table:
    """Returns a table of mappings, dataclasses or named tuples, one for each row. What a row does not have is null."""
    found: dict[str, list[Any]] = {}
    count = 0
    for count, row in enumerate(rows, 1):
        values = mapping(row, count - 1)
        for name in values:
            if name not in found:
                found[name] = [None] * (count - 1)
        for name, column_ in found.items():
            column_.append(values.get(name))
    return of_columns(found if count else {name: [] for name in keep}, keep=keep)


def mapping(row: Any, at: int) -> Mapping[str, Any]:
    """Returns a row as names with values."""
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    as_dict = getattr(row, "_asdict", None)
    if isinstance(row, tuple) and as_dict is not None:
        named: Mapping[str, Any] = as_dict()
        return named
    raise InvalidInputError(f"row {at} is a {type(row).__name__}; a dict, a dataclass or a named tuple was expected")


def of_parameters(params: Sequence[Any] | Mapping[str, Any]) -> Table:
    """Returns values for placeholders as a table of one row."""
    if isinstance(params, (str, bytes)) or not isinstance(params, (Sequence, Mapping)):
        raise TypeError(f"params must be a list for ? and $1, or a dict for $name, not {type(params).__name__}")
    named = params.items() if isinstance(params, Mapping) else ((f"${at}", value) for at, value in enumerate(params, 1))
    return Table.build([(name, *column(name, [value])) for name, value in named], 1)
