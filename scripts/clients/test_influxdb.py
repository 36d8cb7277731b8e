"""InfluxDB's own Python client, writing through the API of InfluxDB 2."""

from __future__ import annotations

import pytest
from conftest import Server
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException


def client(server: Server) -> InfluxDBClient:
    return InfluxDBClient(server.url, token="any", org="any", enable_gzip=True)


def test_points_of_every_type_arrive(server: Server) -> None:
    point = Point("pump").tag("id", "a b").field("rpm", 1450).field("temp", 20.5).field("on", True).field("note", 'x"y')
    with client(server) as influx, influx.write_api(write_options=SYNCHRONOUS) as api:
        api.write("plant", record=point.time(1_700_000_000_000_000_000, WritePrecision.NS))
    assert server.sql('SELECT id, rpm, temp, "on", note, CAST(time AS BIGINT) FROM pump', "plant") == [
        ["a b", 1450, 20.5, True, 'x"y', 1_700_000_000_000_000_000]
    ]


@pytest.mark.parametrize(
    ("precision", "nanoseconds"),
    [(WritePrecision.S, 10**9), (WritePrecision.MS, 10**6), (WritePrecision.US, 10**3), (WritePrecision.NS, 1)],
)
def test_timestamps_keep_their_precision(server: Server, precision: WritePrecision, nanoseconds: int) -> None:
    with client(server) as influx, influx.write_api(write_options=SYNCHRONOUS) as api:
        api.write("plant", record="pump rpm=1i 1700000000", write_precision=precision)
    assert server.sql("SELECT CAST(time AS BIGINT) FROM pump", "plant") == [[1_700_000_000 * nanoseconds]]


def test_batches_written_in_the_background_all_arrive(server: Server) -> None:
    options = WriteOptions(batch_size=500, flush_interval=100)
    with client(server) as influx, influx.write_api(write_options=options) as api:
        for n in range(5_000):
            api.write("plant", record=Point("pump").tag("id", str(n % 10)).field("n", n).time(n))
    assert server.sql("SELECT count(*), sum(n), count(DISTINCT id) FROM pump", "plant") == [[5_000, 12_497_500, 10]]


def test_a_bad_line_is_named_and_the_good_ones_stored(server: Server) -> None:
    with client(server) as influx, influx.write_api(write_options=SYNCHRONOUS) as api:
        with pytest.raises(ApiException) as raised:
            api.write("plant", record="pump rpm=1i 1\npump rpm=\npump rpm=3i 3")
    assert raised.value.status == 400
    assert "line" in str(raised.value.body)
    assert server.sql("SELECT sum(rpm), count(*) FROM pump", "plant") == [[4, 2]]


def test_the_server_says_that_it_is_there(server: Server) -> None:
    with client(server) as influx:
        assert influx.ping()
