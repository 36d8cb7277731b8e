"""Local data frames by their names in SQL: looks them up where the statement was asked."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from arc._arc import Table


def calling_frame() -> FrameType | None:
    """Returns the innermost frame that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module != "arc" and not module.startswith("arc."):
            return frame
        frame = frame.f_back
    return None


def look_up(frame: FrameType | None, name: str) -> Any:
    """Returns what a name means in a frame: a local variable, or a global one. ``None`` if it means nothing."""
    if frame is None:
        return None
    if name in frame.f_locals:
        return frame.f_locals[name]
    return frame.f_globals.get(name)


def as_rows(value: Any) -> Table | None:
    """Returns the rows of a data frame, without a copy where its library allows that; ``None`` if it is none."""
    if isinstance(value, Table):
        return value
    if isinstance(value, type):
        return None
    from arc.frames import arrow_of, is_frame

    return Table.from_arrow(arrow_of(value)) if is_frame(value) else None
