"""The questions of ADBC's validation suites, to both drivers: in process, and Flight SQL's.

A table has a question on each line, with the right answer. Where the drivers differ, `Each` has
both, and a comment has the reason. An error is compared by its status.
"""

import datetime
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import arc.adbc
import pyarrow
import pytest
from adbc_clients import EXISTS, INVALID, NOT_FOUND, NOT_THERE, STATE, Status, dbapi, manager
from adbc_clients import IN_PROCESS, LIST, OVER_FLIGHT, STRUCT, in_process, over_flight
from adbc_clients import Client, Each, Question, answer, append, ingest
from adbc_clients import arrays, batches, paths, pumps

CREATE = "CREATE TABLE pump (time TIMESTAMP, id VARCHAR, v BIGINT, PRIMARY KEY (id, time))"
ABSENT = "CREATE TABLE absent (time TIMESTAMP, v BIGINT)"
SERIES = "generate_series(1, 1000000)"
ENDLESS = f"SELECT count(*) FROM {SERIES} a, {SERIES} b WHERE a.value > b.value"
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=[IN_PROCESS, OVER_FLIGHT])
def connect(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Client]]:
    """Returns a function that connects to a database."""
    if request.param == OVER_FLIGHT:
        yield functools.partial(over_flight, *request.getfixturevalue("started"))
        return
    folder = tmp_path_factory.mktemp("adbc") / "data"
    # The last connection closes the engine: this one stays.
    with arc.adbc.connect(folder):
        yield functools.partial(in_process, folder)


@pytest.fixture
def client(connect: Callable[[str], Client]) -> Iterator[Client]:
    """A client with a database of its own."""
    client = connect(f"questions{next(NUMBERS)}")
    with client.connection, client.cursor:
        yield client


@pytest.fixture
def pump(client: Client) -> Client:
    """A client with a table of three rows, whose key is the tag and the time."""
    client.update(CREATE)
    client.ingest("pump", pumps(), mode="append")
    return client


@pytest.fixture(scope="module")
def objects(connect: Callable[[str], Client]) -> Iterator[Client]:
    """A client with two tables in one database and one in another."""
    client = connect("objects")
    with client.connection, client.cursor:
        client.update(CREATE)
        client.ingest("valve", pumps().select(["time", "v"]))
        client.ingest("pump", pumps().select(["time", "v"]), db_schema_name="objects_2")
        yield client


def check(client: Client, *table: tuple[str, Question, Any]) -> None:
    answers = {name: answer(question, client) for name, question, _ in table}
    assert answers == {name: client.expects(right) for name, _, right in table}


# Connections


def test_options_of_a_connection(client: Client) -> None:
    catalog, schema = "adbc.connection.catalog", "adbc.connection.db_schema"
    autocommit, own = "adbc.connection.autocommit", client.database

    def option(name: str, *value: str) -> Question:
        """Sets an option to the value, if there is one, and reads it."""
        change = {name: text for text in value}
        return lambda c: (c.adbc.set_options(**change), c.adbc.get_option(name))[1]

    # Over Flight SQL the database of a call is in its header. The server has no sessions: there
    # is no current schema to read, nor to change.
    check(
        client,
        ("catalog", lambda c: c.connection.adbc_current_catalog, Each("arc", NOT_FOUND)),
        ("schema", lambda c: c.connection.adbc_current_db_schema, Each(own, NOT_FOUND)),
        ("the only catalog", option(catalog, "arc"), Each("arc", NOT_THERE)),
        ("no such catalog", option(catalog, "absent"), Each(INVALID, NOT_THERE)),
        ("another schema", option(schema, "other"), Each("other", NOT_THERE)),
        ("the first schema", option(schema, own), Each(own, NOT_THERE)),
        # There are no transactions: each statement is one.
        ("autocommit", option(autocommit), "true"),
        ("no autocommit", option(autocommit, "false"), NOT_THERE),
        ("autocommit still", option(autocommit, "true"), "true"),
        ("commit", lambda c: c.adbc.commit(), STATE),
        ("rollback", lambda c: c.adbc.rollback(), STATE),
        # The server decides what a token may do: it is no option of a client.
        ("read only", option("adbc.connection.readonly"), Each("false", NOT_FOUND)),
        ("no such option", option("absent"), NOT_FOUND),
        ("no such option to set", option("absent", "1"), NOT_THERE),
        ("nor of a statement", lambda c: c.statement.set_options(absent="1"), NOT_THERE),
        ("types", lambda c: c.connection.adbc_get_table_types(), ["TABLE"]),
        ("statistics", lambda c: c.adbc.get_statistic_names(), NOT_THERE),
    )


