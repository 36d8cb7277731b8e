"""What rows can be turned into: the half of a result that does not care where its rows come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from arc.render import as_html, as_text
from arc.rows import python_type, rows_of

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from arc._arc import Schema, Table
    from arc.types import DtypeBackend

SHOWN = 20
"""Rows that ``repr`` and ``show`` show."""


class Readable:
    """Rows that can be read in any form. The base of :class:`arc.Relation` and :class:`arc.Result`."""

    __slots__ = ("_cursor", "__weakref__")

    _cursor: tuple[Iterator[Table], list[tuple[Any, ...]]] | None

    @property
    def schema(self) -> Schema:
        """The names and Arrow types of the columns; ``pyarrow.schema(rows.schema)`` for more."""
        raise NotImplementedError

    def table(self) -> Table:
        """Returns all rows in memory, as an Arrow stream that can be read any number of times."""
        raise NotImplementedError

    def batches(self) -> Iterator[Table]:
        """Yields the rows part by part, while they are computed."""
        raise NotImplementedError

    def head(self, rows: int) -> tuple[Table, bool]:
        """Returns the first rows, and whether there are more."""
        raise NotImplementedError

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.schema.names

    @property
    def types(self) -> list[str]:
        """The Arrow types of the columns, as text."""
        return self.schema.types

    @property
    def description(self) -> list[tuple[str, type, None, None, None, None, None]]:
        """The columns as Python's DB-API has them: a name, a type, and five times nothing."""
        return [
            (name, python_type(type_), None, None, None, None, None) for name, type_ in zip(self.columns, self.types)
        ]

    def arrow(self) -> pyarrow.Table:
        """Returns all rows as a table of pyarrow, without a copy.

        >>> engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY time").arrow()["rpm"].to_pylist()
        [1450, 1502]
        """
        import pyarrow

        return pyarrow.table(self.table())

    def reader(self) -> pyarrow.RecordBatchReader:
        """Returns the rows as a stream of pyarrow, which computes them while it is read."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def write_parquet(
        self,
        path: str | PathLike[str],
        *,
        compression: Literal["zstd", "snappy", "lz4", "none"] = "zstd",
    ) -> int:
        """Writes the rows to a Parquet file while they are computed, and returns how many there were. Needs no other library.

        >>> engine.sql("plant", "SELECT * FROM pump").write_parquet("pump.parquet")
        2

        The file has its name once all rows are in it and on disk; one that was there is replaced then.
        """
        from arc._arc import ParquetFile

        file = ParquetFile(os.path.expanduser(path), self.schema, compression)
        rows = 0
        try:
            for part in self.batches():
                file.write(part)
                rows += len(part)
            file.finish()
        except BaseException:
            file.discard()
            raise
        return rows

    def df(self, *, dtype_backend: DtypeBackend | None = None) -> pandas.DataFrame:
        """Returns all rows as a data frame of pandas. Tags are categories.

        dtype_backend: the types of the columns, as in the readers of pandas: ``"numpy_nullable"``
            those with ``NA``, ``"pyarrow"`` those of Arrow, for tags too. By default integers among
            which there are nulls become floats, which are not exact beyond 2^53.

        >>> engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY time").df()
          id   rpm
        0  7  1450
        1  8  1502
        >>> rows = engine.sql("plant", "SELECT * FROM (VALUES (9007199254740993), (NULL)) AS t (n)")
        >>> rows.df(dtype_backend="numpy_nullable")
                          n
        0  9007199254740993
        1              <NA>
        """
        from arc.data_frame import check_backend, frame_of

        check_backend(dtype_backend)
        return frame_of(self.table(), dtype_backend)

    def pl(self) -> polars.DataFrame:
        """Returns all rows as a data frame of polars, without a copy.

        >>> engine.sql("plant", "SELECT max(rpm) AS most FROM pump").pl().item()
        1502
        """
        import polars

        return polars.DataFrame(self.table())

    def numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Returns each column as an array of numpy.

        Times are ``datetime64[ns]`` of UTC, with ``NaT``, or of their own unit where nanoseconds do not hold them. A column of numbers or truths that has nulls is a masked array,
        so that no integer becomes a float; texts are objects.

        >>> engine.sql("plant", "SELECT rpm FROM pump ORDER BY time").numpy()
        {'rpm': array([1450, 1502])}
        """
        from arc.arrays import arrays_of

        return arrays_of(self.table())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows, or those that ``fetchone`` and ``fetchmany`` left, as tuples. Needs no other library.

        Times are ``datetime`` with microseconds, and cut after them: :meth:`arrow` has all digits.

        >>> engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY time").fetchall()
        [('7', 1450), ('8', 1502)]
        """
        if self._cursor is None:
            return rows_of(self.table())
        batches, left = self._cursor
        self._cursor = None
        for batch in batches:
            left.extend(rows_of(batch))
        return left

    def dicts(self) -> list[dict[str, Any]]:
        """Returns all rows as dicts, with the values that :meth:`fetchall` has. Needs no other library.

        >>> engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY time LIMIT 1").dicts()
        [{'id': '7', 'rpm': 1450}]
        """
        table = self.table()
        names = table.schema.names
        return [dict(zip(names, row)) for row in rows_of(table)]

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """Returns the next rows, at most ``size``; none at the end, after which it begins anew."""
        if size < 1:
            raise ValueError(f"size is {size}; a number from 1 was expected")
        if self._cursor is None:
            self._cursor = (self.batches(), [])
        batches, left = self._cursor
        while len(left) < size:
            try:
                batch = next(batches, None)
            except BaseException:
                # What is left is not all: it is no end.
                self._cursor = None
                raise
            if batch is None:
                break
            left.extend(rows_of(batch))
        rows, rest = left[:size], left[size:]
        self._cursor = (batches, rest) if rows else None
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the next row, ``None`` at the end, after which it begins anew.

        >>> engine.sql("plant", "SELECT count(*) FROM pump").fetchone()
        (2,)
        """
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def show(self, rows: int = SHOWN) -> None:
        """Prints the first rows as a table.

        >>> engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY time").show()
        ┌─────┬───────┐
        │ id  │ rpm   │
        │ tag │ int64 │
        ├─────┼───────┤
        │ 7   │  1450 │
        │ 8   │  1502 │
        └─────┴───────┘
        2 rows
        """
        print(self._drawn(rows))

    def _drawn(self, rows: int = SHOWN) -> str:
        table, has_more = self.head(rows)
        return as_text(table.schema.names, table.schema.types, rows_of(table), has_more)

    def __repr__(self) -> str:
        return self._drawn()

    def _repr_html_(self) -> str:
        table, has_more = self.head(SHOWN)
        return as_html(table.schema.names, table.schema.types, rows_of(table), has_more)

    def __iter__(self) -> Iterator[Table]:
        """Yields the rows part by part, each an Arrow stream: ``for part in relation: pyarrow.table(part)``."""
        return self.batches()

    def __bool__(self) -> bool:
        # Not by the number of rows, which would run the query.
        return True

    def __array__(self, *_: object, **__: object) -> Any:
        # Libraries that read no Arrow, such as pandas' constructor, would make a column of the parts.
        name, instead = type(self).__name__, "df() returns a data frame of pandas, numpy() arrays"
        raise TypeError(f"an arc.{name} is no array: {instead}")

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> Any:
        raise TypeError(f"an arc.{type(self).__name__} cannot be pickled; what arrow(), df() or pl() return can be")


class Result(Readable):
    """Rows in memory: what a query of ``engine.aio`` returns."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Table) -> None:
        self._rows = rows
        self._cursor = None

    @property
    def schema(self) -> Schema:
        return self._rows.schema

    def table(self) -> Table:
        return self._rows

    def batches(self) -> Iterator[Table]:
        return iter([self._rows] if len(self._rows) else [])

    def head(self, rows: int) -> tuple[Table, bool]:
        return self._rows.slice(0, rows), len(self._rows) > rows

    def __len__(self) -> int:
        return len(self._rows)
