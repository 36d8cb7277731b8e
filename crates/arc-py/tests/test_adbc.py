"""The ADBC driver, through the driver manager, as every other language has it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arc
import arc.adbc
import pandas
import pyarrow
import pytest

dbapi = pytest.importorskip("adbc_driver_manager.dbapi")
manager = pytest.importorskip("adbc_driver_manager")

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value > b.value"


@pytest.fixture
def connection(folder: Path) -> Iterator[Any]:
    with arc.adbc.connect(folder, database="plant") as connection:
        yield connection


def raw(**options: str) -> Any:
    return dbapi.connect(driver=arc.adbc.driver(), entrypoint=arc.adbc.ENTRYPOINT, db_kwargs=options, autocommit=True)


def pumps(count: int, first: int = 0) -> pyarrow.Table:
    times = pyarrow.array(range(first, first + count), pyarrow.timestamp("ns"))
    names = pyarrow.array([f"p{n % 3}" for n in range(first, first + count)])
    return pyarrow.table({"time": times, "id": names, "rpm": pyarrow.array(range(first, first + count), pyarrow.int64())})


def counted(connection: Any, table: str = "pump") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        return int(cursor.fetchone()[0])


def test_statements_change_and_read(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE pump (time TIMESTAMP, id VARCHAR, rpm BIGINT, PRIMARY KEY (id, time))")
        cursor.execute("INSERT INTO pump VALUES ('2026-01-01T00:00:00Z', '7', 1450)")
        cursor.executemany("INSERT INTO pump (time, id, rpm) VALUES ($1, $2, $3)", [(1, "8", 1), (2, "8", 2)])
        assert cursor.rowcount == 2
        cursor.execute("SELECT id, rpm FROM pump ORDER BY rpm")
        assert cursor.fetchall() == [("8", 1), ("8", 2), ("7", 1450)]
        cursor.execute("SELECT * FROM pump WHERE rpm > $1", [1])
        table = cursor.fetch_arrow_table()
        assert table.num_rows == 2
        # Not every language knows dictionaries.
        assert [str(field.type) for field in table.schema] == ["timestamp[ns, tz=UTC]", "string", "int64"]
        cursor.execute("DELETE FROM pump WHERE id = '8'")
        connection.commit()
    assert counted(connection) == 1


def test_values_run_a_query_once_for_each_row(connection: Any) -> None:
    with connection.cursor() as cursor:
        values = pyarrow.record_batch({"$1": pyarrow.array([3, 5, 8])})
        cursor.adbc_statement.set_sql_query("SELECT $1 * 10 AS ten")
        cursor.adbc_statement.bind(values)
        stream, _ = cursor.adbc_statement.execute_query()
        assert pyarrow.RecordBatchReader.from_stream(stream).read_all()["ten"].to_pylist() == [30, 50, 80]
        cursor.adbc_prepare("SELECT rpm FROM (VALUES (1)) AS t(rpm) WHERE rpm = $1")
        assert cursor.adbc_statement.get_parameter_schema() is not None


def test_rows_are_ingested_in_every_mode(connection: Any) -> None:
    with connection.cursor() as cursor:
        with pytest.raises(dbapi.ProgrammingError, match='table "pump" does not exist'):
            cursor.adbc_ingest("pump", pumps(3), mode="append")
        cursor.adbc_statement.set_options(**{"arc.tags": "id"})
        assert cursor.adbc_ingest("pump", pumps(3), mode="create") == 3
        with pytest.raises(dbapi.DatabaseError, match='table "pump" exists already'):
            cursor.adbc_ingest("pump", pumps(3), mode="create")
        # The same rows again are the same rows: the tags identify them.
        assert cursor.adbc_ingest("pump", pumps(3), mode="append") == 3
        assert counted(connection) == 3
        assert cursor.adbc_ingest("pump", pumps(2, 10), mode="create_append") == 2
        assert counted(connection) == 5
        assert cursor.adbc_ingest("pump", pumps(1), mode="replace") == 1
        assert counted(connection) == 1
        cursor.adbc_ingest("pump", pumps(4), mode="create", db_schema_name="other")
        cursor.execute("SELECT count(*) FROM other.pump")
        assert cursor.fetchone() == (4,)


def test_a_long_stream_is_stored_in_parts(connection: Any) -> None:
    rows = 2_000_000
    table = pyarrow.table({"time": pyarrow.array(range(rows), pyarrow.timestamp("ns")), "rpm": pyarrow.array(range(rows))})
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("many", table, mode="create") == rows
        cursor.execute("SELECT count(*), sum(rpm) FROM many")
        assert cursor.fetchone() == (rows, rows * (rows - 1) // 2)


def test_a_stream_that_fails_says_what_is_stored(connection: Any) -> None:
    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield from pumps(3).to_batches()
        raise RuntimeError("the source is gone")

    with connection.cursor() as cursor:
        stream = pyarrow.RecordBatchReader.from_batches(pumps(1).schema, batches())
        with pytest.raises(dbapi.Error, match="the source is gone"):
            cursor.adbc_ingest("pump", stream, mode="create")
        cursor.adbc_ingest("kept", pumps(3), mode="create")
        nothing = pyarrow.RecordBatchReader.from_batches(pumps(1).schema, (1 // 0 for _ in range(1)))
        with pytest.raises(dbapi.Error, match="cannot be read"):
            cursor.adbc_ingest("kept", nothing, mode="replace")
        assert counted(connection, "kept") == 3
        missing = pumps(2).set_column(0, "time", pyarrow.array([1, None], pyarrow.timestamp("ns")))
        for odd in (pumps(1).drop_columns(["time"]), missing, pumps(1).append_column("x" * 300, pyarrow.array([1]))):
            with pytest.raises(dbapi.Error):
                cursor.adbc_ingest("kept", odd, mode="replace")
            assert counted(connection, "kept") == 3
        odd = pumps(1).drop_columns(["time"])
        with pytest.raises(dbapi.Error, match="time"):
            cursor.adbc_ingest("pump", odd, mode="create_append")


def test_pandas_reads_and_writes(connection: Any) -> None:
    frame = pandas.DataFrame({"time": pandas.to_datetime([1, 2], utc=True), "rpm": [1.5, 2.5]})
    assert frame.to_sql("pump", connection, index=False) == 2
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql("pump", connection, index=False)
    frame.to_sql("pump", connection, index=False, if_exists="append")
    read = pandas.read_sql("SELECT rpm FROM pump ORDER BY rpm", connection)
    assert read["rpm"].tolist() == [1.5, 1.5, 2.5, 2.5]
    frame.to_sql("pump", connection, index=False, if_exists="replace")
    assert counted(connection) == 2


def test_metadata_is_nested_and_filtered(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"arc.tags": "id"})
        cursor.adbc_ingest("pump", pumps(1), mode="create")
    with connection.cursor() as cursor:
        cursor.adbc_ingest("valve", pumps(1).select(["time", "rpm"]), mode="create")
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Arc" and info["driver_adbc_version"] == 1_001_000
    assert connection.adbc_get_table_types() == ["TABLE"]
    schema = connection.adbc_get_table_schema("pump", db_schema_filter="plant")
    assert [(field.name, str(field.type)) for field in schema][1:] == [("id", "string"), ("rpm", "int64")]
    with pytest.raises(dbapi.ProgrammingError, match='table "absent" does not exist'):
        connection.adbc_get_table_schema("absent")

    def objects(**filters: str) -> Any:
        found = connection.adbc_get_objects(**filters).read_all().to_pylist()
        return {
            schema["db_schema_name"]: schema["db_schema_tables"]
            for catalog in found
            for schema in catalog["catalog_db_schemas"] or []
        }

    whole = objects()["plant"]
    assert [table["table_name"] for table in whole] == ["pump", "valve"]
    assert [column["column_name"] for column in whole[0]["table_columns"]] == ["time", "id", "rpm"]
    assert [column["xdbc_type_name"] for column in whole[0]["table_columns"]][1:] == ["Utf8", "Int64"]
    assert whole[0]["table_constraints"][0]["constraint_column_names"] == ["id", "time"]
    assert objects(depth="db_schemas")["plant"] is None
    tables = objects(depth="tables", table_name_filter="%_ump")["plant"]
    assert [(table["table_name"], table["table_columns"]) for table in tables] == [("pump", None)]
    for pattern, expected in [("r%", ["rpm"]), ("%", ["time", "id", "rpm"]), ("i_", ["id"]), ("", []), ("%m%", ["time", "rpm"])]:
        columns = objects(table_name_filter="pump", column_name_filter=pattern)["plant"][0]["table_columns"]
        assert [column["column_name"] for column in columns] == expected, pattern
    assert objects(catalog_filter="absent") == {} and objects(db_schema_filter="p_") == {}


def test_partitions_are_read_by_any_connection(connection: Any, folder: Path) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest("pump", pumps(5), mode="create")
        partitions, schema = cursor.adbc_execute_partitions("SELECT rpm FROM pump")
        assert schema.names == ["rpm"]
    with arc.adbc.connect(folder) as other, other.cursor() as cursor:
        cursor.adbc_read_partition(partitions[0])
        assert len(cursor.fetchall()) == 5
        with pytest.raises(dbapi.Error, match="no partition of this driver"):
            cursor.adbc_read_partition(b"nonsense")


def test_an_error_of_the_first_rows_is_one_of_the_statement(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest("pump", pumps(10))
        with pytest.raises(dbapi.ProgrammingError, match="(?i)divide by zero"):
            cursor.execute("SELECT 1 / (rpm - 5) FROM pump")
        cursor.execute("SELECT rpm FROM pump WHERE rpm > 8")
        assert cursor.fetchall() == [(9,)]


def test_ctrl_c_ends_an_ingest(folder: Path) -> None:
    program = """