def test_options_change_what_statements_do(pump: Client) -> None:
    if pump.name == OVER_FLIGHT:
        pytest.skip("a connection to a server has neither option")
    pump.ingest("valve", pumps(), db_schema_name="elsewhere")
    pump.connection.adbc_current_db_schema = "elsewhere"
    pump.adbc.set_options(**{"adbc.connection.readonly": "true"})
    assert answer(lambda c: c.update("DROP TABLE valve"), pump) == STATE
    assert answer(lambda c: c.ingest("x", pumps()), pump) == STATE
    assert pump.count("valve") == 3


def test_information(client: Client) -> None:
    info = client.info()
    assert (info[0], info[103]) == ("Arc", 1_001_000)
    assert all(isinstance(info[code], str) for code in (1, 2, 100, 101, 102))
    # Flight SQL's driver does not hand on whether a server takes SQL or Substrait.
    assert (info.get(3), info.get(4)) == client.expects(Each((True, False), (None, None)))
    assert client.info(0, 103) == {0: "Arc", 103: 1_001_000}
    assert client.info(99_999).get(99_999) is None


# Metadata


def test_objects(objects: Client) -> None:
    first, second = "arc.objects", "arc.objects_2"
    tables = [f"{first}.pump", f"{first}.valve", f"{second}.pump"]
    questions: list[tuple[str, dict[str, Any], list[str]]] = [
        ("catalogs", {}, ["arc"]),
        ("catalogs", {"catalog": "arc"}, ["arc"]),
        ("catalogs", {"catalog": "a%"}, ["arc"]),
        ("catalogs", {"catalog": "absent"}, []),
        ("catalogs", {"catalog": ""}, []),
        ("db_schemas", {}, [first, second]),
        ("db_schemas", {"db_schema": "objects"}, [first]),
        ("db_schemas", {"db_schema": "objects__"}, [second]),
        ("db_schemas", {"db_schema": "absent"}, ["arc"]),
        ("db_schemas", {"catalog": "absent"}, []),
        ("tables", {}, tables),
        ("tables", {"db_schema": "objects_2"}, [f"{second}.pump"]),
        ("tables", {"table_name": "v%"}, [f"{first}.valve", second]),
        ("tables", {"table_name": "absent"}, [first, second]),
        ("tables", {"table_name": "' OR 1=1 --"}, [first, second]),
        ("tables", {"table_types": ["VIEW"]}, [first, second]),
        ("tables", {"table_types": ["VIEW", "TABLE"]}, tables),
        ("tables", {"catalog": "absent"}, []),
        ("columns", {"column_name": "v"}, [f"{table}.v" for table in tables]),
        ("all", {"column_name": "absent"}, tables),
    ]
    for depth, options, expected in questions:
        filters = {f"{name}_filter": value for name, value in options.items()}
        found = objects.connection.adbc_get_objects(depth=depth, **filters).read_all().to_pylist()
        assert list(paths(found)) == expected, (depth, options)


def test_columns_and_constraints(objects: Client) -> None:
    filters = {"db_schema_filter": "objects", "table_name_filter": "pump"}
    [catalog] = objects.connection.adbc_get_objects(**filters).read_all().to_pylist()
    [table] = [t for s in catalog["catalog_db_schemas"] for t in s["db_schema_tables"]]
    columns, keys = table["table_columns"], table["table_constraints"]
    places = [(column["column_name"], column["ordinal_position"]) for column in columns]
    assert places == [("time", 1), ("id", 2), ("v", 3)]
    # Flight SQL's driver takes numbers of types from the schema, and no more of it. Nor does it
    # call for the primary keys, which the server would answer.
    known = [(column["xdbc_type_name"], column["xdbc_nullable"]) for column in columns[1:]]
    assert known == objects.expects(Each([("Utf8", 1), ("Int64", 1)], [(None, None)] * 2))
    named = [(key["constraint_type"], key["constraint_column_names"]) for key in keys]
    assert named == objects.expects(Each([("PRIMARY KEY", ["id", "time"])], []))


