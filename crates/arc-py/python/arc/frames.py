"""Tables of any library, and of none, as Arrow; and what is wrong with those that cannot be.

Never changes what it is given. Libraries are not imported here before a value of theirs is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from arc import columns, unstorable
from arc._arc import Table
from arc.errors import InvalidInputError
from arc.types import ArrowTable

if TYPE_CHECKING:
    import pandas


def instance(value: object, module: str, name: str) -> bool:
    """Returns whether a value is of a class of a library, which is imported if it is."""
    class_ = getattr(sys.modules.get(module), name, None)
    return class_ is not None and isinstance(value, class_)


def has_arrow(value: object) -> bool:
    """Returns whether a value exports Arrow's streams or arrays."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def is_frame(value: object) -> bool:
    """Returns whether a value is a table of a library."""
    return has_arrow(value) or instance(value, "pandas", "DataFrame") or instance(value, "polars", "LazyFrame")


def arrow_of(data: Any, time: str = "time", tags: Sequence[str] = (), *, to_write: bool = False) -> ArrowTable:
    """Returns anything that is a table as one that exports Arrow. A column without a value is left out, but for time and tags.

    to_write: whether to refuse what no row of a table can be without, and what would be left out.
    """
    keep = (time, *tags)
    if instance(data, "pandas", "DataFrame"):
        return of_pandas(data, keep, to_write=to_write)
    if instance(data, "polars", "LazyFrame"):
        data = data.collect()
    if is_one_column(data):
        raise InvalidInputError(f"data is a {type(data).__name__}, which is one column: write a table, such as {{'name': values}}")
    if has_arrow(data):
        table: ArrowTable = data
        check_names(names_of(data))
        if instance(data, "polars", "DataFrame"):
            for name, dtype in data.schema.items():
                unstorable.refuse_objects(name, dtype)
            if any(unstorable.has_type(dtype, "Null") for dtype in data.schema.values()):
                # What polars exports of nulls without a type is none of Arrow's arrays; pyarrow knows better.
                table = data.to_arrow()
        return table
    if isinstance(data, Mapping):
        return of_mapping(data, keep, to_write=to_write)
    if isinstance(data, (str, bytes, bytearray)) or not isinstance(data, Iterable):
        raise TypeError(
            "data must be a table that has __arrow_c_stream__ or __arrow_c_array__ (pyarrow, polars, pandas, DuckDB), "
            f"a dict of columns or an iterable of dicts or dataclasses, not {type(data).__name__}"
        )
    # All of it before anything is written: an iterator that raises half-way leaves nothing behind.
    return columns.of_rows(data, keep=keep)


def is_one_column(data: Any) -> bool:
    """Returns whether a value is a column of a library, and no table."""
    if str(getattr(data, "type", getattr(data, "dtype", ""))).lower().startswith("struct"):
        return False
    columns_ = (("pandas", "Series"), ("polars", "Series"), ("pyarrow", "Array"), ("pyarrow", "ChunkedArray"), ("numpy", "ndarray"))
    return any(instance(data, *column) for column in columns_)


def names_of(data: Any) -> list[str]:
    """Returns the names of columns, as far as the library tells them without reading."""
    for attribute in ("column_names", "columns"):
        names = getattr(data, attribute, None)
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
    schema = getattr(data, "schema", None)
    names = getattr(schema, "names", None)
    return names if isinstance(names, list) else []


def check_names(names: Iterable[str]) -> None:
    """Refuses two columns of one name, and names that cannot be one."""
    seen = set()
    for name in names:
        unstorable.refuse_name(name)
        if name in seen:
            raise InvalidInputError(f"two columns are called {name!r}")
        seen.add(name)


