"""What an engine in this process and one behind a connection have in common: every call that reads or writes rows."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from arc import columns, scopes
from arc.carets import with_place
from arc.errors import Error, NotFoundError
from arc.frames import arrow_of, lines_of
from arc.names import Named
from arc.receipts import Executed, Written
from arc.relation import Parameters, Relation, quoted

if TYPE_CHECKING:
    from datetime import datetime

    from arc._arc import Schema, Table
    from arc.aio import Async
    from arc.database import Database
    from arc.tail import Tail, TailSource
    from arc.threads import Threads
    from arc.types import Durability, Precision, Rows, Seconds
    from arc.writer import Writer


class AnswerLike(Protocol):
    """Rows that are read once."""

    @property
    def schema(self) -> Schema: ...
    def read(self) -> Table: ...
    def read_next(self) -> Table | None: ...
    def cancel(self) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Store(Named, ABC):
    """The calls that :class:`arc.Engine` and :class:`arc.Connection` share."""

    replacement_scans: bool
    """Whether a name in SQL that is no table may mean a data frame: a variable of the caller. ``True`` unless set."""

    _threads: Threads

    def __init__(self) -> None:
        self.replacement_scans = True
        self._registered: dict[str, Any] = {}
        # Counted after each change, so that no plan from before it is read.
        self._changes = 0
        self._writers: weakref.WeakSet[Writer] = weakref.WeakSet()

    # What each of them does in its own way.

    _instead = (
        "one process writes to a directory; write to it from here, open it with mode='r' in the others, or run arc-server "
        "and use arc.connect() in every process"
    )
    """What to do where a copy for another process was asked for."""

    _sees_all_changes = True
    """Whether every change of the data goes through this object, so that a plan may wait for its use."""

    @abstractmethod
    def _ask(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> AnswerLike: ...

    @abstractmethod
    def _run(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> Executed: ...

    @abstractmethod
    def _write(self, table: str, data: Any, **settings: Any) -> Written: ...

    @abstractmethod
    def _write_lp(self, database: str, data: str | bytes | bytearray, **settings: Any) -> Written: ...

    @abstractmethod
    def _tail(self, database: str, table: str, since_ns: int | None) -> TailSource: ...

    @abstractmethod
    def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""

    @abstractmethod
    def tables(self, database: str) -> list[str]:
        """Returns the names of the tables of ``database``, sorted."""

    @abstractmethod
    def delete(self, database: str, table: str, where: str) -> None:
        """Deletes the points of ``table`` that meet the condition ``where``."""

    @abstractmethod
    def _end(self) -> None: ...

    def close(self) -> None:
        """Ends the use of the engine, once writers that are open have written their rows."""
        try:
            with ExitStack() as writers:
                for writer in list(self._writers):
                    writers.callback(writer.close)
                if "_threads" in self.__dict__:
                    writers.callback(self._threads.close)
        finally:
            # No plan from before it is read.
            self._changes += 1
            self._end()

    def _read(self, answer: AnswerLike, query: str) -> Table:
        try:
            return answer.read()
        except Error as error:
            raise with_place(error, query) from None

    def _read_next(self, answer: AnswerLike, query: str) -> Table | None:
        try:
            return answer.read_next()
        except Error as error:
            raise with_place(error, query) from None

    # Asking.

    def sql(self, database: str, query: str, params: Parameters = None) -> Relation:
        """Plans one SQL statement that reads, and returns its rows as a :class:`arc.Relation`, which runs when it is used.

        Tables without a database in front of their name are those of ``database``. The statement sees every point whose
        write has returned. A name that is no table may be a data frame: one of :meth:`register`, or a variable of the
        caller (pandas, polars, Arrow, DuckDB), unless ``replacement_scans`` is off.

        params: values for placeholders: a list for ``?`` or ``$1``, a dict for ``$name``.

        >>> engine.sql("plant", "SELECT rpm FROM pump WHERE id = ?", ["8"]).fetchall()
        [(1502,)]
        >>> engine.sql("plant", "SELECT rpm FROM pump WHERE id = $id", {"id": "7"}).fetchone()
        (1450,)
        >>> import pandas
        >>> sites = pandas.DataFrame({"id": ["7", "8"], "site": ["north", "south"]})
        >>> engine.sql("plant", "SELECT site, rpm FROM pump JOIN sites USING (id) ORDER BY rpm").fetchall()
        [('north', 1450), ('south', 1502)]
        """
        return self._planned(database, query, params, scopes.calling_frame())

    def _planned(self, database: str, query: str, params: Parameters, frame: FrameType | None) -> Relation:
        tables: dict[str, Table] = {}
        while True:
            try:
                return Relation(self, database, query, params, dict(tables)).plan()
            except NotFoundError as error:
                self._add_local(with_place(error, query), database, frame, tables)
            except Error as error:
                raise with_place(error, query) from None

    def execute(self, database: str, query: str, params: Parameters = None) -> Executed:
        """Runs one SQL statement that changes data, and returns what it did once that is durable.

        Knows ``INSERT``, ``DELETE``, ``CREATE`` and ``DROP``. ``params`` and data frames by their names are as in
        :meth:`sql`, for an ``INSERT``.

        >>> engine.execute("plant", "INSERT INTO pump SELECT time, 'copy' AS id, rpm FROM pump").rows
        2
        >>> engine.execute("plant", "DELETE FROM pump WHERE id = 'copy'").statement
        'delete'
        """
        return self._executed(database, query, params, scopes.calling_frame())

    def _executed(self, database: str, query: str, params: Parameters, frame: FrameType | None) -> Executed:
        tables: dict[str, Table] = {}
        while True:
            try:
                return self._run(database, query, params, tables)
            except NotFoundError as error:
                self._add_local(with_place(error, query), database, frame, tables)
            except Error as error:
                raise with_place(error, query) from None
            finally:
                self._changes += 1

    def _add_local(
        self, error: NotFoundError, database: str, frame: FrameType | None, tables: dict[str, Table]
    ) -> None:
        """Adds the data frame that a name means which is no table; raises if it means none."""
        name = getattr(error, "table", None)
        if not isinstance(name, str) or getattr(error, "database", None) != database or name in tables:
            raise error from None
        value = self._registered.get(name)
        if value is None and self.replacement_scans:
            value = scopes.look_up(frame, name)
        rows = None if value is None else scopes.as_rows(value)
        if rows is None:
            if value is not None:
                said, *place = str(error.args[0]).split("\n\n", 1)
                said += f", and the variable {name!r} is a {type(value).__name__}, no data frame"
                error.args = ("\n\n".join([said, *place]),)
            raise error from None
        tables[name] = rows

    def register(self, name: str, frame: Any) -> None:
        """Has SQL see a data frame as the table ``name`` in every database that has no table of that name.

        >>> engine.register("sites", [{"id": "7", "site": "north"}])
        >>> engine.sql("plant", "SELECT site, rpm FROM pump JOIN sites USING (id)").fetchall()
        [('north', 1450)]
        >>> engine.unregister("sites")
        """
        rows = scopes.as_rows(frame)
        self._registered[name] = scopes.as_rows(arrow_of(frame)) if rows is None else rows

    def unregister(self, name: str) -> None:
        """Takes back what :meth:`register` did."""
        if self._registered.pop(name, None) is None:
            raise NotFoundError(f"no data frame is registered as {name!r}")

    def table(self, name: str) -> Relation:
        """Returns all rows of a table, named with its database: ``"plant.pump"``; without, that of ``default``.

        >>> len(engine.table("plant.pump"))
        2
        """
        database, dot, table = name.partition(".")
        if not dot:
            database, table = "default", name
        return self._planned(database, f"SELECT * FROM {quoted(table)}", None, None)

    def scan(self, name: str) -> Any:
        """Returns a table as a lazy frame of polars. Conditions, columns and a limit become a part of the query.

        >>> import polars
        >>> pump = engine.scan("plant.pump")
        >>> pump.filter(polars.col("id") == "7").select("rpm").collect().item()
        1450
        """
        return self.table(name).scan()

    def tail(self, name: str, *, since: datetime | int | None = None) -> Tail:
        """Returns the rows of a table that are acknowledged from now on, as a :class:`arc.Tail`: an iterator of dicts that
        waits for them, also for ``async for``.

        name: the table, with its database: ``"plant.pump"``; without, that of ``default``.
        since: the rows of that time and later that are stored come first, in order of time: a ``datetime``, or
            nanoseconds since 1970. No row is left out between the two, and none comes twice.

        >>> with engine.tail("plant.pump") as tail:
        ...     written = engine.write_lp("plant", "pump,id=7 rpm=1460i")
        ...     next(tail)["rpm"]
        1460
        >>> from datetime import datetime, timezone
        >>> with engine.tail("plant.pump", since=datetime(2000, 1, 1, tzinfo=timezone.utc)) as tail:
        ...     next(tail)["rpm"]
        1450
        """
        database, dot, table = name.partition(".")
        return self._tail_of(database, table, since) if dot else self._tail_of("default", name, since)

    def _tail_of(self, database: str, table: str, since: Any) -> Tail:
        from arc.tail import Tail, nanoseconds_of

        return Tail(self, self._tail(database, table, nanoseconds_of(since)))

    # Writing.

    def write_lp(
        self,
        database: str,
        data: str | bytes | bytearray | Iterable[str | bytes],
        *,
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes line protocol, as text or an iterable of lines, and returns once it is as durable as asked for.

        Good lines are stored; bad lines are named in the returned ``Written``, and raise nothing:
        ``write_lp(...).raise_for_rejected()`` turns them into an ``InvalidInputError``. A point without a timestamp
        gets the time of arrival. A point whose measurement, tags and time are there already overwrites its fields. The
        database is created by its first write. All lines are read before one is written.

        precision: the unit of the timestamps: ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"m"`` or ``"h"``.
        durability: ``"disk"``, ``"process"``, ``"memory"``, or ``"remote"`` of a server with an object store; ``None`` is its own.
        idempotency_key: a name for this write, up to 255 bytes. Sending the same lines again under it stores nothing and
            returns the first receipt, with ``replayed`` set: what to do when a write's answer was lost. Names last a day,
            and survive what the points survive.

        >>> engine.write_lp("plant", ["fan,id=1 rpm=880i 1", "fan,id=1 rpm=890i 2"]).points
        2
        """
        settings = {"precision": precision, "durability": durability, "idempotency_key": idempotency_key}
        lines = lines_of(data)
        try:
            return self._write_lp(database, lines, **settings)
        finally:
            self._changes += 1

    def write(
        self,
        table: str,
        data: Rows,
        *,
        tags: Sequence[str] | None = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Durability | None = None,
        database: str = "default",
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes rows and returns once they are as durable as asked for: all of them or none.

        ``data`` is a table of pyarrow, polars, pandas or DuckDB, a relation, anything else that exports Arrow, a dict of
        lists or arrays, or an iterable of dicts, dataclasses or named tuples. All of it is held in memory: write what is very large
        in pieces. Of pandas, NaN and NaT are null, and an index of times without a name is the time; elsewhere NaN is a
        number.

        tags: the columns that are tags. Together with the time they identify a row: a second row of the same identity
            overwrites its fields. ``None`` takes those that the table has; rows of a table without tags append.
        time: the column that holds the time, a timestamp or integers of ``precision``. It is stored as ``time``.
        precision: the unit of integers in the time column: ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"m"`` or ``"h"``.
        durability: ``"disk"``, ``"process"``, ``"memory"``, or ``"remote"`` of a server with an object store; ``None`` is its own.
        database: the database of the table; created by its first write.
        idempotency_key: a name for this write, as in ``write_lp``. The same table and settings are to be sent again.

        >>> from datetime import datetime, timezone
        >>> rows = [{"time": datetime(2026, 1, 1, tzinfo=timezone.utc), "id": "7", "open": 0.5}]
        >>> engine.write("valve", rows, tags=["id"], database="plant").points
        1
        """
        if isinstance(tags, str):
            raise TypeError("tags must be a list of str, not str")
        settings = {
            "tags": tags,
            "time": time,
            "precision": precision,
            "durability": durability,
            "database": database,
            "idempotency_key": idempotency_key,
        }
        rows = arrow_of(data, time, tags or (), to_write=True)
        try:
            return self._write(table, rows, **settings)
        finally:
            self._changes += 1

    def writer(
        self,
        table: str,
        *,
        tags: Sequence[str] | None = None,
        database: str = "default",
        durability: Durability | None = None,
        rows: int = 10_000,
        bytes: int = 4 << 20,
        seconds: Seconds = 1.0,
    ) -> Writer:
        """Returns a writer of single rows, which go to ``table`` in batches; from any number of threads.

        A batch is written once it has so many rows or bytes, or its first row is so old, and at the end of the block.

        >>> with engine.writer("pump", tags=["id"], database="plant") as pump:
        ...     pump.add(time=1_700_000_120_000_000_000, id="9", rpm=1490)
        ...     pump.add(time=1_700_000_180_000_000_000, id="9", rpm=1491)
        >>> len(engine.plant.pump.filter("id = '9'"))
        2
        """
        from arc.writer import Writer

        return Writer(
            self, table, tags=tags, database=database, durability=durability, rows=rows, bytes=bytes, seconds=seconds
        )

    # Names.

    def database(self, name: str) -> Database:
        """Returns a handle to one database, whose methods need not name it. Creates nothing."""
        from arc.database import Database

        return Database(self, name)

    def __getitem__(self, name: str) -> Database:
        if not isinstance(name, str):
            raise TypeError(f"the name of a database is a str, not {type(name).__name__}")
        return self.database(name)

    def _names(self) -> list[str]:
        return self.databases()

    def __getattr__(self, name: str) -> Database:
        # Only for what is no attribute. Protocols of Python ask for many that are none.
        if not name.startswith("_") and name in self.databases():
            return self.database(name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}, and there is no database of that name")

    def __dir__(self) -> list[str]:
        try:
            return [*super().__dir__(), *self.databases()]
        except Error:
            return list(super().__dir__())

    def _ipython_key_completions_(self) -> list[str]:
        return self.databases()

    @property
    def aio(self) -> Async:
        """The same calls for asyncio: each is to be awaited, runs on a thread, and can be cancelled.

        >>> import asyncio
        >>> async def ask():
        ...     rows = await engine.aio.sql("plant", "SELECT count(*) FROM pump")
        ...     return rows.fetchone()
        >>> asyncio.run(ask())
        (2,)
        """
        from arc.aio import Async
        from arc.threads import Threads

        # `setdefault`, for several threads may come here first. Made late, for asyncio is slow to import.
        return Async(self, self.__dict__.setdefault("_threads", Threads()))

    def __reduce__(self) -> Any:
        raise TypeError(
            f"an arc.{type(self).__name__} cannot be pickled: {self._instead}"
        )


def parameters(params: Parameters) -> Table | None:
    """Returns values for placeholders as the native module takes them."""
    return None if params is None else columns.of_parameters(params)
