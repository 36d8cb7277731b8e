"""The same calls of a server: needs the program, which TESTED_SERVER names or a release build has left."""

import json
import re
import socket
import threading
from datetime import datetime, timezone
from typing import Any

import arc
import pandas
import polars
import pyarrow
import pytest


def fill(store: Any, database: str) -> Any:
    store.write_lp(database, "pump,id=7 rpm=1450i 10\npump,id=8 rpm=1502i 20").raise_for_rejected()
    return store.database(database)


ASKED = {
    "rows": lambda plant: plant.sql("SELECT id, rpm FROM pump ORDER BY time").fetchall(),
    "list of values": lambda plant: plant.sql("SELECT rpm FROM pump WHERE id = ?", ["8"]).fetchall(),
    "values by name": lambda plant: plant.sql("SELECT id FROM pump WHERE rpm > $n", {"n": 1460}).fetchall(),
    "arrow": lambda plant: plant.sql("SELECT time, id, rpm FROM pump ORDER BY time").arrow().to_pylist(),
    "pandas": lambda plant: plant.sql("SELECT time, id, rpm FROM pump ORDER BY time").df().to_dict("records"),
    "polars": lambda plant: plant.sql("SELECT time, rpm FROM pump ORDER BY time").pl().rows(),
    "composed": lambda plant: plant.pump.filter("rpm > 1").order("rpm DESC").limit(1).select("id").fetchall(),
    "length": lambda plant: len(plant.pump),
    "drawn": lambda plant: repr(plant.pump.select("id", "rpm").order("rpm")),
    "lazy": lambda plant: plant.scan("pump").filter(polars.col("id") == "7").select("rpm").collect().rows(),
    "columns": lambda plant: sorted(plant.pump.columns),
    "tables": lambda plant: plant.tables(),
    "parts": lambda plant: [len(part) for part in plant.pump],
    "stream": lambda plant: pyarrow.table(plant.pump.select("rpm").order("rpm")).to_pylist(),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_answers_are_the_same(engine: arc.Engine, remote: arc.Connection, asked: str) -> None:
    call = ASKED[asked]
    assert call(fill(remote, "same")) == call(fill(engine, "same"))


def test_rows_of_every_kind_are_written(remote: arc.Connection) -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = [{"time": at, "id": "ü", "rpm": 1}]
    sources: list[Any] = [rows, pandas.DataFrame(rows), polars.DataFrame(rows), pyarrow.Table.from_pylist(rows), {"time": [at], "id": ["ü"], "rpm": [1]}]  # fmt: skip
    for number, data in enumerate(sources):
        written = remote.write("pümp", data, tags=["id"], database=f"kind {number}")
        assert (written.points, written.durability) == (1, "disk")
        assert remote.sql(f"kind {number}", 'SELECT time, id, rpm FROM "pümp"').fetchall() == [(at, "ü", 1)]
    with remote.writer("fan", tags=["id"], database="w", rows=2) as fan:
        for n in range(5):
            fan.add(time=n, id="a", n=n)
    assert len(remote.w.fan) == 5
    assert remote.write("fan", [], database="w").points == 0
    rows = remote.w.fan
    assert rows.columns and remote.write("fan", {"time": [8], "n": [8]}, database="w").points == 1
    assert len(rows.fetchall()) == 6
    assert remote.write("fan", {"time": [9], "n": [9]}, database="w", idempotency_key="k").replayed is False
    assert remote.write("fan", {"time": [9], "n": [9]}, database="w", idempotency_key="k").replayed is True


def test_statements_change_data(remote: arc.Connection) -> None:
    remote.execute("change", "CREATE DATABASE change")
    remote.execute("change", "CREATE TABLE pump (time TIMESTAMP, id VARCHAR, rpm DOUBLE, PRIMARY KEY (id, time))")
    assert remote.execute("change", "INSERT INTO pump VALUES ('2026-01-01', '7', 1.5), ('2026-01-01', '8', 2)").rows == 2
    remote.delete("change", "pump", "id = '8'")
    assert remote.change.pump.select("id").fetchall() == [("7",)]
    assert remote.execute("change", "DROP DATABASE change").statement == "drop"
    assert "change" not in remote.databases()


def test_errors_are_of_the_same_kinds(remote: arc.Connection, started: tuple[str, str]) -> None:
    written = remote.write_lp("errors", "pump rpm=1i 1\nno field")
    assert (written.points, written.rejected_points, written.rejected[0].line) == (1, 1, 2)
    with pytest.raises(arc.NotFoundError, match="nothing"):
        remote.sql("errors", "SELECT * FROM nothing").fetchall()
    with pytest.raises(arc.InvalidInputError, match=r"LINE 1: SELECT nope FROM pump\n +\^"):
        remote.sql("errors", "SELECT nope FROM pump").fetchall()
    with pytest.raises(arc.InvalidInputError, match='"rpm"'):
        remote.write("pump", {"time": [1], "rpm": ["x"]}, database="errors")
    with pytest.raises(arc.InvalidInputError, match="numbers, texts"):
        remote.sql("errors", "SELECT ?", [datetime(2026, 1, 1)]).fetchall()
    with pytest.raises(arc.NotFoundError):
        remote.tables("nowhere")
    for token in ("", "arc_wrong"):
        with arc.connect(started[0], token=token) as other, pytest.raises(arc.AccessDeniedError):
            other.databases()
    remote.close()
    with pytest.raises(arc.ClosedError):
        remote.databases()


def test_a_server_that_is_not_there_is_an_io_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(arc.IoError, match=re.escape(url)):
            arc.connect(url).databases()
        with pytest.raises(arc.IoError):
            arc.connect(url).write_lp("plant", "pump rpm=1i")
    for wrong in ("ftp://host", "http://", "http://user@host", "http://host/path"):
        with pytest.raises(arc.InvalidInputError, match="http://host:port"):
            arc.connect(wrong)


def test_a_statement_whose_answer_is_lost_is_not_sent_again() -> None:
    """A server of our own: it answers what reads and keeps the connection, and does what changes something without an answer."""
    done: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                connection = listener.accept()[0]
                threading.Thread(target=answer, args=(connection,)).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while request := connection.recv(1 << 16):
                    if b"/query" in request:
                        while b'"sql"' not in request:
                            request += connection.recv(1 << 16)
                        done.append(json.loads(request.partition(b"\r\n\r\n")[2])["sql"])
                        return
                    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"databases":[]}')

        threading.Thread(target=serve, daemon=True).start()
        with arc.connect(f"http://127.0.0.1:{listener.getsockname()[1]}") as remote:
            for statement in ("INSERT INTO t VALUES (1, 2)", "  create TABLE t (time TIMESTAMP)", "(INSERT INTO t SELECT 1)"):
                assert remote.databases() == []
                run = remote.execute if not statement.startswith("(") else lambda *asked: remote.sql(*asked).fetchall()
                with pytest.raises(arc.OutcomeUnknownError, match="whether the statement was executed is not known"):
                    run("d", statement)
                assert done == [statement]
                done.clear()


def test_an_answer_that_breaks_off_is_told() -> None:
    """A server of our own: it closes kept connections, and breaks off in the middle of others."""
    answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"databases\":[]}",
        # The connection is kept, and closed before its next answer: asked again on another one.
        b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"databases\":[]}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        b"",
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection = listener.accept()[0]
                with connection:
                    connection.settimeout(30)
                    connection.recv(1 << 16)
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        with arc.connect(f"http://127.0.0.1:{listener.getsockname()[1]}") as remote:
            assert remote.databases() == []
            assert remote.databases() == []
            with pytest.raises(arc.IoError, match="does not answer"):
                remote.databases()
            with pytest.raises(arc.OutcomeUnknownError, match="whether the rows are stored is not known"):
                remote.write_lp("plant", "pump rpm=1i")
        server.join()