def of_pandas(frame: pandas.DataFrame, keep: tuple[str, ...], *, to_write: bool) -> ArrowTable:
    """Returns a data frame of pandas as Arrow. NaN, NaT and NA are null.

    An index with a name is a column; one of times without a name is the time, if there is no such column; one of integers
    without a name is left out, as it only counts the rows. Any other is refused where it is to be written, and left out in SQL.
    """
    time = keep[0]
    frame = frame.rename(columns=str)
    index = frame.index
    if instance(index, "pandas", "DatetimeIndex") and time not in frame.columns and index.name != time:
        frame = frame.rename_axis(index=time)
    if to_write:
        refuse_index(frame)
    named = any(name is not None for name in frame.index.names)
    check_names([*frame.columns, *(str(name) for name in frame.index.names if name is not None)])
    plain: dict[str, Any] = {}
    for name in frame.columns:
        unstorable.refuse_spans(name, frame[name].dtype)
        if frame[name].dtype == object:
            if set(map(type, frame[name])) <= {str, type(None)}:
                continue
            values = [None if is_missing(value) else value for value in frame[name]]
            kind, values = columns.column(name, values)
            if kind == "time":
                plain[name] = as_times(values)
            elif kind == "uint":
                plain[name] = as_unsigned(values)
    if plain:
        frame = frame.copy(deep=False)
        for name, values in plain.items():
            frame[name] = values
    if to_write and (time in frame.columns or time in frame.index.names):
        column = frame[time] if time in frame.columns else frame.index.get_level_values(time)
        refuse_missing(time, [bool(missing) for missing in column.isna()])
    try:
        import pyarrow
    except ImportError:
        if named:
            frame = frame.reset_index()
        return of_mapping({name: frame[name].to_numpy() for name in frame.columns}, keep, to_write=to_write, nan_is_null=True)
    try:
        # A default index is left out by either.
        table: ArrowTable = pyarrow.Table.from_pandas(frame, preserve_index=named)
        return table
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise unstorable_column(frame, error) from None


def unstorable_column(frame: pandas.DataFrame, error: Exception) -> InvalidInputError:
    """Returns what is wrong with the first column of a data frame that Arrow does not take."""
    import pyarrow

    for name in frame.columns:
        try:
            pyarrow.array(frame[name], from_pandas=True)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as reason:
            if isinstance(reason, UnicodeEncodeError):
                unstorable.refuse_surrogates(name, (value if isinstance(value, str) else None for value in frame[name]))
            return InvalidInputError(f"column {name!r} of {frame[name].dtype} cannot be stored: {reason}")
    return InvalidInputError(f"the data frame cannot be stored: {'; '.join(map(str, error.args))}")


def refuse_index(frame: pandas.DataFrame) -> None:
    """Refuses an index of which something would be left out, or stored as something else."""
    for level, name in enumerate(frame.index.names):
        dtype = frame.index.levels[level].dtype if frame.index.nlevels > 1 else frame.index.dtype
        unstorable.refuse_spans("index" if name is None else str(name), dtype)
        if name is None and (frame.index.nlevels > 1 or dtype.kind not in "iu"):
            raise InvalidInputError(
                f"the index of the data frame has {dtype} and no name, so that it is no column; write frame.rename_axis(…), or "
                "frame.reset_index(drop=True) without it"
            )


def is_missing(value: Any) -> bool:
    """Returns whether pandas takes a value for none."""
    return value is None or type(value).__name__ in ("NaTType", "NAType") or (isinstance(value, float) and value != value)


def as_times(values: list[Any]) -> Any:
    """Returns nanoseconds as times of pandas."""
    import pandas

    return pandas.array(pandas.to_datetime(values, unit="ns", utc=True))


def as_unsigned(values: list[Any]) -> Any:
    """Returns integers as those of pandas that go up to 64 bits."""
    import pandas

    return pandas.array(values, dtype="UInt64")


def refuse_missing(time: str, missing: list[bool]) -> None:
    """Refuses a column of times with a hole, and says where it is."""
    if any(missing):
        raise InvalidInputError(f"column {time!r} has no time in row {missing.index(True)}; each row needs one")


