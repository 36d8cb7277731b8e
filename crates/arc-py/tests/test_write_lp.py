"""Line protocol in, receipts out."""

from typing import Union

import arc
import pyarrow
import pytest
from arc.types import Durability, Precision


def rows(engine: arc.Engine, query: str, database: str = "plant") -> list:
    return pyarrow.table(engine.sql(database, query)).to_pylist()


@pytest.mark.parametrize(
    "data", ["pump,id=ü rpm=1i 5", "pump,id=ü rpm=1i 5".encode(), bytearray("pump,id=ü rpm=1i 5".encode())]
)
def test_text_and_bytes_are_the_same_points(engine: arc.Engine, data: Union[str, bytes, bytearray]) -> None:
    assert engine.write_lp("plant", data) == arc.Written(1, 0, [], "disk")
    assert rows(engine, "SELECT id, rpm, CAST(time AS BIGINT) AS ns FROM pump") == [{"id": "ü", "rpm": 1, "ns": 5}]


@pytest.mark.parametrize(
    ("precision", "nanoseconds"),
    [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9), ("m", 60 * 10**9), ("h", 3600 * 10**9)],
)
def test_timestamps_are_scaled_by_their_precision(engine: arc.Engine, precision: Precision, nanoseconds: int) -> None:
    engine.write_lp("plant", "pump rpm=1i 7", precision=precision).raise_for_rejected()
    assert rows(engine, "SELECT CAST(time AS BIGINT) AS ns FROM pump") == [{"ns": 7 * nanoseconds}]


@pytest.mark.parametrize("durability", ["disk", "process", "memory"])
def test_the_receipt_says_what_the_points_survive(engine: arc.Engine, durability: Durability) -> None:
    assert engine.write_lp("plant", "pump rpm=1i", durability=durability).durability == durability


def test_bad_lines_are_named_and_the_others_stored(engine: arc.Engine) -> None:
    written = engine.write_lp("plant", "pump rpm=1i 1\nno field\npump rpm=2i 2\npump rpm=fast 3\n")
    assert (written.points, written.rejected_points) == (2, 2)
    assert [line.line for line in written.rejected] == [2, 4]
    assert all(line.column > 0 and line.reason for line in written.rejected)
    assert rows(engine, "SELECT count(*) AS n FROM pump") == [{"n": 2}]


def test_rejected_lines_raise_on_demand(engine: arc.Engine) -> None:
    written = engine.write_lp("plant", "pump rpm=1i\nno field")
    with pytest.raises(arc.InvalidInputError, match="1 points were rejected, 1 stored; line 2, column"):
        written.raise_for_rejected()
    good = engine.write_lp("plant", "pump rpm=1i")
    assert good.raise_for_rejected() is good


def test_a_point_without_timestamp_gets_the_time_of_arrival(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump rpm=1i").raise_for_rejected()
    query = "SELECT count(*) AS n FROM pump WHERE time BETWEEN now() - INTERVAL '1 hour' AND now()"
    assert rows(engine, query) == [{"n": 1}]


def test_the_same_point_again_merges(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump,id=7 rpm=1i,temp=20 5").raise_for_rejected()
    engine.write_lp("plant", "pump,id=7 rpm=2i 5").raise_for_rejected()
    assert rows(engine, "SELECT id, rpm, temp FROM pump") == [{"id": "7", "rpm": 2, "temp": 20.0}]


def test_many_rejected_lines_are_all_counted(engine: arc.Engine) -> None:
    written = engine.write_lp("plant", "no field\n" * 1000 + "pump rpm=1i")
    assert (written.points, written.rejected_points, len(written.rejected)) == (1, 1000, 100)


def test_a_write_sent_again_under_its_key_stores_nothing(engine: arc.Engine) -> None:
    lines = "pump rpm=1i\nno field"
    first = engine.write_lp("plant", lines, idempotency_key="batch 17")
    again = engine.database("plant").write_lp(lines, idempotency_key="batch 17")
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.points, again.rejected) == (first.points, first.rejected)
    table = pyarrow.table({"time": pyarrow.array([5]), "rpm": pyarrow.array([2])})
    written = [engine.write("pump", table, database="plant", idempotency_key="t").replayed for _ in range(2)]
    written.append(engine.database("plant").write("pump", table, idempotency_key="t").replayed)
    assert written == [False, True, True]
    assert rows(engine, "SELECT count(*) AS n FROM pump") == [{"n": 2}]
    with pytest.raises(arc.InvalidInputError, match="was used in database"):
        engine.write_lp("plant", "pump rpm=2i", idempotency_key="batch 17")