def test_schemas_of_tables(objects: Client) -> None:
    types = [(field.name, str(field.type), field.nullable) for field in objects.schema("pump")]
    # Only the time is never null: a row need not have any other column.
    times = ("time", "timestamp[ns, tz=UTC]", False)
    assert types == [times, ("id", "string", True), ("v", "int64", True)]
    for filters, right in [
        ({"db_schema_filter": "objects_2"}, ["time", "v"]),
        ({"db_schema_filter": "objects_2", "catalog_filter": "arc"}, ["time", "v"]),
        ({"db_schema_filter": "absent"}, NOT_FOUND),
        ({"catalog_filter": "absent"}, NOT_FOUND),
    ]:
        assert answer(lambda c: c.schema("pump", **filters).names, objects) == right, filters
    # A name is a name here, neither a pattern nor SQL.
    for name in ("absent", "pum_", "PUMP", "(SELECT CURRENT_TIME)", 'x"; DROP TABLE pump; --'):
        assert answer(lambda c: c.schema(name), objects) == NOT_FOUND, name


# Statements


def test_rows_affected(pump: Client) -> None:
    # -1 is a count that is not known. In process a delete counts no rows: it writes down which
    # points are gone, and reads none. The server counts them for its limit of deletes.
    for sql, right in [
        ("INSERT INTO pump VALUES (10, 'a', 1), (11, 'a', 2)", 2),
        ("INSERT INTO pump SELECT time, 'b', v FROM pump WHERE id = 'a'", 2),
        ("INSERT INTO pump SELECT * FROM pump WHERE id = 'absent'", 0),
        ("DELETE FROM pump WHERE id = 'a'", Each(-1, 2)),
        ("DELETE FROM pump WHERE id = 'a'", Each(-1, 0)),
        # A point is written again in place of an update.
        ("UPDATE pump SET v = 1", INVALID),
        ("CREATE TABLE x (time TIMESTAMP, v BIGINT)", -1),
        ("CREATE TABLE x (time TIMESTAMP, v BIGINT)", EXISTS),
        ("CREATE TABLE IF NOT EXISTS x (time TIMESTAMP, v BIGINT)", -1),
        # A table has a time, declared or not.
        ("CREATE TABLE y (id INT)", -1),
        ("DROP TABLE x", -1),
        ("DROP TABLE x", NOT_FOUND),
        ("DROP TABLE IF EXISTS x", -1),
        (f"CREATE DATABASE {pump.database}", EXISTS),
        # Flight SQL has a command of its own for updates.
        ("SELECT * FROM (VALUES (1), (2)) AS t(x)", Each(2, INVALID)),
    ]:
        assert answer(lambda c: c.update(sql), pump) == pump.expects(right), sql
    assert pump.schema("y").names[0] == "time"
    assert pump.count("pump") == 5


BAD_SQL = {
    INVALID: ["SELEC 1", "SELECT", " ", ";", "-- nothing", "SELECT 1; SELECT 2", "SELECT '\0'"]
    + ["SELECT absent FROM pump", "SELECT absent(1)", "SELECT CAST('x' AS BIGINT)", "SELECT 1 / 0"]
    + ["SELECT ? + 1", "SELECT $1 || ?", "BEGIN", "SET x = 1", "INSERT INTO pump VALUES (1)"],
    NOT_FOUND: ["SELECT * FROM absent", "SELECT * FROM absent.pump", "SELECT * FROM absent.a.pump"]
    + ["INSERT INTO absent VALUES (1, 2)", "DROP TABLE absent", "DROP DATABASE absent"],
    # ADBC has this status for rows that do not match a table. The server's is that of HTTP, where
    # a conflict of types is 400, as with InfluxDB.
    Each(EXISTS, INVALID): ["INSERT INTO pump VALUES (1, 'a', 'word')"],
}


def test_bad_sql_has_a_status(pump: Client) -> None:
    for right, statements in BAD_SQL.items():
        for sql in statements:
            assert answer(lambda c: c.rows(sql), pump) == pump.expects(right), sql
    with pytest.raises(dbapi.ProgrammingError, match="SELEC") as raised:
        pump.rows("SELEC 1")
    # No code of the standard would say more than the status.
    assert raised.value.sqlstate is None
    assert pump.rows("SELECT 'Hello, 世界 🚀';") == [("Hello, 世界 🚀",)]
    # In process it is an error of Arrow's: ADBC's library for Rust hands on no status of a stream.
    with pytest.raises((dbapi.Error, pyarrow.ArrowException), match="(?i)divide by zero"):
        pump.rows("SELECT 1 / (value - 20000) FROM generate_series(1, 30000)")


