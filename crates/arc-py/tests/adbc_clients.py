"""Clients of both ADBC drivers, in process and Flight SQL's, which answer the same questions."""

import datetime
import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import arc.adbc
import pyarrow
import pytest

dbapi = pytest.importorskip("adbc_driver_manager.dbapi")
manager = pytest.importorskip("adbc_driver_manager")

Status = manager.AdbcStatusCode
EXISTS, INVALID, STATE = Status.ALREADY_EXISTS, Status.INVALID_ARGUMENT, Status.INVALID_STATE
NOT_FOUND, NOT_THERE = Status.NOT_FOUND, Status.NOT_IMPLEMENTED
IN_PROCESS, OVER_FLIGHT = "in process", "over Flight"
HEADER = "adbc.flight.sql.rpc.call_header."

# Values, the types that they come in, and the type that a table has of them. A table has one width
# of numbers, one unit of times, and one layout of a type.
STORED: list[tuple[list[Any], str, str]] = [
    ([True, False], "bool", "bool"),
    ([-(2**7), 2**7 - 1], "int8 int16 int32", "int64"),
    ([-(2**63), 2**63 - 1], "int64", "int64"),
    ([0, 2**8 - 1], "uint8 uint16 uint32", "int64"),
    ([0, 2**64 - 1], "uint64", "uint64"),
    ([1.5, float("-inf")], "float16 float32 float64", "float64"),
    (["", "ünï 🚀 and more"], "string large_string string_view", "string"),
    ([b"", b"\0\xff and more"], "binary large_binary binary_view", "binary"),
    ([datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)], "date32 date64", "date32"),
    ([0, 86_399], "time32[s] time32[ms] time64[us] time64[ns]", "time64[ns]"),
    ([1, -1], "duration[s] duration[us] duration[ns]", "duration[ns]"),
]
INT, TEXT = pyarrow.int64(), pyarrow.string()
LIST, LARGE_LIST, FIXED_LIST = pyarrow.list_(INT), pyarrow.large_list(INT), pyarrow.list_(INT, 2)
STRUCT, MAP = pyarrow.struct([("a", INT)]), pyarrow.map_(TEXT, INT)

NAMES = ["catalog_name", "db_schema_name", "table_name", "column_name"]
BELOW = ["catalog_db_schemas", "db_schema_tables", "table_columns"]


class Each(NamedTuple):
    """The answers to one question where the drivers differ."""

    in_process: Any
    over_flight: Any


class Client:
    """A connection to a database, with a cursor. Most methods take another cursor."""

    def __init__(self, name: str, database: str, connection: Any) -> None:
        self.name, self.database, self.connection = name, database, connection
        self.adbc, self.cursor = connection.adbc_connection, connection.cursor()
        self.statement = self.cursor.adbc_statement

    def expects(self, right: Any) -> Any:
        if isinstance(right, Each):
            return right.in_process if self.name == IN_PROCESS else right.over_flight
        return right

    def rows(self, sql: str, values: Any = None) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()

    def count(self, table: str) -> int:
        [(count,)] = self.rows(f"SELECT count(*) FROM {table}")
        return int(count)

    def query(self) -> pyarrow.Table:
        stream, _ = self.statement.execute_query()
        return pyarrow.RecordBatchReader.from_stream(stream).read_all()

    def update(self, sql: str, values: Any = None) -> int:
        """Runs a statement that changes data; returns how many rows it affected."""
        with self.connection.cursor() as cursor:
            cursor.adbc_statement.set_sql_query(sql)
            if values is not None:
                cursor.adbc_statement.prepare()
                cursor.adbc_statement.bind_stream(values)
            return int(cursor.adbc_statement.execute_update())

    def ingest(self, table: str, rows: Any, **options: Any) -> int:
        with self.connection.cursor() as cursor:
            return int(cursor.adbc_ingest(table, rows, **options))

    def schema(self, table: str, **filters: str) -> pyarrow.Schema:
        # Flight SQL's driver finds a table of any database unless one is named.
        filters = {"db_schema_filter": self.database, **filters}
        return self.connection.adbc_get_table_schema(table, **filters)

    def parameters(self, sql: str) -> list[str]:
        self.statement.set_sql_query(sql)
        self.statement.prepare()
        return list(map(str, pyarrow.schema(self.statement.get_parameter_schema()).types))

    def info(self, *codes: int) -> dict[int, Any]:
        rows = pyarrow.RecordBatchReader.from_stream(self.adbc.get_info(list(codes))).read_all()
        return {row["info_name"]: row["info_value"] for row in rows.to_pylist()}


