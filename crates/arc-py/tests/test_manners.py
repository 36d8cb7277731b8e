"""How the package behaves in a process: progress, Ctrl-C in writes, threads that race a close, subinterpreters, messages."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arc
import numpy
import pyarrow
import pytest

SLOW = "SELECT count(*) FROM generate_series(1, 60000) a, generate_series(1, 60000) b WHERE a.value > b.value"
ENDLESS = SLOW.replace("60000", "1000000")
POSIX = pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")


def run(program: str, *arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, **settings)


def drawn(program: str, folder: Path) -> list[str]:
    """Runs a program, and returns what it wrote to its error output, cut where a line begins anew."""
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=True, capture_output=True, timeout=60)
    return done.stderr.decode().split("\r")


# Progress.

SHOWS = """
import arc, sys
arc.show_progress({shown})
engine = arc.open(sys.argv[1], query_timeout=2.5)
try:
    engine.sql("plant", {query!r}).fetchall()
except arc.QueryTimeoutError:
    print("over", file=sys.stderr)
engine.sql("plant", "SELECT 1").fetchall()
"""


def test_what_takes_longer_than_a_second_is_shown_and_taken_away(folder: Path) -> None:
    lines = drawn(SHOWS.format(shown=True, query=ENDLESS), folder)
    shown = [line for line in lines if "query:" in line]
    assert shown and re.search(r"█{6}.*query: \d\.\d s", shown[0]), lines
    assert lines[-1] == "\x1b[Kover\n", "nothing of it stays"


@pytest.mark.parametrize("shown", [None, False])
def test_nobody_is_shown_anything_where_there_is_no_terminal(folder: Path, shown: object) -> None:
    done = run(SHOWS.format(shown=shown, query=ENDLESS), folder)
    assert (done.returncode, done.stderr) == (0, "over\n")


def test_what_is_shown_counts_rows() -> None:
    from arc.progress import line

    assert line("query", 2.0, 1_200_000) == "░░░░░░░░░░██████░░░░ query: 2.0 s, 1,200,000 rows"
    assert len({line("x", second / 10, 0).split(" ")[0] for second in range(60)}) == 15


# Ctrl-C.


LOOP = """
import arc, numpy, os, signal, sys, threading
rows = 100_000
values = {f"f{n}": numpy.random.default_rng(n).random(rows) for n in range(8)}
engine = arc.open(sys.argv[1])
written = 0

def write():
    engine.write("t", {"time": numpy.arange(rows) + written * rows, **values}, database="d", idempotency_key=str(written))

write()
written = 1
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        write()
        written += 1
except KeyboardInterrupt:
    print(written, flush=True)
"""


@POSIX
def test_after_ctrl_c_a_write_can_be_sent_again(folder: Path) -> None:
    done = run(LOOP + "write()\nprint(len(engine.d.t), flush=True)", folder)
    written, count = map(int, done.stdout.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert written > 0 and count == (written + 1) * 100_000, "whatever became of the first, its rows are there once"


@POSIX
def test_a_write_that_ctrl_c_left_is_done_when_the_interpreter_ends(folder: Path) -> None:
    done = run(LOOP, folder)
    assert (done.returncode, done.stderr) == (0, "")
    with arc.open(folder) as engine:
        # That which was under way has all of its rows, or none.
        assert len(engine.d.t) in (int(done.stdout) * 100_000, (int(done.stdout) + 1) * 100_000)


@POSIX
def test_ctrl_c_ends_the_waiting_for_a_write_at_once(folder: Path) -> None:
    # The buffer is full and stays so: the write waits for it for a minute.
    program = """
import arc, numpy, os, signal, sys, threading, time
engine = arc.open(sys.argv[1], max_buffer_bytes=1 << 20, flush_bytes=1 << 20, write_timeout=50)
lines = "\\n".join(f"t,id={n} v={n}i {n}" for n in range(200_000))
threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        engine.write_lp("d", lines)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""
    began = time.monotonic()
    assert run(program, folder).stdout == "interrupted\n"
    assert time.monotonic() - began < 40


# Threads.


def test_threads_race_a_close(folder: Path) -> None:
    for _ in range(5):
        engine = arc.open(folder)
        engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
        before = len(engine.plant.pump)
        stored: list[int] = []
        odd: list[BaseException] = []

        def work(worker: int) -> None:
            at = time.time_ns()
            n = 0
            try:
                while True:
                    stored.append(engine.write_lp("plant", f"pump rpm={worker}i {at + worker * 10**9 + n}").points)
                    n += 1
                    engine.sql("plant", "SELECT max(rpm) FROM pump").fetchall()
            except arc.ClosedError:
                pass
            except BaseException as error:
                odd.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        engine.close()
        for thread in threads:
            thread.join(60)
        assert odd == []
        with arc.open(folder) as again:
            assert len(again.plant.pump) == before + sum(stored)