def test_calls_out_of_turn(client: Client) -> None:
    check(
        client,
        ("execute", Client.query, STATE),
        ("update", lambda c: c.statement.execute_update(), STATE),
        ("prepare", lambda c: c.statement.prepare(), STATE),
        ("schema", lambda c: c.statement.execute_schema(), STATE),
        ("Substrait", lambda c: (c.statement.set_substrait_plan(b"x"), c.query()), NOT_THERE),
        ("cancel", lambda c: c.cursor.adbc_cancel(), None),
        ("query", lambda c: c.rows("SELECT 1"), [(1,)]),
        ("partition", lambda c: c.cursor.adbc_read_partition(b"nonsense"), INVALID),
        ("close", lambda c: c.cursor.close(), None),
        ("closed", lambda c: c.cursor.execute("SELECT 1"), STATE),
    )


def test_values_take_the_place_of_placeholders(pump: Client) -> None:
    day, hour, text = datetime.date(2026, 1, 2), datetime.time(1, 2, 3), "o'b\"; DROP TABLE pump"
    values = [1, 1.5, "x", b"b", True, None, day, hour, Decimal("1.20"), text]
    given: Any
    for sql, given, right in [
        ("SELECT " + ", ".join("?" * len(values)), values, [tuple(values)]),
        ("SELECT v FROM pump WHERE id = ? AND v > ?", ["p2", 1], [(2,)]),
        ("SELECT v FROM pump WHERE v IN ($1, $2) ORDER BY v", [2, 0], [(0,), (2,)]),
        ("SELECT v FROM pump ORDER BY v LIMIT ?", [1], [(0,)]),
        ("SELECT '?', 'abc' LIKE ?", ["a%"], [("?", True)]),
        # Flight SQL's driver has no values by name.
        ("SELECT $b - $a", {"a": 1, "b": 3}, Each([(2,)], NOT_THERE)),
        ("SELECT ? + ?", [1], INVALID),
        ("SELECT ? + 1", [1, 2], INVALID),
        ("SELECT 1", [1], INVALID),
    ]:
        assert answer(lambda c: c.rows(sql, given), pump) == pump.expects(right), sql


def test_rows_of_values(pump: Client) -> None:
    insert = "INSERT INTO pump (time, id, v) VALUES (?, ?, ?)"
    assert pump.update(insert, batches(0, 1, 0, 2, 0)) == 3
    pump.cursor.executemany(insert, [(200, "d", 1), (201, None, 2)])
    assert pump.cursor.rowcount == 2
    # A null without a type is one of the column's.
    nulls = pyarrow.table({"0": [202], "1": ["n"], "2": pyarrow.nulls(1)})
    assert pump.update(insert, nulls.to_reader()) == 1
    newest = pump.rows("SELECT id, v FROM pump ORDER BY time DESC LIMIT 2")
    assert newest == [("n", None), (None, 2)]
    # What was stored before a row that is refused stays: there are no transactions.
    with pytest.raises(dbapi.Error, match="1 rows are stored"):
        pump.cursor.executemany(insert, [(203, "e", 1), (None, "e", 2)])
    assert pump.count("pump") == 10


def test_a_statement_runs_more_than_once(client: Client) -> None:
    client.statement.set_sql_query("SELECT ? + 1 AS n")
    client.statement.prepare()

    def ask(*numbers: int) -> Question:
        values = pyarrow.record_batch({"0": numbers})
        return lambda c: (c.statement.bind(values), c.query()["n"].to_pylist())[1]

    # A query over Flight SQL takes one row of values (docs/flight.md).
    right = Each([2, 3, 4], INVALID)
    check(client, ("a", ask(1), [2]), ("b", ask(2), [3]), ("many", ask(1, 2, 3), right))
    client.statement.set_sql_query("SELECT 7 AS n")
    assert [client.query()["n"].to_pylist() for _ in range(2)] == [[7], [7]]


