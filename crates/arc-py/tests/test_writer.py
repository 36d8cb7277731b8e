"""Single rows that go in batches."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import arc
import numpy
import pytest


def test_rows_are_stored_at_the_end_of_the_block(engine: arc.Engine) -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with engine.writer("pump", tags=["id"], database="plant", seconds=timedelta(hours=1)) as pump:
        pump.add(time=at, id="7", rpm=1450)
        pump.add({"time": at, "id": "8"}, rpm=1502.5, note="x")
        pump.add(id="9", rpm=numpy.int64(3))
        assert (pump.pending, pump.written, engine.databases()) == (3, 0, [])
    assert (pump.pending, pump.written) == (0, 3)
    rows = engine.plant.sql("SELECT id, rpm, note FROM pump ORDER BY id").fetchall()
    assert rows == [("7", 1450.0, None), ("8", 1502.5, "x"), ("9", 3.0, None)]
    now = engine.plant.sql("SELECT count(*) FROM pump WHERE time > now() - INTERVAL '1 hour'").fetchone()
    assert now == (1,)
    with pytest.raises(arc.InvalidInputError, match="closed"):
        pump.add(id="7", rpm=1)
    assert repr(pump) == "<arc.Writer of 'pump', 3 rows written, 0 pending>"


def test_a_batch_goes_when_it_is_full_or_old(engine: arc.Engine) -> None:
    with engine.writer("pump", database="plant", rows=2, seconds=3600) as pump:
        for n in range(5):
            pump.add(time=n, rpm=n)
        assert (pump.written, pump.pending) == (4, 1)
    with engine.writer("fan", database="plant", bytes=100, seconds=3600) as fan:
        fan.add(time=1, note="x" * 200)
        assert fan.written == 1
    with engine.writer("valve", database="plant", seconds=0.05) as valve:
        for n in range(2):
            valve.add(time=n, open=0.5)
            until = time.monotonic() + 30
            while valve.written <= n and time.monotonic() < until:
                time.sleep(0.01)
            assert valve.written == n + 1


def test_many_threads_add(engine: arc.Engine) -> None:
    with engine.writer("pump", tags=["worker"], database="plant", rows=700, seconds=0.02) as pump:

        def work(worker: int) -> None:
            for n in range(1_000):
                pump.add(time=n, worker=str(worker), n=n)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    assert pump.written == 8_000
    assert engine.plant.sql("SELECT count(*), sum(n) FROM pump").fetchone() == (8_000, 8 * 999 * 500)


def test_a_bad_row_is_refused_by_add_and_the_others_stay(engine: arc.Engine) -> None:
    with engine.writer("pump", database="plant", seconds=3600) as pump:
        pump.add(time=1, rpm=1, note="x")
        for wrong, text in [
            ({"rpm": "fast"}, "'rpm' is a str, and was number before"),
            ({"note": 7}, "'note' is a int, and was text before"),
            ({"rpm": [1]}, "'rpm' is a list"),
            ({"rpm": 2**64}, "more than 64 bits"),
            ({"time": "2026-01-01"}, "'time' is '2026-01-01'; a datetime"),
            ({"time": float("nan")}, "'time' is nan; a datetime"),
        ]:
            with pytest.raises(arc.InvalidInputError, match=text):
                pump.add(**wrong)
        pump.add(time=2, rpm=None)
    assert engine.plant.sql("SELECT count(*), count(rpm) FROM pump").fetchone() == (2, 1)


def test_what_fails_is_raised_kept_and_sent_again(engine: arc.Engine) -> None:
    engine.write_lp("plant", 'pump rpm="text" 1').raise_for_rejected()
    with pytest.raises(arc.SchemaConflictError):
        with engine.writer("pump", database="plant", seconds=3600) as pump:
            pump.add(time=2, rpm=7)
            with pytest.raises(arc.SchemaConflictError):
                pump.flush()
            assert pump.pending == 1
    assert pump.pending == 1
    engine.drop_table("plant", "pump")
    pump.flush()
    pump.flush()
    assert (pump.pending, pump.written) == (0, 1)
    assert engine.plant.sql("SELECT rpm FROM pump").fetchall() == [(7,)]


def test_what_the_thread_could_not_write_is_raised_by_the_next_call(engine: arc.Engine) -> None:
    engine.write_lp("plant", 'pump rpm="text" 1').raise_for_rejected()
    pump = engine.writer("pump", database="plant", seconds=0.01)
    pump.add(time=2, rpm=7)
    until = time.monotonic() + 30
    with pytest.raises(arc.SchemaConflictError):
        while time.monotonic() < until:
            pump.add(time=3, rpm=8)
            time.sleep(0.01)
    assert pump.discard() >= 1
    pump.close()
    assert engine.plant.sql("SELECT count(*) FROM pump").fetchone() == (1,)
    assert "arc-writer" not in [thread.name for thread in threading.enumerate()]


def test_an_exception_in_the_block_loses_no_row(engine: arc.Engine) -> None:
    with pytest.raises(KeyError):
        with engine.database("plant").writer("pump", seconds=3600) as pump:
            pump.add(time=1, rpm=1)
            raise KeyError
    assert len(engine.plant.pump) == 1


def test_settings_that_make_no_sense_are_named(engine: arc.Engine) -> None:
    for name in ("rows", "bytes", "seconds"):
        with pytest.raises(arc.InvalidInputError, match=name):
            engine.writer("pump", **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tags"):
        engine.writer("pump", tags="id")