def test_a_frame_that_is_changed_while_it_is_written(engine: arc.Engine) -> None:
    rows = 100_000
    values = numpy.zeros(rows, "i8")
    done = threading.Event()

    def change() -> None:
        n = 0
        while not done.is_set():
            n += 1
            values[:] = n

    changer = threading.Thread(target=change)
    changer.start()
    try:
        assert engine.write("t", {"time": numpy.arange(rows), "v": values}, database="d").points == rows
    finally:
        done.set()
        changer.join()
    stored = engine.d.t.order("time").numpy()
    # Each value is one of those that it had, and the other columns are what they were.
    assert stored["time"].astype("i8").tolist() == list(range(rows))
    assert stored["v"].min() >= 0
    before = stored["v"].tolist()
    engine.flush()
    assert engine.d.t.order("time").numpy()["v"].tolist() == before


# Other interpreters, other processes.


def test_a_subinterpreter_is_told_so() -> None:
    program = """
import sys
import arc
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
failed = interpreters.run_string(made, '''
try:
    import arc
except ImportError as error:
    print(error, flush=True)
''')
interpreters.destroy(made)
assert failed is None, failed
"""
    done = run(program)
    assert done.stdout == "arc cannot be imported in a subinterpreter; use threads, or processes that are spawned\n", done
    assert done.returncode == 0, done.stderr


