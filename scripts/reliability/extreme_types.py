"""Types of SQL and of Arrow at their ends, as text for `CAST` and `arrow_cast`.

Pure. Many are refused, as they should be: they have huge declared sizes, parts that no such type
may have, or too many levels.
"""

from __future__ import annotations

import random

SIZES = (0, 1, 2, 24, 1_000, 65_536, 65_537, 2**31 - 1)

SQL_TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "TINYINT UNSIGNED", "BIGINT UNSIGNED",
    "REAL", "FLOAT", "DOUBLE", "VARCHAR", "VARCHAR(2147483647)", "CHAR(0)", "TEXT", "STRING",
    "BYTEA", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP(0)", "TIMESTAMP(9)",
    "TIMESTAMP(12)", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "JSON", "UUID", "BIT(9)", "NUMERIC",
    "DECIMAL(1, 0)", "DECIMAL(38, 38)", "DECIMAL(76, 76)", "DECIMAL(38, -100)", "DECIMAL(0, 0)",
    "DECIMAL(255, 127)", "BIGINT[]", "BIGINT[][]", "BIGINT[0]", "BIGINT[1000]", "BIGINT[8192]",
    "BIGINT[90][90]", "BIGINT[2147483647]", "BIGINT[4294967296]", "BOOLEAN[65536]", "TEXT[65536]",
    "STRUCT<a BIGINT>", "STRUCT<a BIGINT[1000], b TEXT>", "MAP<TEXT, BIGINT>", "ARRAY<BIGINT>",
    "ARRAY<ARRAY<BIGINT>>", "INT ARRAY", "ENUM('a')", "UNION(a INT)",
)  # fmt: skip

LEAVES = (
    "Null", "Boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "Float16", "Float32", "Float64", "Utf8", "LargeUtf8", "Utf8View", "Binary", "LargeBinary",
    "BinaryView", "Date32", "Date64", "Time32(Second)", "Time32(ms)", "Time64(us)",
    "Time64(Nanosecond)", "Timestamp(s)", "Timestamp(Nanosecond, None)", "Timestamp(ns, \"UTC\")",
    "Timestamp(ms, \"+23:59\")", "Timestamp(us, \"Europe/Berlin\")", "Timestamp(s, \"Nowhere\")",
    "Duration(Second)", "Duration(ns)", "Interval(YearMonth)", "Interval(DayTime)",
    "Interval(MonthDayNano)", "Decimal32(9, 9)", "Decimal64(18, 0)", "Decimal128(38, 38)",
    "Decimal128(38, -128)", "Decimal128(255, 127)", "Decimal256(76, 76)", "Decimal256(76, -100)",
    # Time units that the type does not have.
    "Time32(Nanosecond)", "Time64(Second)",
)  # fmt: skip

OUTER = (
    "List({0})", "LargeList({0})", "ListView({0})", "LargeListView({0})",
    "FixedSizeList({size}, {0})", "FixedSizeList({size} x {0})", "Dictionary(Int8, {0})",
    "Dictionary(UInt64, {0})", "RunEndEncoded(\"run_ends\": Int32, \"values\": {0})",
    "RunEndEncoded(\"run_ends\": Utf8, \"values\": {0})", "Struct(\"a\": {0}, \"b\": {1})",
    "Struct(\"a\": {0}, \"a\": {1})", "Struct()",
    "Map(\"entries\": Struct(\"key\": {0}, \"value\": {1}), unsorted)",
    "Map(\"entries\": Struct(\"key\": {0}), sorted)", "Map(\"entries\": {0}, unsorted)",
    "Union(Sparse, 0: (\"a\": {0}), 1: (\"b\": {1}))",
    "Union(Dense, 0: (\"a\": {0}), 127: (\"b\": {1}))", "Union(Dense, -1: (\"a\": {0}))",
    "Union(Sparse, 0: (\"a\": {0}), 0: (\"b\": {1}))", "Union(Sparse)", "List(non-null {0})",
    "Struct(\"a\": non-null {0})", "Dictionary({0}, {1})",
)  # fmt: skip

VALUES = (
    "NULL", "0", "-1", "9223372036854775807", "1e308", "'NaN'", "''", "'1'", "repeat('1', 100000)",
    "true", "[]", "[1, 2]", "[[1], [2]]", "['a', NULL]", "generate_series(1, 100000)",
    "named_struct('a', 1)", "struct(1, 2)", "MAP(['a'], [1])", "now()",
    "INTERVAL '178956970 years'", "X'00ff'", "DATE '9999-12-31'", "arrow_cast(NULL, 'Null')", "1.5",
    "arrow_cast(9223372036854775807, 'Timestamp(Second, None)')",
    "arrow_cast('a', 'Dictionary(Int8, Utf8)')", "arrow_cast([1, 2], 'FixedSizeList(2, Int64)')",
)  # fmt: skip
"""Values to cast, each of another type."""


def arrow_type(draw: random.Random, levels: int) -> str:
    """Returns a type of Arrow with up to so many levels."""
    if levels == 0 or draw.random() < 0.3:
        leaf = draw.choice(LEAVES)
        return f"FixedSizeBinary({draw.choice(SIZES)})" if draw.random() < 0.1 else leaf
    inner = [arrow_type(draw, levels - 1) for _ in range(2)]
    return draw.choice(OUTER).format(*inner, size=draw.choice(SIZES))


def cast(draw: random.Random, value: str) -> str:
    """Returns a cast of `value` to a type at its ends."""
    form = draw.choice(
        (
            "CAST({0} AS {1})",
            "TRY_CAST({0} AS {1})",
            "({0})::{1}",
            "arrow",
            "arrow",
            "arrow",
            "arrow",
        )
    )
    if form != "arrow":
        return form.format(value, draw.choice(SQL_TYPES))
    function = draw.choice(("arrow_cast", "arrow_cast", "arrow_try_cast"))
    return f"{function}({value}, '{arrow_type(draw, draw.choice((0, 1, 1, 2, 3, 24)))}')"


NESTED_TYPES = {
    "lists": ("List(", "Int8", ")"),
    "fixed lists": ("FixedSizeList(2, ", "Int8", ")"),
    "fixed lists of one": ("FixedSizeList(1, ", "Int8", ")"),
    "dictionaries": ("Dictionary(Int8, ", "Utf8", ")"),
    "structures": ('Struct("a": ', "Int8", ")"),
    "unions": ('Union(Sparse, 0: ("a": ', "Int8", "))"),
    "runs": ('RunEndEncoded("run_ends": Int32, "values": ', "Int8", ")"),
}
"""How a type stands in itself: what is before it, the innermost, what is after it."""
