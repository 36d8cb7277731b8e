"""Rows as they are acknowledged: an iterator that waits for them, of an engine that writes, one that reads, and a server."""

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import arc
import pytest
from arc.tail import nanoseconds_of

AT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
NS = 1_769_860_800_000_000_000


@pytest.fixture(params=["writer", "reader"])
def told(request: pytest.FixtureRequest, engine: arc.Engine) -> Iterator[arc.Engine]:
    """Who tails what ``engine`` writes."""
    engine.write_lp("plant", f"pump,id=7 rpm=1i {NS}").raise_for_rejected()
    if request.param == "writer":
        yield engine
        return
    with arc.open(engine.path, mode="r") as reader:
        yield reader


def write(engine: arc.Engine, lines: str) -> None:
    engine.write_lp("plant", lines).raise_for_rejected()


def test_each_row_comes_once_and_as_it_was_written(engine: arc.Engine, told: arc.Engine) -> None:
    with told.tail("plant.pump") as tail:
        write(engine, f"pump,id=7 rpm=2i {NS + 1000}\npump,id=8 rpm=3i {NS + 2000}")
        assert next(tail) == {"time": AT + timedelta(microseconds=1), "id": "7", "rpm": 2}
        assert next(tail)["id"] == "8"
        engine.execute("plant", "DELETE FROM pump WHERE id = '8'")
        engine.flush()
        write(engine, f"pump,id=7,site=north flow=0.5 {NS + 1000}")
        row = next(tail)
        assert (row["site"], row["flow"], row["rpm"]) == ("north", 0.5, None)
        rows = {"time": list(range(100_000)), "id": ["9"] * 100_000, "rpm": list(range(100_000))}
        engine.write("pump", rows, tags=["id"], database="plant")
        assert [next(tail)["rpm"] for _ in range(100_000)] == list(range(100_000))
        assert tail.next(timeout=0) is None


def test_rows_come_in_batches_that_other_libraries_read(engine: arc.Engine, told: arc.Engine) -> None:
    with told.plant.tail("pump") as tail:
        write(engine, f"pump,id=7 rpm=2i {NS + 1}")
        part = tail.next(timeout=timedelta(seconds=20))
        assert part is not None
        assert part.arrow()["rpm"].to_pylist() == [2] and part.df()["id"].tolist() == ["7"]
        write(engine, f"pump,id=7 rpm=3i {NS + 2}")
        assert next(tail.batches()).pl()["rpm"].to_list() == [3]
        begun = time.monotonic()
        assert tail.next(timeout=0.05) is None and time.monotonic() - begun < 5


def test_stored_rows_come_first_where_a_time_is_given(engine: arc.Engine, told: arc.Engine) -> None:
    write(engine, f"pump,id=7 rpm=3i {NS + 2_000_000_000}\npump,id=7 rpm=2i {NS + 1_000_000_000}")
    with told.tail("plant.pump", since=AT + timedelta(seconds=1)) as tail:
        write(engine, f"pump,id=7 rpm=4i {NS - 1}")
        assert [next(tail)["rpm"] for _ in range(3)] == [2, 3, 4]


def test_a_time_is_one_of_several_libraries() -> None:
    import numpy
    import pandas

    zoned = AT.astimezone(timezone(timedelta(hours=5)))
    for since in [AT, zoned, AT.replace(tzinfo=None), NS, pandas.Timestamp(AT), numpy.datetime64("2026-01-31T12:00:00")]:
        assert nanoseconds_of(since) == NS
    assert nanoseconds_of(pandas.Timestamp(NS + 1, tz="UTC")) == NS + 1 and nanoseconds_of(None) is None
    for wrong in ["yesterday", 1.5, True]:
        with pytest.raises(TypeError, match="since must be a datetime"):
            nanoseconds_of(wrong)


def test_it_waits_and_other_threads_write(engine: arc.Engine, told: arc.Engine) -> None:
    def later() -> None:
        for n in range(50):
            write(engine, f"pump,id=7 rpm={n}i {NS + 1 + n}")

    with told.tail("plant.pump") as tail:
        writing = threading.Thread(target=later)
        writing.start()
        assert [next(tail)["rpm"] for _ in range(50)] == list(range(50))
        writing.join()


def test_asyncio_waits_and_loses_no_row_when_a_task_is_cancelled(engine: arc.Engine, told: arc.Engine) -> None:
    async def read() -> list[int]:
        tail = await told.aio.tail("plant.pump")
        waiting = asyncio.ensure_future(anext(tail))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        seen: list[int] = []
        await asyncio.to_thread(write, engine, f"pump,id=7 rpm=2i {NS + 1}\npump,id=7 rpm=3i {NS + 2}")
        async for row in tail:
            seen.append(row["rpm"])
            if len(seen) == 2:
                tail.close()
        return seen

    assert asyncio.run(read()) == [2, 3]


def test_the_end_of_a_table_and_of_an_engine_is_told(engine: arc.Engine, told: arc.Engine) -> None:
    tail = told.tail("plant.pump")
    engine.drop_table("plant", "pump")
    with pytest.raises(arc.NotFoundError, match='table "pump" does not exist'):
        next(tail)
    write(engine, f"pump,id=7 rpm=1i {NS}")
    tail = told.tail("plant.pump")
    write(engine, f"pump,id=7 rpm=2i {NS + 1}")
    assert next(tail)["rpm"] == 2
    told.close()
    for _ in range(2):
        with pytest.raises(arc.ClosedError):
            next(tail)
    with pytest.raises(arc.ClosedError):
        told.tail("plant.pump")


