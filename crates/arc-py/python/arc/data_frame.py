"""A table as a data frame of pandas, with pyarrow or without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arc._arc import Table
from arc.arrays import TYPES, array_of
from arc.errors import InvalidInputError
from arc.rows import convert

if TYPE_CHECKING:
    import pandas

    from arc.types import DtypeBackend

TEXTS = ("Utf8", "LargeUtf8", "Utf8View")
NULLABLE = {
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
    **{"float": "Float32", "double": "Float64", "bool": "boolean"},
    **dict.fromkeys(("string", "large_string", "string_view"), "string"),
}
"""Types of pandas with ``NA``, by the names that pyarrow has for its own."""


def check_backend(backend: object) -> None:
    """Refuses what is no name of types of pandas."""
    if backend not in (None, "numpy_nullable", "pyarrow"):
        expected = "'numpy_nullable' or 'pyarrow' was expected"
        raise InvalidInputError(f"dtype_backend is {backend!r}; {expected}")


def frame_of(table: Table, backend: DtypeBackend | None = None) -> pandas.DataFrame:
    """Returns the rows as a data frame, of the same types with pyarrow and without; with it, faster."""
    import pandas

    try:
        import pyarrow
    except ImportError:
        if backend == "pyarrow":
            raise
        made_of = series_of if backend is None else nullable_series_of
        columns = [made_of(*column) for column in zip(table.schema.types, table.columns())]
        # By numbers first, for two columns of an answer may have one name.
        frame = pandas.DataFrame(dict(enumerate(columns)), index=range(len(table)))
        frame.columns = pandas.Index(table.schema.names)
        return frame
    mapper = {None: None, "numpy_nullable": nullable_type, "pyarrow": pandas.ArrowDtype}[backend]
    made: pandas.DataFrame = pyarrow.table(table).to_pandas(types_mapper=mapper)
    return made


def nullable_type(type_: Any) -> Any:
    """Returns the type of pandas with ``NA`` for one of pyarrow; ``None`` where there is none."""
    import pandas

    name = NULLABLE.get(str(type_))
    return None if name is None else pandas.api.types.pandas_dtype(name)


def nullable_series_of(type_: str, values: list[Any]) -> Any:
    """Returns one column of a type with ``NA``; of its usual type where there is no such one."""
    import pandas

    if type_ in TEXTS or type_ in TYPES:
        name = "string" if type_ in TEXTS else "boolean" if type_ == "Boolean" else type_
        return pandas.Series(pandas.array(values, dtype=name))
    return series_of(type_, values)


def series_of(type_: str, values: list[Any]) -> Any:
    """Returns one column, of plain values."""
    import numpy
    import pandas

    if type_.startswith("Timestamp("):
        series = pandas.Series(array_of(type_, values))
        zone = type_.partition(", ")[2].rstrip(")").strip('"')
        if not zone or zone == "None":
            return series
        return series.dt.tz_localize("UTC").dt.tz_convert(zone)
    if type_.startswith("Dictionary("):
        return pandas.Series(pandas.Categorical(values))
    if type_.startswith(("Int", "UInt", "Float", "Duration(")):
        array: Any = array_of(type_, values)
        if isinstance(array, numpy.ma.MaskedArray):
            # As everywhere in pandas, integers with a gap are floats.
            floats = array if array.dtype.kind == "f" else array.astype("f8")
            array = numpy.ma.filled(floats, numpy.nan)
        return pandas.Series(array)
    if type_ == "Boolean" and None not in values:
        return pandas.Series(values, dtype=bool)
    plain = convert(type_, values)
    if type_ in TEXTS and any(value is not None for value in plain):
        return pandas.Series(plain)
    return pandas.Series(plain, dtype=object)
