"""Small tables for people: as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

WIDEST = 40
"""Characters of a value that are shown."""


def cell(value: Any) -> str:
    """Returns a value as it is shown."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return repr(value)
    isoformat = getattr(value, "isoformat", None)
    text = str(isoformat()) if isoformat else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("+00:00", "Z" if isoformat else "+00:00")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def as_text(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]], has_more: bool) -> str:
    """Returns a table drawn with lines."""
    body = [[cell(value) for value in row] for row in rows]
    heads = [[cell(name) for name in columns], [short(type_) for type_ in types]]
    widths = [max(len(row[at]) for row in heads + body) for at in range(len(columns))]
    right = [type_.startswith(("Int", "UInt", "Float", "Decimal")) for type_ in types]

    def line(left: str, middle: str, end: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + end

    def drawn(row: Sequence[str], numbers: bool) -> str:
        padded = [
            text.rjust(width) if numbers and is_number else text.ljust(width)
            for text, width, is_number in zip(row, widths, right)
        ]
        return "│ " + " │ ".join(padded) + " │"

    lines = [line("┌", "┬", "┐"), *(drawn(head, False) for head in heads), line("├", "┼", "┤")]
    lines += [drawn(row, True) for row in body]
    lines.append(line("└", "┴", "┘"))
    lines.append(counted(len(rows), has_more))
    return "\n".join(lines)


def as_html(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]], has_more: bool) -> str:
    """Returns a table for a notebook."""
    heads = "".join(
        f"<th>{escape(cell(name))}<br><small>{escape(short(type_))}</small></th>" for name, type_ in zip(columns, types)
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(value))}</td>" for value in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<small>{escape(counted(len(rows), has_more))}</small>"


def counted(rows: int, has_more: bool) -> str:
    """Says how many rows are shown."""
    if has_more:
        return f"first {rows} rows"
    return f"{rows} row" if rows == 1 else f"{rows} rows"


def short(type_: str) -> str:
    """Returns the name of a type for a head."""
    if type_.startswith("Dictionary(") and type_.endswith("Utf8)"):
        return "tag"
    names = {"Utf8": "text", "Utf8View": "text", "LargeUtf8": "text", "Boolean": "bool"}
    return names.get(type_, "time" if type_.startswith("Timestamp(") else type_.lower())
