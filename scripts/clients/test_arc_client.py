"""The Python client of the existing Arc server, from PyPI (arc-tsdb-client)."""

from __future__ import annotations

from collections.abc import Iterator

import pandas
import pytest
from arc_client import ArcClient
from conftest import Server

START_US = 1_700_000_000_000_000


@pytest.fixture
def client(server: Server) -> Iterator[ArcClient]:
    with ArcClient(host="127.0.0.1", port=server.port, token="any", database="plant") as client:
        yield client


def test_columns_arrive(client: ArcClient, server: Server) -> None:
    columns = {"time": [START_US, START_US + 1], "id": ["a", "b"], "rpm": [1450, 1451], "temp": [20.5, 21.5]}
    client.write.write_columnar("pump", columns, database="plant")
    assert server.sql("SELECT id, rpm, temp, CAST(time AS BIGINT) AS ns FROM pump ORDER BY ns", "plant") == [
        ["a", 1450, 20.5, START_US * 1_000],
        ["b", 1451, 21.5, START_US * 1_000 + 1_000],
    ]


def test_records_keep_their_own_tags(client: ArcClient, server: Server) -> None:
    tags = {"host": "h1", "region": "eu"}
    record = {"measurement": "cpu", "timestamp": START_US, "fields": {"usage": 1.5}, "tags": tags}
    client.write.write_records([record], database="plant")
    assert server.sql("SELECT host, region, usage FROM cpu", "plant") == [["h1", "eu", 1.5]]


def test_a_data_frame_arrives(client: ArcClient, server: Server) -> None:
    time = pandas.to_datetime([START_US, START_US + 1], unit="us")
    frame = pandas.DataFrame({"time": time, "id": ["a", "b"], "rpm": [1.5, 2.5]})
    client.write.write_dataframe(frame, measurement="pump", time_column="time", tag_columns=["id"], database="plant")
    assert server.sql("SELECT id, rpm FROM pump ORDER BY id", "plant") == [["a", 1.5], ["b", 2.5]]


def test_line_protocol_arrives(client: ArcClient, server: Server) -> None:
    lines = [f"pump,id={n % 3} rpm={n}i {n}" for n in range(100)]
    client.write.write_line_protocol(lines, database="plant")
    assert server.sql("SELECT count(*), sum(rpm) FROM pump", "plant") == [[100, 4950]]


def test_a_buffered_writer_loses_nothing(client: ArcClient, server: Server) -> None:
    with client.write.buffered(batch_size=100, flush_interval=60.0) as buffer:
        for n in range(1_050):
            buffer.write({"measurement": "pump", "timestamp": START_US + n, "fields": {"n": n}, "tags": {"id": "a"}})
    assert server.sql("SELECT count(*), sum(n) FROM pump", "plant") == [[1_050, 550_725]]


def test_queries_answer_in_every_form(client: ArcClient) -> None:
    client.write.write_line_protocol(["pump,id=a rpm=1i 1", "pump,id=b rpm=2i 2"], database="plant")
    sql = "SELECT id, rpm FROM pump ORDER BY id"
    answer = client.query.query(sql, database="plant")
    assert (answer.columns, answer.data, answer.row_count) == (["id", "rpm"], [["a", 1], ["b", 2]], 2)
    expected = [{"id": "a", "rpm": 1}, {"id": "b", "rpm": 2}]
    assert client.query.query_arrow(sql, database="plant").to_pylist() == expected
    assert client.query.query_pandas(sql, database="plant").astype({"id": str}).to_dict("records") == expected
    assert client.query.query_polars(sql, database="plant").to_dicts() == expected


def test_answers_are_estimated_before_they_are_asked_for(client: ArcClient) -> None:
    client.write.write_line_protocol(["pump,id=a rpm=1i 1", "pump,id=b rpm=2i 2"], database="plant")
    few = client.query.estimate("SELECT * FROM pump", database="plant")
    assert (few.success, few.estimated_rows, few.warning_level) == (True, 2, "none")
    many = client.query.estimate("SELECT * FROM generate_series(1, 2000000)")
    assert (many.estimated_rows, many.warning_level) == (2_000_000, "high")
    assert not client.query.estimate("SELECT * FROM nothing").success


def test_databases_are_listed(client: ArcClient) -> None:
    for name in ("plant", "farm"):
        client.write.write_line_protocol(["pump rpm=1i 1"], database=name)
    assert client.query.list_databases() == ["farm", "plant"]


def test_measurements_are_listed(client: ArcClient) -> None:
    client.write.write_line_protocol(["pump rpm=1i 1", "cpu usage=1 1"], database="plant")
    listed = client.query.list_measurements(database="plant")
    assert sorted(item.measurement for item in listed) == ["cpu", "pump"]


def test_the_server_is_healthy(client: ArcClient) -> None:
    assert client.health().status == "pass"
