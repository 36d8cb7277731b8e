"""The file format of SQLite's sqllogictest: records, the values of an answer as text, and hashes.

The format is that of `about.wiki` in SQLite's repository `sqllogictest`. Never runs a statement.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
UNPRINTABLE = re.compile(r"[^ -~]")
LEADING_INTEGER = re.compile(r"\s*([+-]?\d+)")

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """A statement that succeeds, or fails if `is_error`."""

    sql: str
    is_error: bool


@dataclass(frozen=True)
class Query:
    """A query with its answer: values as text, or their number and hash.

    `types` has a letter for each column: `I`, `R` or `T`. `sort` is `nosort`, `rowsort` or
    `valuesort`.
    """

    sql: str
    types: str
    sort: str
    expected: tuple[str, ...]


def applies(line: str, engine: str) -> bool:
    """Returns whether a line such as `skipif mysql # DIV` lets `engine` have its record."""
    condition, name = line.split()[:2]
    return (name == engine) == (condition == "onlyif")


def records(text: str, engine: str) -> Iterator[Statement | Query]:
    """Yields the records of a file that are for `engine`, up to its end or to `halt`."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        while lines and lines[0].startswith(("skipif ", "onlyif ")):
            if not applies(lines.pop(0), engine):
                lines = []
        if not lines or lines[0].startswith("hash-threshold"):
            continue
        if lines[0].startswith("halt"):
            return
        yield record(lines)


def record(lines: list[str]) -> Statement | Query:
    words = lines[0].split()
    if words[0] == "statement":
        return Statement("\n".join(lines[1:]), words[1] == "error")
    if words[0] != "query":
        raise ValueError(f"a record begins with {lines[0]!r}")
    end = lines.index("----") if "----" in lines else len(lines)
    return Query("\n".join(lines[1:end]), words[1], words[2], tuple(lines[end + 1 :]))


def text_of(value: Any, type_: str) -> str:
    """Returns a value as the test's own program prints it, with SQLite's conversions."""
    if value is None:
        return "NULL"
    try:
        if type_ == "I":
            return str(integer_of(value))
        if type_ == "R":
            return f"{float(value):.3f}"
    except (ValueError, OverflowError):
        # No number: the test expects none.
        return str(value)
    if isinstance(value, float):
        short = f"{value:.15g}"
        value = short if re.search("[.en]", short) else f"{short}.0"
    elif isinstance(value, bool):
        value = int(value)
    return UNPRINTABLE.sub("@", str(value)) or "(empty)"


def integer_of(value: Any) -> int:
    if isinstance(value, str):
        found = LEADING_INTEGER.match(value)
        return int(found[1]) if found else 0
    return int(value)


def values_of(rows: list[Row], query: Query) -> list[str]:
    """Returns the values of an answer as text, in the order in which they are compared."""
    # Columns beyond those of the file count, too.
    types = query.types.ljust(len(rows[0]) if rows else 0, "T")
    cells = [tuple(map(text_of, row, types)) for row in rows]
    if query.sort == "rowsort":
        cells.sort()
    values = [value for row in cells for value in row]
    return sorted(values) if query.sort == "valuesort" else values


def is_expected(values: list[str], expected: tuple[str, ...]) -> bool:
    if len(expected) == 1 and (hashed := HASHED.fullmatch(expected[0])):
        data = "".join(f"{value}\n" for value in values).encode()
        return len(values) == int(hashed[1]) and hashlib.md5(data).hexdigest() == hashed[2]
    return values == list(expected)