def test_statements_are_described_and_do_not_run(pump: Client) -> None:
    time = "timestamp[ns, tz=UTC]"
    for sql, right in [
        ("SELECT 1 + ?", ["int64"]),
        ("SELECT 1 + $1 + $2", ["int64", "int64"]),
        # Tags are texts, no dictionaries: one value makes none.
        ("SELECT v FROM pump WHERE id = $id AND v > $v", ["string", "int64"]),
        ("INSERT INTO pump VALUES (?, ?, ?)", [time, "string", "int64"]),
        ("SELECT 1", []),
        ("SELECT ?", ["null"]),
        # The server describes no statement that takes no values.
        ("DELETE FROM pump", Each([], NOT_THERE)),
        (ABSENT, Each([], NOT_THERE)),
    ]:
        assert answer(lambda c: c.parameters(sql), pump) == pump.expects(right), sql
    for sql, right in [
        ("SELECT 1, NULL, ? + 1", ["int64", "null", "int64"]),
        ("SELECT *, v + 1 FROM pump", [time, "string", "int64", "int64"]),
        ("SELECT * FROM absent", NOT_FOUND),
        # Over Flight SQL a statement without columns is one that changes data.
        ("DELETE FROM pump", Each([], NOT_THERE)),
        (ABSENT, Each([], NOT_THERE)),
    ]:
        types = answer(lambda c: list(map(str, c.cursor.adbc_execute_schema(sql).types)), pump)
        assert types == pump.expects(right), sql
    assert answer(lambda c: c.count("absent"), pump) == NOT_FOUND
    pump.cursor.execute("SELECT id, v FROM pump WHERE v > ?", [1_000])
    nothing = pump.cursor.fetch_arrow_table()
    assert (nothing.num_rows, list(map(str, nothing.schema.types))) == (0, ["string", "int64"])
    partitions, schema = pump.cursor.adbc_execute_partitions("SELECT v FROM pump")
    pump.cursor.adbc_read_partition(partitions[0])
    assert (schema.names, sorted(pump.cursor.fetchall())) == (["v"], [(0,), (1,), (2,)])


def test_an_answer_outlives_its_connection(client: Client) -> None:
    if client.name == OVER_FLIGHT:
        pytest.skip("Flight SQL's driver cancels a stream with its statement")
    client.statement.set_sql_query("SELECT value FROM generate_series(1, 100000)")
    streams = [client.statement.execute_query()[0] for _ in range(2)]
    client.cursor.close()
    client.connection.close()
    for stream in streams:
        assert pyarrow.RecordBatchReader.from_stream(stream).read_all().num_rows == 100_000


