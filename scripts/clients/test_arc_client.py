"""The Python client of the existing Arc server, from PyPI (arc-tsdb-client): every method it has, with a token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pandas
import polars
import pytest
from arc_client import ArcClient, AsyncArcClient
from arc_client.exceptions import ArcAuthenticationError, ArcError, ArcIngestionError, ArcQueryError
from conftest import Server

START_US = 1_700_000_000_000_000
LINES = ["pump,id=a rpm=1i 1", "pump,id=b rpm=2i 2"]
SQL = "SELECT id, rpm FROM pump ORDER BY id"
ROWS = [{"id": "a", "rpm": 1}, {"id": "b", "rpm": 2}]


@pytest.fixture
def client(closed: Server) -> Iterator[ArcClient]:
    with ArcClient(host="127.0.0.1", port=closed.port, token=closed.token, database="plant") as client:
        yield client


def test_columns_arrive(client: ArcClient, closed: Server) -> None:
    columns = {"time": [START_US, START_US + 1], "id": ["a", "b"], "rpm": [1450, 1451], "temp": [20.5, 21.5]}
    client.write.write_columnar("pump", columns, database="plant")
    assert closed.sql("SELECT id, rpm, temp, CAST(time AS BIGINT) AS ns FROM pump ORDER BY ns", "plant") == [
        ["a", 1450, 20.5, START_US * 1_000],
        ["b", 1451, 21.5, START_US * 1_000 + 1_000],
    ]


def test_records_keep_their_own_tags(client: ArcClient, closed: Server) -> None:
    tags = {"host": "h1", "region": "eu"}
    record = {"measurement": "cpu", "timestamp": START_US, "fields": {"usage": 1.5}, "tags": tags}
    client.write.write_records([record], database="plant")
    assert closed.sql("SELECT host, region, usage FROM cpu", "plant") == [["h1", "eu", 1.5]]


def test_a_data_frame_arrives(client: ArcClient, closed: Server) -> None:
    time = pandas.to_datetime([START_US, START_US + 1], unit="us")
    frame = pandas.DataFrame({"time": time, "id": ["a", "b"], "rpm": [1.5, 2.5]})
    client.write.write_dataframe(frame, measurement="pump", time_column="time", tag_columns=["id"], database="plant")
    numbers = polars.DataFrame({"time": [START_US + 2], "id": ["c"], "rpm": [3.5]})
    client.write.write_dataframe(numbers, measurement="pump", time_column="time", tag_columns=["id"], database="plant")
    assert closed.sql("SELECT id, rpm FROM pump ORDER BY id", "plant") == [["a", 1.5], ["b", 2.5], ["c", 3.5]]


def test_line_protocol_arrives(client: ArcClient, closed: Server) -> None:
    lines = [f"pump,id={n % 3} rpm={n}i {n}" for n in range(100)]
    client.write.write_line_protocol(lines, database="plant")
    assert closed.sql("SELECT count(*), sum(rpm) FROM pump", "plant") == [[100, 4950]]


def test_a_point_arrives(client: ArcClient, closed: Server) -> None:
    client.write.write_point("pump", tags={"id": "a b"}, fields={"rpm": 7, "on": True, "note": 'x"y'}, timestamp=1_000)
    assert closed.sql('SELECT id, rpm, "on", note FROM pump', "plant") == [["a b", 7, True, 'x"y']]


def test_a_buffered_writer_loses_nothing(client: ArcClient, closed: Server) -> None:
    with client.write.buffered(batch_size=100, flush_interval=60.0) as buffer:
        for n in range(1_050):
            buffer.write({"measurement": "pump", "timestamp": START_US + n, "fields": {"n": n}, "tags": {"id": "a"}})
    assert closed.sql("SELECT count(*), sum(n) FROM pump", "plant") == [[1_050, 550_725]]


def test_queries_answer_in_every_form(client: ArcClient) -> None:
    client.write.write_line_protocol(LINES, database="plant")
    answer = client.query.query(SQL, database="plant")
    assert (answer.columns, answer.data, answer.row_count) == (["id", "rpm"], [["a", 1], ["b", 2]], 2)
    assert client.query.query_arrow(SQL, database="plant").to_pylist() == ROWS
    assert client.query.query_pandas(SQL, database="plant").astype({"id": str}).to_dict("records") == ROWS
    assert client.query.query_polars(SQL, database="plant").to_dicts() == ROWS
    with pytest.raises(ArcQueryError, match="nothing"):
        client.query.query("SELECT nothing FROM pump")


def test_answers_are_estimated_before_they_are_asked_for(client: ArcClient) -> None:
    client.write.write_line_protocol(LINES, database="plant")
    few = client.query.estimate("SELECT * FROM pump", database="plant")
    assert (few.success, few.estimated_rows, few.warning_level) == (True, 2, "none")
    many = client.query.estimate("SELECT * FROM generate_series(1, 2000000)")
    assert (many.estimated_rows, many.warning_level) == (2_000_000, "high")
    assert not client.query.estimate("SELECT * FROM nothing").success


def test_databases_and_measurements_are_listed(client: ArcClient) -> None:
    client.write.write_line_protocol(["pump rpm=1i 1", "cpu usage=1 1"], database="plant")
    client.write.write_line_protocol(["pump rpm=1i 1"], database="farm")
    assert client.query.list_databases() == ["farm", "plant"]
    listed = client.query.list_measurements(database="plant")
    assert sorted(item.measurement for item in listed) == ["cpu", "pump"]
    assert [row[1] for row in client.query.show_tables("plant").data] == ["cpu", "pump"]


def test_the_server_is_healthy_and_ready(client: ArcClient) -> None:
    assert client.health().status == "pass"
    assert client.ready()


def test_tokens_are_made_shown_changed_and_taken_away(client: ArcClient, closed: Server) -> None:
    assert client.auth.verify().valid
    made = client.auth.create_token("user", description="of the plant", permissions=["read"], expires_in="24h")
    assert made.success and made.token
    [found] = [token for token in client.auth.list_tokens() if token.name == "user"]
    assert (found.description, found.permissions, found.enabled) == ("of the plant", ["read"], True)
    assert found.expires_at is not None

    def with_token(token: str) -> ArcClient:
        return ArcClient(host="127.0.0.1", port=closed.port, token=token, database="plant")

    client.write.write_line_protocol(LINES)
    with with_token(made.token) as user:
        assert user.query.query(SQL).row_count == 2
        with pytest.raises(ArcIngestionError, match="write required"):
            user.write.write_line_protocol(LINES)
        with pytest.raises(ArcAuthenticationError, match="admin required"):
            user.auth.list_tokens()
    client.auth.update_token(found.id, name="writer", permissions=["write"])
    assert (client.auth.get_token(found.id).name, client.auth.get_token(found.id).permissions) == ("writer", ["write"])
    rotated = client.auth.rotate_token(found.id)
    with with_token(made.token) as old, with_token(rotated) as new:
        assert (old.auth.verify().valid, new.auth.verify().valid) == (False, True)
        client.auth.revoke_token(found.id)
        assert not new.auth.verify().valid
    client.auth.delete_token(found.id)
    with pytest.raises(ArcError, match="no token"):
        client.auth.get_token(found.id)


def test_points_are_deleted(client: ArcClient) -> None:
    client.write.write_line_protocol(LINES)
    settings = client.delete.get_config()
    assert settings.enabled and settings.performance_impact["query"]
    counted = client.delete.delete("plant", "pump", "id = 'a'")
    assert (counted.deleted_count, counted.dry_run) == (1, True)
    deleted = client.delete.delete("plant", "pump", "id = 'a'", dry_run=False)
    assert (deleted.deleted_count, deleted.dry_run) == (1, False)
    assert client.query.query(SQL).data == [["b", 2]]
    with pytest.raises(ArcError, match="nothing"):
        client.delete.delete("plant", "pump", "nothing = 1")


def test_retention_policies_are_made_carried_out_and_listed(client: ArcClient) -> None:
    assert client.retention.list() == []
    client.write.write_line_protocol([*LINES, f"pump,id=c rpm=3i {time.time_ns()}"])
    made = client.retention.create("old", "plant", 30, measurement="pump", is_active=False)
    assert (made.name, made.database, made.measurement, made.retention_days) == ("old", "plant", "pump", 30)
    assert (made.buffer_days, made.is_active, made.last_execution_time) == (7, False, None)
    assert client.retention.list() == [made] == [client.retention.get(made.id)]
    with pytest.raises(ArcError, match="already"):
        client.retention.create("old", "plant", 30)

    counted = client.retention.execute(made.id)
    assert (counted.dry_run, counted.deleted_count, counted.affected_measurements) == (True, 2, ["pump"])
    assert client.retention.get_executions(made.id) == []
    done = client.retention.execute(made.id, dry_run=False, confirm=True)
    assert (done.dry_run, done.deleted_count, done.policy_name) == (False, 2, "old")
    assert client.query.query(SQL).data == [["c", 3]]
    [execution] = client.retention.get_executions(made.id, limit=5)
    assert (execution.policy_id, execution.status, execution.deleted_count) == (made.id, "completed", 2)

    changed = client.retention.update(made.id, retention_days=60, is_active=True)
    assert (changed.name, changed.retention_days, changed.buffer_days, changed.is_active) == ("old", 60, 7, True)
    assert (changed.last_execution_status, changed.last_deleted_count) == ("completed", 2)
    client.retention.delete(made.id)
    assert client.retention.list() == []
    with pytest.raises(ArcError, match="not found"):
        client.retention.get(made.id)


def test_continuous_queries(client: ArcClient) -> None:
    client.write.write_columnar("pump", {"time": [START_US, START_US + 1_000_000, START_US + 60_000_000], "id": ["7", "7", "8"], "rpm": [10, 20, 30]})
    queries = client.continuous_queries
    statement = (
        "SELECT date_trunc('minute', time) AS time, id, avg(rpm) AS rpm FROM pump WHERE time >= '{start_time}' AND time < '{end_time}' GROUP BY 1, 2"
    )
    made = queries.create("minutely", "plant", "pump", "pump_minutely", statement, "1m", description="of pumps", is_active=False)
    assert (made.name, made.interval, made.is_active, made.last_execution_status) == ("minutely", "1m", False, None)
    assert queries.list(database="plant") == [made] and queries.list(is_active=True) == []
    changed = queries.update(made.id, interval="2m", retention_days=9)
    assert (changed.interval, changed.retention_days, changed.query) == ("2m", 9, statement)

    day = datetime.fromtimestamp(START_US // 1_000_000, tz=timezone.utc)
    window = {"start_time": day, "end_time": day + timedelta(days=1)}
    tried = queries.execute(made.id, **window, dry_run=True)
    assert (tried.status, tried.records_written, tried.dry_run) == ("dry_run", 2, True)
    for _ in range(2):
        done = queries.execute(made.id, **window)
        assert (done.status, done.records_written, done.destination_measurement) == ("completed", 2, "pump_minutely")
    # Executed twice, it has given what it gives once.
    assert client.query.query("SELECT id, rpm FROM pump_minutely ORDER BY id").data == [["7", 15.0], ["8", 30.0]]
    executions = queries.get_executions(made.id)
    assert [execution.status for execution in executions] == ["completed", "completed"]
    assert executions[0].execution_id == done.execution_id
    assert queries.get(made.id).last_records_written == 2
    queries.delete(made.id)
    assert queries.list() == []
    with pytest.raises(ArcError, match="not found"):
        queries.get(made.id)


def test_nobody_comes_in_without_a_token(closed: Server) -> None:
    for token in (None, "wrong"):
        with ArcClient(host="127.0.0.1", port=closed.port, token=token) as client:
            assert client.ready() and not client.auth.verify().valid
            with pytest.raises(ArcIngestionError):
                client.write.write_line_protocol(LINES)
            with pytest.raises(ArcQueryError):
                client.query.query("SELECT 1")


def test_the_asynchronous_client_does_the_same(closed: Server) -> None:
    async def use() -> None:
        async with AsyncArcClient(host="127.0.0.1", port=closed.port, token=closed.token, database="plant") as client:
            assert (await client.health()).status == "pass" and await client.ready()
            await client.write.write_line_protocol(LINES)
            async with client.write.buffered(batch_size=10, flush_interval=60.0) as buffer:
                for n in range(25):
                    await buffer.write({"measurement": "cpu", "timestamp": START_US + n, "fields": {"n": n}, "tags": {}})
            assert (await client.query.query("SELECT count(*) FROM cpu")).data == [[25]]
            assert (await client.query.query_arrow(SQL)).to_pylist() == ROWS
            assert await client.query.list_databases() == ["plant"]
            assert (await client.auth.verify()).valid
            policy = await client.retention.create("old", "plant", 30, is_active=False)
            assert await client.retention.list() == [policy]
            assert (await client.retention.execute(policy.id)).deleted_count == 27
            assert await client.retention.get_executions(policy.id) == []
            await client.retention.delete(policy.id)
            assert (await client.delete.delete("plant", "pump", "id = 'a'", dry_run=False)).deleted_count == 1
            assert (await client.delete.get_config()).enabled

    asyncio.run(use())
