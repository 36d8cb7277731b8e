"""Arrow Flight SQL, by the clients that people have: ADBC, pyarrow, flightsql-dbapi and InfluxDB 3's own."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import flightsql
import pyarrow
import pytest
from adbc_driver_manager import AdbcStatusCode, OperationalError, ProgrammingError
from conftest import Server
from flightsql import FlightSQLClient
from influxdb_client_3 import InfluxDBClient3, Point
from pyarrow import flight

UTC = datetime.timezone.utc
LINES = b"pump,id=a rpm=1i,temp=20.5 1000\npump,id=b rpm=2i 2000\npump,id=a rpm=3i,temp=21.5 3000"
HEADER = "adbc.flight.sql.rpc.call_header."


@pytest.fixture(params=["own address", "beside HTTP"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A server with some rows, and an address that it serves Flight on."""
    server = Server(tmp_path / "data", "--flight", "127.0.0.1:0", "--delete-enabled")
    assert server.post("/write?db=plant", LINES)[0] == 204
    yield server, server.flight if request.param == "own address" else server.address
    server.kill()


def connect(address: str, **headers: str) -> Any:
    options = {HEADER + name.replace("_", "-"): value for name, value in {"database": "plant", **headers}.items()}
    with warnings.catch_warnings():
        # There are no transactions, which DB-API would like to have.
        warnings.simplefilter("ignore")
        return adbc.connect(f"grpc://{address}", db_kwargs=options)


def table(rows: int, start: int = 0) -> pyarrow.Table:
    times = pyarrow.array(range(start, start + rows), pyarrow.timestamp("ns", "UTC"))
    hosts = pyarrow.array([f"h{n % 5}" for n in range(rows)]).dictionary_encode()
    return pyarrow.table({"time": times, "host": hosts, "n": pyarrow.array(range(rows), pyarrow.int64())})


