"""Columns as arrays of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arc._arc import Table
from arc.rows import UNITS, convert

if TYPE_CHECKING:
    import numpy

TYPES = {
    "Int8": "i1", "Int16": "i2", "Int32": "i4", "Int64": "i8", "UInt8": "u1", "UInt16": "u2", "UInt32": "u4",
    "UInt64": "u8", "Float32": "f4", "Float64": "f8", "Boolean": "?",
}  # fmt: skip

NAT = -(2**63)
"""The count that numpy takes for no time."""


def arrays_of(table: Table) -> dict[str, numpy.ndarray[Any, Any]]:
    """Returns the columns as arrays, by their names."""
    try:
        import pyarrow
    except ImportError:
        pyarrow = None
    found = {}
    columns = None
    for at, (name, type_) in enumerate(zip(table.schema.names, table.schema.types)):
        if pyarrow is not None and type_ in TYPES:
            column = pyarrow.table(table).column(at)
            if column.null_count == 0:
                array = column.to_numpy()
                # One of a single piece is that piece, which nobody may change.
                found[name] = array if array.flags.writeable else array.copy()
                continue
        columns = table.columns() if columns is None else columns
        found[name] = array_of(type_, columns[at])
    return found


def array_of(type_: str, values: list[Any]) -> numpy.ndarray[Any, Any]:
    """Returns one column, of plain values."""
    import numpy

    if type_.startswith(("Timestamp(", "Duration(")):
        unit = type_[type_.index("(") + 1 :].split(",")[0].rstrip(")").replace("µ", "u")
        kind = "datetime64" if type_.startswith("T") else "timedelta64"
        counts = numpy.array([NAT if value is None else value for value in values], "i8")
        array = counts.view(f"{kind}[{unit}]")
        # Beyond 1677 to 2262 nanoseconds would be another time.
        fits = all(value is None or abs(value) <= 2**63 // UNITS[unit] - 1 for value in values)
        return array.astype(f"{kind}[ns]") if fits else array
    if type_ in TYPES:
        missing = [value is None for value in values]
        if any(missing):
            filled = numpy.array([0 if value is None else value for value in values], TYPES[type_])
            masked: numpy.ndarray[Any, Any] = numpy.ma.MaskedArray(filled, missing)
            return masked
        return numpy.array(values, TYPES[type_])
    array = numpy.empty(len(values), object)
    for at, value in enumerate(convert(type_, values)):
        array[at] = value
    return array
