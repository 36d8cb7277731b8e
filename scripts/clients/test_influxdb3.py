"""InfluxDB 3 over HTTP: its own Python client for writes, and plain requests for SQL. Queries by Flight are in test_flight.py."""

from __future__ import annotations

import io
from typing import Any

import httpx
import pandas
import pyarrow.parquet
import pytest
from conftest import Server
from influxdb_client_3 import InfluxDBClient3, Point, WriteOptions, WritePrecision
from influxdb_client_3.exceptions import InfluxDBError

START = 1_700_000_000


def client(server: Server, **options: Any) -> InfluxDBClient3:
    return InfluxDBClient3(host=server.url, database="plant", token="any", write_use_v2_api=False, **options)


def sql(server: Server, query: str, **params: Any) -> httpx.Response:
    answer = httpx.get(server.url + "/api/v3/query_sql", params={"db": "plant", "q": query, **params}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize(
    ("precision", "unit"),
    [(WritePrecision.S, 10**9), (WritePrecision.MS, 10**6), (WritePrecision.US, 10**3), (WritePrecision.NS, 1)],
)
def test_the_client_writes_points(server: Server, precision: str, unit: int) -> None:
    with client(server) as influx:
        point = Point("pump").tag("id", "a").field("rpm", 1450).field("on", True).field("note", 'x"y')
        influx.write(point.time(START, precision), write_precision=precision)
    assert server.sql('SELECT id, rpm, "on", note, CAST(time AS BIGINT) FROM pump', "plant") == [
        ["a", 1450, True, 'x"y', START * unit]
    ]


@pytest.mark.parametrize("no_sync", [False, True])
def test_the_client_writes_data_frames(server: Server, no_sync: bool) -> None:
    frame = pandas.DataFrame({"time": pandas.to_datetime([START, START + 1], unit="s"), "id": ["a", "b"], "rpm": [1.5, 2.5]})
    with client(server, write_no_sync=no_sync) as influx:
        influx.write(frame, data_frame_measurement_name="pump", data_frame_tag_columns=["id"], data_frame_timestamp_column="time")
    assert server.sql("SELECT id, rpm FROM pump ORDER BY id", "plant") == [["a", 1.5], ["b", 2.5]]


@pytest.mark.parametrize(("accept_partial", "stored"), [(True, 2), (False, 0)])
def test_the_client_is_told_which_lines_were_refused(server: Server, accept_partial: bool, stored: int) -> None:
    lines = f"pump rpm=1i {START}\npump rpm= {START}\npump rpm=3i {START + 2}"
    with client(server, write_accept_partial=accept_partial) as influx, pytest.raises(InfluxDBError) as raised:
        influx.write(lines, write_precision=WritePrecision.S)
    assert "line 2:" in raised.value.message and "pump rpm= " in raised.value.message
    tables = server.sql("SHOW TABLES", "plant") if stored else []
    assert len(tables) == bool(stored)
    if stored:
        assert server.sql("SELECT count(*) FROM pump", "plant") == [[stored]]


def test_batches_in_the_background_all_arrive(server: Server) -> None:
    options = WriteOptions(batch_size=500, flush_interval=100)
    with client(server, write_client_options={"write_options": options}) as influx:
        for n in range(5_000):
            influx.write(Point("pump").tag("id", str(n % 10)).field("n", n).time(START * 10**9 + n))
    assert server.sql("SELECT count(*), sum(n) FROM pump", "plant") == [[5_000, 12_497_500]]


def test_the_server_has_a_version(server: Server) -> None:
    with client(server) as influx:
        assert influx.get_server_version()


def test_sql_is_answered_in_every_format(server: Server) -> None:
    lines = f"pump,id=a rpm=1i {START}\npump,id=b temp=2.5 {START + 1}".encode()
    assert server.post("/api/v3/write_lp?db=plant", lines)[0] == 204
    query = "SELECT time, id, rpm FROM pump ORDER BY time"
    expected = [{"time": "2023-11-14T22:13:20", "id": "a", "rpm": 1}, {"time": "2023-11-14T22:13:21", "id": "b"}]
    assert sql(server, query).json() == expected
    jsonl = sql(server, query, format="jsonl")
    assert pandas.read_json(io.BytesIO(jsonl.content), lines=True)["id"].tolist() == ["a", "b"]
    csv = pandas.read_csv(io.BytesIO(sql(server, query, format="csv").content), parse_dates=["time"])
    assert csv["time"].tolist() == [pandas.Timestamp(START, unit="s"), pandas.Timestamp(START + 1, unit="s")]
    assert sql(server, query, format="pretty").text.count("\n") == 5
    parquet = pyarrow.parquet.read_table(io.BytesIO(sql(server, query, format="parquet").content))
    assert parquet.column("rpm").to_pylist() == [1, None]
    posted = httpx.post(
        server.url + "/api/v3/query_sql",
        json={"db": "plant", "q": "SELECT rpm FROM pump WHERE id = $id", "params": {"id": "a"}, "format": "json"},
    )
    assert posted.json() == [{"rpm": 1}]
    refused = httpx.get(server.url + "/api/v3/query_sql", params={"db": "plant", "q": "SELECT * FROM nothing"})
    assert refused.status_code == 404 and "nothing" in refused.json()["error"]