def test_what_cannot_be_tailed_is_named(told: arc.Engine) -> None:
    for name in ["plant.none", "none.pump", "pump"]:
        with pytest.raises(arc.NotFoundError, match="does not exist"):
            told.tail(name)


def test_who_closes_it_ends_the_waiting(engine: arc.Engine, told: arc.Engine) -> None:
    tail = told.tail("plant.pump")
    closing = threading.Timer(0.1, tail.close)
    closing.start()
    assert list(tail) == []
    closing.join()
    assert list(tail.batches()) == [] and tail.next(timeout=0) is None


def test_it_keeps_its_engine(folder: Path) -> None:
    engine = arc.open(folder)
    write(engine, f"pump,id=7 rpm=1i {NS}")
    tail = engine.tail("plant.pump", since=0)
    del engine
    gc.collect()
    assert next(tail)["rpm"] == 1
    assert tail.next(timeout=0) is None, "it is open"
    tail._store.close()


def test_a_reader_that_is_too_slow_is_told_so(engine: arc.Engine, told: arc.Engine) -> None:
    with told.tail("plant.pump") as tail:
        rows = {"time": list(range(100_000)), "id": ["9"] * 100_000, "rpm": list(range(100_000))}
        for _ in range(20):
            engine.write("pump", rows, tags=["id"], database="plant")
        taken = 0
        with pytest.raises(arc.BusyError, match="rows came faster than they were taken"):
            while True:
                part = tail.next()
                assert part is not None
                taken += len(part)
        assert 0 < taken < 2_000_000 and taken % 100_000 == 0


def test_a_fork_and_a_pickle_are_told_so(engine: arc.Engine, told: arc.Engine) -> None:
    tail = told.tail("plant.pump")
    with pytest.raises(TypeError, match="an arc.Tail cannot be pickled"):
        pickle.dumps(tail)
    child = os.fork()
    if child == 0:
        try:
            tail.next(timeout=0)
        except arc.ClosedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


INTERRUPTED = """
import sys, arc
engine = arc.open(sys.argv[1])
engine.write_lp("plant", "pump v=1")
print("waits", flush=True)
for row in engine.tail("plant.pump"):
    pass
"""


def test_ctrl_c_ends_the_waiting(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == b"waits\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read().decode()
        assert child.wait(20) != 0 and said.rstrip().endswith("KeyboardInterrupt"), said


def test_the_interpreter_ends_while_a_thread_waits(folder: Path) -> None:
    code = INTERRUPTED.replace("for row in", "import threading\nthreading.Thread(target=lambda: [row for row in")
    code = code.replace(':\n    pass', "], daemon=True).start()")
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "waits\n", done.stderr


def test_a_server_sends_the_same_rows(remote: arc.Connection) -> None:
    def send(lines: str) -> None:
        remote.write_lp("tails", lines).raise_for_rejected()

    send(f"pump,id=7 rpm=1i {NS}")
    with remote.tail("tails.pump") as tail, remote.tail("tails.pump", since=AT) as whole:
        assert tail.next(timeout=0.1) is None
        send(f"pump,id=7 rpm=2i {NS + 1000}\npump,id=8 rpm=3i {NS + 2000}")
        send(f"pump,id=7,site=north flow=0.5 {NS + 3000}")
        assert next(tail) == {"time": AT + timedelta(microseconds=1), "id": "7", "rpm": 2}
        rows = [next(tail), next(tail)]
        assert rows[0]["id"] == "8" and (rows[1]["site"], rows[1]["rpm"]) == ("north", None)
        assert [next(whole)["rpm"] for _ in range(4)] == [1, 2, 3, None]

        async def read() -> Any:
            await asyncio.to_thread(send, f"pump,id=7 rpm=4i {NS + 4000}")
            return (await anext(tail))["rpm"]

        assert asyncio.run(read()) == 4
    assert list(tail) == []
    with pytest.raises(arc.NotFoundError, match="does not exist"):
        remote.tail("tails.none")
    tail = remote.tail("tails.pump")
    remote.execute("tails", "DROP TABLE pump")
    for _ in range(2):
        with pytest.raises(arc.NotFoundError, match="pump"):
            next(tail)


def test_who_waits_for_a_server_can_be_told_to_stop(remote: arc.Connection) -> None:
    remote.write_lp("tails", f"waits,id=7 rpm=1i {NS}").raise_for_rejected()
    tail = remote.tail("tails.waits")
    closing = threading.Timer(0.1, tail.close)
    closing.start()
    assert list(tail) == []
    closing.join()


def test_bytes_of_an_answer_may_come_in_any_pieces() -> None:
    import io

    import pyarrow
    from arc._arc import TailDecoder

    out = io.BytesIO()
    for name in ["a", "b"]:
        table = pyarrow.table({name: [1, 2]})
        with pyarrow.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
            stream.write_table(table.slice(0, 0))
            stream.write_table(table)
    said = pyarrow.schema([], metadata={"arc.error": "why", "arc.status": "404"})
    pyarrow.ipc.new_stream(out, said).close()
    data = out.getvalue()
    for size in [1, 3, 8, 100, len(data)]:
        decoder, names, reason = TailDecoder(), [], None
        for start in range(0, len(data), size):
            tables, reason = decoder.feed(data[start : start + size])
            names += [table.schema.names[0] for table in tables]
        assert names == ["a", "a", "b", "b"] and reason == ("why", 404), size
    with pytest.raises(arc.InvalidInputError):
        TailDecoder().feed(data[:40] + b"\x07" * 400)