def test_statements_run_beside_each_other(pump: Client) -> None:
    pump.cursor.execute("SELECT value FROM generate_series(1, 30000) ORDER BY value")
    assert pump.cursor.fetchone() == (1,)
    answers: dict[int, Any] = {}

    def work(number: int) -> None:
        pump.ingest("pump", pumps(2, 100, id=[f"t{number}"] * 2, v=[1, 2]), mode="append")
        answers[number] = pump.rows("SELECT sum(v) FROM pump WHERE id = $1", [f"t{number}"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [(3,)] for number in range(4)}
    assert len(pump.cursor.fetchall()) == 29_999


def test_a_statement_is_cancelled_and_runs_again(client: Client) -> None:
    timer = threading.Timer(0.2, client.cursor.adbc_cancel)
    timer.start()
    with pytest.raises(manager.OperationalError) as raised:
        client.cursor.execute(ENDLESS)
        client.cursor.fetchall()
    timer.join()
    assert raised.value.status_code == Status.CANCELLED
    client.cursor.execute("SELECT 1")
    assert client.cursor.fetchall() == [(1,)]


# Ingest


def test_modes_of_an_ingest(client: Client) -> None:
    side, sideways = f"{client.database}-2", {"adbc.ingest.mode": "sideways"}
    # The server replaces no table by a write (docs/flight.md).
    check(
        client,
        ("append to none", ingest("a", mode="append"), NOT_FOUND),
        ("create", ingest("a", mode="create"), (3, 3)),
        ("create again", ingest("a", mode="create"), EXISTS),
        ("append", append("a", pumps(2, 10)), (2, 5)),
        ("create or append", ingest("b", mode="create_append"), (3, 3)),
        ("append or create", ingest("b", pumps(2, 10), mode="create_append"), (2, 5)),
        ("replace", ingest("b", mode="replace"), Each((3, 3), NOT_THERE)),
        ("replace none", ingest("c", mode="replace"), Each((3, 3), NOT_THERE)),
        ("no mode", lambda c: c.statement.set_options(**sideways), INVALID),
        ("temporary", ingest("d", temporary=True), NOT_THERE),
        ("not temporary", ingest("d", temporary=False), (3, 3)),
        ("catalog", ingest("e", catalog_name="arc"), (3, 3)),
        ("no such catalog", ingest("f", catalog_name="absent"), INVALID),
        ("schema", ingest("a", database=side), (3, 3)),
        ("catalog and schema", ingest("h", database=side, catalog_name="arc"), (3, 3)),
        ("replace there", ingest("a", pumps(1), side, mode="replace"), Each((1, 1), NOT_THERE)),
        ("not here", lambda c: c.count("a"), 5),
        ("a record batch", ingest("i", pumps().to_batches()[0]), (3, 3)),
        ("many batches", ingest("j", batches(*[7] * 100)), (700, 700)),
        ("empty batches", ingest("k", batches(0, 3, 0, 0, 2, 0)), (5, 5)),
        ("an empty batch", append("k", batches(0)), (0, 5)),
        # Flight SQL's driver sends nothing then, not even the name of the table.
        ("no batch", append("k", batches()), Each((0, 5), INVALID)),
    )
    client.statement.set_options(**{"adbc.ingest.target_table": "a"})
    assert answer(lambda c: c.statement.execute_update(), client) == STATE


def test_names_are_taken_as_they_are(client: Client) -> None:
    for name in ("two words", "Ümläut", 'quo"te', "'", "a;b", "select", "UPPER", "a.b", "%_"):
        database, quoted = f"{client.database} {name}", name.replace('"', '""')
        client.ingest(name, pumps(2, **{name: [1, 2]}), db_schema_name=database)
        sql = f'SELECT "{quoted}" FROM "{client.database} {quoted}"."{quoted}" ORDER BY 1'
        assert client.rows(sql) == [(1,), (2,)], name
        assert client.schema(name, db_schema_filter=database).names == ["time", name]
    for name, right in (("x" * 300, INVALID), ("", Each(INVALID, STATE))):
        assert answer(ingest(name), client) == client.expects(right), name
        assert answer(ingest("a", pumps(1, **{name: [1]})), client) == INVALID, name


def test_columns_of_an_ingest(client: Client) -> None:
    times = pyarrow.array([1, None], pyarrow.timestamp("ns"))
    twice = pyarrow.table([pumps(1)["time"], [1], [2]], names=["time", "v", "v"])
    more = pumps(1, 12).append_column("x", pyarrow.array([5]))
    newest = "SELECT id, v, x FROM a ORDER BY time DESC LIMIT 3"
    fields = [field.with_nullable(False) for field in pumps().schema]
    check(
        client,
        ("a table", ingest("a"), (3, 3)),
        ("another order", append("a", pumps(1, 10).select(["v", "time", "id"])), (1, 4)),
        ("a column less", append("a", pumps(1, 11).select(["time", "v"])), (1, 5)),
        ("a column more", append("a", more), (1, 6)),
        ("all", lambda c: c.schema("a").names, ["time", "id", "v", "x"]),
        ("rows", lambda c: c.rows(newest), [("p0", 0, 5), (None, 0, None), ("p0", 0, None)]),
        ("another type", append("a", pumps(1, 13, v=["word"])), Each(EXISTS, INVALID)),
        # A time series has a time: a table without one is refused.
        ("no time", ingest("b", pyarrow.table({"idx": [1], "value": ["a"]})), INVALID),
        ("a null time", ingest("b", pyarrow.table({"time": times, "v": [1, 2]})), INVALID),
        ("a text as time", ingest("b", pyarrow.table({"time": ["x"], "v": [1]})), INVALID),
        ("a number as time", ingest("b", pyarrow.table({"time": [1], "v": [1]})), (1, 1)),
        ("the time alone", ingest("c", pumps(2).select(["time"])), (2, 2)),
        ("one name twice", ingest("d", twice), INVALID),
        ("many", ingest("e", pumps(2, **{f"c{n}": [1, 2] for n in range(100)})), (2, 2)),
        # A column of nulls has no type yet: its first value makes it.
        ("nulls", ingest("f", pumps(2, v=[1, 2], n=pyarrow.nulls(2))), (2, 2)),
        ("nulls only", lambda c: c.schema("f").names, ["time", "v"]),
        # Any column may be absent from a later row, so that no schema keeps nulls away.
        ("not null", ingest("g", pumps().cast(pyarrow.schema(fields))), (3, 3)),
        ("nullable", lambda c: c.schema("g").field("v").nullable, True),
    )


# Types


def test_each_type_comes_back_from_a_table(client: Client) -> None:
    found = arrays()
    columns = {name: array for name, (array, _) in found.items()}
    assert client.ingest("a", pumps(3, **columns)) == 3
    places = ", ".join("?" * (1 + len(columns)))
    rows = pumps(3, 11, **columns).to_reader()
    assert client.update(f"INSERT INTO a VALUES ({places})", rows) == 3
    client.cursor.execute("SELECT * FROM a ORDER BY time")
    table = client.cursor.fetch_arrow_table()
    for name, (array, stored) in found.items():
        assert str(table[name].type) == str(stored), name
        assert table[name].to_pylist() == array.cast(stored).to_pylist() * 2, name


def test_each_type_is_a_value(client: Client) -> None:
    columns = {name: array for name, (array, _) in arrays().items()} | {"null": pyarrow.nulls(3)}
    places = ", ".join(f"${n} AS c{n}" for n in range(1, 1 + len(columns)))
    client.statement.set_sql_query(f"SELECT {places}")
    client.statement.prepare()
    for row in range(3):
        values = [column.slice(row, 1) for column in columns.values()]
        client.statement.bind(pyarrow.record_batch(values, names=list(columns)))
        for name, value, found in zip(columns, values, client.query().columns, strict=True):
            assert found.to_pylist() == value.to_pylist(), name


def test_types_of_a_query(client: Client) -> None:
    kinds = {
        "null": "NULL",
        "bool": "TRUE",
        "int16": "CAST(1 AS SMALLINT)",
        "int32": "CAST(1 AS INT)",
        "int64": "1",
        "uint64": "arrow_cast(1, 'UInt64')",
        "float": "CAST(1.5 AS REAL)",
        "double": "1.5",
        "decimal128(10, 2)": "CAST(1.25 AS DECIMAL(10, 2))",
        "string": "'x'",
        "binary": "X'00ff'",
        "date32[day]": "DATE '2026-01-02'",
        "time64[ns]": "TIME '01:02:03'",
        "timestamp[ns]": "TIMESTAMP '1970-01-01'",
        "timestamp[ns, tz=UTC]": "TIMESTAMPTZ '1970-01-01T00:00:00Z'",
        "month_day_nano_interval": "INTERVAL '1 day'",
        str(LIST): "[1, 2]",
        str(STRUCT): "named_struct('a', 1)",
    }
    columns = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(kinds.values()))
    client.cursor.execute(f"SELECT {columns}")
    assert list(map(str, client.cursor.fetch_arrow_table().schema.types)) == list(kinds)


