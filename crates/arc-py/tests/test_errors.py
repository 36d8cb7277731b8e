"""Every kind of failure has its exception."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import arc
import pandas
import pyarrow
import pytest

TABLE = pyarrow.table({"time": [1], "id": ["a"], "rpm": [1]})

CALLS: dict[str, tuple[Callable[[Any], object], type[Exception], str]] = {
    "no database name": (lambda e: e.write_lp("", "a b=1"), arc.InvalidInputError, "database"),
    "no such precision": (lambda e: e.write_lp("d", "a b=1", precision="d"), arc.InvalidInputError, "precision"),
    "no such durability": (lambda e: e.write_lp("d", "a b=1", durability="x"), arc.InvalidInputError, "durability"),
    "no such column of time": (lambda e: e.write("t", TABLE, time="x"), arc.InvalidInputError, '"x"'),
    "no such column of tags": (lambda e: e.write("t", TABLE, tags=["x"]), arc.InvalidInputError, '"x"'),
    "a time that is text": (lambda e: e.write("t", TABLE, time="id"), arc.InvalidInputError, "time"),
    "an array is no table": (lambda e: e.write("t", pyarrow.array([1])), arc.InvalidInputError, "is one column"),
    "a series is no table": (lambda e: e.write("t", pandas.Series([1])), arc.InvalidInputError, "is one column"),
    "a syntax error": (lambda e: e.sql("d", "SELEC 1"), arc.InvalidInputError, "SELEC"),
    "two statements": (lambda e: e.sql("d", "SELECT 1; SELECT 2"), arc.InvalidInputError, "more than one"),
    "a statement that writes": (lambda e: e.sql("d", "DROP TABLE pump"), arc.InvalidInputError, "(?i)drop"),
    "an unknown column": (lambda e: e.sql("d", "SELECT nope FROM pump"), arc.InvalidInputError, "nope"),
    "an unknown table in SQL": (lambda e: e.sql("d", "SELECT 1 FROM nope"), arc.NotFoundError, '"nope"'),
    "an unknown database": (lambda e: e.tables("nope"), arc.NotFoundError, '"nope"'),
    "an unknown table": (lambda e: e.data_files("d", "nope"), arc.NotFoundError, '"nope"'),
    "another type": (
        lambda e: e.write("pump", pyarrow.table({"time": [1], "rpm": ["x"]}), database="d"),
        arc.SchemaConflictError,
        '"rpm"',
    ),
    "a number is no table": (lambda e: e.write("t", 7), TypeError, "__arrow_c_stream__.* not int"),
    "a number is no line protocol": (lambda e: e.write_lp("d", 7), TypeError, "not int"),
    "one tag as text": (lambda e: e.write("t", TABLE, tags="id"), TypeError, "a list of str"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_cannot_succeed_says_why(engine: arc.Engine, case: str) -> None:
    engine.write_lp("d", "pump,id=7 rpm=1i 5").raise_for_rejected()
    call, exception, message = CALLS[case]
    with pytest.raises(exception, match=message):
        call(engine)
    assert pyarrow.table(engine.sql("d", "SELECT count(*) AS n FROM pump")).to_pylist() == [{"n": 1}]


def test_the_exceptions_fit_into_those_of_python() -> None:
    expected = {
        arc.InvalidInputError: ValueError,
        arc.NotFoundError: LookupError,
        arc.SchemaConflictError: Exception,
        arc.BusyError: Exception,
        arc.IoError: OSError,
        arc.QueryTimeoutError: TimeoutError,
        arc.CorruptError: Exception,
        arc.ClosedError: Exception,
        arc.AccessDeniedError: PermissionError,
        arc.OutcomeUnknownError: Exception,
        arc.InternalError: Exception,
    }
    assert set(arc.Error.__subclasses__()) == set(expected)
    assert issubclass(arc.StorageFullError, arc.IoError)
    for exception, base in expected.items():
        assert issubclass(exception, base)


@pytest.mark.parametrize(
    "settings",
    [
        {"durability": "paper"},
        {"flush_after": -1},
        {"flush_after": float("nan")},
        {"flush_bytes": 0},
        {"wal_segment_bytes": 1},
        {"query_timeout": float("inf")},
    ],
)
def test_a_setting_out_of_range_is_named(folder: Path, settings: dict) -> None:
    (name,) = settings
    with pytest.raises(arc.InvalidInputError, match=name):
        arc.open(folder, **settings)
    assert not folder.exists()


def test_a_folder_in_use_is_busy(engine: arc.Engine) -> None:
    program = """
import arc, sys
try:
    arc.open(sys.argv[1])
except arc.BusyError as error:
    print(error, error.retry_after)
"""
    other = subprocess.run([sys.executable, "-c", program, engine.path], check=True, capture_output=True, text=True)
    assert "in use by another process" in other.stdout and other.stdout.endswith(" None\n")


def test_memory_that_stays_full_is_busy(folder: Path) -> None:
    with arc.open(folder, flush_bytes=1 << 10, max_buffer_bytes=1 << 10, write_timeout=0) as engine:
        lines = "\n".join(f"pump,id={n} rpm={n}i {n}" for n in range(10_000))
        # Some at a time: what one has written is not flushed yet when the next one asks.
        with pytest.raises(arc.BusyError, match="max_buffer_bytes") as raised, ThreadPoolExecutor(4) as pool:
            for _ in pool.map(lambda _: engine.write_lp("plant", lines), range(2_000)):
                pass
        assert raised.value.retry_after is not None and raised.value.retry_after > 0


def test_a_folder_of_somebody_else_stays_as_it_is(folder: Path) -> None:
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    with pytest.raises(arc.InvalidInputError, match="is not a data directory"):
        arc.open(folder)
    assert os.listdir(folder) == ["letter.txt"]


def test_what_the_operating_system_refuses_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised:
        arc.open(tmp_path / ("x" * 300))
    assert isinstance(raised.value, arc.IoError)
    assert raised.value.errno == errno.ENAMETOOLONG
    assert str(tmp_path) in str(raised.value)


def test_damage_on_disk_is_found(folder: Path) -> None:
    arc.open(folder).close()
    for manifest in (path for path in (folder / "meta").rglob("*") if path.is_file()):
        manifest.write_bytes(b"\xff" * len(manifest.read_bytes()))
    with pytest.raises(arc.CorruptError, match="meta"):
        arc.open(folder)


def test_a_closed_engine_refuses_work(folder: Path) -> None:
    engine = arc.open(folder)
    engine.close()
    engine.close()
    for call in (
        lambda: engine.write_lp("plant", "pump rpm=1i"),
        lambda: engine.write("pump", TABLE),
        lambda: engine.sql("plant", "SELECT 1"),
        lambda: engine.flush(),
    ):
        with pytest.raises(arc.ClosedError):
            call()