Question = Callable[[Client], Any]


def in_process(folder: Path, database: str) -> Client:
    return Client(IN_PROCESS, database, arc.adbc.connect(folder, database=database))


def over_flight(url: str, token: str, database: str) -> Client:
    """Connects to a server, by the package that is Flight SQL's driver."""
    reason = "Flight SQL is not tested: adbc_driver_flightsql is not installed"
    driver = pytest.importorskip("adbc_driver_flightsql.dbapi", reason=reason)
    options = {HEADER + "authorization": f"Bearer {token}", HEADER + "database": database}
    address = url.replace("http://", "grpc://")
    connection = driver.connect(address, db_kwargs=options, autocommit=True)
    return Client(OVER_FLIGHT, database, connection)


def pumps(count: int = 3, first: int = 1, /, **columns: Any) -> pyarrow.Table:
    """Returns rows with a time each, and with an id and a value where no columns are named."""
    times = pyarrow.array(range(first, first + count), pyarrow.timestamp("ns", "UTC"))
    columns = columns or {"id": [f"p{n}" for n in range(count)], "v": list(range(count))}
    return pyarrow.table({"time": times, **columns})


def batches(*sizes: int) -> pyarrow.RecordBatchReader:
    """Returns a stream of batches with so many rows each."""
    whole, firsts = pumps(sum(sizes), 100), itertools.accumulate(sizes, initial=0)
    [batch] = whole.to_batches() or [pyarrow.RecordBatch.from_pylist([], whole.schema)]
    parts = [batch.slice(first, size) for first, size in zip(firsts, sizes, strict=False)]
    return pyarrow.RecordBatchReader.from_batches(whole.schema, parts)


def answer(question: Question, client: Client) -> Any:
    """Returns the answer, or the status of the error, which has a text."""
    try:
        return question(client)
    except dbapi.Error as error:
        assert str(error)
        return error.status_code


def paths(items: list[dict[str, Any]], level: int = 0) -> Iterator[str]:
    """Returns a path for each object that has none below it."""
    for item in items:
        name = item[NAMES[level]]
        # Databases of the server and of other tests are not in question.
        if level != 1 or name.startswith("objects"):
            below = (item[BELOW[level]] or []) if level < len(BELOW) else []
            yield from [f"{name}.{path}" for path in paths(below, level + 1)] or [name]


def ingest(table: str, rows: Any = None, database: str = "", **options: Any) -> Question:
    """Writes rows into a table; returns how many, and how many the table has then."""
    rows = pumps() if rows is None else rows
    options |= {"db_schema_name": database} if database else {}
    stored = f'"{database}".{table}' if database else table
    return lambda c: (c.ingest(table, rows, **options), c.count(stored))


def append(table: str, rows: Any) -> Question:
    return ingest(table, rows, mode="append")


def arrays() -> dict[str, tuple[pyarrow.Array, pyarrow.DataType]]:
    """Returns columns with a null at the end, each with the type that a table has of it."""
    cases = [
        (values, pyarrow.type_for_alias(kind), pyarrow.type_for_alias(stored))
        for values, kinds, stored in STORED
        for kind in kinds.split()
    ]
    moment, exact = pyarrow.timestamp("ns", "UTC"), [Decimal("1.23"), Decimal("-9.99")]
    zones, units = (None, "UTC", "Asia/Tokyo"), ("s", "ms", "us", "ns")
    cases += [([0, -1], pyarrow.timestamp(unit, zone), moment) for unit in units for zone in zones]
    decimals = [pyarrow.decimal32(5, 2), pyarrow.decimal64(9, 2)]
    decimals += [pyarrow.decimal128(38, 2), pyarrow.decimal256(50, 2)]
    cases += [(exact, kind, kind) for kind in decimals]
    cases += [(["a", "b"], pyarrow.dictionary(pyarrow.int32(), TEXT), TEXT)]
    cases += [([b"ab", b"\0\xff"], pyarrow.binary(2), pyarrow.binary(2))]
    cases += [([[1, 2], []], kind, LIST) for kind in (LIST, LARGE_LIST)]
    cases += [([[1, 2], [3, None]], FIXED_LIST, FIXED_LIST)]
    cases += [([{"a": 1}, {"a": None}], STRUCT, STRUCT), ([[("k", 1)], []], MAP, MAP)]
    columns = [(pyarrow.array([*values, None], kind), stored) for values, kind, stored in cases]
    return {str(array.type): (array, stored) for array, stored in columns}
