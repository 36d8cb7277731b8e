"""Rows of one directory, handed to another: an engine, a folder, a server."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import arc
import pytest

FIRST = "pump,id=7 rpm=1i 1\npump,id=8 rpm=2i 2"


def rows(store: arc.Engine | arc.Connection, database: str) -> list[tuple[object, ...]]:
    return store.sql(database, "SELECT id, rpm FROM pump ORDER BY time").fetchall()


def test_each_row_arrives_once_in_another_engine(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", FIRST).raise_for_rejected()
    with arc.open(tmp_path / "centre") as centre:
        report = engine.push(centre)
        assert (report.cuts, report.files, report.rows) == (1, 1, 2)
        assert report.bytes == report.sent_bytes > 0
        assert engine.push(centre) == arc.PushReport(0, 0, 0, 0, 0)
        engine.write_lp("plant", "pump,id=7 rpm=9i 1").raise_for_rejected()
        assert engine.push(centre).rows == 1
        assert rows(centre, "plant") == [("7", 9), ("8", 2)]


def test_a_folder_takes_rows_and_is_closed_after_it(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", FIRST).raise_for_rejected()
    for there in (tmp_path / "one", str(tmp_path / "two")):
        assert engine.push(there, bytes_per_second=1 << 20).rows == 2
        with arc.open(there) as centre:
            assert rows(centre, "plant") == [("7", 1), ("8", 2)]


def test_a_server_takes_rows_by_address_and_by_connection(engine: arc.Engine, started: tuple[str, str]) -> None:
    url, token = started
    engine.write_lp("pushed", FIRST).raise_for_rejected()
    assert engine.push(url, token=token).rows == 2
    with arc.connect(url, token=token) as server:
        assert engine.push(server).rows == 0
        engine.write_lp("pushed", "pump,id=9 rpm=3i 3").raise_for_rejected()
        assert engine.push(server).rows == 1
        assert rows(server, "pushed") == [("7", 1), ("8", 2), ("9", 3)]
        with pytest.raises(arc.AccessDeniedError):
            engine.push(url, token="nobody's")


def test_what_conflicts_is_named_and_nothing_changes(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", 'pump,id=1 rpm="fast" 5').raise_for_rejected()
    with arc.open(tmp_path / "centre") as centre:
        centre.write_lp("plant", FIRST).raise_for_rejected()
        with pytest.raises(arc.SchemaConflictError, match="rpm"):
            engine.push(centre)
        assert rows(centre, "plant") == [("7", 1), ("8", 2)]


def test_a_copy_of_the_directory_is_refused(engine: arc.Engine, tmp_path: Path) -> None:
    engine.write_lp("plant", FIRST).raise_for_rejected()
    engine.backup(tmp_path / "copied")
    with arc.open(tmp_path / "centre") as centre:
        assert engine.push(centre).rows == 2
        arc.restore(tmp_path / "copied", tmp_path / "copy")
        with arc.open(tmp_path / "copy") as copy, pytest.raises(arc.InvalidInputError):
            copy.push(centre)
        assert len(rows(centre, "plant")) == 2


@pytest.mark.parametrize(
    ("to", "kind", "reason"),
    [
        ("s3://bucket/prefix", arc.InvalidInputError, "over HTTP"),
        ("https://user:password@host", arc.InvalidInputError, "http://host:port"),
        ("http://127.0.0.1:1", arc.IoError, "does not answer"),
        (7, TypeError, "not int"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_what_takes_no_rows_is_said(engine: arc.Engine, monkeypatch: pytest.MonkeyPatch, to: object, kind: type, reason: str) -> None:
    monkeypatch.setattr("arc.push.PAUSE", 0.0)
    with pytest.raises(kind, match=reason):
        engine.push(to)  # type: ignore[arg-type]


def test_other_mistakes_are_said(engine: arc.Engine, tmp_path: Path) -> None:
    with pytest.raises(arc.InvalidInputError, match="asks for neither"):
        engine.push(tmp_path / "centre", token="t")
    with pytest.raises(arc.InvalidInputError, match="has its own"):
        engine.push(engine, token="t")
    for same in (engine, engine.path):
        with pytest.raises(arc.InvalidInputError, match="the same one"):
            engine.push(same)
    with pytest.raises((OverflowError, TypeError)):
        engine.push(tmp_path / "centre", bytes_per_second=-1)
    with arc.open(engine.path, mode="r") as reader, pytest.raises(arc.InvalidInputError):
        reader.push(tmp_path / "centre")


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGINT to send")
def test_ctrl_c_ends_a_push_that_takes_long_and_the_next_one_goes_on(tmp_path: Path) -> None:
    script = """if True:
        import os, random, sys
        import arc
        folder, centre = sys.argv[1:]
        engine = arc.open(folder)
        random.seed(7)
        lines = [f"pump,id={n % 7} v={random.getrandbits(62)}i {n}" for n in range(400_000)]
        engine.write_lp("plant", "\\n".join(lines)).raise_for_rejected()
        print("ready", flush=True)
        try:
            engine.push(centre, bytes_per_second=1 << 19)
        except KeyboardInterrupt:
            engine.close()
            sys.exit(7)
    """
    command = [sys.executable, "-c", script, str(tmp_path / "edge"), str(tmp_path / "centre")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as pushing:
        assert pushing.stdout is not None
        assert pushing.stdout.readline() == b"ready\n"
        inbox, until = tmp_path / "centre" / "inbox", threading.Event()
        for _ in range(1200):
            if any(file.is_file() for file in inbox.rglob("*")):
                break
            until.wait(0.05)
        time.sleep(0.2)
        pushing.send_signal(signal.SIGINT)
        assert pushing.wait(60) == 7
    with arc.open(tmp_path / "edge") as edge, arc.open(tmp_path / "centre") as centre:
        report = edge.push(centre)
        assert report.rows == 400_000
        assert centre.sql("plant", "SELECT count(*) FROM pump").fetchall() == [(400_000,)]
