"""What a library hands over as something else than it is: refused by name, before any row is written.

Knows types only, and reads no value. Called by ``arc.frames``. Libraries are not imported here.
"""

from __future__ import annotations

from typing import Any

from arc.errors import InvalidInputError


def refuse_name(name: str) -> None:
    """Refuses a name that Arrow's C interface would cut off."""
    if "\0" in name:
        raise InvalidInputError(f"the name of a column has a character NUL: {name!r}")


def refuse_objects(name: str, dtype: Any) -> None:
    """Refuses a type of polars that has objects of Python in it: polars exports where they lie in memory, not what they are."""
    if has_objects(dtype):
        raise InvalidInputError(
            f"column {name!r} has objects of Python (polars {dtype}), which cannot be stored; texts, numbers, bools or times were expected"
        )


def has_objects(dtype: Any) -> bool:
    """Returns whether a type of polars is ``Object``, or has it inside."""
    inner = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    return str(dtype) == "Object" or any(has_objects(part) for part in inner if part is not None)


def refuse_spans(name: str, dtype: Any) -> None:
    """Refuses periods and intervals of pandas, of which Arrow would keep bare numbers."""
    kind = type(dtype).__name__
    if kind in ("PeriodDtype", "IntervalDtype"):
        instead = ".dt.to_timestamp()" if kind == "PeriodDtype" else "two columns, .array.left and .array.right"
        raise InvalidInputError(f"column {name!r} is of {dtype}, which cannot be stored; write {instead}")