def test_types_that_no_table_has_are_refused(client: Client) -> None:
    # Parquet has none of them, or not so that they come back as they were.
    uuids = pyarrow.array([b"a" * 16] * 3, pyarrow.binary(16))
    for array in [
        pyarrow.array([Decimal("12300")] * 3, pyarrow.decimal128(5, -2)),
        pyarrow.array([(1, 2, 3)] * 3, pyarrow.month_day_nano_interval()),
        pyarrow.array([1, 2, 1]).dictionary_encode(),
        pyarrow.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
        pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), uuids),
    ]:
        assert answer(ingest("a", pumps(3, v=array)), client) == INVALID, array.type
    assert answer(lambda c: c.count("a"), client) == NOT_FOUND


# What is odd


def test_no_rows(client: Client) -> None:
    # A table is made by its first row.
    client.ingest("a", batches(0))
    assert answer(lambda c: c.count("a"), client) == NOT_FOUND
    client.ingest("a", pumps())
    replaced = answer(ingest("a", batches(0), mode="replace"), client)
    assert replaced == client.expects(Each(INVALID, NOT_THERE))
    assert client.count("a") == 3
    client.update(ABSENT)
    values = pyarrow.table({name: pyarrow.array([], pyarrow.int64()) for name in ("0", "1")})
    assert client.update("INSERT INTO absent VALUES (?, ?)", values.to_reader()) == 0


def test_a_name_with_a_backslash(client: Client) -> None:
    client.ingest("a\\b", pumps())
    # The library of the server takes the name that a client asks for as a pattern of LIKE.
    schema = answer(lambda c: c.schema("a\\b").names[0], client)
    assert schema == client.expects(Each("time", NOT_FOUND))


def test_a_value_that_has_two_places(client: Client) -> None:
    assert client.rows("SELECT $1 + $2 - $1", [1, 5]) == [(5,)]