def of_mapping(data: Mapping[Any, Any], keep: tuple[str, ...], *, to_write: bool, nan_is_null: bool = False) -> ArrowTable:
    """Returns a dict of columns as Arrow: lists, arrays of numpy, of pandas, of pyarrow, series of polars."""
    for name, values in data.items():
        if not isinstance(name, str):
            raise InvalidInputError(f"a name of a column is a {type(name).__name__}, str was expected: {name!r}")
        if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__"):
            raise InvalidInputError(f"column {name!r} is a {type(values).__name__}; a list or an array was expected")
        if getattr(values, "ndim", 1) != 1:
            raise InvalidInputError(f"column {name!r} has {values.ndim} dimensions; one was expected")
    lengths = {name: len(values) for name, values in data.items()}
    for name, length in lengths.items():
        first = next(iter(lengths))
        if length != lengths[first]:
            raise InvalidInputError(
                f"columns have different lengths: {first!r} has {lengths[first]} values, {name!r} {length}"
            )
    converter = with_pyarrow()
    if converter is not None and any(not isinstance(values, (list, tuple)) for values in data.values()):
        return converter(data, keep, to_write, nan_is_null)
    plain = {name: list_of(name, values, nan_is_null) for name, values in data.items()}
    return columns.of_columns(plain, keep=keep)


def with_pyarrow() -> Callable[[Mapping[str, Any], tuple[str, ...], bool, bool], ArrowTable] | None:
    """Returns what makes a table of arrays without a copy, if pyarrow is there."""
    try:
        import pyarrow
    except ImportError:
        return None

    def convert(data: Mapping[str, Any], keep: tuple[str, ...], to_write: bool, nan_is_null: bool) -> ArrowTable:
        arrays = {}
        for name, values in data.items():
            if isinstance(values, (list, tuple)) or getattr(values, "dtype", None) == object:
                kind, plain = columns.column(name, list(values))
                if kind == "null" and name not in keep:
                    continue
                built = Table.build([(name, kind, plain)], len(plain))
                arrays[name] = pyarrow.table(built).column(0)
                continue
            dtype = getattr(values, "dtype", type(values).__name__)
            if instance(values, "polars", "Series"):
                unstorable.refuse_objects(name, dtype)
            unstorable.refuse_spans(name, dtype)
            if str(dtype).startswith("datetime64[") and type(values).__module__ == "numpy":
                values = in_seconds(values)
            try:
                # What exports Arrow is not read value by value: Python's times have no nanoseconds.
                if hasattr(values, "__arrow_c_stream__") and not instance(values, "pandas", "Series"):
                    arrays[name] = pyarrow.chunked_array(values)
                else:
                    arrays[name] = pyarrow.array(values, from_pandas=nan_is_null or None)
            except (pyarrow.ArrowException, ValueError, TypeError) as error:
                raise InvalidInputError(f"column {name!r} of {dtype} cannot be stored: {error}") from None
            if to_write and name == keep[0] and arrays[name].null_count:
                refuse_missing(name, arrays[name].is_null().to_pylist())
        table: ArrowTable = pyarrow.table(arrays)
        return table

    return convert


def in_seconds(values: Any) -> Any:
    """Returns an array of times of numpy in a unit that Arrow has."""
    import numpy

    unit, steps = numpy.datetime_data(values.dtype)
    coarse = unit in ("Y", "M", "W", "h", "m") or (unit in ("D", "s") and steps > 1)
    return values.astype("datetime64[s]") if coarse else values


def list_of(name: str, values: Any, nan_is_null: bool) -> list[Any]:
    """Returns a column as a list of Python's values."""
    if instance(values, "polars", "Series") and "'ns'" in str(values.dtype):
        raise InvalidInputError(f"column {name!r} has nanoseconds, which Python's values do not; install pyarrow, or write the data frame")
    if type(values).__module__ == "numpy" and str(values.dtype).startswith("datetime64"):
        return list(values)
    if isinstance(values, (list, tuple)):
        return list(values)
    plain: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if is_missing(value) else value for value in plain] if nan_is_null else plain


def lines_of(data: Any) -> str | bytes | bytearray:
    """Returns line protocol as one text or bytes; lines of an iterable one after the other."""
    if isinstance(data, (str, bytes, bytearray)):
        return data
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise TypeError(f"data must be str, bytes, bytearray or an iterable of lines, not {type(data).__name__}")
    lines = []
    for at, line in enumerate(data):
        if isinstance(line, str):
            line = line.encode()
        elif not isinstance(line, (bytes, bytearray)):
            raise TypeError(f"line {at + 1} is a {type(line).__name__}; str or bytes was expected")
        lines.append(line.rstrip(b"\n"))
    return b"\n".join(lines)
