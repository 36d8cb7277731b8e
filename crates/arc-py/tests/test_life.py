"""Opening, closing, reopening; threads and forks."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import arc
import duckdb
import pyarrow
import pyarrow.parquet
import pytest

COUNT = "SELECT count(*) AS n FROM pump"


def count(engine: arc.Engine) -> int:
    return pyarrow.table(engine.sql("plant", COUNT))["n"][0].as_py()


def test_points_are_there_after_a_close_and_after_none(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    engine = arc.open(folder)
    assert count(engine) == 1
    engine.write_lp("plant", "pump rpm=2i 2").raise_for_rejected()
    # Nobody closes it.
    del engine
    with arc.open(str(folder)) as engine:
        assert count(engine) == 2


def test_acknowledged_points_survive_kill_9(folder: Path) -> None:
    program = """
import arc, os, signal, sys
engine = arc.open(sys.argv[1])
for n in range(50):
    engine.write_lp("plant", f"pump rpm={n}i {n}").raise_for_rejected()
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with arc.open(folder) as engine:
        assert count(engine) == 50


def test_an_exception_in_the_block_closes_the_engine(folder: Path) -> None:
    with pytest.raises(KeyError):
        with arc.open(folder):
            raise KeyError
    with arc.open(folder) as engine:
        assert engine.databases() == []


def test_a_folder_that_is_open_is_the_same_engine_until_the_last_close(folder: Path, tmp_path: Path) -> None:
    first = arc.open(folder)
    first.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    (tmp_path / "link").symlink_to(folder)
    with arc.open(tmp_path / "link") as second:
        assert count(second) == 1
        second.write_lp("plant", "pump rpm=2i 2").raise_for_rejected()
    with pytest.raises(arc.ClosedError, match="^the engine is closed$"):
        second.databases()
    second.close()
    assert count(first) == 2
    # A cell of a notebook that runs twice.
    first = arc.open(folder)
    assert count(first) == 2
    first.close()
    with arc.open(folder, durability="process") as engine:
        assert engine.write_lp("plant", "pump rpm=3i 3").durability == "process"


def test_a_folder_that_is_open_takes_no_other_settings(folder: Path) -> None:
    with arc.open(folder, durability="memory", flush_after=30):
        for settings in ({}, {"durability": "process"}, {"durability": "memory", "flush_after": 5}):
            with pytest.raises(arc.InvalidInputError, match="open in this process with other settings"):
                arc.open(folder, **settings)
        for settings in ({"durability": "memory"}, {"durability": "memory", "flush_after": 30}):
            arc.open(folder, **settings).close()
    with arc.open(folder, durability="process", mode="rw"), arc.open(folder, mode="r") as reader:
        assert reader.databases() == []


def test_a_folder_that_was_made_anew_is_not_the_one_that_is_open(folder: Path) -> None:
    before = arc.open(folder)
    shutil.rmtree(folder)
    for _ in range(2):
        with pytest.raises(arc.InvalidInputError, match="was removed or replaced while it was open"):
            arc.open(folder)
        folder.mkdir(exist_ok=True)
    del before
    with arc.open(folder) as engine:
        assert engine.databases() == []


def test_nothing_answers_after_a_close(folder: Path) -> None:
    engine = arc.open(folder)
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    planned = engine.sql("plant", COUNT)
    engine.close()
    for call in (planned.fetchall, engine.databases, lambda: engine.tables("plant"), lambda: engine.plant, engine.flush):
        with pytest.raises(arc.ClosedError, match="^the engine is closed$"):
            call()
    assert str(folder) in repr(engine) and engine.path == str(folder)


def test_settings_are_taken(folder: Path) -> None:
    with arc.open(
        folder,
        durability="process",
        flush_after=timedelta(seconds=30),
        flush_bytes=1 << 20,
        flush_wal_bytes=1 << 20,
        max_buffer_bytes=1 << 22,
        write_timeout=0.5,
        wal_segment_bytes=1 << 20,
        query_memory_bytes=1 << 24,
        memory_bytes=1 << 28,
        query_timeout=10,
    ) as engine:
        assert engine.write_lp("plant", "pump rpm=1i").durability == "process"


def test_a_query_that_takes_too_long_is_stopped(folder: Path) -> None:
    with arc.open(folder, query_timeout=0.05) as engine:
        endless = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
        with pytest.raises((arc.Error, pyarrow.ArrowException), match="(?i)time"):
            pyarrow.table(engine.sql("plant", endless))


def test_a_flush_makes_files_that_others_read(engine: arc.Engine) -> None:
    plant = engine.database("plant")
    plant.write_lp("pump,id=a rpm=1i 1\npump,id=b rpm=2i 2").raise_for_rejected()
    assert plant.data_files("pump") == []
    report = engine.flush()
    assert report.rows == 2
    assert report.files == plant.data_files("pump") != []
    assert all(os.path.isabs(file) and file.startswith(engine.path) for file in report.files)
    assert duckdb.connect().execute("SELECT sum(rpm) FROM read_parquet(?)", [report.files]).fetchall() == [(3,)]
    assert pyarrow.parquet.read_table(report.files[0]).num_rows == 2
    assert engine.flush() == arc.FlushReport(0, [])


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with arc.open("data") as engine:
        assert engine.path == str(tmp_path / "data")
        monkeypatch.chdir(tmp_path / "elsewhere")
        engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
        engine.flush()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_names_are_listed_in_order(engine: arc.Engine) -> None:
    for database, table in (("b", "y"), ("a", "z"), ("a", "x")):
        engine.write_lp(database, f"{table} v=1").raise_for_rejected()
    assert engine.databases() == ["a", "b"]
    assert engine.database("a").tables() == ["x", "z"]
    assert repr(engine.database("a")) == f"<arc.Database 'a' of <arc.Engine {engine.path}>>"


def test_threads_write_and_read_at_once(engine: arc.Engine) -> None:
    writes, lines = 25, 40

    def write(worker: int) -> int:
        stored = 0
        for n in range(writes):
            body = "\n".join(f"pump,worker={worker} rpm={n}i {n * lines + line}" for line in range(lines))
            stored += engine.write_lp("plant", body).raise_for_rejected().points
            assert count(engine) >= stored
        return stored

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 8 * writes * lines
    assert count(engine) == 8 * writes * lines


def test_other_threads_run_while_one_waits_for_an_answer(engine: arc.Engine) -> None:
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before = ticks
        slow = (
            "SELECT count(*) AS n FROM generate_series(1, 3000) a, generate_series(1, 3000) b WHERE a.value > b.value"
        )
        assert pyarrow.table(engine.sql("plant", slow))["n"][0].as_py() == 3000 * 2999 // 2
        assert ticks > before
    finally:
        done.set()
        ticker.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_is_told_to_be_made_before(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    assert count(engine) == 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            engine.write_lp("plant", "pump rpm=2i 2")
        except arc.ClosedError:
            try:
                arc.open(tmp_path / "own")
            except arc.ClosedError as error:
                status = 0 if "spawn" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert count(engine) == 1
