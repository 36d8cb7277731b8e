"""Names for type annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Union


class ArrowStream(Protocol):
    """A table: anything that exports an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """A record batch: anything that exports an Arrow struct array."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


ArrowTable = Union[ArrowStream, ArrowArray]
"""A table of a library."""


class DataclassRow(Protocol):
    """A row that is a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class NamedTupleRow(Protocol):
    """A row that is a named tuple."""

    def _asdict(self) -> dict[str, Any]: ...


class LazyTable(Protocol):
    """A table that is computed when it is written: a lazy frame of polars."""

    def collect_schema(self) -> Any: ...
    def collect(self) -> Any: ...


Rows = Union[ArrowTable, LazyTable, Mapping[str, Any], Iterable[Union[Mapping[str, Any], DataclassRow, NamedTupleRow]]]
"""What ``Engine.write`` takes: a table, a dict of columns, or rows that are dicts, dataclasses or named tuples."""

ColumnType = Literal["float", "integer", "unsigned", "boolean", "string"]
"""What a column of a CSV file is."""

Durability = Literal["remote", "disk", "process", "memory"]
"""What a point survives once its write has returned: loss of the machine (servers with an object store), loss of power, ``kill -9``,
nothing."""

DtypeBackend = Literal["numpy_nullable", "pyarrow"]
"""Types of the columns of a data frame of pandas, by the names that its readers have for them."""

FileTimeUnit = Literal["ns", "us", "ms"]
"""Unit of the times in Parquet files."""

FinerTimes = Literal["keep", "reject", "round"]
"""What becomes of a point whose time is finer than that unit."""

OnConflict = Literal["reject", "widen"]
"""What becomes of a value whose type is not its column's."""

Precision = Literal["ns", "us", "ms", "s", "m", "h"]
"""Unit of timestamps."""

Seconds = Union[float, timedelta]
"""A time span."""


class ColumnTypes(NamedTuple):
    """How strict a table or a database is about types; ``None`` where it does not say it itself."""

    string_columns: list[str] | None
    """Patterns of the names of new fields that are text."""
    on_conflict: OnConflict | None
    """What becomes of a value whose type is not its column's."""
    time_unit: FileTimeUnit | None
    """Unit of the times in Parquet files."""
    finer_times: FinerTimes | None
    """What becomes of a point whose time is finer than that unit."""