def test_adbc_queries(door: tuple[Server, str]) -> None:
    with connect(door[1]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, sum(rpm) FROM pump GROUP BY id ORDER BY id")
        assert cursor.fetchall() == [("a", 4), ("b", 2)]
        cursor.execute("SELECT rpm FROM pump WHERE id = ? AND rpm > ? ORDER BY rpm", ("a", 1))
        assert cursor.fetchall() == [(3,)]
        cursor.execute("SELECT rpm FROM pump WHERE time > $1 ORDER BY rpm", (datetime.datetime(1970, 1, 1, tzinfo=UTC),))
        assert cursor.fetch_arrow_table().column("rpm").to_pylist() == [1, 2, 3]
        cursor.execute("SELECT * FROM pump WHERE rpm > 7")
        assert cursor.fetch_arrow_table().schema.names == ["time", "id", "rpm", "temp"]


def test_adbc_is_told_what_is_wrong(door: tuple[Server, str]) -> None:
    with connect(door[1]) as connection, connection.cursor() as cursor:
        for sql, status, text in [
            ("SELECT nope FROM pump", AdbcStatusCode.INVALID_ARGUMENT, "nope"),
            ("SELECT * FROM nowhere", AdbcStatusCode.NOT_FOUND, '"nowhere" does not exist in database "plant"'),
            ("SELEC 1", AdbcStatusCode.INVALID_ARGUMENT, "SELEC"),
        ]:
            with pytest.raises(ProgrammingError, match=text) as raised:
                cursor.execute(sql)
            assert raised.value.status_code == status
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_adbc_sees_what_there_is(door: tuple[Server, str]) -> None:
    with connect(door[1]) as connection:
        assert connection.adbc_get_info()["vendor_name"] == "Arc"
        assert connection.adbc_get_table_types() == ["TABLE"]
        assert connection.adbc_get_table_schema("pump", db_schema_filter="plant").names == ["time", "id", "rpm", "temp"]
        [catalog] = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        assert catalog["catalog_name"] == "arc"
        [schema] = catalog["catalog_db_schemas"]
        assert schema["db_schema_name"] == "plant"
        [found] = schema["db_schema_tables"]
        assert (found["table_name"], len(found["table_columns"])) == ("pump", 4)


def test_adbc_ingests(door: tuple[Server, str]) -> None:
    server, address = door
    with connect(address, x_arc_tags="host") as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("load", table(100_000), mode="create") == 100_000
        assert cursor.adbc_ingest("load", table(100_000, start=100_000), mode="append") == 100_000
        with pytest.raises(Exception, match="exists already"):
            cursor.adbc_ingest("load", table(1), mode="create")
        with pytest.raises(Exception, match="does not exist"):
            cursor.adbc_ingest("other", table(1), mode="append")
        reader = table(50_000).to_reader(max_chunksize=1_000)
        assert cursor.adbc_ingest("other", reader, mode="create_append", db_schema_name="Other") == 50_000
    assert server.sql("SELECT count(*), count(DISTINCT host), sum(n) FROM load", "plant") == [
        [200_000, 5, 2 * sum(range(100_000))]
    ]
    assert server.sql("SELECT count(*) FROM \"Other\".other") == [[50_000]]


def test_what_adbc_has_ingested_survives_a_kill(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with connect(server.address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("load", table(300_000), mode="create")
        server.kill()
    again = Server(tmp_path / "data")
    assert again.sql("SELECT count(*), sum(n) FROM load", "plant") == [[300_000, sum(range(300_000))]]
    again.kill()


def test_adbc_writes_are_done_without_a_fetch(door: tuple[Server, str]) -> None:
    uri = door[1]
    for n in range(20):
        with connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO pump (time, id, rpm) VALUES ('2030-01-01', 'c{n}', 1)")
    with connect(uri) as connection, connection.cursor() as cursor:
        for n in range(20):
            cursor.execute(f"INSERT INTO pump (time, id, rpm) VALUES ('2030-01-01', 'd{n}', 1)")
        for n in range(20):
            cursor.execute("INSERT INTO pump (time, id, rpm) VALUES ('2030-01-01', ?, 1)", (f"e{n}",))
        cursor.execute("DELETE FROM pump WHERE id = 'e7'")
        with pytest.raises(ProgrammingError):
            cursor.execute("INSERT INTO pump (time, id, rpm) VALUES ('2030-01-01', 'bad', 'word')")
    with connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pump WHERE time = '2030-01-01'")
        assert cursor.fetchall() == [(59,)]


def test_adbc_deletes_and_drops(door: tuple[Server, str]) -> None:
    server, address = door
    with connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM pump WHERE id = 'a'")
        assert cursor.fetchall() == [(2,)]
        assert server.sql("SELECT rpm FROM pump", "plant") == [[2]]
        cursor.executescript("DROP TABLE pump")
    assert server.sql("SHOW TABLES", "plant") == []


def test_a_cancelled_query_ends(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--max-concurrent-queries", "1")
    with connect(server.address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT a.value + b.value FROM generate_series(1, 100000) a, generate_series(1, 100000) b")
        assert cursor.fetchone() is not None
        cursor.adbc_cancel()
        with pytest.raises(OperationalError, match="CANCELLED"):
            cursor.fetchall()
    # There is one place, so that this one has to have it.
    assert server.sql("SELECT 1") == [[1]]
    server.kill()


def test_pyarrow_reads_and_writes_tables_by_their_path(door: tuple[Server, str]) -> None:
    server, address = door
    client = flight.connect(f"grpc://{address}")
    options = flight.FlightCallOptions(headers=[(b"x-arc-tags", b"host")])
    path = flight.FlightDescriptor.for_path("Plant", "load")
    written = table(200_000)
    writer, reader = client.do_put(path, written.schema, options)
    with writer:
        writer.write_table(written, max_chunksize=65_536)
        writer.done_writing()
        assert reader.read() is not None
    info = client.get_flight_info(path)
    read = client.do_get(info.endpoints[0].ticket).read_all()
    assert read.schema == info.schema
    assert read.sort_by("n").column("n").to_pylist() == list(range(200_000))
    assert server.sql("SELECT count(DISTINCT host) FROM load", "Plant") == [[5]]
    with pytest.raises(pyarrow.ArrowNotImplementedError, match="DoExchange"):
        client.do_exchange(path)[1].read_all()
    client.close()


def test_pyarrow_logs_in_with_any_password(door: tuple[Server, str]) -> None:
    with flight.connect(f"grpc://{door[1]}") as client:
        token = client.authenticate_basic_token("somebody", "secret")
        options = flight.FlightCallOptions(headers=[token, (b"database", b"plant")])
        info = client.get_flight_info(flight.FlightDescriptor.for_path("pump"), options)
        assert client.do_get(info.endpoints[0].ticket, options).read_all().num_rows == 3


def test_the_client_of_influxdb_3_writes_and_queries(door: tuple[Server, str]) -> None:
    # It knows one address for both.
    server, _ = door
    with InfluxDBClient3(host=server.url, database="plant", token="any") as client:
        client.write(Point("pump").tag("id", "c").field("rpm", 4).time(4_000))
        assert client.query("SELECT count(*) AS n FROM pump").column("n").to_pylist() == [4]
        sql = "SELECT rpm FROM pump WHERE id = $id AND rpm < $most ORDER BY rpm"
        assert client.query(sql, query_parameters={"id": "a", "most": 2}).column("rpm").to_pylist() == [1]
        frame = client.query("SELECT id, rpm FROM pump ORDER BY rpm", mode="pandas")
        assert frame["id"].tolist() == ["a", "b", "a", "c"]
        with pytest.raises(Exception, match="influxql"):
            client.query("SELECT * FROM pump", language="influxql")
        with pytest.raises(Exception, match="nowhere"):
            client.query("SELECT * FROM nowhere")


def test_flightsql_dbapi_knows_buckets(door: tuple[Server, str]) -> None:
    host, _, port = door[1].rpartition(":")
    client = FlightSQLClient(host=host, port=int(port), insecure=True, token="any", metadata={"bucket-name": "plant"})

    def read(info: flight.FlightInfo) -> pyarrow.Table:
        return client.do_get(info.endpoints[0].ticket).read_all()

    assert read(client.execute("SELECT max(rpm) AS m FROM pump")).to_pylist() == [{"m": 3}]
    assert read(client.get_tables()).column("table_name").to_pylist() == ["pump"]
    assert read(client.get_db_schemas()).column("db_schema_name").to_pylist() == ["plant"]
    assert read(client.get_catalogs()).to_pylist() == [{"catalog_name": "arc"}]
    with client.prepare("SELECT rpm FROM pump WHERE id = $1 ORDER BY rpm") as statement:
        for host, expected in [("a", [1, 3]), ("b", [2])]:
            values = pyarrow.record_batch([[host]], names=["id"])
            assert read(statement.execute(values)).column("rpm").to_pylist() == expected
    with flightsql.connect(client) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, rpm FROM pump ORDER BY rpm")
        assert [tuple(row) for row in cursor.fetchall()] == [("a", 1), ("b", 2), ("a", 3)]
