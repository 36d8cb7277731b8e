"""What goes through the doors: columns of each type, rows of their ends, and what is the same value."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Optional

import pyarrow as pa

Row = dict[str, Any]

SECOND = 10**9
DAY = 86_400 * SECOND
UNITS = {"s": SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
# How each value is kept in the model: times in nanoseconds, dates in days, all others as Python has them.
TEXTS = ("", " ", "a", "NULL", "null", "nan", "0", "-1", "true", "héllo", "🦀 crab", "it's", 'say "x"', "a,b=c d", "\\")
LINES = ("\\n", "two\nlines", "tab\tand\r\nreturn", '"', "''", ",", "x" * 300)
TINY, LARGE = (5e-324, -2.5e-310, 2.2250738585072014e-308), (1e308, -1.7976931348623157e308, 1e16, 9007199254740992.0)
FLOATS = (0.0, -0.0, 3.0, 0.1, *TINY, *LARGE)
NO_NUMBERS = (math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Column:
    """A column: its type where Arrow says it, its type in CREATE TABLE if there is one, and its values."""

    name: str
    kind: str
    arrow: pa.DataType
    draw: Callable[[random.Random], Any]
    sql: str = ""
    # What the columns of CREATE TABLE are.
    wide: Optional[pa.DataType] = None

    def type_in(self, shape: str) -> pa.DataType:
        return self.wide if shape == "created" and self.wide is not None else self.arrow

    def types_in(self, shape: str) -> tuple[pa.DataType, ...]:
        """What the column may be: of what Arrow brings integers keep their width from files alone, and times that
        nanoseconds do not hold their unit."""
        type_ = self.type_in(shape)
        if shape == "created":
            return (type_,)
        if pa.types.is_timestamp(type_):
            return (UTC, pa.timestamp(type_.unit, "UTC"))
        if pa.types.is_integer(type_):
            return (type_, type_ if type_ == pa.uint64() else pa.int64())
        return (WIDEST.get(type_, type_),)


def one_of(*values: Any, other: Optional[Callable[[random.Random], Any]] = None) -> Callable[[random.Random], Any]:
    """Draws one of the ends, or something ordinary."""

    def draw(random: random.Random) -> Any:
        return other(random) if other and random.random() < 0.4 else random.choice(values)

    return draw


def integer(bits: int, is_signed: bool) -> Callable[[random.Random], int]:
    low = -(2 ** (bits - 1)) if is_signed else 0
    high = 2 ** (bits - is_signed) - 1
    return one_of(low, high, low + 1, high - 1, 0, 1, other=lambda random: random.randint(low, high))


def narrow(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def time_in(unit: str) -> Callable[[random.Random], int]:
    """Times in nanoseconds that the unit has; beyond 64 bits of nanoseconds where it has room for them."""
    step = UNITS[unit]
    # From the year 1 to 9999.
    far = (-62_135_596_800 * SECOND, 253_402_300_799 * SECOND) if unit != "ns" else (-(2**63), 2**63 - 1)
    near = (-step, 0, step, 1_769_860_800 * SECOND, 951_782_400 * SECOND)
    return one_of(*far, *near, other=lambda random: random.randint(-2 * 10**18, 4 * 10**18) // step * step)


def decimal_of(digits: int, scale: int) -> Callable[[random.Random], Decimal]:
    def of(whole: int) -> Decimal:
        return Decimal((int(whole < 0), tuple(int(digit) for digit in str(abs(whole))), -scale))

    most = 10**digits - 1
    return one_of(
        of(most), of(-most), of(0), of(1), of(-1), of(10**scale), other=lambda random: of(random.randint(-most, most))
    )


def text(random: random.Random) -> str:
    return random.choice(TEXTS if random.random() < 0.8 else LINES)


def number(random: random.Random) -> float:
    drawn = random.random()
    if drawn < 0.2:
        return random.choice(NO_NUMBERS)
    return random.choice(FLOATS) if drawn < 0.7 else random.uniform(-1000, 1000)


def small_number(random: random.Random) -> float:
    ends = (0.0, -0.0, 1.401298464324817e-45, narrow(3.4028234663852886e38), narrow(0.1), *NO_NUMBERS)
    return random.choice(ends) if random.random() < 0.6 else narrow(random.uniform(-1000, 1000))


BLOBS = (b"", b"\x00", b"\xff\xfe", b"text", b"'\"\\\n,", bytes(range(256)))
UTC = pa.timestamp("ns", "UTC")

WIDEST = {
    pa.float16(): pa.float64(),
    pa.float32(): pa.float64(),
    pa.date64(): pa.date32(),
    pa.large_binary(): pa.binary(),
    pa.time32("s"): pa.time64("ns"),
    pa.duration("ms"): pa.duration("ns"),
}
"""What a new column is that is not as wide as any of its kind (docs/http.md)."""

PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])

NUMBER = Column("n", "int", pa.int64(), lambda _: 0, "BIGINT")
TAG = Column("host", "tag", pa.string(), text, "TEXT")
# Those that all doors have.
BASIC = (
    Column("s", "text", pa.string(), text, "TEXT"),
    Column("f", "float", pa.float64(), number, "DOUBLE"),
    Column("i", "int", pa.int64(), integer(64, True), "BIGINT"),
    Column("u", "uint", pa.uint64(), integer(64, False), "BIGINT UNSIGNED"),
    Column("b", "bool", pa.bool_(), one_of(True, False), "BOOLEAN"),
)
OTHERS = (
    Column("t", "time", UTC, time_in("ns"), "TIMESTAMP"),
    Column("i8", "int", pa.int8(), integer(8, True), "TINYINT", pa.int64()),
    Column("i16", "int", pa.int16(), integer(16, True), "SMALLINT", pa.int64()),
    Column("i32", "int", pa.int32(), integer(32, True), "INTEGER", pa.int64()),
    Column("u8", "uint", pa.uint8(), integer(8, False)),
    Column("u16", "uint", pa.uint16(), integer(16, False)),
    Column("u32", "uint", pa.uint32(), integer(32, False), "INTEGER UNSIGNED", pa.uint64()),
    Column("f32", "float", pa.float32(), small_number, "REAL", pa.float64()),
    # Only what is in an Arrow schema makes a column of these.
    Column("f16", "float", pa.float16(), one_of(0.0, -0.0, 65504.0, 0.5, *NO_NUMBERS)),
    Column("d", "date", pa.date32(), one_of(-719_162, 2_932_896, -1, 0, 1, 20_484)),
    Column("d64", "date", pa.date64(), one_of(-719_162, 2_932_896, -1, 0, 1, 20_484)),
    Column("dec", "decimal", pa.decimal128(12, 3), decimal_of(12, 3)),
    Column("wide", "decimal", pa.decimal128(38, 10), decimal_of(38, 10)),
    Column("wider", "decimal", pa.decimal256(50, 10), decimal_of(50, 10)),
    Column("bin", "binary", pa.binary(), one_of(*BLOBS)),
    Column("large", "binary", pa.large_binary(), one_of(*BLOBS)),
    Column("two", "binary", pa.binary(2), one_of(b"\x00\x00", b"ab", b"\xff\xff")),
    Column("ts_s", "time", pa.timestamp("s"), time_in("s")),
    Column("ts_ms", "time", pa.timestamp("ms", "UTC"), time_in("ms")),
    Column("ts_us", "time", pa.timestamp("us"), time_in("us")),
    Column("ts_ns", "time", pa.timestamp("ns"), time_in("ns")),
    Column("berlin", "time", pa.timestamp("ms", "Europe/Berlin"), time_in("ms")),
    Column("t32", "clock", pa.time32("s"), one_of(0, SECOND, DAY - SECOND)),
    Column("t64", "clock", pa.time64("ns"), one_of(0, 1, DAY - 1, DAY // 2)),
    Column("li", "list", pa.list_(pa.int64()), one_of([], [None], [1, None, -(2**63)], list(range(40)))),
    Column("names", "list", pa.list_(pa.string()), one_of([], ["", None, "a,b"], ['say "x"', "two\nlines"])),
    Column("st", "struct", PAIR, one_of({"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": -(2**63), "b": ""})),
    Column("span", "span", pa.duration("ms"), one_of(-(10**6), 0, 10**6, DAY, -400 * DAY)),
)
COLUMNS = (TAG, *BASIC, *OTHERS)
TIME = Column("time", "time", UTC, time_in("ns"), "TIMESTAMP")


class Drawn:
    """The rows of a round in batches: one has a row of nulls, one columns of nulls, and one not all columns."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        # Each of the others is there in nine of ten rounds.
        self.columns = tuple(one for one in COLUMNS if one in (TAG, *BASIC) or random.random() < 0.9)
        near = range(1_769_860_800 * SECOND, 1_769_860_830 * SECOND, 1_500_000_001)
        times = random.sample([-(2**63), 2**63 - 1, -1, 0, 1, *near], 14)
        rows = [self.row(place, time) for place, time in enumerate(times)]
        for column in self.columns:
            rows[2][column.name] = None
        self.batches = [rows[:5], rows[5:8], rows[8:11], rows[11:]]
        # The columns that a batch has; no row has something in the others.
        self.present = [list(self.columns) for _ in self.batches]
        for column in random.sample(self.columns, 5):
            for row in self.batches[1]:
                row[column.name] = None
        absent = random.sample(self.columns, 5)
        for row in self.batches[2]:
            row.update({column.name: None for column in absent})
        self.present[2] = [column for column in self.columns if column not in absent]

    def row(self, number: int, time: int) -> Row:
        row: Row = {"n": number, "time": time}
        for column in self.columns:
            row[column.name] = None if self.random.random() < 0.25 else column.draw(self.random)
        return row