import arc.adbc, os, pyarrow, signal, sys, threading, time

schema = pyarrow.schema([("time", pyarrow.int64()), ("v", pyarrow.int64())])

def endless():
    for n in range(10**9):
        yield pyarrow.record_batch([pyarrow.array([n]), pyarrow.array([n])], schema)
        time.sleep(0.01)

connection = arc.adbc.connect(sys.argv[1])
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
with connection.cursor() as cursor:
    try:
        cursor.adbc_ingest("t", pyarrow.RecordBatchReader.from_batches(schema, endless()))
    except (KeyboardInterrupt, connection.Error) as error:
        print("interrupted", str(error).rpartition(" ")[2])
    cursor.execute("SELECT 1")
    print(cursor.fetchall())
connection.close()
"""
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("interrupted cancelled\n[(1,)]\n", "")


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
@pytest.mark.parametrize(
    ("read", "rows"),
    [("polars.read_database(sql, c)", "*"), ("polars.read_database(sql, c)", "count(*)"), ("pandas.read_sql(sql, c)", "count(*)")],
)
def test_ctrl_c_ends_a_query(folder: Path, read: str, rows: str) -> None:
    """Polars reads in Rust, where no driver manager looks for signals."""
    program = f"""
import os, polars, pandas, signal, sys, threading
import arc
c = arc.adbc.connect(sys.argv[1])
k = c.cursor()
polars.read_database("SELECT 1 AS x", c), pandas.read_sql("SELECT 1 AS x", c)
sql = "SELECT {rows} FROM generate_series(1, 1000000000000)"
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {read}
except BaseException as error:
    print(isinstance(error, KeyboardInterrupt) or "cancelled" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_query_is_cancelled_by_another_thread(connection: Any) -> None:
    with connection.cursor() as cursor:

        def cancel() -> None:
            time.sleep(0.5)
            cursor.adbc_cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises((dbapi.Error, pyarrow.ArrowException), match="was cancelled"):
            cursor.execute(ENDLESS)
            cursor.fetchall()
        thread.join()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "uri.* is missing"),
        ({"uri": "grpc+tls://host:443"}, "adbc_driver_flightsql"),
        ({"uri": "s3://bucket"}, "which a server writes to"),
        ({"uri": "ftp://x"}, "expected a path"),
        ({"uri": "file://host/x"}, "names a host"),
        ({"uri": "x", "arc.mode": "w"}, "none of r, rw"),
        ({"uri": "x", "arc.durability": "hard"}, "expected disk, process or memory"),
        ({"uri": "x", "colour": "red"}, 'no option "colour"'),
        ({"uri": "/absent/folder", "arc.mode": "r"}, "absent"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(dbapi.Error, match=message):
        raw(**options)


def test_bad_statements_are_named(connection: Any, folder: Path) -> None:
    with connection.cursor() as cursor:
        for sql, message in [("SELEC 1", "SELEC"), ("SELECT * FROM absent", "absent"), ("SELECT $1", "1 placeholders")]:
            with pytest.raises(dbapi.Error, match=message):
                cursor.execute(sql)
        with pytest.raises(dbapi.Error, match="INSERT alone takes values"):
            cursor.execute("DELETE FROM pump WHERE rpm > $1", [1])
        for mode, options in [("create", {"catalog_name": "other"}), ("create", {"temporary": True})]:
            with pytest.raises(dbapi.Error, match="catalog|temporary"):
                cursor.adbc_ingest("pump", pumps(1), mode=mode, **options)
    with pytest.raises(manager.NotSupportedError, match="no transactions"):
        connection.adbc_connection.set_autocommit(False)
    uri = {"uri": str(folder), "arc.mode": "r"}
    with raw(**uri) as reader, reader.cursor() as cursor, pytest.raises(dbapi.Error, match="only reads"):
        cursor.execute("CREATE DATABASE d")


def test_connections_of_a_process_share_a_folder_and_other_processes_read_it(folder: Path) -> None:
    with arc.adbc.connect(folder, database="plant") as first, arc.adbc.connect(str(folder), database="plant") as second:
        with first.cursor() as cursor:
            cursor.adbc_ingest("pump", pumps(2), mode="create")
        assert counted(second) == 2
        program = "import arc.adbc, sys\nwith arc.adbc.connect(sys.argv[1], database='plant', mode=sys.argv[2]) as c, c.cursor() as k:\n    k.execute('SELECT count(*) FROM pump')\n    print(k.fetchall())"
        command = [sys.executable, "-c", program, str(folder)]
        done = subprocess.run([*command, "r"], check=False, capture_output=True, text=True, timeout=120)
        assert done.stdout == "[(2,)]\n", done.stderr
        done = subprocess.run([*command, "rw"], check=False, capture_output=True, text=True, timeout=120)
        assert 'set the option "arc.mode" to "r"' in done.stderr
    # The last connection has closed it.
    with arc.open(folder) as engine:
        assert engine.sql("plant", "SELECT count(*) FROM pump").fetchall() == [(2,)]


@pytest.mark.parametrize("by", ["ingest", "insert"])
def test_each_connection_has_its_own_durability(folder: Path, by: str) -> None:
    script = f"""
import os, arc.adbc, pyarrow
first = arc.adbc.connect({str(folder)!r}, durability="memory")
second = arc.adbc.connect({str(folder)!r}, durability="disk")
with second.cursor() as cursor:
    if {by!r} == "ingest":
        cursor.adbc_ingest("pump", pyarrow.table({{"time": [1, 2, 3], "v": [1, 2, 3]}}))
    else:
        cursor.execute("CREATE TABLE pump (time TIMESTAMP, v BIGINT)")
        cursor.execute("INSERT INTO pump VALUES (1, 1), (2, 2), (3, 3)")
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == -9
    with arc.adbc.connect(folder) as connection:
        assert counted(connection) == 3


def test_options_of_rows_stay_after_a_statement(connection: Any) -> None:
    with connection.cursor(adbc_stmt_kwargs={"arc.tags": "id"}) as cursor:
        for mode in ("create", "append"):
            cursor.execute("SELECT 1")
            cursor.adbc_ingest("pump", pumps(3), mode=mode)
        cursor.adbc_ingest("pump", pumps(1), db_schema_name="other")
        cursor.execute("SELECT 1")
        cursor.adbc_ingest("pump", pumps(1), mode="append")
    assert counted(connection) == 3


def test_an_open_engine_gives_connections(folder: Path) -> None:
    engine = arc.open(folder, durability="memory")
    engine.write("pump", pumps(2), tags=["id"], database="plant")
    connection = engine.adbc("plant")
    assert counted(connection) == 2
    pumps(3, first=2).to_pandas().to_sql("pump", connection, if_exists="append", index=False)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO pump VALUES (5, 'x', 5)")
    assert len(engine.plant.pump) == 6
    # The folder is free once both are closed.
    engine.close()
    assert counted(connection) == 6
    connection.close()
    with arc.open(folder, mode="r") as reader, reader.adbc("plant") as connection:
        assert counted(connection) == 6


@pytest.mark.parametrize("how", ["connect", "adbc"])
def test_a_connection_to_an_engine_of_memory_survives_a_kill(folder: Path, how: str) -> None:
    program = """
import arc, arc.adbc, os, pyarrow, signal, sys
engine = arc.open(sys.argv[1], durability="memory")
connection = engine.adbc("plant") if sys.argv[2] == "adbc" else arc.adbc.connect(sys.argv[1], database="plant")
with connection.cursor() as cursor:
    cursor.adbc_ingest("pump", pyarrow.table({"time": [1, 2], "v": [1, 2]}))
    cursor.execute("INSERT INTO pump VALUES (3, 3)")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(folder), how], check=False)
    with arc.open(folder) as engine:
        assert len(engine.plant.pump) == 3


