"""Extreme values of SQL by kind: the arguments that `extreme_statements.py` puts everywhere.

Pure: text only. A kind is what a function expects of an argument, as far as its description has it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Names and values of tables that no token of the clients reaches. No statement has the values.
SECRET_TABLE = "kept5f1c93"
SECRET_DATABASE = "vault5f1c93"
SECRET_TEXT = "b7e41d08a6c2f935"
SECRET_NUMBER = 7_391_846_205_518_372_964

KIND_NAMES = (
    ("largelist", "list"), ("fixedsizelist", "fixed"), ("listview", "list"), ("list", "list"),
    ("array", "list"), ("timestamp", "time"), ("date", "date"), ("duration", "duration"),
    ("interval", "interval"), ("time", "clock"), ("decimal", "decimal"), ("float", "float"),
    ("double", "float"), ("uint", "int"), ("int", "int"), ("bool", "bool"),
    ("fixedsizebinary", "binary"), ("binary", "binary"), ("string", "text"), ("utf8", "text"),
    ("map", "map"), ("struct", "struct"),
)  # fmt: skip
"""Beginnings of types as the information schema writes them, with their kinds."""

PARAMETER_KINDS = (
    ("datepart", "part"), ("precision", "part"), ("unit", "part"), ("encoding", "encoding"),
    ("algorithm", "encoding"), ("format", "format"), ("timezone", "zone"), ("regexp", "pattern"),
    ("pattern", "pattern"), ("flags", "flags"), ("interval", "interval"), ("timestamp", "time"),
    ("time", "time"), ("origin", "time"), ("date", "date"), ("array", "list"), ("list", "list"),
    ("map", "map"), ("struct", "struct"), ("json", "text"), ("str", "text"), ("char", "text"),
    ("delimiter", "text"), ("sep", "text"), ("substr", "text"), ("prefix", "text"),
    ("needle", "text"), ("binary", "binary"), ("n", "int"), ("count", "int"), ("index", "int"),
    ("pos", "int"), ("length", "int"), ("size", "int"), ("begin", "int"), ("start", "int"),
    ("stop", "int"), ("end", "int"), ("step", "int"), ("depth", "int"), ("year", "int"),
    ("offset", "int"), ("percentile", "float"), ("numeric", "float"), ("number", "float"),
    ("value", "float"), ("expression", "float"), ("bool", "bool"),
)  # fmt: skip
"""Parts of the names of parameters, with the kind that such a parameter has."""

PLAIN = {
    "int": "3", "float": "0.5", "text": "'abc'", "bool": "true",
    "time": "TIMESTAMP '2026-01-31 12:00:00'", "date": "DATE '2026-01-31'",
    "clock": "TIME '12:00:00'", "interval": "INTERVAL '1 hour'",
    "duration": "arrow_cast(3, 'Duration(Second)')", "decimal": "CAST(1.5 AS DECIMAL(12, 3))",
    "binary": "X'0102'", "list": "[1, 2, 3]",
    "fixed": "arrow_cast([1, 2], 'FixedSizeList(2, Int64)')",
    "struct": "named_struct('a', 1, 'b', 'x')", "map": "MAP(['a', 'b'], [1, 2])", "null": "NULL",
    "part": "'hour'", "encoding": "'hex'", "format": "'%Y-%m-%d'", "zone": "'Europe/Berlin'",
    "pattern": "'a+'", "flags": "'g'",
}  # fmt: skip
"""An ordinary value of each kind, with which a call is good."""

INTEGERS = (
    "0", "1", "-1", "2147483647", "2147483648", "-2147483649", "100000000000000",
    "9223372036854775807", "(-9223372036854775807 - 1)",
    "arrow_cast('18446744073709551615', 'UInt64')", "arrow_cast(-128, 'Int8')", "1000001",
    "4294967296", "CAST(NULL AS BIGINT)",
)  # fmt: skip
FLOATS = (
    "0.0", "-0.0", "1e14", "-1e14", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324",
    "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "CAST('-inf' AS DOUBLE)",
    "arrow_cast('inf', 'Float32')", "arrow_cast(65504, 'Float16')", "CAST(NULL AS DOUBLE)",
)  # fmt: skip
TEXTS = (
    "''", "' '", "'%'", "'\\'", "chr(0)", "'🦀'", "repeat('a', 1000000)", "repeat('é', 400000)",
    "repeat('a,', 500000)", "repeat('(', 100000)", "arrow_cast(repeat('a', 100000), 'LargeUtf8')",
    "arrow_cast(repeat('a', 100000), 'Utf8View')", "arrow_cast('a', 'Dictionary(Int8, Utf8)')",
    f"'{'a' * 60_000}'", "'-9223372036854775808'", "'1e400'", "'NaN'", "'9999-12-31T23:59:60Z'",
    "CAST(NULL AS TEXT)",
)  # fmt: skip
TIMES = (
    "to_timestamp(0)", "now()", "arrow_cast(9223372036854775807, 'Timestamp(Nanosecond, None)')",
    "arrow_cast((-9223372036854775807 - 1), 'Timestamp(Nanosecond, None)')",
    "arrow_cast(9223372036854775807, 'Timestamp(Second, None)')",
    "arrow_cast((-9223372036854775807 - 1), 'Timestamp(Second, Some(\"UTC\"))')",
    "arrow_cast(8210266876799, 'Timestamp(Second, None)')",
    "arrow_cast(9223372036854775807, 'Timestamp(Millisecond, Some(\"Europe/Berlin\"))')",
    "TIMESTAMP '0001-01-01 00:00:00'",
    "arrow_cast(9223372036854775807, 'Timestamp(Microsecond, Some(\"+14:00\"))')",
    "TIMESTAMP '9999-12-31 23:59:59'", "CAST(NULL AS TIMESTAMP)",
)  # fmt: skip
INTERVALS = (
    "INTERVAL '0 days'", "INTERVAL '1 nanosecond'", "INTERVAL '-1 nanosecond'",
    "INTERVAL '1 month'", "INTERVAL '178956970 years'", "INTERVAL '-178956970 years'",
    "INTERVAL '2147483647 days'", "INTERVAL '9223372036 seconds'",
    "INTERVAL '2147483647 months 2147483647 days'", "INTERVAL '1 month -30 days'",
    "CAST(NULL AS INTERVAL)",
)  # fmt: skip
LISTS = (
    "[]", "[NULL]", "[[]]", "generate_series(1, 100000)", "generate_series(1, 9223372036854775807)",
    "array_repeat(1, 1000000)", "array_repeat('a', 4294967296)",
    "array_repeat(NULL, 9223372036854775807)", "array_repeat(array_repeat(1, 1000), 1000)",
    "arrow_cast([1, 2], 'LargeList(Int64)')", "arrow_cast([1, 2], 'ListView(Int64)')",
    "[CAST('NaN' AS DOUBLE), NULL, -0.0]", "['a', NULL, repeat('b', 100000)]", "[[1, 2], NULL, []]",
    "[named_struct('a', 1)]", "arrow_cast(NULL, 'List(Int64)')",
)  # fmt: skip
FIXED = (
    "arrow_cast([1], 'FixedSizeList(1, Int64)')", "arrow_cast([], 'FixedSizeList(0, Int64)')",
    "arrow_cast(NULL, 'FixedSizeList(65536, Int8)')",
    "arrow_cast(NULL, 'FixedSizeList(8192, Int64)')",
    "arrow_cast(NULL, 'FixedSizeList(1000000000, Int64)')",
    "arrow_cast(NULL, 'FixedSizeList(2147483647, Null)')",
    "arrow_cast(NULL, 'FixedSizeList(2147483647, Boolean)')",
    "arrow_cast(NULL, 'FixedSizeList(256, FixedSizeList(256, Int8))')",
    "CAST(NULL AS BIGINT[1000])", "CAST(NULL AS BIGINT[90][90])", "CAST([1, 2] AS DOUBLE[2])",
    "arrow_cast(NULL, 'FixedSizeBinary(65536)')",
)  # fmt: skip

EXTREMES: dict[str, tuple[str, ...]] = {
    "int": INTEGERS,
    "float": FLOATS,
    "text": TEXTS,
    "bool": ("true", "false", "CAST(NULL AS BOOLEAN)"),
    "time": TIMES,
    "date": (
        "arrow_cast(2147483647, 'Date32')", "arrow_cast(-2147483648, 'Date32')",
        "arrow_cast(9223372036854775807, 'Date64')",
        "DATE '0001-01-01'", "DATE '9999-12-31'", "CAST(NULL AS DATE)",
    ),
    "clock": ("TIME '23:59:59.999999999'", "arrow_cast(86399, 'Time32(Second)')",
        "arrow_cast(9223372036854775807, 'Time64(Nanosecond)')", "CAST(NULL AS TIME)"),
    "interval": INTERVALS,
    "duration": (
        "arrow_cast(9223372036854775807, 'Duration(Second)')",
        "arrow_cast((-9223372036854775807 - 1), 'Duration(Nanosecond)')",
        "arrow_cast(0, 'Duration(Millisecond)')", "arrow_cast(NULL, 'Duration(Second)')",
    ),
    "decimal": (
        f"CAST({'9' * 38} AS DECIMAL(38, 0))", f"CAST(-{'9' * 38} AS DECIMAL(38, 0))",
        f"CAST(0.{'9' * 38} AS DECIMAL(38, 38))",
        f"arrow_cast('{'9' * 76}', 'Decimal256(76, 0)')", "arrow_cast('0.1', 'Decimal256(76, 76)')",
        "arrow_cast(1, 'Decimal128(38, -100)')",
        "arrow_cast(0, 'Decimal32(9, 9)')", "CAST(NULL AS DECIMAL(38, 38))",
    ),
    "binary": ("X''", "X'ff'", "arrow_cast(repeat('a', 1000000), 'Binary')",
        "arrow_cast('ab', 'FixedSizeBinary(2)')", "arrow_cast(repeat('a', 100000), 'BinaryView')"),
    "list": LISTS,
    "fixed": FIXED,
    "struct": ("struct()", "named_struct('a', NULL)",
        "named_struct('a', generate_series(1, 100000))", "struct(1, struct(2, struct(3)))"),
    "map": ("MAP([], [])", "MAP(['a', 'a'], [1, 2])",
        "MAP(generate_series(1, 50000), generate_series(1, 50000))", "MAP([[1]], [NULL])"),
    "null": ("NULL", "arrow_cast(NULL, 'Null')"),
    "part": ("''", "'nanosecond'", "'millennium'", "'epoch'", "'timezone'",
        "repeat('hour', 100000)", "NULL"),
    "encoding": ("'base64'", "'hex'", "'md5'", "'sha512'", "''", "NULL"),
    "format": ("''", "'%'", "'%9f%+'", f"'{'%c' * 5_000}'", "repeat('%c', 100000)", "'%-%-%-'",
        "NULL"),
    "zone": ("''", "'+99:99'", "'Nowhere/City'", "repeat('UTC', 100000)", "NULL"),
    "pattern": (
        "''", "'('", "'((((a*)*)*)*)*b'", f"'{'(a?){200}' * 10}a{{200}}'", "'(a{1000}){1000}'",
        f"'{'(' * 5_000}{')' * 5_000}'",
        "'\\pL{1000}'", f"'{'%a' * 5_000}'", "repeat('a|', 200000)", "'(?i)[\\w--\\d]{999}'",
        "NULL",
    ),
    "flags": ("''", "'gimsUx'", "'zz'", "repeat('g', 100000)", "NULL"),
}  # fmt: skip
"""Values of each kind at its ends, as constants."""


@dataclass(frozen=True)
class Table:
    """A table that statements read: its name, and its columns by kind."""

    name: str
    columns: dict[str, tuple[str, ...]]


COLUMNS: dict[str, tuple[str, ...]] = {
    "int": ("i", "u", "i8"), "float": ("f", "f32"), "text": ("s", "host"), "bool": ("b",),
    "time": ("t", "time"), "date": ("d",), "clock": ("c",), "duration": ("du",),
    "decimal": ("dec",), "binary": ("bin",), "list": ("li", "ls"), "fixed": ("fl",),
    "struct": ("st",), "map": ("mp",),
}  # fmt: skip
NARROW = tuple(Table(name, COLUMNS) for name in ("x_none", "x_one", "x_many"))
WIDE_COLUMNS = 3_000
MANY_ROWS = 8_192
WIDE_KINDS = {"float": ("c0", "c1", "c2999"), "time": ("time",)}
WIDE = tuple(Table(name, WIDE_KINDS) for name in ("x_wide_none", "x_wide_one", "x_wide_many"))
SCHEMA = Table(
    "information_schema.columns",
    {"text": ("table_name", "data_type"), "int": ("ordinal_position",)},
)
SECRETS = (
    f"(SELECT max(s) FROM {SECRET_TABLE})",
    f"(SELECT max(n) FROM {SECRET_DATABASE}.{SECRET_TABLE})",
    f"(SELECT array_agg(s) FROM {SECRET_DATABASE}.{SECRET_TABLE})",
)
"""Values of tables that no token of the clients may read."""


def kind_of_type(text: str) -> str:
    """Returns the kind of a type as the information schema writes it."""
    lower = text.lower()
    return next((kind for beginning, kind in KIND_NAMES if lower.startswith(beginning)), "null")


def kind_of_parameter(name: str) -> str:
    """Returns the kind that a parameter of this name most likely has, or an empty text."""
    lower = name.lower()
    is_short = len(lower) == 1
    parts = [
        (part, kind)
        for part, kind in PARAMETER_KINDS
        if (part == lower if is_short or len(part) == 1 else part in lower)
    ]
    return parts[0][1] if parts else ""


class Arguments:
    """Draws arguments: ends of a kind, columns, values of other kinds, and rarely a secret."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def extreme(self, kind: str) -> str:
        return self.draw.choice(EXTREMES[kind])

    def any_extreme(self) -> str:
        return self.extreme(self.draw.choice(list(EXTREMES)))

    def column(self, kind: str, table: Table | None) -> str:
        """Returns a column of this kind, or a value where the table has none."""
        names = table.columns.get(kind, ()) if table else ()
        return f"q.{self.draw.choice(names)}" if names else self.extreme(kind)

    def drawn(self, kind: str, table: Table | None) -> str:
        """Returns an argument for a parameter of this kind, most often at its ends."""
        chance = self.draw.random()
        if chance < 0.5:
            return self.extreme(kind)
        if chance < 0.75:
            return self.column(kind, table)
        if chance < 0.9:
            return PLAIN[kind]
        return self.any_extreme() if chance < 0.99 else self.draw.choice(SECRETS)