def array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """An array of Arrow of the model's values."""
    if pa.types.is_timestamp(type_) or pa.types.is_time(type_) or pa.types.is_duration(type_):
        step = UNITS[type_.unit]
        counts = [None if value is None else value // step for value in values]
        return pa.array(counts, pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)
    if pa.types.is_date(type_):
        if pa.types.is_date64(type_):
            return pa.array([None if value is None else value * 86_400_000 for value in values], pa.int64()).cast(type_)
        return pa.array(values, pa.int32()).cast(type_)
    return pa.array(values, type_)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """The model's values of a column of Arrow: the inverse."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return values_of(column.cast(type_.value_type))
    if pa.types.is_timestamp(type_) or pa.types.is_time(type_) or pa.types.is_duration(type_):
        counts = column.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
        return [None if count is None else count * UNITS[type_.unit] for count in counts]
    if pa.types.is_date64(type_):
        return [None if count is None else count / 86_400_000 for count in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(type_):
        return list(column.cast(pa.int32()).to_pylist())
    return list(column.to_pylist())


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same: not only equal, but of one sign, and NaN is NaN."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, bool) != isinstance(other, bool) or (one is None) != (other is None):
        return False
    return bool(one == other)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal in SQL; of a null nothing is."""
    if one is None or other is None:
        return False
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)
