"""A handle to one database of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arc._arc import Answer, Engine
    from arc.receipts import Written
    from arc.types import ArrowTable, Durability, OnConflict, Precision, Seconds


class Database:
    """One database of an engine: the same methods, without its name in each call.

    Made by ``engine.database(name)``. Holds nothing but the engine and the name; the database itself is created by its
    first write.
    """

    __slots__ = ("engine", "name")

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def write_lp(
        self,
        data: str | bytes | bytearray,
        *,
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes line protocol; see :meth:`arc.Engine.write_lp`."""
        return self.engine.write_lp(
            self.name, data, precision=precision, durability=durability, idempotency_key=idempotency_key
        )

    def write(
        self,
        table: str,
        data: ArrowTable,
        *,
        tags: Sequence[str] | None = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes a table of columns; see :meth:`arc.Engine.write`."""
        return self.engine.write(
            table,
            data,
            tags=tags,
            time=time,
            precision=precision,
            durability=durability,
            database=self.name,
            idempotency_key=idempotency_key,
        )

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
    ) -> None:
        """Sets how strict a table is about types; see :meth:`arc.Engine.set_column_types`."""
        self.engine.set_column_types(
            self.name, table=table, string_columns=string_columns, on_conflict=on_conflict
        )

    def sql(self, query: str) -> Answer:
        """Runs one SQL statement; see :meth:`arc.Engine.sql`."""
        return self.engine.sql(self.name, query)

    def tables(self) -> list[str]:
        """Returns the names of the tables, sorted."""
        return self.engine.tables(self.name)

    def data_files(self, table: str) -> list[str]:
        """Returns the paths of the Parquet files of ``table``, oldest first; see :meth:`arc.Engine.data_files`."""
        return self.engine.data_files(self.name, table)

    def __repr__(self) -> str:
        return f"<arc.Database {self.name!r} of {self.engine!r}>"