def test_spawned_processes_read(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", "pump rpm=1i 1\npump rpm=2i 2").raise_for_rejected()
    script = tmp_path / "pool.py"
    script.write_text("""
import multiprocessing, sys
import arc

def count(path):
    with arc.open(path, mode="r") as reader:
        return len(reader.plant.pump)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(count, [sys.argv[1]] * 4))
""")
    done = subprocess.run([sys.executable, script, engine.path], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[2, 2, 2, 2]\n", done.stderr


def test_receipts_and_errors_can_be_pickled(engine: arc.Engine) -> None:
    written = engine.write_lp("plant", "pump rpm=1i 1\npump rpm=fast 2")
    assert pickle.loads(pickle.dumps(written)) == written
    with pytest.raises(arc.NotFoundError) as raised:
        engine.sql("plant", "SELECT 1 FROM nope")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is arc.NotFoundError and str(again) == str(raised.value)
    for value in (engine.plant, engine.plant.pump.schema, engine.plant.pump.table(), engine.writer("pump")):
        with pytest.raises((TypeError, pickle.PicklingError), match="pickle"):
            pickle.dumps(value)


# Messages.

TABLE = pyarrow.table({"time": [1], "v": [1]})
WRONG: dict[str, Callable[[Any], object]] = {
    "a database that is a number": lambda e: e.sql(7, "SELECT 1"),
    "a query that is a number": lambda e: e.sql("d", 7),
    "a query that is bytes": lambda e: e.sql("d", b"SELECT 1"),
    "a query that is nothing": lambda e: e.sql("d", ""),
    "params that are a text": lambda e: e.sql("d", "SELECT ?", "x"),
    "params that are a set": lambda e: e.sql("d", "SELECT ?", [{1}]),
    "too few params": lambda e: e.sql("d", "SELECT ?, ?", [1]),
    "a table that is a number": lambda e: e.write(7, TABLE),
    "a table without a name": lambda e: e.write("", TABLE),
    "tags that are numbers": lambda e: e.write("t", TABLE, tags=[7]),
    "tags that are a number": lambda e: e.write("t", TABLE, tags=7),
    "a time that is a number": lambda e: e.write("t", TABLE, time=7),
    "a precision that is a number": lambda e: e.write("t", TABLE, precision=7),
    "a durability that is a number": lambda e: e.write_lp("d", "a b=1", durability=7),
    "a key that is bytes": lambda e: e.write_lp("d", "a b=1", idempotency_key=b"x"),
    "a key that is long": lambda e: e.write_lp("d", "a b=1", idempotency_key="x" * 300),
    "a setting that is none": lambda e: e.write_lp("d", "a b=1", colour="red"),
    "text that is no unicode": lambda e: e.write_lp("d", "a b=\ud800"),
    "bytes that are no unicode": lambda e: e.write_lp("d", b"a b=\xff").raise_for_rejected(),
    "a type that is not stored": lambda e: e.write("t", pyarrow.table({"time": [1], "v": pyarrow.array([1], pyarrow.month_day_nano_interval())})),
    "a time that is a duration": lambda e: e.write("t", pyarrow.table({"time": pyarrow.array([1], pyarrow.duration("s"))})),
    "a retention that is a text": lambda e: e.set_retention("d", "1h"),
    "a retention below zero": lambda e: e.set_retention("d", -1),
    "an unknown function": lambda e: e.sql("d", "SELECT nope(1)"),
    "an overflow": lambda e: e.sql("d", "SELECT 9223372036854775807 + value FROM generate_series(1, 2)").fetchall(),
    "a division by zero": lambda e: e.sql("d", "SELECT 1 / value FROM generate_series(0, 0)").fetchall(),
    "a cast that fails": lambda e: e.sql("d", "SELECT CAST(value || 'x' AS BIGINT) FROM generate_series(0, 0)").fetchall(),
    "a syntax error": lambda e: e.sql("d", "SELECT FROM WHERE"),
    "an unknown column": lambda e: e.sql("d", "SELECT a FROM generate_series(0, 0)"),
    "an aggregate in WHERE": lambda e: e.sql("d", "SELECT 1 FROM generate_series(0, 0) WHERE sum(value) > 1"),
    "a column that is in no group": lambda e: e.sql("d", "SELECT value, sum(value) FROM generate_series(0, 0)"),
    "an unknown database": lambda e: e.sql("nope", "SELECT 1 FROM t"),
    "a file": lambda e: e.sql("d", "SELECT * FROM 'x.parquet'"),
    "a fetch of none": lambda e: e.sql("d", "SELECT 1").fetchmany(0),
    "a limit that is a text": lambda e: e.sql("d", "SELECT 1").limit("x"),
    "a join of nothing": lambda e: e.sql("d", "SELECT 1 AS x").join(7, on="x"),
    "a backup into a file": lambda e: e.backup("/dev/null"),
    "a path that is a number": lambda e: arc.open(7),
    "a size that is a text": lambda e: arc.open("/nowhere", flush_bytes="64 MiB"),
    "a size below zero": lambda e: arc.open("/nowhere", flush_bytes=-1),
    "a time that is a text": lambda e: arc.open("/nowhere", flush_after="60s"),
    "patterns that are a text": lambda e: arc.open("/nowhere", string_columns="attr_*"),
    "a unit that files have not": lambda e: arc.open("/nowhere", time_unit="s"),
    "a way with finer times that is none": lambda e: arc.open("/nowhere", finer_times="drop"),
    "a url that is none": lambda e: arc.connect("ftp://x"),
    "a program that is none": lambda e: e.serve(program="/nowhere/arc-server"),
}
RUST = re.compile(
    r"\bPy[A-Z]\w+|\b[uif](8|16|32|64)\b|usize|Option<|Vec<|Result<|Some\(|None\)|Ok\(|Err\(|::|panick|unwrap|DataFusion|SchemaError|"
    r"\bArrowError|ParserError|sqlparser|\b[Rr]ust\b|\.rs\b|[Ii]nternal error|This was likely caused by a bug|backtrace",
)
ALLOWED = (TypeError, ValueError, arc.Error, OverflowError)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_told_in_words_of_python(engine: arc.Engine, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    engine.write_lp("d", "there v=1i 1").raise_for_rejected()
    with pytest.raises(ALLOWED) as raised:
        WRONG[case](engine)
    said = str(raised.value)
    assert not isinstance(raised.value, arc.InternalError), said
    assert len(said) > 5 and not RUST.search(said.replace("://", "")), said
    assert capfd.readouterr().err == ""
    assert engine.databases() == ["d"] and engine.tables("d") == ["there"]


def test_an_engine_is_a_mapping_of_databases_and_they_are_of_tables(engine: arc.Engine) -> None:
    assert (list(engine), len(engine), bool(engine), "plant" in engine) == ([], 0, True, False)
    engine.write_lp("plant", "pump v=1i 1\nfan v=1i 1")
    plant = engine["plant"]
    assert (list(engine), len(engine), "plant" in engine, 7 in engine) == (["plant"], 1, True, False)
    assert (list(plant), len(plant), "pump" in plant, "valve" in plant, bool(plant)) == (["fan", "pump"], 2, True, False, True)
    assert not list(engine.database("nowhere")) and "pump" not in engine.database("nowhere")
    with pytest.raises(TypeError, match="the name of a database is a str, not int"):
        engine[0]  # type: ignore[index]


def test_the_home_folder_and_the_name_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    arc.open("~/data").close()
    assert (tmp_path / "data").is_dir()
    with pytest.raises(arc.InvalidInputError, match="':memory:'; a folder was expected"):
        arc.open(":memory:")
