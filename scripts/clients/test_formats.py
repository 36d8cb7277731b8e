"""Answers in every format, read by the libraries that people read them with."""

from __future__ import annotations

import http.client
import io
import json
import time
import urllib.error
import urllib.request
from typing import Any

import httpx
import msgpack
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import Server

LINES = b"""pump,id=a rpm=1i,temp=20.5,note="x, \\"y\\"" 1700000000000000001
pump,id=b rpm=2i,on=true 1700000001500000000
pump,id=c temp=-1.5,note="" 1700000002000000000"""
SQL = 'SELECT time, id, rpm, temp, "on", note FROM pump ORDER BY time'
NOTES = ['x, "y"', None, ""]
LATE = "SELECT value, 1 / (value - 2999999) AS r FROM generate_series(1, 3000000)"


def ask(server: Server, sql: str, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = httpx.post(server.url + "/api/v1/query?db=plant", json={"sql": sql}, headers=names, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.fixture
def plant(server: Server) -> Server:
    assert server.post("/write?db=plant", LINES)[0] == 204
    return server


def test_csv_is_read_by_pandas_and_polars(plant: Server) -> None:
    text = ask(plant, SQL, accept="text/csv").content
    frame = pandas.read_csv(io.BytesIO(text), parse_dates=["time"])
    assert frame["time"].iloc[0] == pandas.Timestamp("2023-11-14T22:13:20.000000001Z")
    assert frame["rpm"].tolist()[:2] == [1, 2] and frame["rpm"].isna().tolist() == [False, False, True]
    assert frame["note"].iloc[0] == NOTES[0]
    assert polars.read_csv(text)["id"].to_list() == ["a", "b", "c"]
    one = pandas.read_csv(io.BytesIO(ask(plant, "SELECT rpm FROM pump ORDER BY time", accept="text/csv").content))
    assert len(one) == 3


def test_ndjson_is_read_by_pandas_and_polars(plant: Server) -> None:
    text = ask(plant, SQL, accept="application/x-ndjson").content
    assert [json.loads(line)["note"] for line in text.splitlines()] == NOTES
    assert pandas.read_json(io.BytesIO(text), lines=True)["id"].tolist() == ["a", "b", "c"]
    assert polars.read_ndjson(text)["temp"].to_list() == [20.5, None, -1.5]


def test_msgpack_is_read_by_its_library(plant: Server) -> None:
    answer = plant.post("/api/v1/query/msgpack?db=plant", json.dumps({"sql": SQL}).encode())[1]
    table: dict[str, Any] = msgpack.unpackb(answer, timestamp=2)
    names = ["success", "columns", "types", "data", "row_count", "execution_time_ms", "timestamp"]
    assert list(table) == names and table["success"] is True
    assert table["types"] == ["timestamp[ns]", "utf8", "int64", "float64", "bool", "utf8"]
    columns = dict(zip(table["columns"], table["data"]))
    assert columns["time"] == [1700000000000000001, 1700000001500000000, 1700000002000000000]
    assert columns["rpm"] == [1, 2, None] and columns["note"] == NOTES


def test_parquet_and_arrow_are_read_by_pyarrow(plant: Server) -> None:
    parquet = ask(plant, SQL, accept="application/vnd.apache.parquet").content
    arrow = ask(plant, SQL, accept="application/vnd.apache.arrow.stream").content
    table = pyarrow.parquet.read_table(io.BytesIO(parquet))
    assert table.schema.field("time").type == pyarrow.timestamp("ns", "UTC")
    assert table.column("note").to_pylist() == NOTES
    assert pyarrow.ipc.open_stream(arrow).read_all().to_pylist() == table.to_pylist()
    assert polars.read_parquet(io.BytesIO(parquet))["rpm"].to_list() == [1, 2, None]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_long_answers_come_compressed(plant: Server, coding: str) -> None:
    sql = "SELECT value, 'a text that is always the same' AS t FROM generate_series(1, 300000)"
    request = urllib.request.Request(
        plant.url + "/api/v1/query?format=csv", json.dumps({"sql": sql}).encode(), {"Accept-Encoding": coding}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Encoding"] == coding
        packed = pyarrow.CompressedInputStream(pyarrow.BufferReader(answer.read()), coding)
    assert packed.read().count(b"\n") == 300_001


@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "arrow", "parquet"])
def test_an_answer_that_fails_midway_is_an_error_of_the_client(plant: Server, form: str) -> None:
    url, body = plant.url + f"/api/v1/query?format={form}", {"sql": LATE}
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(url, json=body, timeout=60)
    request = urllib.request.Request(url, json.dumps(body).encode())
    with pytest.raises(http.client.IncompleteRead), urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def test_a_query_is_seen_and_ended_from_outside(plant: Server) -> None:
    endless = json.dumps({"sql": "SELECT value FROM generate_series(1, 1000000000000)"}).encode()
    with urllib.request.urlopen(plant.url + "/api/v1/query?format=ndjson", endless, timeout=60) as answer:
        [query] = httpx.get(plant.url + "/api/v1/queries").json()["queries"]
        assert (query["id"], query["state"], query["format"]) == (answer.headers["x-arc-query-id"], "running", "ndjson")
        assert httpx.delete(plant.url + "/api/v1/queries/" + query["id"]).status_code == 200
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
    while httpx.get(plant.url + "/api/v1/queries").json()["count"]:
        time.sleep(0.01)
    assert plant.sql("SELECT 1") == [[1]]