def test_values_by_name(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE pump (time TIMESTAMP, id VARCHAR, rpm BIGINT)")
        cursor.execute("INSERT INTO pump VALUES (1, $id, $rpm)", {"rpm": 7, "id": "a"})
        cursor.execute("SELECT rpm FROM pump WHERE id = $id", {"id": "a"})
        assert cursor.fetchall() == [(7,)]
        cursor.execute("SELECT rpm FROM pump WHERE id = $1", ["a"])
        assert cursor.fetchall() == [(7,)]


def test_a_folder_opens_while_another_thread_closes_it(folder: Path) -> None:
    arc.adbc.connect(folder).close()
    failed: list[BaseException] = []

    def use() -> None:
        try:
            for _ in range(20):
                with arc.adbc.connect(folder) as connection, connection.cursor() as cursor:
                    cursor.adbc_ingest("pump", pumps(2_000), mode="create_append")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with arc.adbc.connect(folder) as connection:
        assert counted(connection) == 4 * 20 * 2_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_is_refused_and_hangs_nowhere(folder: Path) -> None:
    script = f"""
import os, signal, warnings, arc.adbc, pyarrow
warnings.simplefilter("ignore")
connection = arc.adbc.connect({str(folder)!r}, database="plant")
cursor = connection.cursor()
cursor.adbc_ingest("pump", pyarrow.table({{"time": [1], "v": [1]}}))
cursor.execute("SELECT * FROM generate_series(1, 1000000)")
child = os.fork()
if not child:
    signal.alarm(30)
    calls = [
        lambda: cursor.fetchall(),
        lambda: connection.cursor().execute("SELECT 1"),
        lambda: connection.cursor().adbc_ingest("pump", pyarrow.table({{"time": [1], "v": [1]}}), mode="append"),
        lambda: arc.adbc.connect({str(folder)!r} + "2"),
        lambda: arc.adbc.connect({str(folder)!r}, mode="r"),
    ]
    for number, call in enumerate(calls):
        try:
            call()
        except Exception as error:
            assert "fork" in str(error), error
        else:
            os._exit(10 + number)
    del cursor, connection, calls
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
cursor.execute("SELECT count(*) FROM pump")
assert cursor.fetchone() == (1,)
raise SystemExit(status)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
