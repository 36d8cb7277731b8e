"""Ctrl-C, forks and the end of the interpreter, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value > b.value"
BEGIN = f"""
import arc, polars, pyarrow, sys
engine = arc.open(sys.argv[1])
engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
# What pyarrow and polars import at their first use swallows an interrupt.
pyarrow.table(engine.sql("plant", "SELECT 1")), polars.DataFrame(engine.sql("plant", "SELECT 1"))
rows = engine.sql("plant", {ENDLESS!r})
print("ready", flush=True)
"""
READS = {
    "fetchall": "rows.fetchall()",
    "arrow": "rows.arrow()",
    "polars": "polars.DataFrame(rows)",
    "pyarrow": "pyarrow.table(rows)",
    "batches": "list(rows.batches())",
    "show": "rows.show()",
    "execute": f"engine.execute('plant', 'INSERT INTO pump (time, rpm) ' + {ENDLESS.replace('SELECT', 'SELECT now(),', 1)!r})",
}


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
@pytest.mark.parametrize("read", READS)
def test_ctrl_c_ends_a_query_at_once(folder: Path, read: str) -> None:
    program = f"""{BEGIN}
try:
    {READS[read]}
except KeyboardInterrupt:
    print("interrupted", engine.sql("plant", "SELECT count(*) FROM pump").fetchall(), flush=True)
    engine.close()
"""
    out, err, code, took = interrupted(program, folder)
    assert out == "interrupted [(1,)]\n", err
    assert code == 0 and took < 20, (code, took)


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
def test_ctrl_c_between_batches_comes_after_the_error_of_a_reader_in_c(folder: Path) -> None:
    program = """
import arc, pyarrow, sys, time
engine = arc.open(sys.argv[1])
rows = engine.sql("plant", "SELECT value FROM generate_series(1, 1000000000000)")
batches = pyarrow.RecordBatchReader.from_stream(rows)
print("ready", flush=True)
try:
    while True:
        batches.read_next_batch()
except (KeyboardInterrupt, pyarrow.ArrowException) as error:
    try:
        if isinstance(error, pyarrow.ArrowException):
            time.sleep(60)
    except KeyboardInterrupt:
        pass
    print("interrupted", flush=True)
"""
    out, err, code, took = interrupted(program, folder)
    assert (out, code) == ("interrupted\n", 0) and took < 20, (err, took)


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
@pytest.mark.parametrize("read", ["polars.DataFrame(rows)", "pyarrow.table(rows)", "engine.write('copy', rows)"])
def test_ctrl_c_reaches_a_program_whose_reader_in_c_has_taken_long(folder: Path, read: str) -> None:
    """From a second on something is shown, or would be at a terminal: that must not get the interrupt."""
    program = f"""{BEGIN}
import time
try:
    try:
        {read}
    except Exception:
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    out, err, code, took = interrupted(program, folder, after=1.5)
    assert (out, code) == ("interrupted\n", 0) and took < 20, (err, took)


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
def test_ctrl_c_ends_a_query_that_polars_waits_for(folder: Path) -> None:
    # Polars raises the interrupt, and Python once more (pola-rs/polars#23988): in the handler of the first one.
    program = f"""{BEGIN}
import time
try:
    try:
        rows.scan().collect()
    except BaseException:
        time.sleep(1)
except KeyboardInterrupt:
    pass
print("interrupted", engine.sql("plant", "SELECT count(*) FROM pump").fetchall(), flush=True)
"""
    out, err, code, took = interrupted(program, folder)
    assert (out, err, code) == ("interrupted [(1,)]\n", "", 0) and took < 20, took


def interrupted(program: str, folder: Path, after: float = 0.5) -> tuple[str, str, int, float]:
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return out, err, process.returncode, time.monotonic() - began


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_the_end_of_the_interpreter_waits_for_nothing(folder: Path) -> None:
    program = """
import arc, sys
engine = arc.open(sys.argv[1])
pump = engine.writer("pump", database="plant", seconds=3600)
pump.add(time=1, rpm=1)
pump.flush()
reader = iter(engine.sql("plant", "SELECT value FROM generate_series(1, 10000000)"))
next(reader)
kept = [engine, pump, reader]
"""
    done = run(program, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("import arc, sys; print(len(arc.open(sys.argv[1]).plant.pump))", folder)
    assert done.stdout == "1\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_that_came_before_opens_its_own(folder: Path) -> None:
    program = """
import arc, os, sys
child = os.fork()
with arc.open(os.path.join(sys.argv[1], "parent" if child else "child")) as engine:
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    rows = len(engine.plant.pump)
if child == 0:
    os._exit(rows)
print(rows, os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = run(program, folder)
    assert (done.returncode, done.stdout) == (0, "1 1\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_may_drop_and_read_a_stream_that_is_half_read(folder: Path) -> None:
    program = """
import arc, gc, os, sys
engine = arc.open(sys.argv[1])
reader = engine.sql("d", "SELECT * FROM generate_series(1, 1000000)").reader()
reader.read_next_batch()
del engine
for child_reads in (True, False):
    child = os.fork()
    if child == 0:
        if child_reads:
            try:
                reader.read_next_batch()
                os._exit(3)
            except Exception as error:
                assert "fork" in str(error), error
        del reader
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, child_reads
print(sum(batch.num_rows for batch in reader) > 900000)
"""
    done = run(program, folder)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_gets_a_clear_error_from_a_relation(folder: Path) -> None:
    program = """
import arc, os, sys
engine = arc.open(sys.argv[1])
engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
rows = engine.plant.pump
if os.fork() == 0:
    try:
        rows.fetchall()
    except arc.ClosedError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(rows.fetchall()[0][-1] == 1)
"""
    done = run(program, folder)
    assert "this process is a fork of the one that opened it" in done.stdout, done.stderr
    assert done.stdout.endswith("True\n") and done.returncode == 0


def test_the_package_is_imported_fast_and_brings_no_other_library() -> None:
    program = "import sys, arc; print([name for name in ('asyncio', 'http', 'numpy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_rows_go_in_and_out_without_any_other_library(folder: Path) -> None:
    program = """
import sys
for name in ("pyarrow", "pandas", "polars", "duckdb"):
    sys.modules[name] = None
import arc, numpy
from datetime import datetime, timezone
at = datetime(2026, 1, 1, tzinfo=timezone.utc)
with arc.open(sys.argv[1]) as engine:
    engine.write("pump", [{"time": at, "id": "7", "rpm": 1}], tags=["id"], database="plant")
    engine.write("pump", {"time": numpy.array([5], "datetime64[s]"), "id": ["8"], "rpm": numpy.array([2])}, tags=["id"], database="plant")
    with engine.writer("pump", tags=["id"], database="plant") as pump:
        pump.add(time=at, id="9", rpm=3)
    rows = engine.sql("plant", "SELECT id, rpm FROM pump WHERE rpm > ? ORDER BY rpm", [0])
    rows.show()
    print(rows.fetchall(), rows.numpy()["rpm"].tolist(), rows.fetchone())
"""
    done = run(program, folder)
    assert done.stdout.endswith("3 rows\n[('7', 1), ('8', 2), ('9', 3)] [1, 2, 3] ('7', 1)\n"), done.stderr
