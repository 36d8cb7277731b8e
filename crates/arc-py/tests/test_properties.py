"""Properties: a scan has the rows of polars' own frame, and a writer stores what it takes."""

import enum
import math
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import arc
import numpy
import pandas
import polars
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from polars import col
from polars.testing import assert_frame_equal

LOOK = settings(
    max_examples=120,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Scans.

CONDITIONS: list[polars.Expr] = [
    col("n") > 2,
    col("n") != 3,
    col("n").is_null(),
    col("n") >= 1.5,
    col("f") < 1.0,
    col("f") == 0.0,
    col("f") > col("n"),
    col("f").is_nan(),
    col("id") == "a",
    col("id").is_in(["b", "it's"]),
    (col("id") == "a") | (col("n") < 3),
    ~(col("n") < 3),
    col("time") >= datetime(1970, 1, 1, 0, 0, 4, tzinfo=timezone.utc),
    (col("time") < datetime(1970, 1, 1, 0, 0, 6, tzinfo=timezone.utc)) & (col("f") > 0),
    col("text") > "b",
    col("text").str.len_chars() > 1,
    col("truth"),
    col("truth") == False,  # noqa: E712
    polars.lit(True),
    polars.lit(False),
]
COLUMNS: list[polars.Expr] = [
    (col("n") + 1).alias("n"),
    (col("f") * 2).alias("f"),
    polars.lit("a").alias("id"),
    polars.col("text").str.to_uppercase().alias("text"),
    polars.col("n").cum_sum().alias("n"),
]
FRAME = polars.DataFrame(
    {
        "time": [datetime(1970, 1, 1, 0, 0, n, tzinfo=timezone.utc) for n in range(8)],
        "id": ["a", "b", "it's", None, "a", "b", "a", "c"],
        "n": [1, 2, 3, None, 5, -(2**63), 2**63 - 1, 2**53 + 1],
        "f": [0.5, -0.0, 0.0, None, math.nan, math.inf, -math.inf, 1e300],
        "text": ["b", "", "bc", None, "ß", "B", "a\n", "ab"],
        "truth": [True, False, None, True, True, False, False, True],
    }
)
Step = Callable[[Any], Any]
HEADS: st.SearchStrategy[Step] = st.integers(0, 9).map(lambda n: lambda frame: frame.head(n))
FILTERS: st.SearchStrategy[Step] = st.sampled_from(CONDITIONS).map(
    lambda condition: lambda frame: frame.filter(condition)
)
OTHERS: st.SearchStrategy[Step] = st.one_of(
    st.integers(0, 9).map(lambda n: lambda frame: frame.tail(n)),
    st.tuples(st.integers(-9, 9), st.none() | st.integers(0, 9)).map(
        lambda at: lambda frame: frame.slice(*at)
    ),
    st.lists(st.sampled_from(FRAME.columns), min_size=1, max_size=4, unique=True).map(
        lambda names: lambda frame: frame.select(names)
    ),
    st.sampled_from(COLUMNS).map(lambda c: lambda frame: frame.with_columns(c)),
    st.just(lambda frame: frame.reverse()),
)
# What the source of a lazy frame gets of its own are the first steps.
STEPS = st.lists(HEADS | FILTERS | FILTERS | OTHERS, min_size=2, max_size=5)

RELATIONS: list[Callable[[arc.Relation], arc.Relation]] = [
    lambda rows: rows,
    lambda rows: rows.limit(5, offset=1),
    lambda rows: rows.filter("n > 1 OR f IS NULL"),
    lambda rows: rows.select("*"),
    lambda rows: rows.limit(6).filter("truth"),
]


@pytest.fixture(scope="module")
def scanned() -> Iterator[arc.Relation]:
    with tempfile.TemporaryDirectory() as folder, arc.open(Path(folder) / "data") as engine:
        engine.write("t", FRAME, tags=["id"])
        yield engine.sql("default", "SELECT * FROM t ORDER BY time")


@LOOK
@given(relation=st.sampled_from(RELATIONS), steps=STEPS)
def test_a_scan_has_the_rows_of_the_frame(
    scanned: arc.Relation,
    relation: Callable[[arc.Relation], arc.Relation],
    steps: list[Step],
) -> None:
    rows = relation(scanned)
    lazy, frame = rows.scan(), rows.pl()
    for step in steps:
        try:
            frame = step(frame)
        except polars.exceptions.ColumnNotFoundError:
            continue
        lazy = step(lazy)
    note(lazy.explain(optimized=False))
    assert_frame_equal(lazy.collect(), frame, check_exact=True)


# Writers.


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    pass


ODD: list[Any] = [
    None, True, 0, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**53 + 1, 10**40,
    Level.HIGH,
    0.5, -0.0, math.nan, math.inf, 1e300, Decimal("1.5"), 1j, timedelta(seconds=1),
    "", "a", "\0", "\ud800", "ä" * 300, Word("w"), b"", b"\xff", bytearray(b"a"), memoryview(b"a"),
    date(2026, 1, 31), date(9999, 1, 1), datetime(2026, 1, 31, 12), datetime.min, datetime.max,
    datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    [1], (1,), {"a": 1}, {1}, object(), int, uuid.UUID(int=7),
    pandas.Timestamp("2026-01-31 12:00:00.123456789", tz="UTC"), pandas.Timestamp(7),
    pandas.NaT, pandas.NA,
    pandas.Timedelta(5), pandas.Period("2026-01"), pandas.Timestamp("2500-01-01"),
    *(numpy.array([7]).astype(kind)[0] for kind in "? i1 i8 u8 f2 f4 f8 g c16 S U V".split()),
    *(numpy.datetime64("2026-01-31T12", unit) for unit in ("D", "h", "s", "ns")),
    numpy.datetime64("NaT"), numpy.datetime64("2500-01-01"), numpy.timedelta64(5, "s"),
    numpy.array(5), numpy.array([5]), numpy.uint64(2**64 - 1), numpy.float32(0.1),
    numpy.str_("a"), numpy.bytes_(b"a"), numpy.ma.masked,
    polars.Series([1]),
]  # fmt: skip
NAMES = st.sampled_from(["a", "a", "a", "b", "time", "tag", "A", "é"]) | st.sampled_from(
    ["a", "a", "a", "a", "b", "b", "b", "tag", "tag", "", "x" * 257, "\t", "\0", "\ud800", 7]
)
ROWS = st.lists(st.dictionaries(NAMES, st.sampled_from(ODD), max_size=3), min_size=1, max_size=6)


def nanoseconds(value: Any) -> int | None:
    """A time as a number, found in another way than the package does it."""
    if isinstance(value, datetime) or not isinstance(value, date):
        at = pandas.Timestamp(value)
    else:
        at = pandas.Timestamp(value.isoformat())
    if at is pandas.NaT:
        return None
    return int(at.tz_convert("UTC").as_unit("ns").value if at.tzinfo else at.as_unit("ns").value)


def is_same(given: Any, found: Any) -> bool:
    """Whether a value that was read is the one that was added."""
    if isinstance(given, (numpy.generic, numpy.ndarray)) and given.dtype.kind != "M":
        given = given.item()
    if given is None or given is pandas.NA or given is pandas.NaT:
        return found is None
    if isinstance(given, float) and math.isnan(given):
        return isinstance(found, float) and math.isnan(found)
    if isinstance(given, (date, numpy.datetime64)):
        return bool(nanoseconds(given) == found)
    return bool(given == found) and isinstance(given, bool) == isinstance(found, bool)


def need_two_columns(rows: Iterable[Mapping[Any, Any]]) -> bool:
    """Whether no type of a column has all numbers of some name: the table refuses some of these."""
    for name in {name for row in rows for name in row}:
        values = [row.get(name) for row in rows]
        plain = [value.item() if isinstance(value, numpy.generic) else value for value in values]
        integers = [value for value in plain if isinstance(value, int)]
        has_floats = any(isinstance(value, float) for value in plain)
        if has_floats and any(int(float(value)) != value for value in integers):
            return True
        if not has_floats and integers and min(integers) < 0 and max(integers) >= 2**63:
            return True
    return False


@pytest.fixture(scope="module")
def store() -> Iterator[arc.Engine]:
    with tempfile.TemporaryDirectory() as folder:
        with arc.open(Path(folder) / "data", durability="memory") as engine:
            yield engine


@LOOK
@given(rows=ROWS)
def test_a_writer_stores_what_it_takes(store: arc.Engine, rows: list[dict[Any, Any]]) -> None:
    table = f"t{uuid.uuid4().hex}"
    taken = {}
    with store.writer(table, tags=["row", "tag"], seconds=3600) as writer:
        for at, row in enumerate(rows):
            try:
                writer.add({"row": str(at), **row})
                taken[str(at)] = row
            except arc.InvalidInputError:
                pass
        try:
            writer.flush()
            refused = 0
        except arc.SchemaConflictError:
            assert need_two_columns(taken.values())
            refused = writer.discard()
        assert writer.written == len(taken) - refused
    if not writer.written:
        return
    stored = store.table(f"default.{table}").table()
    found = [dict(zip(stored.schema.names, row)) for row in zip(*stored.columns())]
    assert len(found) == writer.written and {row["row"] for row in found} <= taken.keys()
    for row in found:
        for name, value in taken[row["row"]].items():
            # An empty tag is none, and a time that is none is now.
            value = None if name == "tag" and value == "" else value
            if name != "time" or not (value is None or isinstance(value, int)):
                assert is_same(value, row.get(name)), (name, value, row.get(name))
