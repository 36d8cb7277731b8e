"""Whether two answers are the same: by rows, ties, types, and the rounding of sums."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any, Optional

import pyarrow as pa

# Sums of these many numbers, in another order, differ by no more than this share. Checked against
# what is computed in the last place: 300 numbers lose some 300 times 2^-53 at most, 12,000 of them 12,000 times.
ROUNDING = 1e-11

Cell = Any
Rows = list[tuple[Cell, ...]]


def kind_of(type_: pa.DataType) -> str:
    """Engines give integers, texts and times of other sizes; what they are has to be the same."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return "integer"
    if pa.types.is_floating(type_):
        return "float"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "text"
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_timestamp(type_):
        return "time"
    if pa.types.is_map(type_):
        return "map"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_list_view(type_):
        return "list"
    return str(type_)


def cells(column: pa.ChunkedArray) -> list[Cell]:
    """The values of a column, so that those that are equal in SQL are equal here."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]
        return [None if value is None else value * scale for value in column.cast(pa.int64()).to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def plain(value: Cell) -> Cell:
    if isinstance(value, float):
        # One NaN, and one zero.
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, list):
        return tuple(plain(one) for one in value)
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    return value


class Answer:
    """Rows and types of a table of Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self.types = [str(field.type) for field in table.schema]
        self.kinds = [kind_of(field.type) for field in table.schema]
        columns = [cells(table.column(place)) for place in range(table.num_columns)]
        self.rows: Rows = list(zip(*columns)) if columns else []

    def text(self, first: int = 0, count: int = 12) -> str:
        rows = "\n".join(f"    {row!r}" for row in self.rows[first : first + count])
        return f"  {len(self.rows)} rows of ({', '.join(self.types)})\n{rows}"


def sort_key(row: tuple[Cell, ...]) -> tuple[Any, ...]:
    def key(cell: Any) -> tuple[Any, ...]:
        if isinstance(cell, (int, float)):
            return (True, "", cell)
        # Lists and structures may have nulls inside.
        return (cell is not None, type(cell).__name__, sort_key(cell) if isinstance(cell, tuple) else cell)

    return tuple(key(cell) for cell in row)


def close(one: Cell, other: Cell) -> bool:
    if one == other:
        return True
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        return False
    if math.isinf(one) or math.isinf(other):
        return False
    return abs(one - other) <= ROUNDING * max(abs(one), abs(other), 1e-3)


def same_rows(given: Rows, expected: Rows, rough: list[bool]) -> bool:
    """Whether two bags of rows are equal, but for the rounding of some columns."""
    if len(given) != len(expected):
        return False
    if not any(rough):
        return Counter(given) == Counter(expected)
    order = [place for place, one in enumerate(rough) if not one] + [place for place, one in enumerate(rough) if one]
    ours, theirs = (
        sorted(rows, key=lambda row: sort_key(tuple(row[place] for place in order))) for rows in (given, expected)
    )
    return all(
        close(one, other) if is_rough else one == other
        for row, wanted in zip(ours, theirs)
        for one, other, is_rough in zip(row, wanted, rough)
    )


def within(given: Rows, expected: Rows, rough: list[bool]) -> bool:
    """Whether each row is one of those expected, and not more often."""
    if not any(rough):
        return not Counter(given) - Counter(expected)
    left = list(expected)
    for row in given:
        place = next((place for place, other in enumerate(left) if same_rows([row], [other], rough)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def compare(
    given: Answer, reference: Answer, width: int, keys: list[int], limit: Optional[int], offset: int, rough: list[bool]
) -> str:
    """Says what is wrong with an answer, or nothing.

    The reference has all rows, without LIMIT, and sort keys behind its first `width` columns. Rows that are equal in all `keys`
    may come in any order, and a LIMIT that ends among them may take any of them.
    """
    if len(given.kinds) != width:
        return f"{len(given.kinds)} columns, not {width}"
    for place, (kind, wanted) in enumerate(zip(given.kinds, reference.kinds)):
        if kind != wanted and "null" not in (kind, wanted):
            return f"column {place} is {kind}, not {wanted}"
    total = len(reference.rows)
    end = total if limit is None else min(total, offset + limit)
    first = min(offset, end)
    if len(given.rows) != end - first:
        return f"{len(given.rows)} rows, not {end - first}"
    begin = 0
    while begin < end:
        after = begin + 1
        key = tuple(reference.rows[begin][place] for place in keys)
        while after < total and tuple(reference.rows[after][place] for place in keys) == key:
            after += 1
        ours = given.rows[max(begin, first) - first : max(min(after, end) - first, 0)]
        peers = [row[:width] for row in reference.rows[begin:after]]
        is_whole = len(ours) == len(peers)
        if ours and not (same_rows(ours, peers, rough) if is_whole else within(ours, peers, rough)):
            return f"rows {max(begin, first)} to {min(after, end)} differ"
        begin = after
    return ""
