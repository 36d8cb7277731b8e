"""What expressions of SQL are made of: kinds, constants, and a text for each of two engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# The kinds, and of what kinds else a value may be where one of this kind is asked for.
KINDS = {
    "small": ("small",),
    "int": ("int", "small"),
    "uint": ("uint",),
    "nice": ("nice",),
    "float": ("float", "nice"),
    "text": ("text",),
    "bool": ("bool",),
    "time": ("time",),
}

TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b",
    "Bb",
    "zz",
    "12",
    "-7",
    "it's",
    "a%b",
    "a_b",
    " x ",
    "é",
    "日本",
    "true",
    "null",
    "x" * 300,
)
HOSTS = ("a", "b", "c", "d e", "é", "日本")
REGIONS = ("eu", "us", "it's")
PATTERNS = ("%", "a%", "%b", "%a%", "_", "__", "a_b", "%\\%%", "", "A%", "%é%")
WIDTHS = (
    "90 seconds",
    "15 minutes",
    "1 hour",
    "7 hours",
    "1 day",
    "36 hours",
    "1 week",
    "10 days",
    "1 month",
    "3 months",
    "1 year",
)
ORIGINS = ("2000-01-01 00:00:00", "1969-12-31 12:34:56", "2030-05-05 05:05:05")
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "hour", "minute", "second")
LARGEST = 9_223_372_036_854_775_807
INTEGERS = (-LARGEST - 1, -LARGEST, -(2**53) - 1, -1, 0, 1, 7, 2**53 + 1, LARGEST - 1, LARGEST)
FLOATS = (
    0.0,
    -0.0,
    0.1,
    -0.1,
    1.5,
    -1.5,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    1e15,
    2.0**53,
)


@dataclass(frozen=True)
class Expr:
    """An expression in both dialects."""

    kind: str
    arc: str
    duck: str
    # Those it is made of, for a shorter statement.
    parts: tuple[Expr, ...] = ()
    # Whether its last bits depend on the order in which something is summed.
    is_rough: bool = False
    # Known differences that it may meet.
    marks: frozenset[str] = frozenset()


def make(
    kind: str, template: str, *parts: Expr, duck: str = "", is_rough: bool = False, marks: Iterable[str] = ()
) -> Expr:
    """Puts parts into a template, of which DuckDB may have its own."""
    all_marks = frozenset(marks).union(*(part.marks for part in parts))
    arc = template.format(*(part.arc for part in parts))
    other = (duck or template).format(*(part.duck for part in parts))
    return Expr(kind, arc, other, parts, is_rough or any(part.is_rough for part in parts), all_marks)


def same(kind: str, text: str) -> Expr:
    return Expr(kind, text, text)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def float_literal(value: float) -> Expr:
    """Both take a number with an exponent for a DOUBLE."""
    text = f"{value!r}"
    return same("float", text if "e" in text else text + "e0")
