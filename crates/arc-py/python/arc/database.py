"""A handle to one database of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from arc import scopes
from arc.errors import Error, NotFoundError
from arc.names import Named
from arc.relation import Parameters, Relation

if TYPE_CHECKING:
    from datetime import datetime

    from arc.receipts import Executed, Written
    from arc.store import Store
    from arc.tail import Tail
    from arc.types import Durability, FileTimeUnit, FinerTimes, OnConflict, Precision, Rows, Seconds
    from arc.writer import Writer


class Database(Named):
    """One database of an engine: the same methods, without its name in each call.

    Made by ``engine.database(name)``, ``engine[name]`` and ``engine.name``. Holds nothing but the engine and the name; the
    database itself is created by its first write. Its tables are attributes and items: ``engine.plant.pump`` is a
    :class:`arc.Relation` of all rows.

    >>> engine.plant.pump.filter("id = '7'").select("rpm").fetchall()
    [(1450,)]
    """

    __slots__ = ("engine", "name")

    engine: Any
    """The engine, :class:`arc.Engine` or :class:`arc.Connection`."""
    name: str
    """The name of the database."""

    def __init__(self, engine: Store, name: str) -> None:
        self.engine = engine
        self.name = name

    def write_lp(
        self,
        data: str | bytes | bytearray | Iterable[str | bytes],
        *,
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes line protocol; see :meth:`arc.Engine.write_lp`."""
        written: Written = self.engine.write_lp(
            self.name, data, precision=precision, durability=durability, idempotency_key=idempotency_key
        )
        return written

    def write(
        self,
        table: str,
        data: Rows,
        *,
        tags: Sequence[str] | None = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes rows; see :meth:`arc.Engine.write`."""
        written: Written = self.engine.write(
            table,
            data,
            tags=tags,
            time=time,
            precision=precision,
            durability=durability,
            database=self.name,
            idempotency_key=idempotency_key,
        )
        return written

    def writer(
        self,
        table: str,
        *,
        tags: Sequence[str] | None = None,
        durability: Durability | None = None,
        rows: int = 10_000,
        bytes: int = 4 << 20,
        seconds: Seconds = 1.0,
    ) -> Writer:
        """Returns a writer of single rows; see :meth:`arc.Engine.writer`."""
        writer: Writer = self.engine.writer(
            table, tags=tags, database=self.name, durability=durability, rows=rows, bytes=bytes, seconds=seconds
        )
        return writer

    def delete(self, table: str, where: str) -> None:
        """Deletes points of a table; see :meth:`arc.Engine.delete`."""
        self.engine.delete(self.name, table, where)

    def set_retention(self, retention: Seconds | None, *, table: str | None = None) -> None:
        """Sets how long points are kept; see :meth:`arc.Engine.set_retention`."""
        self.engine.set_retention(self.name, retention, table=table)

    def set_durability(self, durability: Durability | None) -> None:
        """Sets what points survive once written; see :meth:`arc.Engine.set_durability`."""
        self.engine.set_durability(self.name, durability)

    def set_column_types(
        self,
        *,
        table: str | None = None,
        string_columns: Sequence[str] | None = None,
        on_conflict: OnConflict | None = None,
        time_unit: FileTimeUnit | None = None,
        finer_times: FinerTimes | None = None,
    ) -> None:
        """Sets how strict a table is about types; see :meth:`arc.Engine.set_column_types`."""
        self.engine.set_column_types(
            self.name,
            table=table,
            string_columns=string_columns,
            on_conflict=on_conflict,
            time_unit=time_unit,
            finer_times=finer_times,
        )

    def sql(self, query: str, params: Parameters = None) -> Relation:
        """Plans one SQL statement that reads; see :meth:`arc.Engine.sql`."""
        relation: Relation = self.engine._planned(self.name, query, params, scopes.calling_frame())
        return relation

    def execute(self, query: str, params: Parameters = None) -> Executed:
        """Runs one SQL statement that changes data; see :meth:`arc.Engine.execute`."""
        executed: Executed = self.engine.execute(self.name, query, params)
        return executed

    def table(self, name: str) -> Relation:
        """Returns all rows of a table, whatever its name is."""
        return self[name]

    def scan(self, table: str) -> Any:
        """Returns a table as a lazy frame of polars; see :meth:`arc.Engine.scan`."""
        return self[table].scan()

    def tail(self, table: str, *, since: datetime | int | None = None) -> Tail:
        """Returns the rows of a table that are acknowledged from now on; see :meth:`arc.Engine.tail`."""
        tail: Tail = self.engine._tail_of(self.name, table, since)
        return tail

    def tables(self) -> list[str]:
        """Returns the names of the tables, sorted."""
        names: list[str] = self.engine.tables(self.name)
        return names

    def data_files(self, table: str) -> list[str]:
        """Returns the paths of the Parquet files of ``table``, oldest first; see :meth:`arc.Engine.data_files`."""
        files: list[str] = self.engine.data_files(self.name, table)
        return files

    def __getitem__(self, table: str) -> Relation:
        from arc.relation import quoted

        relation: Relation = self.engine._planned(self.name, f"SELECT * FROM {quoted(table)}", None, None)
        return relation

    def _names(self) -> list[str]:
        try:
            return self.tables()
        except NotFoundError:
            # As before its first write.
            return []

    def __getattr__(self, name: str) -> Relation:
        # Only for what is no attribute. Protocols of Python ask for many that are none.
        if not name.startswith("_"):
            try:
                if name in self.tables():
                    return self[name]
            except LookupError:
                pass
        raise AttributeError(f"'Database' has no attribute {name!r}, and {self.name!r} has no table of that name")

    def __dir__(self) -> list[str]:
        try:
            return [*super().__dir__(), *self.tables()]
        except Error:
            return list(super().__dir__())

    def _ipython_key_completions_(self) -> list[str]:
        return self.tables()

    def __repr__(self) -> str:
        return f"<arc.Database {self.name!r} of {self.engine!r}>"
