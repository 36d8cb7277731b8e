"""Clients of a server that asks for tokens and encrypts: each logs in as its own documentation says."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pytest
from conftest import Server
from influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client_3 import InfluxDBClient3
from pyarrow import flight


def test_influxdb_client_writes_with_its_token(closed: Server) -> None:
    server, token = closed, closed.token
    with InfluxDBClient(server.url, token=token, org="any") as client:
        client.write_api(write_options=SYNCHRONOUS).write("plant", "any", "pump,id=7 rpm=1i 1")
        assert client.ping()
        assert client.health().status == "pass"
        assert [bucket.name for bucket in client.buckets_api().find_buckets().buckets] == ["plant"]
        client.delete_api()
    with InfluxDBClient(server.url, token="wrong", org="any") as client, pytest.raises(Exception, match="401"):
        client.write_api(write_options=SYNCHRONOUS).write("plant", "any", "pump,id=7 rpm=1i 1")


def test_influxdb_3_client_writes_and_asks(closed: Server) -> None:
    server, token = closed, closed.token
    with InfluxDBClient3(host=server.url, database="plant", token=token) as client:
        client.write("pump,id=7 rpm=1i 1")
        assert client.query("SELECT rpm FROM pump").to_pylist() == [{"rpm": 1}]


def test_influxdb_clients_speak_tls(encrypted: Server) -> None:
    cert = str(encrypted.cert)
    with InfluxDBClient(encrypted.url, token=encrypted.token, org="any", ssl_ca_cert=cert) as client:
        client.write_api(write_options=SYNCHRONOUS).write("plant", "any", "pump,id=7 rpm=1i 1")
        assert client.ping()
    options = {"tls_root_certs": Path(cert).read_bytes()}
    with InfluxDBClient3(
        host=encrypted.url, database="plant", token=encrypted.token, ssl_ca_cert=cert, flight_client_options=options
    ) as client:
        client.write("pump,id=8 rpm=2i 1")
        assert client.query("SELECT rpm FROM pump ORDER BY id").to_pylist() == [{"rpm": 1}, {"rpm": 2}]
    login = {"adbc.flight.sql.authorization_header": f"Bearer {encrypted.token}", "adbc.flight.sql.client_option.tls_root_certs": Path(cert).read_text()}
    with flight_sql.connect(f"grpc+tls://{encrypted.address}", db_kwargs=login) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT rpm FROM plant.pump WHERE id = ?", ("8",))
        assert cursor.fetchall() == [(2,)]


def test_flight_logs_in_by_a_handshake(closed: Server) -> None:
    server, token = closed, closed.token
    server.post("/write?db=plant", b"pump,id=7 rpm=1i 1", authorization=f"Token {token}")
    client = flight.connect(f"grpc://{server.address}")
    header = client.authenticate_basic_token("anyone", token)
    ticket = flight.Ticket(b'{"database": "plant", "sql_query": "SELECT rpm FROM pump"}')
    table = client.do_get(ticket, flight.FlightCallOptions(headers=[header])).read_all()
    assert table.to_pylist() == [{"rpm": 1}]
    with pytest.raises(flight.FlightUnauthenticatedError):
        client.do_get(ticket).read_all()
    login = {"username": "anyone", "password": token}
    with flight_sql.connect(f"grpc://{server.address}", db_kwargs=login) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT rpm FROM plant.pump")
        assert cursor.fetchall() == [(1,)]


def test_connections_are_encrypted(tmp_path: Path) -> None:
    program = os.environ["TESTED_SERVER"]
    subprocess.run([program, "cert", "--to", str(tmp_path)], check=True, capture_output=True)
    cert = tmp_path / "cert.pem"
    server = Server(tmp_path / "data", "--tls-cert", str(cert), "--tls-key", str(tmp_path / "key.pem"))
    try:
        context = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(f"https://{server.address}/health", context=context) as answer:
            assert answer.status == 200
        client = flight.connect(f"grpc+tls://{server.address}", tls_root_certs=cert.read_bytes())
        ticket = flight.Ticket(b'{"database": "plant", "sql_query": "SELECT 1 AS one"}')
        assert client.do_get(ticket).read_all().to_pylist() == [{"one": 1}]
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"https://{server.address}/health")
    finally:
        server.kill()


def test_the_last_lines_of_the_log_are_told_without_any_token(closed: Server) -> None:
    closed.post(f"/write?db=plant&p={closed.token}", b"pump,id=7 rpm=1i 1", authorization="")
    closed.post(f"/api/v1/query?p={closed.token}", f'{{"sql": "SELECT {closed.token}"}}'.encode())
    status, answer = closed.ask("GET", "/api/v1/logs?limit=1000&since_minutes=5")
    assert status == 200, answer
    logs = json.loads(answer)
    assert logs["count"] == len(logs["logs"]) > 0
    assert any(closed.address in line["message"] for line in logs["logs"]), logs
    assert {"timestamp", "level", "component", "message"} == set(logs["logs"][0])
    assert closed.token not in answer.decode() and closed.token not in "".join(closed.log)
