"""Rows of Python's values, of a table in memory. Needs no other library."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

from arc._arc import Table

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    """Returns the rows as tuples.

    Times are ``datetime``, which has no digits below the microsecond: ``arrow()``, ``df()``, ``pl()`` and ``numpy()`` keep them.
    """
    columns = [
        convert(type_, values) for type_, values in zip(table.schema.types, table.columns())
    ]
    return list(zip(*columns)) if columns else [()] * len(table)


def convert(type_: str, values: list[Any]) -> list[Any]:
    """Returns the values of a column as Python has them."""
    conversion = conversion_of(type_)
    if conversion is None:
        return values
    return [None if value is None else conversion(value) for value in values]


def conversion_of(type_: str) -> Callable[[Any], Any] | None:
    """Returns what makes Python's value of a plain one, by the Arrow type of its column; ``None`` if it is one already."""
    name, _, rest = type_.partition("(")
    if name == "Timestamp":
        unit, _, zone = rest.rstrip(")").partition(", ")
        return timestamp(UNITS[unit.strip()], zone.strip().strip('"'))
    if name == "Date32":
        return lambda days: date(1970, 1, 1) + timedelta(days=days)
    if name == "Date64":
        return lambda milliseconds: date(1970, 1, 1) + timedelta(milliseconds=milliseconds)
    if name == "Duration":
        scale = UNITS[rest.rstrip(")")]
        return lambda count: timedelta(microseconds=count * scale // 1_000)
    if name in ("Time32", "Time64"):
        scale = UNITS[rest.rstrip(")")]
        return lambda count: (datetime.min + timedelta(microseconds=count * scale // 1_000)).time()
    return Decimal if name.startswith("Decimal") else None


def timestamp(scale: int, zone: str) -> Callable[[int], datetime]:
    """Returns what makes times of counts since 1970."""
    place = zone_of(zone) if zone and zone != "None" else None
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)

    def convert_one(count: int) -> datetime:
        at = epoch + timedelta(microseconds=count * scale // 1_000)
        return at.replace(tzinfo=None) if place is None else at.astimezone(place)

    return convert_one


def zone_of(name: str) -> tzinfo:
    """Returns a zone by its name or its offset."""
    if name in ("UTC", "Z", "+00:00"):
        return timezone.utc
    if name[:1] in "+-":
        hours, minutes = int(name[1:3]), int(name[-2:])
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if name[0] == "-" else offset)
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def python_type(type_: str) -> type:
    """Returns the type of the values that a column gives, for ``description``."""
    name = type_.partition("(")[0]
    if name == "Dictionary":
        name = type_.rstrip(")").rpartition(", ")[2]
    for beginning, known in (("Decimal", Decimal), ("Float", float), ("UInt", int), ("Interval", str)):
        if name.startswith(beginning):
            return known
    return VALUES.get(name, object)


VALUES: dict[str, type] = {
    **dict.fromkeys(("Utf8", "LargeUtf8", "Utf8View"), str),
    **dict.fromkeys(("Binary", "LargeBinary", "BinaryView", "FixedSizeBinary"), bytes),
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64"), int),
    **dict.fromkeys(("List", "LargeList", "FixedSizeList"), list),
    **dict.fromkeys(("Date32", "Date64"), date),
    **dict.fromkeys(("Time32", "Time64"), time),
    **{"Timestamp": datetime, "Boolean": bool, "Duration": timedelta, "Struct": dict, "Null": type(None)},
}
