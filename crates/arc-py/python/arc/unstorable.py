"""What a library hands over as something else than it is: refused by name, before any row is written.

Knows types only, and reads no value. Called by ``arc.frames``. Libraries are not imported here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from arc.errors import InvalidInputError


def refuse_name(name: str) -> None:
    """Refuses a name that Arrow's C interface would cut off."""
    if "\0" in name:
        raise InvalidInputError(f"the name of a column has a character NUL: {name!r}")


def refuse_new_name(name: str) -> None:
    """Refuses a name that no column of a table can have."""
    refuse_name(name)
    refuse_surrogates(name, [name])
    if not name:
        raise InvalidInputError("the name of a column is empty")
    if len(name.encode()) > 256:
        raise InvalidInputError(f"the name of a column is longer than 256 bytes: {name[:40]!r}…")
    if any(unicodedata.category(sign) == "Cc" for sign in name):
        raise InvalidInputError(f"the name of a column has a control character: {name!r}")


def refuse_surrogates(name: str, values: Iterable[str | None]) -> None:
    """Refuses texts that have no UTF-8: those with half of a character that UTF-16 writes in two."""
    for at, value in enumerate(values):
        if value is not None and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InvalidInputError(f"column {name!r} has a text that has no UTF-8 in row {at}: {value!r}") from None


def refuse_objects(name: str, dtype: Any) -> None:
    """Refuses a type of polars that has objects of Python in it: polars exports where they lie in memory, not what they are."""
    if has_type(dtype, "Object"):
        raise InvalidInputError(
            f"column {name!r} has objects of Python (polars {dtype}), which cannot be stored; texts, numbers, bools or times were expected"
        )


def has_type(dtype: Any, name: str) -> bool:
    """Returns whether a type of polars is the one of this name, or has it inside."""
    inner = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    return str(dtype) == name or any(has_type(part, name) for part in inner if part is not None)


def refuse_spans(name: str, dtype: Any) -> None:
    """Refuses periods and intervals of pandas, of which Arrow would keep bare numbers."""
    kind = type(dtype).__name__
    if kind in ("PeriodDtype", "IntervalDtype"):
        instead = ".dt.to_timestamp()" if kind == "PeriodDtype" else "two columns, .array.left and .array.right"
        raise InvalidInputError(f"column {name!r} is of {dtype}, which cannot be stored; write {instead}")
