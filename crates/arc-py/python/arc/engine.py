"""The engine in this process."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from arc import _arc
from arc.errors import BusyError, InvalidInputError
from arc.receipts import BackupReport, Executed, FlushReport, ImportReport, PushReport, VerifyReport, Written
from arc.relation import Parameters
from arc.store import AnswerLike, Store, parameters
from arc.types import ColumnTypes

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection as AdbcConnection

    from arc._arc import Table
    from arc.remote import Connection
    from arc.served import Served
    from arc.tail import TailSource
    from arc.types import ColumnType, Durability, FileTimeUnit, FinerTimes, OnConflict, Precision, Seconds

F = TypeVar("F", bound=Callable[..., object])


def documented(method: F) -> F:
    """Gives a method the documentation of the native one."""
    method.__doc__ = getattr(_arc.Engine, method.__name__).__doc__
    return method


class Engine(Store):
    """A time-series store in one folder, opened by ``arc.open``.

    Use it as a context manager, or call ``close``. All methods may be called from any number of threads at once; they
    give the interpreter's lock free while the engine works. Use it in the process that opened it: in a forked child
    every call raises ``ClosedError`` and so does ``arc.open`` (fork before the first one, or use ``multiprocessing`` with ``"spawn"``).

    A database is an attribute or an item, and so is a table of it: ``engine.plant.pump``, ``engine["plant"]["pump"]``.
    """

    def __init__(self, native: _arc.Engine, mode: Literal["r", "rw"] = "rw", place: str | None = None) -> None:
        self._native = native
        # The URL of a bucket, of which `path` is what a reader has for itself.
        self._place = native.path if place is None else place
        self.mode: Literal["r", "rw"] = mode
        """``"rw"``, or ``"r"`` if it only reads what another process may write."""
        # What another process writes makes a plan old that nothing here knows of.
        self._sees_all_changes = mode == "rw"
        super().__init__()

    def _ask(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> AnswerLike:
        return self._native.sql(database, query, params=parameters(params), tables=tables or None)

    def _run(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> Executed:
        statement, rows = self._native.execute(database, query, params=parameters(params), tables=tables or None)
        return Executed(statement, rows)

    def _tail(self, database: str, table: str, since_ns: int | None) -> TailSource:
        return self._native.tail(database, table, since_ns)

    def _write(self, table: str, data: Any, **settings: Any) -> Written:
        return self._native.write(table, data, **settings)

    def _write_lp(self, database: str, data: str | bytes | bytearray, **settings: Any) -> Written:
        return self._native.write_lp(database, data, **settings)

    def import_csv(
        self,
        path: str | PathLike[str],
        table: str,
        *,
        database: str = "default",
        tags: Sequence[str] | None = None,
        time: str | Sequence[str] | None = None,
        time_format: str | None = None,
        precision: Precision | None = None,
        types: Mapping[str, ColumnType] | None = None,
        nulls: Sequence[str] | None = None,
        delimiter: str | None = None,
        skip_rows: int = 0,
        exclude: Sequence[str] | None = None,
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> ImportReport:
        """Stores a file of CSV, plain or as ``.gz``, ``.zst`` or ``.zip``, and returns an ``ImportReport``.

        The file is read piece by piece, so that it may be larger than the memory. A row that is wrong is left out and named in
        the report, and raises nothing: ``import_csv(...).raise_for_rejected()`` does. Types are those that the table has,
        and otherwise the narrowest that fit all values of the file. Where an error or Ctrl-C ends it, what was read before is stored.

        >>> from pathlib import Path
        >>> _ = Path("pump.csv").write_text("when,id,rpm\\n2026-01-31T12:00:00Z,9,1490\\nnever,9,1\\n")
        >>> report = engine.import_csv("pump.csv", "pump", database="plant", time="when", tags=["id"])
        >>> report.rows, report.rejected[0].row, report.types
        (1, 3, {'when': 'time', 'id': 'tag', 'rpm': 'integer'})

        tags: the columns that are tags; ``None`` takes those that the table has.
        time: the column that has the time, or several whose texts make it together, such as ``["date", "hour"]``. ``None`` takes
            ``time``, and else the one that is called timestamp, datetime or date.
        time_format: the form of times: ``"excel"``, ``"julian"``, ``"ordinal"``, ``"year"``, or a pattern such as ``"%d.%m.%Y %H:%M"``.
        precision: the unit of times that are numbers since 1970; ``None`` takes it from their size.
        types: what columns are: ``"float"``, ``"integer"``, ``"unsigned"``, ``"boolean"`` or ``"string"``.
        nulls: what stands for no value, beside nothing, and ``NA``, ``null``, ``-`` and their like among numbers.
        delimiter: what stands between values; ``None`` takes it from the first line.
        skip_rows: lines before the names of the columns.
        exclude: columns to leave out.
        durability: what the rows survive once it returns, as in ``write``.
        idempotency_key: a name for this import: where it is done again under it, what is stored already is passed over.
        """
        return self._native.import_file(
            os.path.expanduser(path),
            "csv",
            {
                "table": table,
                "database": database,
                "tags": tags,
                "time": [time] if isinstance(time, str) else time,
                "time_format": time_format,
                "precision": precision,
                "types": None if types is None else dict(types),
                "nulls": nulls,
                "delimiter": delimiter,
                "skip_rows": skip_rows,
                "exclude": exclude,
                "durability": durability,
                "idempotency_key": idempotency_key,
            },
        )

    def import_parquet(
        self,
        path: str | PathLike[str],
        table: str,
        *,
        database: str = "default",
        tags: Sequence[str] | None = None,
        time: str | Sequence[str] | None = None,
        time_format: str | None = None,
        precision: Precision | None = None,
        exclude: Sequence[str] | None = None,
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> ImportReport:
        """Stores a file of Parquet, and returns an ``ImportReport``; see :meth:`import_csv`."""
        return self._native.import_file(
            os.path.expanduser(path),
            "parquet",
            {
                "table": table,
                "database": database,
                "tags": tags,
                "time": [time] if isinstance(time, str) else time,
                "time_format": time_format,
                "precision": precision,
                "exclude": exclude,
                "durability": durability,
                "idempotency_key": idempotency_key,
            },
        )

    @property
    def path(self) -> str:
        """The path of the data directory, absolute."""
        return self._native.path

    def delete(self, database: str, table: str, where: str) -> None:
        try:
            self._native.delete(database, table, where)
        finally:
            self._changes += 1

    def drop_table(self, database: str, table: str) -> None:
        try:
            self._native.drop_table(database, table)
        finally:
            self._changes += 1

    def drop_database(self, database: str) -> None:
        try:
            self._native.drop_database(database)
        finally:
            self._changes += 1

    def set_retention(self, database: str, retention: Seconds | None, *, table: str | None = None) -> None:
        self._native.set_retention(database, retention, table=table)

    def retention(self, database: str, *, table: str | None = None) -> float | None:
        return self._native.retention(database, table=table)

    def set_durability(self, database: str, durability: Durability | None) -> None:
        self._native.set_durability(database, durability)

    def durability(self, database: str) -> Durability | None:
        return self._native.durability(database)

    def set_column_types(
        self,
        database: str,
        *,
        table: str | None = None,
        string_columns: Sequence[str] | None = None,
        on_conflict: OnConflict | None = None,
        time_unit: FileTimeUnit | None = None,
        finer_times: FinerTimes | None = None,
    ) -> None:
        self._native.set_column_types(
            database,
            table=table,
            string_columns=string_columns,
            on_conflict=on_conflict,
            time_unit=time_unit,
            finer_times=finer_times,
        )

    def column_types(self, database: str, *, table: str | None = None) -> ColumnTypes:
        return ColumnTypes(*self._native.column_types(database, table=table))

    def flush(self) -> FlushReport:
        return self._native.flush()

    def backup(self, target: str | PathLike[str]) -> BackupReport:
        return self._native.backup(target)

    def push(
        self,
        to: str | PathLike[str] | Connection | Engine,
        *,
        token: str | None = None,
        ca_file: str | None = None,
        bytes_per_second: int | None = None,
    ) -> PushReport:
        """Hands the rows that were written by now to a server or another data directory, each once.

        Data files are sent as they are and adopted there by one commit. However a push ends (Ctrl-C, a lost line, ``kill
        -9``), the next one goes on where it was, in the middle of a file; what is there already is not sent again. Tables and
        columns that are missing there are made. Deletes and drops of rows that were sent before are not sent.

        >>> import arc, tempfile
        >>> edge = arc.open(tempfile.mkdtemp() + "/edge")
        >>> centre = arc.open(tempfile.mkdtemp() + "/centre")
        >>> _ = edge.write_lp("plant", "pump,id=7 rpm=1450i 1700000000000000000")
        >>> edge.push(centre).rows
        1
        >>> edge.push(centre).rows
        0

        to: ``"https://host:port"`` or ``"http://…"`` of a server; the path of a data directory that nobody has open; or what
            ``arc.connect`` or ``arc.open`` returned.
        token: what the server at that address lets in, which needs the right to write; by default ``ARC_TOKEN``.
        ca_file: the certificate that the server's is signed by, if the system does not know it.
        bytes_per_second: no more than this, on average over a piece of 1 MiB.

        Raises ``InvalidInputError`` where the two do not agree on what was sent (one was copied, or restored from a backup),
        and ``SchemaConflictError`` or ``InvalidInputError`` naming the column that conflicts; nothing changes there then.
        """
        from arc.push import opened

        with opened(to, token, ca_file) as centre:
            return self._native.push(centre, bytes_per_second)

    def adbc(self, database: str = "default", *, durability: Durability | None = None) -> AdbcConnection:
        """Returns a connection of the DB-API to this engine, for ``pandas.read_sql``, ``to_sql`` and others that take one.

        It goes on after ``close``; the folder is free once it is closed as well.

        database: the database of statements that name none.
        durability: what written rows survive; ``None`` is ``"disk"``.
        """
        from arc import adbc

        return adbc.connect(self._place, database=database, mode=self.mode, durability=durability)

    def unpack(self) -> int:
        return self._native.unpack()

    def verify(self) -> VerifyReport:
        return self._native.verify()

    def close(self) -> None:
        super().close()

    def _end(self) -> None:
        self._native.close()

    def databases(self) -> list[str]:
        return self._native.databases()

    def tables(self, database: str) -> list[str]:
        return self._native.tables(database)

    def data_files(self, database: str, table: str) -> list[str]:
        return self._native.data_files(database, table)

    def serve(self, http: str = "127.0.0.1:8000", *, program: str | PathLike[str] | None = None) -> Served:
        """Serves the directory over HTTP and Arrow Flight while this process goes on: starts ``arc-server`` as a reader of it.

        Everybody on this machine may ask then, without a token, and see all that is acknowledged by that time; what would
        change something is refused, for this process is the one that writes. A browser finds the console at its ``url``. It
        ends with ``close``, with the ``with`` block, or with this process.

        http: an address of this machine; port 0 takes a free one.
        program: the path of another ``arc-server`` than the one that came with this package.
        """
        from arc.served import serve

        return serve(self.path, http, program)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        text = repr(self._native)
        return text if self.mode == "rw" else f"{text[:-1]}, mode='r'>"


for _name in (
    "delete drop_table drop_database set_retention retention set_durability durability set_column_types column_types "
    "flush backup unpack verify close databases tables data_files"
).split():
    documented(getattr(Engine, _name))


def open(
    path: str | PathLike[str],
    *,
    mode: Literal["r", "rw"] = "rw",
    durability: Durability = "disk",
    string_columns: Sequence[str] | None = None,
    on_conflict: OnConflict = "reject",
    time_unit: FileTimeUnit = "ns",
    finer_times: FinerTimes = "keep",
    flush_after: Seconds | None = None,
    memory_bytes: int | None = None,
    flush_bytes: int | None = None,
    flush_wal_bytes: int | None = None,
    max_buffer_bytes: int | None = None,
    write_timeout: Seconds | None = None,
    wal_segment_bytes: int | None = None,
    query_memory_bytes: int | None = None,
    query_timeout: Seconds | None = None,
) -> Engine:
    check_path(path)
    path = os.path.expanduser(path)
    try:
        native = _arc.open(
            path,
            mode=mode,
            durability=durability,
            string_columns=string_columns,
            on_conflict=on_conflict,
            time_unit=time_unit,
            finer_times=finer_times,
            flush_after=flush_after,
            memory_bytes=memory_bytes,
            flush_bytes=flush_bytes,
            flush_wal_bytes=flush_wal_bytes,
            max_buffer_bytes=max_buffer_bytes,
            write_timeout=write_timeout,
            wal_segment_bytes=wal_segment_bytes,
            query_memory_bytes=query_memory_bytes,
            query_timeout=query_timeout,
        )
    except BusyError as error:
        error.args = (f'{error.args[0]}; arc.open(path, mode="r") reads it meanwhile',)
        raise
    return Engine(native, mode, path if "://" in path else None)


def check_path(path: object) -> None:
    """Refuses the address of something that is no folder, of which a folder with an odd name would be made."""
    if path == ":memory:":
        raise InvalidInputError("path is ':memory:'; a folder was expected: tempfile.mkdtemp() makes one")
    if not isinstance(path, str) or "://" not in path:
        return
    scheme = path.partition("://")[0]
    if scheme == "s3":
        return
    if scheme in ("http", "https"):
        raise InvalidInputError(f"path is {path!r}; arc.connect() is for servers, a folder was expected")
    raise InvalidInputError(f"path is {path!r}; the path of a folder was expected: of {scheme} nothing is opened yet")


open.__doc__ = _arc.open.__doc__

# Rows that are still being written when the interpreter ends, for Ctrl-C ended the waiting alone, are its rows until then.
atexit.register(_arc.finish)
