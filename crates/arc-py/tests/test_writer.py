"""Single rows that go in batches."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

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
    with engine.writer("pump", tags=["id"], database="plant", seconds=3600) as pump:
        with pytest.raises(arc.InvalidInputError, match="'id' is a int, and a tag"):
            pump.add(id=7)
        pump.add(time=1, rpm=1, note="x")
        for wrong, text in [
            ({"rpm": "fast"}, "'rpm' is a str, and was number before"),
            ({"note": 7}, "'note' is a int, and was text before"),
            ({"rpm": [1]}, "'rpm' is a list"),
            ({"rpm": 2**64}, "more than 64 bits"),
            ({"time": "2026-01-01"}, "'time' is '2026-01-01'; a datetime"),
            ({"time": float("nan")}, "'time' is nan; a datetime"),
            ({"time": datetime(2300, 1, 1)}, "outside of 1677 to 2262"),
            ({"at": datetime(2300, 1, 1)}, "outside of 1677 to 2262"),
            ({"at": numpy.datetime64("2300-01-01")}, "outside of 1677 to 2262"),
            ({"n": numpy.timedelta64(5, "ns")}, "'n' is a timedelta64"),
            ({"n": 1j}, "'n' is a complex"),
            ({"n": numpy.complex64(1)}, "'n' is a complex"),
            ({"note": "a\ud800"}, "no UTF-8"),
            ({"": 1}, "name of a column is empty"),
            ({"x" * 257: 1}, "longer than 256 bytes"),
            ({"a\0": 1}, "NUL"),
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


def test_what_add_takes_flush_stores(engine: arc.Engine) -> None:
    """Each pair is of values that go into one table, and into no column of one batch."""
    at = datetime(2026, 1, 1)
    pairs = {
        "whole": (2**63, -1),
        "exact": (2**53 + 1, 0.5),
        "zones": (at, at.replace(tzinfo=timezone.utc)),
        "days": (at.date(), at.replace(tzinfo=timezone.utc)),
        "numpy": (numpy.datetime64("2026-01-01"), at),
    }
    stored = {"whole": 1, "exact": 1, "zones": 2, "days": 2, "numpy": 2}
    for name, values in pairs.items():
        pump = engine.writer(name, database="plant", seconds=3600)
        for n, value in enumerate(values):
            pump.add(time=n, v=value)
        if stored[name] == 2:
            pump.close()
        else:
            # As the second has another type than the column that the first has made.
            with pytest.raises(arc.SchemaConflictError):
                pump.close()
        assert (pump.written, pump.pending) == (stored[name], 2 - stored[name])


def test_rows_that_the_table_refuses_do_not_hold_up_the_others(engine: arc.Engine) -> None:
    with engine.writer("pump", database="plant", rows=1_000, seconds=3600) as pump:
        pump.add(time=0, v=1)
        pump.flush()
        for n in range(1, 100):
            pump.add(time=n, v=0.5 if n in (3, 50) else n)
        with pytest.raises(arc.SchemaConflictError):
            pump.flush()
        assert (pump.written, pump.pending) == (98, 2)
        pump.add(time=200, v=5)
        with pytest.raises(arc.SchemaConflictError):
            pump.flush()
        assert (pump.written, pump.pending) == (99, 2)
        engine.set_column_types("plant", on_conflict="widen")
        pump.flush()
        assert (pump.written, pump.pending) == (101, 0)
    assert engine.plant.sql("SELECT count(*), min(v) FROM pump").fetchone() == (101, 0.5)


def test_many_refused_rows_are_found_among_others(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump v=1i 0")
    pump = engine.writer("pump", database="plant", rows=10_000, seconds=3600)
    for n in range(1, 3_001):
        pump.add(time=n, v=0.5 if n % 60 == 0 else n)
    with pytest.raises(arc.SchemaConflictError):
        pump.flush()
    assert (pump.written, pump.discard()) == (2_950, 50)
    pump.close()


def test_refused_rows_do_not_fill_the_memory(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump v=1i 1")
    pump = engine.writer("pump", database="plant", rows=3, seconds=3600)
    with pytest.raises(arc.SchemaConflictError):
        for n in range(3):
            pump.add(time=n, v=0.5)
    with pytest.raises(arc.InvalidInputError, match="refused 3 rows"):
        pump.add(time=9, v=1)
    assert pump.discard() == 3
    pump.add(time=9, v=1)
    pump.close()
    assert len(engine.plant.pump) == 2


def test_the_thread_outlives_what_it_cannot_write(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump v=1i 1")
    pump = engine.writer("pump", database="plant", seconds=0.02)
    pump.add(time=2, v=0.5)
    until = time.monotonic() + 30
    while pump.pending != 1 or not pump._refused:
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(arc.SchemaConflictError):
        pump.add(time=3, v=2)
    pump.add(time=3, v=2)
    while pump.written < 1:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert pump.discard() == 1
    pump.close()


ENDS = {
    "nothing more": "",
    "close": "engine.close()",
    "the engine's block": "with engine: pass",
    "sys.exit": "import sys; sys.exit(0)",
    "nobody has it": "del pump, engine",
}


@pytest.mark.parametrize("end", ENDS)
def test_rows_of_a_writer_that_was_left_open_are_stored(folder: Path, end: str) -> None:
    script = f"import arc\nengine = arc.open({str(folder)!r})\npump = engine.writer('pump', seconds=3600)\npump.add(time=1, v=1)\n"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script + ENDS[end]], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    with arc.open(folder) as engine:
        assert len(engine.default.pump) == 1


def test_an_engine_closes_though_a_writer_cannot_write(folder: Path) -> None:
    engine = arc.open(folder)
    engine.write_lp("plant", "pump v=1i 1")
    pump = engine.writer("pump", database="plant", seconds=3600)
    pump.add(time=2, v=0.5)
    fan = engine.writer("fan", database="plant", seconds=3600)
    fan.add(time=2, v=0.5)
    with pytest.raises(arc.SchemaConflictError):
        engine.close()
    engine.close()
    assert (pump.pending, fan.pending) == (1, 0)
    with arc.open(folder) as engine:
        assert len(engine.plant.fan) == 1
