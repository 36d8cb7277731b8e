"""A table as a data frame of pandas, with pyarrow or without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arc._arc import Table
from arc.arrays import array_of
from arc.rows import convert

if TYPE_CHECKING:
    import pandas


def frame_of(table: Table) -> pandas.DataFrame:
    """Returns the rows as a data frame, of the same types with pyarrow and without; with it, faster."""
    import pandas

    try:
        import pyarrow
    except ImportError:
        columns = [series_of(type_, values) for type_, values in zip(table.schema.types, table.columns())]
        # By numbers first, for two columns of an answer may have one name.
        frame = pandas.DataFrame(dict(enumerate(columns)), index=range(len(table)))
        frame.columns = pandas.Index(table.schema.names)
        return frame
    made: pandas.DataFrame = pyarrow.table(table).to_pandas()
    return made


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
            # As everywhere in pandas, numbers with a gap are floats.
            array = numpy.ma.filled(array.astype("f8"), numpy.nan)
        return pandas.Series(array)
    if type_ == "Boolean" and None not in values:
        return pandas.Series(values, dtype=bool)
    plain = convert(type_, values)
    if type_ in ("Utf8", "LargeUtf8", "Utf8View") and any(value is not None for value in plain):
        return pandas.Series(plain)
    return pandas.Series(plain, dtype=object)
